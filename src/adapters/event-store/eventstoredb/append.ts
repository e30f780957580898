import {
  EventTooLarge,
  OutcomeUnknown,
  StoreUnavailable,
  StreamDeleted,
  WrongExpectedRevision,
  type Appended,
  type AppendOptions,
  type EventToAppend,
  type ExpectedRevision,
  type Position,
} from '../../../app/log/event-store.ts';
import type { BatchWriter } from './batch-writer.ts';
import { FIRST_POSITION, prepare } from './convert.ts';
import { betterCause, deniedAnswer, isTransient, type StoreFaults } from './errors.ts';
import { createGate } from './gate.ts';
import type { StoredId } from './reads.ts';
import { isOwnStream } from './store-id.ts';
import { backoff, pause, Silence, timed } from './waiting.ts';
import { createRecentSet, type Watermark } from './watermark.ts';
import { bytesOf, checkRequest, type Answer, type AppendRequest } from './wire.ts';

export type AppenderOptions = {
  readonly writer: BatchWriter;
  /** Milliseconds over all attempts until the outcome counts as unknown. */
  readonly deadlineMs: number;
  readonly watermark: Watermark;
  readonly readIds: (
    stream: string,
    from: number,
    limit: number,
    patienceMs: number,
  ) => Promise<readonly StoredId[]>;
  readonly faults: StoreFaults;
  readonly closing: AbortSignal;
  readonly counters: { retriedAppends: number; unknownOutcomes: number };
};

/** One append over all its attempts. */
type Call = {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly request: AppendRequest;
  readonly ids: readonly string[];
  readonly signal: AbortSignal | undefined;
  /** When its time is over (`performance.now()`). */
  readonly end: number;
  /** The highest position known before the first attempt. */
  readonly seenBefore: Position;
  /** Whether any attempt, of this call or of an earlier one with these ids, may have been stored. */
  sent: boolean;
  cause: unknown;
};

const keyOf = ({ stream, ids }: Call): string => `${stream} ${ids[0]}`;
const left = ({ end }: Call): number => end - performance.now();

/** How many appends of unknown outcome are remembered. */
const REMEMBERED = 8192;

/** First and longest wait between two attempts of one append, in milliseconds. */
const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 500;
/** Time of one attempt: this part of the deadline, and at least this many milliseconds. */
const SHARE = 4;
const LEAST_SHARE_MS = 1000;

/** A server is fast with some hundreds of appends at once, and answers none of more than 4,096. */
const MAX_UNDER_WAY = 256;
/** Records of the store in a row that an append goes behind: links that somebody put into a stream of ours. */
const MAX_STORE_RECORDS = 256;
/** Appends and bytes that wait or are under way: what is beyond is turned away at once. */
const MAX_WAITING = 16_384;
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Append with exactly known outcomes. An attempt that was never sent may be answered with StoreUnavailable. As soon as
 * one attempt was sent, only an answer of the server or our own ids in the stream settle it; otherwise it is
 * OutcomeUnknown. All attempts carry the same ids and the same expected revision, which the server compares with what
 * it holds, so that none can store the events twice.
 */
export const createAppender = (options: AppenderOptions) => {
  const { writer, watermark, readIds, faults, closing, counters } = options;
  const gate = createGate(MAX_UNDER_WAY);
  /** Appends that ended as unknown: repeated in vain they are not unavailable, but still unknown. */
  const unsettled = createRecentSet<string>(REMEMBERED);
  /** The server answers only one of two appends with the same ids at once. */
  const underWay = new Map<string, Promise<Appended>>();
  let bytesWaiting = 0;

  /** What was stored under these ids by an earlier attempt; undefined when it was not. */
  const findOurs = async (call: Call, patienceMs: number): Promise<Appended | undefined> => {
    const { stream, expected, ids } = call;
    const wanted = expected === 'no_stream' ? 0 : expected + 1;
    const stored = await readIds(stream, wanted, ids.length, patienceMs);
    // A stream that was deleted and begun again goes on with its old numbers.
    const first = expected === 'no_stream' ? (stored[0]?.revision ?? 0) : wanted;
    const last = stored.at(-1);
    const ours =
      stored.length === ids.length && stored.every((e, i) => e.id === ids[i] && e.revision === first + i);
    if (!ours || last === undefined) return undefined;
    return { revision: last.revision, position: last.position, duplicate: true };
  };

  /** Reads may be behind the write that was met: only what was read in full proves that nothing of ours was missed. */
  const onlyStoreRecords = async (call: Call, actual: ExpectedRevision): Promise<boolean> => {
    const first = call.expected === 'no_stream' ? 0 : call.expected + 1;
    const count = actual === 'no_stream' ? 0 : actual - first + 1;
    if (count < 1 || count > MAX_STORE_RECORDS) return false;
    const read = await readIds(call.stream, first, count, Math.max(0, left(call))).catch(() => []);
    return read.length === count && read.every(({ system }) => system);
  };

  const stopped = ({ signal }: Call): AbortSignal | undefined =>
    [signal, closing].find((one) => one?.aborted === true);

  const giveUp = (call: Call): Error => {
    const reason: unknown = stopped(call)?.reason;
    if (!call.sent)
      return (
        (reason as Error | undefined) ??
        faults.unavailable(`append to ${call.stream}`, call.cause, { right: '$w', on: call.stream })
      );
    counters.unknownOutcomes += 1;
    unsettled.add(keyOf(call));
    return new OutcomeUnknown(call.stream, { cause: reason ?? call.cause });
  };

  /** Stored, but what the events take no place any more (`$maxCount`, a scavenge): an earlier attempt stored them. */
  const withoutPosition = async (call: Call, revision: number, patienceMs: number): Promise<Appended> => {
    const found = await findOurs(call, patienceMs).catch(() => undefined);
    return found ?? { revision, position: watermark.highest() || FIRST_POSITION, duplicate: true };
  };

  /** One attempt: the settled success, or undefined when another attempt may settle it. Throws what is settled. */
  const attempt = async (call: Call, patienceMs: number): Promise<Appended | undefined> => {
    const { stream, expected, request } = call;
    const outcome = await writer.send(request, patienceMs, call.signal);
    switch (outcome.kind) {
      case 'stored': {
        const { revision, position } = outcome;
        if (position === undefined) return withoutPosition(call, revision, Math.max(0, left(call)));
        const isOld = watermark.isOld(position, call.seenBefore);
        if (!isOwnStream(stream)) watermark.acknowledged(position);
        return { revision, position, duplicate: call.sent || isOld };
      }
      case 'wrong-revision': {
        // Covers a lost answer on a server that no longer compares ids, and a stream that was begun again.
        const found = await findOurs(call, Math.max(0, left(call))).catch((error: unknown) => {
          if (!call.sent) return undefined;
          call.cause = error;
          throw giveUp(call);
        });
        if (found !== undefined) return found;
        throw new WrongExpectedRevision(stream, expected, outcome.actual, {
          onlyStoreRecords: await onlyStoreRecords(call, outcome.actual),
        });
      }
      case 'too-large':
        throw tooLarge(request, outcome);
      case 'deleted':
        throw new StreamDeleted(stream);
      case 'denied':
        call.cause = deniedAnswer();
        throw giveUp(call);
      case 'refused':
        call.cause = new Error(outcome.reason);
        throw giveUp(call);
      case 'unknown':
        call.sent = true;
        call.cause = betterCause(call.cause, outcome.error);
        return undefined;
      case 'not-sent':
        call.cause = betterCause(call.cause, outcome.error);
        if (isHopeless(outcome.error)) throw giveUp(call);
        return undefined;
    }
  };

  /** Attempt after attempt until it is settled or its time is over. */
  const insist = async (call: Call): Promise<Appended> => {
    const share = Math.max(LEAST_SHARE_MS, (call.end - performance.now()) / SHARE);
    for (let failures = 0; !stopped(call) && left(call) > 0; ) {
      const appended = await attempt(call, Math.min(share, left(call)));
      if (appended !== undefined) {
        unsettled.delete(keyOf(call));
        return appended;
      }
      failures += 1;
      const wait = backoff(failures, FIRST_WAIT_MS, LONGEST_WAIT_MS);
      // Sent with no time left, it would only become unknown.
      if (wait >= left(call)) break;
      counters.retriedAppends += 1;
      await pause(wait, call.signal, closing);
    }
    throw giveUp(call);
  };

  /** In its turn. What waits for half of its time has too little left to be sent. */
  const carryOut = async (call: Call): Promise<Appended> => {
    const bytes = bytesOf(call.request);
    call.sent = unsettled.has(keyOf(call));
    if (gate.waiting() >= MAX_WAITING || bytesWaiting + bytes > MAX_BYTES) {
      call.cause = new Error(`${gate.waiting()} appends wait for the event store already`);
      throw giveUp(call);
    }
    bytesWaiting += bytes;
    try {
      const place = await gate
        .enter({
          what: `append to ${call.stream}`,
          patience: 'own',
          patienceMs: left(call) / 2,
          signals: [call.signal, closing],
        })
        .catch((error: unknown) => {
          call.cause = error;
          throw giveUp(call);
        });
      try {
        return await insist(call);
      } finally {
        place.leave();
      }
    } finally {
      bytesWaiting -= bytes;
    }
  };

  /** The answer to the same append of somebody else; undefined: that one was given up, and says nothing of this one. */
  const answerOf = async (twin: Promise<Appended>, call: Call): Promise<Appended | undefined> => {
    try {
      return { ...(await timed(`append to ${call.stream}`, twin, left(call), call.signal)), duplicate: true };
    } catch (error) {
      if (error instanceof Silence || stopped(call)) {
        Object.assign(call, { sent: true, cause: error });
        throw giveUp(call);
      }
      if (error instanceof OutcomeUnknown || error instanceof StoreUnavailable) return undefined;
      throw error;
    }
  };

  const append = async (
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    { signal, deadlineMs = options.deadlineMs }: AppendOptions = {},
  ): Promise<Appended> => {
    if (events.length === 0) throw new TypeError('an append needs at least one event');
    const request = { stream, expected, events: events.map(prepare) };
    checkRequest(request);
    signal?.throwIfAborted();
    const call: Call = {
      stream,
      expected,
      request,
      ids: events.map((event) => event.id),
      signal,
      end: performance.now() + deadlineMs,
      seenBefore: watermark.highest(),
      sent: false,
      cause: undefined,
    };
    const same = JSON.stringify([stream, expected, call.ids]);
    for (let twin = underWay.get(same); twin !== undefined; twin = underWay.get(same)) {
      const answer = await answerOf(twin, call);
      if (answer !== undefined) return answer;
    }
    const outcome = carryOut(call);
    underWay.set(same, outcome);
    try {
      return await outcome;
    } finally {
      underWay.delete(same);
    }
  };

  /** Sends one append of the store's own (stream metadata) at any revision, repeated until it is answered. */
  const appendMetadata = async (request: AppendRequest): Promise<void> => {
    const what = `writing ${request.stream}`;
    const needed = { right: '$mw', on: request.stream.slice(2) } as const;
    const end = performance.now() + options.deadlineMs;
    const share = Math.max(LEAST_SHARE_MS, options.deadlineMs / SHARE);
    let cause: unknown;
    for (let failures = 1; ; failures += 1) {
      const outcome = await writer.send(request, Math.min(share, end - performance.now()));
      if (outcome.kind === 'stored') return;
      const error = 'error' in outcome ? outcome.error : answered(outcome);
      cause = betterCause(cause, error);
      const wait = backoff(failures, FIRST_WAIT_MS, LONGEST_WAIT_MS);
      const isOver = closing.aborted || wait >= end - performance.now();
      if (isOver || !('error' in outcome) || isHopeless(error)) throw faults.unavailable(what, cause, needed);
      await pause(wait, closing);
    }
  };

  return { append, appendMetadata };
};

/** What the store said, for a call that has no words of its own for it. */
const answered = (answer: Answer): Error =>
  answer.kind === 'denied'
    ? deniedAnswer()
    : new Error(answer.kind === 'refused' ? answer.reason : `refused: ${answer.kind}`);

/** Trying again does not help: a right, a password or a certificate is wrong. */
const isHopeless = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && !isTransient(error);

const tooLarge = (request: AppendRequest, { event, limit, bytes }: Answer & { kind: 'too-large' }): Error => {
  const { stream, events } = request;
  if (event === undefined)
    return new EventTooLarge(`append of ${events.length} events to ${stream}`, bytesOf(request), limit);
  const one = events.find(({ id }) => id === event);
  return new EventTooLarge(`event ${one?.type ?? event}`, bytes ?? bytesOf(request), limit);
};
