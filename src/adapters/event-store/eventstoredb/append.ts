import {
  EventTooLarge,
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type Appended,
  type AppendOptions,
  type EventToAppend,
  type ExpectedRevision,
  type Position,
  type RecordedEvent,
} from '../../../app/event-store.ts';
import type { BatchWriter } from './batch-writer.ts';
import { prepare } from './convert.ts';
import { asUnavailable } from './errors.ts';
import { isOwnStream } from './store-id.ts';
import { backoff, pause } from './waiting.ts';
import { createRecentSet, type Watermark } from './watermark.ts';
import { bytesOf, type AppendRequest } from './wire.ts';

export type AppenderOptions = {
  readonly writer: BatchWriter;
  /** Milliseconds over all attempts until the outcome counts as unknown. */
  readonly deadlineMs: number;
  /** Further attempts with the same ids after one that settled nothing. */
  readonly retries: number;
  readonly watermark: Watermark;
  readonly readTail: (
    stream: string,
    from: number,
    limit: number,
    patienceMs: number,
  ) => Promise<readonly RecordedEvent[]>;
  readonly closing: AbortSignal;
  readonly counters: { retriedAppends: number; unknownOutcomes: number };
};

/** One append over all its attempts. */
type Call = {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly request: AppendRequest;
  readonly ids: readonly string[];
  readonly types: readonly string[];
  readonly signal: AbortSignal | undefined;
  /** The highest position known before the first attempt. */
  readonly seenBefore: Position;
  /** Whether any attempt, of this call or of an earlier one with these ids, may have reached the server. */
  sent: boolean;
  cause: unknown;
};

const keyOf = ({ stream, ids }: Call): string => `${stream} ${ids[0]}`;

/** How many appends of unknown outcome are remembered. */
const REMEMBERED = 8192;

/** First and longest wait between two attempts of one append, in milliseconds. */
const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 500;

/**
 * Append with exactly known outcomes (design §4; eventstore-client.md §3.4). An attempt that was never sent may be
 * answered with StoreUnavailable. As soon as one attempt was sent, only an answer of the server or our own ids in the
 * stream settle it; otherwise it is OutcomeUnknown. All attempts carry the same ids and the same expected revision,
 * which the server compares with what it holds, so that none can store the events twice.
 */
export const createAppender = (options: AppenderOptions) => {
  const { writer, retries, watermark, readTail, closing, counters } = options;

  /** Appends that ended as unknown: repeated, they begin with a look, and are not unavailable but still unknown. */
  const unsettled = createRecentSet<string>(REMEMBERED);

  /** What was stored under these ids by an earlier attempt; undefined when it was not. */
  const findOurs = async (call: Call, patienceMs: number): Promise<Appended | undefined> => {
    const { stream, expected, ids } = call;
    const first = expected === 'no_stream' ? 0 : expected + 1;
    const stored = await readTail(stream, first, ids.length, patienceMs);
    const last = stored.at(-1);
    const ours =
      stored.length === ids.length && stored.every((e, i) => e.id === ids[i] && e.revision === first + i);
    if (!ours || last === undefined) return undefined;
    return { revision: last.revision, position: last.position, duplicate: true };
  };

  const stopped = ({ signal }: Call): AbortSignal | undefined =>
    [signal, closing].find((one) => one?.aborted === true);

  const giveUp = (call: Call): Error => {
    const reason: unknown = stopped(call)?.reason;
    if (!call.sent) return (reason as Error | undefined) ?? asUnavailable('the event store', call.cause);
    counters.unknownOutcomes += 1;
    unsettled.add(keyOf(call));
    return new OutcomeUnknown(call.stream, { cause: reason ?? call.cause });
  };

  /** One attempt: the settled success, or undefined when another attempt may settle it. Throws what is settled. */
  const attempt = async (call: Call, patienceMs: number): Promise<Appended | undefined> => {
    const { stream, expected } = call;
    const outcome = await writer.send(call.request, patienceMs, call.signal);
    switch (outcome.kind) {
      case 'stored': {
        const { revision, position } = outcome;
        if (position !== undefined) return { revision, position, duplicate: isRepeated(call, position) };
        // A server that names no position is asked for it; until it tells, the caller cannot be answered.
        call.sent = true;
        const found = await findOurs(call, patienceMs).catch(() => undefined);
        return found && { ...found, duplicate: isRepeated(call, found.position) };
      }
      case 'wrong-revision': {
        // Covers a lost answer on a server that no longer compares ids.
        const found = await findOurs(call, patienceMs).catch((error: unknown) => {
          Object.assign(call, { sent: true, cause: error });
          throw giveUp(call);
        });
        if (found !== undefined) return found;
        throw new WrongExpectedRevision(stream, expected, outcome.actual);
      }
      case 'too-large':
        throw new EventTooLarge(call.types.join(', '), bytesOf(call.request));
      case 'refused':
        call.cause = new Error(outcome.reason);
        throw giveUp(call);
      case 'unknown':
        call.sent = true;
        call.cause = outcome.error;
        return undefined;
      case 'not-sent':
        call.cause = outcome.error;
        return undefined;
    }
  };

  const isRepeated = ({ stream, seenBefore }: Call, position: Position): boolean => {
    const repeated = watermark.isOld(position, seenBefore);
    if (!isOwnStream(stream)) watermark.acknowledged(position);
    return repeated;
  };

  const append = async (
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    { signal, deadlineMs = options.deadlineMs }: AppendOptions = {},
  ): Promise<Appended> => {
    if (events.length === 0) throw new TypeError('an append needs at least one event');
    const call: Call = {
      stream,
      expected,
      request: { stream, expected, events: events.map(prepare) },
      ids: events.map((event) => event.id),
      types: events.map((event) => event.type),
      signal,
      seenBefore: watermark.highest(),
      sent: false,
      cause: undefined,
    };
    signal?.throwIfAborted();
    call.sent = unsettled.has(keyOf(call));
    const end = performance.now() + deadlineMs;
    const left = (): number => end - performance.now();
    for (let n = 0; n <= retries; n += 1) {
      if (n > 0) {
        counters.retriedAppends += 1;
        await pause(Math.min(backoff(n, FIRST_WAIT_MS, LONGEST_WAIT_MS), left()), signal, closing);
      }
      const patienceMs = left() / (retries + 1 - n);
      if (patienceMs <= 0 || stopped(call)) break;
      const found = call.sent ? await findOurs(call, patienceMs / 2).catch(() => undefined) : undefined;
      const appended = found ?? (await attempt(call, patienceMs));
      if (appended !== undefined) {
        unsettled.delete(keyOf(call));
        return appended;
      }
      if (stopped(call)) break;
    }
    throw giveUp(call);
  };

  /** Sends one append of the store's own (stream metadata) at any revision, repeated until it is answered. */
  const appendMetadata = async (request: AppendRequest): Promise<void> => {
    const end = performance.now() + options.deadlineMs;
    let cause: unknown;
    for (let attempt = 0; attempt <= retries; attempt += 1) {
      if (attempt > 0) await pause(backoff(attempt, FIRST_WAIT_MS, LONGEST_WAIT_MS));
      const share = (end - performance.now()) / (retries + 1 - attempt);
      if (share <= 0) break;
      const outcome = await writer.send(request, share);
      if (outcome.kind === 'stored') return;
      cause = 'error' in outcome ? outcome.error : new Error(outcome.kind);
      if (outcome.kind === 'refused') throw new StoreUnavailable(`${request.stream}: ${outcome.reason}`);
    }
    throw asUnavailable(`writing ${request.stream}`, cause);
  };

  return { append, appendMetadata };
};
