import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type EventStore,
} from '../../../src/app/log/event-store.ts';

/** Chances (0 to 1) of each fault per call. */
export type Faults = {
  /** The append is refused as not sent. */
  readonly unavailable: number;
  /** The append is stored and its answer lost. */
  readonly lostAnswer: number;
  /** Nothing is stored and the answer is lost all the same. */
  readonly lostRequest: number;
  /** The append is stored only after its caller was told that the outcome is unknown. */
  readonly late: number;
  /** The answer comes after some turns of the event loop. */
  readonly delay: number;
  /** A read fails half-way. */
  readonly brokenRead: number;
};

/** Deterministic for a seed (mulberry32). */
export const createRandom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
};

/**
 * A store that breaks in every way the port allows. `settle` waits for late appends and ends the faults. As the port
 * says of a store with one writer, nothing that was sent there is overtaken by what is sent after it: reads may come
 * before what is late, further appends may not.
 */
export const createFaultyStore = (
  store: EventStore,
  faults: Faults,
  seed: number,
): EventStore & { settle(): Promise<void> } => {
  const random = createRandom(seed);
  /** Everything that is stored late, one after the other. */
  let late = Promise.resolve();
  let over = false;
  const happens = (chance: number): boolean => !over && random() < chance;
  const someTurns = async (): Promise<void> => {
    for (let turns = Math.floor(random() * 5); turns > 0; turns -= 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  return {
    ...store,
    append: async (...args) => {
      const [stream] = args;
      if (happens(faults.delay)) await someTurns();
      if (happens(faults.unavailable)) throw new StoreUnavailable('not sent');
      if (happens(faults.lostRequest)) throw new OutcomeUnknown(stream);
      if (happens(faults.late)) {
        const stored = Promise.all([someTurns(), store.singleWriter ? late : undefined])
          .then(() => store.append(...args))
          .catch(ignoreConflict);
        late = Promise.all([late, stored]).then(() => undefined);
        throw new OutcomeUnknown(stream);
      }
      if (store.singleWriter) await late;
      const appended = await store.append(...args);
      if (happens(faults.lostAnswer)) throw new OutcomeUnknown(stream);
      if (happens(faults.delay)) await someTurns();
      return appended;
    },
    async *readStream(...args) {
      if (happens(faults.delay)) await someTurns();
      const breaks = happens(faults.brokenRead);
      for await (const event of store.readStream(...args)) {
        if (breaks && random() < 0.3) throw new StoreUnavailable('the connection was lost');
        yield event;
      }
      if (breaks) throw new StoreUnavailable('the connection was lost');
    },
    currentRevision: async (...args) => {
      if (happens(faults.unavailable)) throw new StoreUnavailable('not reachable');
      return store.currentRevision(...args);
    },
    settle: async () => {
      over = true;
      await late;
    },
  };
};

const ignoreConflict = (error: unknown): void => {
  if (!(error instanceof WrongExpectedRevision)) throw error;
};
