import { StoreUnavailable, type Appended, type EventStore } from '../../../app/log/event-store.ts';
import type { Logger } from '../../../app/ports.ts';
import { createAppendQueue, type SentBatch } from './append-queue.ts';
import { createParts } from '../../../app/fairness/slicer.ts';
import { superviseWriter, type WriterMessage } from './writer-thread.ts';
import type { BatchAnswer, Request, WriterData } from './writer-protocol.ts';

/** How long `close` waits for what is under way before it kills the thread. */
const CLOSE_MS = 10_000;

export type WriterClientOptions = {
  readonly writer: WriterData;
  /** Default deadline of an append, and that of every request. */
  readonly deadlineMs: number;
  /** A batch unanswered for so long means that the thread is stuck: it is replaced. */
  readonly stuckMs: number;
  readonly logger: Logger | undefined;
  /** The log reaches to this number. */
  readonly onGrowth: (last: number) => void;
};

export type WriterClient = {
  readonly storeId: string;
  readonly append: EventStore['append'];
  readonly request: (request: Exclude<Request, { kind: 'close' }>, signal?: AbortSignal) => Promise<unknown>;
  /** Answers what waits, then ends the thread. */
  readonly close: () => Promise<void>;
};

/** The main thread's side of the writer: one batch under way, the next is whatever arrived meanwhile. */
export const startWriterClient = async (options: WriterClientOptions): Promise<WriterClient> => {
  const { deadlineMs, stuckMs, logger } = options;
  const queue = createAppendQueue();
  const inParts = createParts();
  const requests = new Map<number, (outcome: unknown, error?: Error) => void>();
  let underWay: SentBatch | undefined;
  let stuckTimer: NodeJS.Timeout | undefined;
  let flushIsDue = false;
  /** Somebody who waits in the queue is not patient, or not any more. */
  let isUrgent = false;
  let patience: NodeJS.Timeout | undefined;
  let closing = false;
  let nextRequest = 1;

  const flush = (): void => {
    const thread = supervised.current();
    if (thread === undefined || underWay !== undefined) return;
    underWay = queue.take();
    clearTimeout(patience);
    patience = undefined;
    isUrgent = !queue.isEmpty();
    if (underWay !== undefined) {
      const { message, size } = underWay;
      thread.post(message);
      stuckTimer = setTimeout(() => {
        logger?.error({ appends: size, afterMs: stuckMs }, 'event log writer stuck; replacing it');
        thread.kill();
      }, stuckMs);
    } else if (closing) {
      void request({ kind: 'close' }).catch(thread.kill);
    }
  };
  const flushSoon = (): void => {
    isUrgent = true;
    if (flushIsDue) return;
    flushIsDue = true;
    // What the requests of one turn of the loop append goes into one batch.
    setImmediate(() => {
      flushIsDue = false;
      flush();
    });
  };

  const flushWithin = (ms: number): void => {
    if (!isUrgent) patience ??= setTimeout(flushSoon, ms);
  };

  const onBatch = (answer: BatchAnswer): void => {
    const batch = underWay;
    underWay = undefined;
    clearTimeout(stuckTimer);
    supervised.isWell();
    if (answer.kind === 'settled') options.onGrowth(answer.last);
    else logger?.error({ outcome: answer.kind, appends: batch?.size }, `event log: ${answer.message}`);
    if (batch !== undefined) inParts(batch.size, (i) => batch.answered(answer, i));
    // Not at once: many of those who were answered append again (a name, then what bears it), and need not wait for
    // the batch after the next one.
    if (isUrgent || closing) flushSoon();
  };
  const onMessage = (message: WriterMessage): void => {
    if (message.kind === 'batch') return onBatch(message.answer);
    const answered = requests.get(message.id);
    if (message.kind === 'done') answered?.(message.result);
    else answered?.(undefined, new StoreUnavailable(`event log: ${message.message}`, message.reason));
  };
  const onEnd = (error: Error | undefined): void => {
    clearTimeout(stuckTimer);
    underWay?.lost(error);
    underWay = undefined;
    queue.refuseAll(noWriter(error));
    for (const answered of requests.values()) answered(undefined, noWriter(error));
  };
  const noWriter = (cause: unknown): StoreUnavailable => {
    if (closing) return new StoreUnavailable('the event log is closed', 'closed');
    const retryAfterMs = supervised.retryMs();
    return new StoreUnavailable('the event log has no writer at the moment', 'down', { cause, retryAfterMs });
  };

  const append = (
    ...[stream, expected, events, given]: Parameters<WriterClient['append']>
  ): Promise<Appended> => {
    if (closing || supervised.current() === undefined) return Promise.reject(noWriter(undefined));
    const { after, ...others } = given ?? {};
    if (after !== undefined && !queue.waits(after))
      return after.then(() => append(stream, expected, events, others));
    const appended = queue.add(stream, expected, events, { deadlineMs, ...given });
    const patienceMs = given?.patienceMs ?? 0;
    if (patienceMs > 0) flushWithin(patienceMs);
    else flushSoon();
    return appended;
  };

  const request = (asked: Request, signal?: AbortSignal): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const thread = supervised.current();
      if (thread === undefined) return reject(noWriter(undefined));
      const id = nextRequest;
      nextRequest += 1;
      const settle = (outcome: unknown, error?: Error): void => {
        requests.delete(id);
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        if (error === undefined) resolve(outcome);
        else reject(error);
      };
      const onAbort = (): void => settle(undefined, signal?.reason as Error);
      const late = new StoreUnavailable('the event log does not answer', 'down');
      const timer = setTimeout(() => settle(undefined, late), deadlineMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      requests.set(id, settle);
      thread.post({ id, request: asked });
    });

  const close = async (): Promise<void> => {
    closing = true;
    const ended = supervised.noMore();
    flush();
    const patience = setTimeout(() => supervised.current()?.kill(), CLOSE_MS);
    await ended;
    clearTimeout(patience);
  };

  const onStart = (thread: { last: number }): void => {
    options.onGrowth(thread.last);
    // A thread that was starting when `close` was called has nothing to do but end.
    if (closing) flushSoon();
  };
  const supervised = await superviseWriter(options.writer, { onMessage, onEnd, onStart }, logger);
  return { storeId: supervised.first.storeId, append, request, close };
};
