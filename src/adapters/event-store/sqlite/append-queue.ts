import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type Appended,
  type AppendOptions,
  type EventToAppend,
  type ExpectedRevision,
} from '../../../app/log/event-store.ts';
import { formatPosition } from '../shared/position.ts';
import {
  CONFLICT,
  decodeRevision,
  DUPLICATE,
  encodeAppend,
  NO_APPEND,
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
  readonly appended: Promise<Appended>;
  /** Those that rest on this one: they go into the same batch, right behind it. */
  readonly followers: Waiting[];
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

type QueueOptions = AppendOptions & { readonly deadlineMs: number };

export type AppendQueue = {
  /** `after`, where it is given, must still wait. */
  readonly add: (
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    options: QueueOptions,
  ) => Promise<Appended>;
  /** What has arrived so far, bounded; undefined when nothing waits. */
  readonly take: () => SentBatch | undefined;
  readonly isEmpty: () => boolean;
  /** It is an append of this queue that was neither sent nor given up. */
  readonly waits: (appended: Promise<Appended>) => boolean;
  /** Refuses everything that waits. */
  readonly refuseAll: (refusal: StoreUnavailable) => void;
};

/**
 * Appends that wait for the writer, gathered into batches. Deadline and signal count in both places: an append
 * that still waits was not stored and is withdrawn; one that was sent is of unknown outcome.
 */
export const createAppendQueue = (): AppendQueue => {
  let queue: Waiting[] = [];
  /** Of those that were neither sent nor given up. */
  const waitingOf = new Map<Promise<Appended>, Waiting>();

  const add: AppendQueue['add'] = (stream, expected, events, { signal, deadlineMs, after }) => {
    const first = after && waitingOf.get(after);
    const { promise, resolve, reject } = Promise.withResolvers<Appended>();
    const settle = (outcome: Appended | Error): void => {
      if (waiting.settled) return;
      waiting.settled = true;
      waitingOf.delete(promise);
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
      // Given up in the queue, it is never stored. Once they are sent with it, followers are answered themselves.
      if (!waiting.sent) for (const follower of waiting.followers) follower.settle(outcome);
    };
    const bytes = events.reduce((sum, event) => sum + event.data.length + event.metadata.length, 0);
    const state = { sent: false, settled: false, followers: [] };
    const waiting: Waiting = { stream, expected, events, bytes, settle, appended: promise, ...state };
    const onAbort = (): void => {
      const reason: unknown = signal?.reason;
      if (waiting.sent) settle(new OutcomeUnknown(stream, { cause: reason }));
      else settle(reason instanceof Error ? reason : new Error('aborted', { cause: reason }));
    };
    const timer = setTimeout(() => {
      if (waiting.sent) settle(new OutcomeUnknown(stream));
      else settle(new StoreUnavailable('the event log did not take the append in time', 'down'));
    }, deadlineMs);
    if (queue.length >= MAX_WAITING && first === undefined)
      settle(new StoreUnavailable(`${queue.length} appends wait for the event log`, 'down'));
    else {
      signal?.addEventListener('abort', onAbort, { once: true });
      (first?.followers ?? queue).push(waiting);
      waitingOf.set(promise, waiting);
    }
    return promise;
  };

  const take = (): SentBatch | undefined => {
    const message: Batch = [];
    const taken: Waiting[] = [];
    const afters: number[] = [];
    let bytes = 0;
    let looked = 0;
    const send = (waiting: Waiting, after: number): void => {
      if (waiting.settled) return;
      waiting.sent = true;
      waitingOf.delete(waiting.appended);
      bytes += waiting.bytes;
      const place = taken.push(waiting) - 1;
      afters.push(after);
      encodeAppend(message, waiting.stream, waiting.expected, waiting.events, after);
      for (const follower of waiting.followers) send(follower, place);
    };
    for (const waiting of queue) {
      if (taken.length >= BATCH_APPENDS || (taken.length > 0 && bytes + waiting.bytes > BATCH_BYTES)) break;
      looked += 1;
      send(waiting, NO_APPEND);
    }
    queue = looked === queue.length ? [] : queue.slice(looked);
    if (taken.length === 0) return undefined;
    return {
      message,
      size: taken.length,
      answered: (answer, i) => {
        let failed = i;
        // Nothing was stored of what rests on an append that found a conflict: it is told of that one.
        for (let first = afters[i] ?? NO_APPEND; first >= 0; first = afters[first] ?? NO_APPEND)
          if (answer.kind === 'settled' && answer.answers[3 * first] === CONFLICT) failed = first;
        const told = taken[failed];
        if (told !== undefined) taken[i]?.settle(outcomeOf(told, answer, failed));
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
    waits: (appended) => waitingOf.has(appended),
    refuseAll: (refusal) => {
      for (const waiting of queue) waiting.settle(refusal);
      queue = [];
    },
  };
};

const outcomeOf = ({ stream, expected }: Waiting, answer: BatchAnswer, i: number): Appended | Error => {
  if (answer.kind === 'unknown') return new OutcomeUnknown(stream, { cause: new Error(answer.message) });
  if (answer.kind === 'refused') {
    const what = answer.reason === 'full' ? 'no space left for the event log' : 'the event log';
    return new StoreUnavailable(`${what}: ${answer.message}`, answer.reason);
  }
  const code = answer.answers[3 * i];
  const revision = Number(answer.answers[3 * i + 1]);
  if (code === CONFLICT) return new WrongExpectedRevision(stream, expected, decodeRevision(revision));
  const position = formatPosition(Number(answer.answers[3 * i + 2]));
  return { revision, position, duplicate: code === DUPLICATE };
};
