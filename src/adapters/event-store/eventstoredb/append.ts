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
import { backoff, pause } from './waiting.ts';
import type { Watermark } from './watermark.ts';
import type { AppendRequest } from './wire.ts';

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

  /** What was stored under these ids by an earlier attempt; undefined when it was not. */
  const findOurs = async (
    stream: string,
    expected: ExpectedRevision,
    ids: readonly string[],
    patienceMs: number,
  ): Promise<Appended | undefined> => {
    const first = expected === 'no_stream' ? 0 : expected + 1;
    const stored = await readTail(stream, first, ids.length, patienceMs);
    const last = stored.at(-1);
    const ours =
      stored.length === ids.length && stored.every((e, i) => e.id === ids[i] && e.revision === first + i);
    if (!ours || last === undefined) return undefined;
    return { revision: last.revision, position: last.position, duplicate: true };
  };

  const append = async (
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    { signal, deadlineMs = options.deadlineMs }: AppendOptions = {},
  ): Promise<Appended> => {
    if (events.length === 0) throw new TypeError('an append needs at least one event');
    const request: AppendRequest = { stream, expected, events: events.map(prepare) };
    const ids = events.map((event) => event.id);
    signal?.throwIfAborted();

    const seenBefore = watermark.highest();
    const end = performance.now() + deadlineMs;
    let sent = false;
    let cause: unknown;
    const stopped = (): AbortSignal | undefined => [signal, closing].find((one) => one?.aborted);
    const giveUp = (): Error => {
      if (!sent) return (stopped()?.reason as Error | undefined) ?? asUnavailable('the event store', cause);
      counters.unknownOutcomes += 1;
      return new OutcomeUnknown(stream, { cause: stopped()?.reason ?? cause });
    };

    for (let attempt = 0; attempt <= retries; attempt += 1) {
      if (attempt > 0) {
        counters.retriedAppends += 1;
        await pause(
          Math.min(backoff(attempt, FIRST_WAIT_MS, LONGEST_WAIT_MS), end - performance.now()),
          signal,
          closing,
        );
      }
      const share = (end - performance.now()) / (retries + 1 - attempt);
      if (share <= 0 || stopped()) break;
      if (sent) {
        const found = await findOurs(stream, expected, ids, share / 2).catch(() => undefined);
        if (found !== undefined) return found;
      }
      const outcome = await writer.send(request, share, signal);
      switch (outcome.kind) {
        case 'stored': {
          const { revision } = outcome;
          // A server that names no position (before 22.6) is asked for it.
          if (outcome.position === undefined) {
            const found = await findOurs(stream, expected, ids, share).catch(() => undefined);
            if (found === undefined) throw giveUp();
            return { ...found, duplicate: watermark.isOld(found.position, seenBefore) };
          }
          return {
            revision,
            position: outcome.position,
            duplicate: acknowledge(outcome.position, seenBefore),
          };
        }
        case 'wrong-revision': {
          // Covers a lost answer on a server that no longer compares ids.
          sent = true;
          const found = await findOurs(stream, expected, ids, share).catch((error: unknown) => {
            cause = error;
            throw giveUp();
          });
          if (found !== undefined) return found;
          throw new WrongExpectedRevision(stream, expected, outcome.actual);
        }
        case 'too-large':
          throw new EventTooLarge(events.map((event) => event.type).join(', '), sizeOf(request));
        case 'refused':
          cause = new Error(outcome.reason);
          throw giveUp();
        case 'unknown':
          sent = true;
          cause = outcome.error;
          break;
        case 'not-sent':
          cause = outcome.error;
          break;
      }
      if (stopped()) break;
    }
    throw giveUp();
  };

  const acknowledge = (position: Position, seenBefore: Position): boolean => {
    const duplicate = watermark.isOld(position, seenBefore);
    watermark.acknowledged(position);
    return duplicate;
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

const sizeOf = (request: AppendRequest): number =>
  request.events.reduce((sum, event) => sum + event.data.length + event.metadata.length, 0);
