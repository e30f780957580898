import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type Appended,
  type AppendOptions,
  type EventToAppend,
  type ExpectedRevision,
} from '../../../app/event-store.ts';
import { formatPosition } from '../shared/position.ts';
import {
  CONFLICT,
  decodeRevision,
  DUPLICATE,
  encodeAppend,
  type Batch,
  type BatchAnswer,
} from './writer-protocol.ts';

/** One batch at most; more waits for the next. */
const BATCH_APPENDS = 1000;
const BATCH_BYTES = 8 * 1024 * 1024;
/** Appends that may wait; beyond it they are refused at once instead of growing the heap. */
const MAX_WAITING = 10_000;

type Waiting = {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly EventToAppend[];
  readonly bytes: number;
  sent: boolean;
  settled: boolean;
  readonly settle: (outcome: Appended | Error) => void;
};

/** A batch on its way to the writer. */
export type SentBatch = {
  readonly message: Batch;
  readonly size: number;
  /** Settles the `i`-th of its appends. */
  readonly answered: (answer: BatchAnswer, i: number) => void;
  /** The writer died with it. */
  readonly lost: (cause: unknown) => void;
};

export type AppendQueue = {
  readonly add: (
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    options: AppendOptions & { readonly deadlineMs: number },
  ) => Promise<Appended>;
  /** What has arrived so far, bounded; undefined when nothing waits. */
  readonly take: () => SentBatch | undefined;
  readonly isEmpty: () => boolean;
  /** Refuses everything that waits. */
  readonly refuseAll: (refusal: StoreUnavailable) => void;
};

/**
 * Appends that wait for the writer, gathered into batches. Deadline and signal count in both places: an append
 * that still waits was not stored and is withdrawn; one that was sent is of unknown outcome.
 */
export const createAppendQueue = (): AppendQueue => {
  let queue: Waiting[] = [];

  const add: AppendQueue['add'] = (stream, expected, events, { signal, deadlineMs }) =>
    new Promise((resolve, reject) => {
      if (queue.length >= MAX_WAITING)
        return reject(new StoreUnavailable(`${queue.length} appends wait for the event log`, 'down'));
      const settle = (outcome: Appended | Error): void => {
        if (waiting.settled) return;
        waiting.settled = true;
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      const onAbort = (): void => {
        const reason: unknown = signal?.reason;
        if (waiting.sent) settle(new OutcomeUnknown(stream, { cause: reason }));
        else settle(reason instanceof Error ? reason : new Error('aborted', { cause: reason }));
      };
      const timer = setTimeout(() => {
        if (waiting.sent) settle(new OutcomeUnknown(stream));
        else settle(new StoreUnavailable('the event log did not take the append in time', 'down'));
      }, deadlineMs);
      const bytes = events.reduce((sum, event) => sum + event.data.length + event.metadata.length, 0);
      const waiting: Waiting = { stream, expected, events, bytes, sent: false, settled: false, settle };
      signal?.addEventListener('abort', onAbort, { once: true });
      queue.push(waiting);
    });

  const take = (): SentBatch | undefined => {
    const message: Batch = [];
    const taken: Waiting[] = [];
    let bytes = 0;
    let looked = 0;
    for (const waiting of queue) {
      if (taken.length >= BATCH_APPENDS || (taken.length > 0 && bytes + waiting.bytes > BATCH_BYTES)) break;
      looked += 1;
      if (waiting.settled) continue;
      waiting.sent = true;
      bytes += waiting.bytes;
      encodeAppend(message, waiting.stream, waiting.expected, waiting.events);
      taken.push(waiting);
    }
    queue = looked === queue.length ? [] : queue.slice(looked);
    if (taken.length === 0) return undefined;
    return {
      message,
      size: taken.length,
      answered: (answer, i) => {
        const waiting = taken[i];
        waiting?.settle(outcomeOf(waiting, answer, i));
      },
      lost: (cause) => {
        for (const waiting of taken) waiting.settle(new OutcomeUnknown(waiting.stream, { cause }));
      },
    };
  };

  return {
    add,
    take,
    isEmpty: () => queue.length === 0,
    refuseAll: (refusal) => {
      for (const waiting of queue) waiting.settle(refusal);
      queue = [];
    },
  };
};

const outcomeOf = ({ stream, expected }: Waiting, answer: BatchAnswer, i: number): Appended | Error => {
  if (answer.kind === 'unknown') return new OutcomeUnknown(stream, { cause: new Error(answer.message) });
  if (answer.kind === 'refused') {
    const what = answer.reason === 'full' ? 'there is no space for the event log' : 'the event log';
    return new StoreUnavailable(`${what}: ${answer.message}`, answer.reason);
  }
  const code = answer.answers[3 * i];
  const revision = Number(answer.answers[3 * i + 1]);
  if (code === CONFLICT) return new WrongExpectedRevision(stream, expected, decodeRevision(revision));
  const position = formatPosition(Number(answer.answers[3 * i + 2]));
  return { revision, position, duplicate: code === DUPLICATE };
};
