/**
 * Faults that tests play on the writer thread, through memory that both threads see: the writer may be stuck when
 * the fault is to end. A store opened without them has no such memory and no such code path.
 */
const HANG = 0;
const LOSE_ANSWER = 1;
const COMMIT = 2;
const CRASH = 3;
const REFUSE_START = 4;
const MAX_PAGES = 5;

const COMMIT_FAULTS = ['none', 'fails-unstored', 'fails-stored', 'stays-unknown'] as const;
/** How the next COMMIT fails: without effect, after it took effect, or without a way to find out. */
export type CommitFault = (typeof COMMIT_FAULTS)[number];

export type WriterFaults = {
  readonly memory: SharedArrayBuffer;
  /** The writer stops before its next batch until `resume`. */
  readonly hang: () => void;
  readonly resume: () => void;
  /** The next batch is stored, its answer never sent. */
  readonly loseNextAnswer: () => void;
  readonly failNextCommit: (fault: CommitFault) => void;
  /** The writer thread dies on its next message. */
  readonly crashNext: () => void;
  /** While set, a new writer thread dies at its start. */
  readonly refuseStart: (refuse: boolean) => void;
  /** Bounds the file to so many pages (`PRAGMA max_page_count`) from the next message on. */
  readonly maxPages: (pages: number) => void;
};

export const createWriterFaults = (): WriterFaults => {
  const memory = new SharedArrayBuffer(6 * Int32Array.BYTES_PER_ELEMENT);
  const slots = new Int32Array(memory);
  const set = (slot: number, value: number): void => {
    Atomics.store(slots, slot, value);
    Atomics.notify(slots, slot);
  };
  return {
    memory,
    hang: () => set(HANG, 1),
    resume: () => set(HANG, 0),
    loseNextAnswer: () => set(LOSE_ANSWER, 1),
    failNextCommit: (fault) => set(COMMIT, COMMIT_FAULTS.indexOf(fault)),
    crashNext: () => set(CRASH, 1),
    refuseStart: (refuse) => set(REFUSE_START, refuse ? 1 : 0),
    maxPages: (pages) => set(MAX_PAGES, pages),
  };
};

/** The writer's side of the same memory. */
export type FaultReader = {
  readonly atStart: () => void;
  readonly beforeMessage: (setMaxPages: (pages: number) => void) => void;
  readonly beforeBatch: () => void;
  readonly takeCommitFault: () => CommitFault;
  readonly takeLostAnswer: () => boolean;
};

export const readFaults = (memory: SharedArrayBuffer): FaultReader => {
  const slots = new Int32Array(memory);
  const take = (slot: number): number => Atomics.exchange(slots, slot, 0);
  return {
    atStart: () => {
      if (Atomics.load(slots, REFUSE_START) === 1) throw new Error('fault: the writer does not start');
    },
    beforeMessage: (setMaxPages) => {
      if (take(CRASH) === 1) throw new Error('fault: the writer dies');
      const pages = take(MAX_PAGES);
      if (pages > 0) setMaxPages(pages);
    },
    beforeBatch: () => {
      Atomics.wait(slots, HANG, 1);
    },
    takeCommitFault: () => COMMIT_FAULTS[take(COMMIT)] ?? 'none',
    takeLostAnswer: () => take(LOSE_ANSWER) === 1,
  };
};
