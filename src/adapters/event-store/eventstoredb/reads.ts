import {
  BACKWARDS,
  END,
  FORWARDS,
  START,
  type AllStreamResolvedEvent,
  type ResolvedEvent,
  type StreamingRead,
} from '@eventstore/db-client';
import type {
  ExpectedRevision,
  Position,
  ReadStreamOptions,
  RecordedEvent,
} from '../../../app/event-store.ts';
import type { LedgerClient } from './client.ts';
import {
  CorruptEvent,
  ImpossiblePosition,
  isSystem,
  knownPosition,
  parsePosition,
  toRecorded,
} from './convert.ts';
import { asUnavailable, isDeletedStream, isMissingStream, isTransient, isUnknown } from './errors.ts';
import type { OurStreams } from './our-streams.ts';
import { pull } from './pull.ts';
import { isOwnStream } from './store-id.ts';
import { backoff, pause, Silence } from './waiting.ts';
import type { Watermark } from './watermark.ts';

export type ReaderOptions = {
  readonly connect: () => LedgerClient;
  /** Milliseconds of silence after which a read counts as failed. */
  readonly deadlineMs: number;
  readonly retries: number;
  readonly closing: AbortSignal;
  readonly watermark: Watermark;
  readonly ours: OurStreams;
};

type Resolved = ResolvedEvent | AllStreamResolvedEvent;

const placeOf = (event: Resolved['event']): Position | undefined => knownPosition(event?.position);

const FIRST_WAIT_MS = 20;
const LONGEST_WAIT_MS = 500;
/** Events per page when walking backward over system events, and how many pages at most. */
const TAIL_PAGE = 200;
const TAIL_PAGES = 500;

export const createReader = (options: ReaderOptions) => {
  const { deadlineMs, retries, closing, watermark, ours } = options;
  let client: LedgerClient | undefined;
  const retired = new Set<LedgerClient>();

  /** After silence the connection is in doubt: the next read gets a new one. */
  const replace = (failed: LedgerClient): void => {
    if (client !== failed) return;
    client = undefined;
    retired.add(failed);
    // Reads that still run on it are silent too, or end within their patience.
    setTimeout(() => {
      retired.delete(failed);
      void failed.dispose().catch(() => {});
    }, deadlineMs).unref();
  };

  /**
   * Runs a read, and runs it again from where it stopped when the connection breaks or nothing comes. `open` is asked
   * for the rest each time; what was yielded is never repeated. It gives up after `patienceMs` without progress, half of
   * which are for the first connection.
   */
  async function* resilient(
    what: string,
    open: (api: LedgerClient['api']) => StreamingRead<Resolved> | undefined,
    signal: AbortSignal | undefined,
    patienceMs = deadlineMs,
  ): AsyncGenerator<Resolved, void, undefined> {
    let failures = 0;
    let progressAt = performance.now();
    const patienceLeft = (): number => progressAt + patienceMs - performance.now();
    for (;;) {
      signal?.throwIfAborted();
      closing.throwIfAborted();
      client ??= options.connect();
      const used = client;
      const stream = open(used.api);
      if (stream === undefined) return;
      try {
        for await (const item of pull<Resolved>(stream as never, {
          what,
          patienceMs: () => Math.min(patienceMs / 2, patienceLeft()),
          signals: [signal, closing],
          cancel: () => stream.cancel(),
        })) {
          yield item;
          failures = 0;
          progressAt = performance.now();
        }
        return;
      } catch (error) {
        if (signal?.aborted || closing.aborted || isMissingStream(error)) throw error;
        if (error instanceof Silence) replace(used);
        failures += 1;
        if (!isTransient(error) || failures > retries || patienceLeft() <= 0) throw error;
        await pause(
          Math.min(backoff(failures, FIRST_WAIT_MS, LONGEST_WAIT_MS), patienceLeft()),
          signal,
          closing,
        );
      }
    }
  }

  /** Throws the signal's reason and the adapter's own errors as they are, everything else as StoreUnavailable. */
  const translated = (what: string, error: unknown, signal: AbortSignal | undefined): unknown => {
    if (signal?.aborted) return signal.reason;
    if (closing.aborted) return closing.reason;
    if (error instanceof CorruptEvent || error instanceof RangeError) return error;
    return asUnavailable(what, error);
  };

  async function* readStream(
    stream: string,
    { from, direction = 'forward', limit = Infinity, signal }: ReadStreamOptions = {},
    patienceMs?: number,
  ): AsyncGenerator<RecordedEvent, void, undefined> {
    const what = `reading ${stream}`;
    const forward = direction === 'forward';
    let next = from;
    let left = limit;
    let skipped = false;
    const open = (api: LedgerClient['api']): StreamingRead<Resolved> | undefined =>
      left <= 0 || (next !== undefined && next < 0)
        ? undefined
        : api.readStream(stream, {
            fromRevision: next === undefined ? (forward ? START : END) : BigInt(next),
            direction: forward ? FORWARDS : BACKWARDS,
            ...(Number.isFinite(left) && { maxCount: left }),
            // A node that is no longer the leader may be behind, and decisions are taken from this.
            requiresLeader: true,
          });
    try {
      do {
        skipped = false;
        for await (const { event } of resilient(what, open, signal, patienceMs)) {
          if (event === undefined) continue;
          next = Number(event.revision) + (forward ? 1 : -1);
          skipped ||= isSystem(event);
          // Forward the limit is a stretch of revisions, in which the store's own records leave holes.
          if (forward || !isSystem(event)) left -= 1;
          if (isSystem(event)) continue;
          const recorded = toRecorded(event);
          if (!isOwnStream(stream)) watermark.saw(recorded.position);
          yield recorded;
        }
      } while (skipped && !forward);
    } catch (error) {
      // A stream that was never written, was soft-deleted or deleted for good has nothing to show.
      if (isMissingStream(error) || isDeletedStream(error)) return;
      throw translated(what, error, signal);
    }
  }

  async function* readAll({
    after,
    limit,
    signal,
  }: {
    after?: Position;
    limit: number;
    signal?: AbortSignal;
  }): AsyncGenerator<RecordedEvent, void, undefined> {
    const what = 'reading the log';
    if (after !== undefined) parsePosition(after);
    let reached = after;
    let left = limit;
    const open = (api: LedgerClient['api']): StreamingRead<Resolved> | undefined =>
      left <= 0
        ? undefined
        : api.readAll({
            fromPosition: reached === undefined ? START : parsePosition(reached),
            direction: FORWARDS,
            requiresLeader: true,
          });
    try {
      for await (const { event } of resilient(what, open, signal)) {
        const position = placeOf(event);
        if (event === undefined || position === undefined) continue;
        // Reads begin at their position, subscriptions behind it.
        if (reached !== undefined && position <= reached) continue;
        reached = position;
        if (isSystem(event) || isOwnStream(event.streamId)) continue;
        if (!ours.has(event.streamId)) {
          ours.passOver(event);
          continue;
        }
        left -= 1;
        watermark.saw(position);
        yield toRecorded(event);
        if (left <= 0) return;
      }
    } catch (error) {
      throw translated(what, error, signal);
    }
  }

  const currentRevision = async (stream: string, signal?: AbortSignal): Promise<ExpectedRevision> => {
    const last = { direction: 'backward', limit: 1, ...(signal && { signal }) } as const;
    for await (const event of readStream(stream, last)) return event.revision;
    return 'no_stream';
  };

  /** End of the log when it was last walked over: nothing of ours lies between this and the watermark. */
  let walkedFrom: Position = '';

  /**
   * Walks backward over events of the store and of others to the last of ours. It never walks where this process has
   * already looked, so only the first call after a start can be long. Behind 100,000 of those in a row it answers with
   * the oldest: nothing of ours lies behind that position either.
   */
  const lastPosition = async (signal?: AbortSignal): Promise<Position | undefined> => {
    const what = 'reading the end of the log';
    const known = watermark.highest();
    let oldest: Position | undefined;
    let visited = 0;
    const open = (api: LedgerClient['api']): StreamingRead<Resolved> =>
      api.readAll({
        direction: BACKWARDS,
        fromPosition: oldest === undefined ? END : parsePosition(oldest),
        maxCount: visited === 0 ? 8 : TAIL_PAGE,
        requiresLeader: true,
      });
    const looked = walkedFrom;
    let newest: Position | undefined;
    const answer = (last: Position | undefined): Position | undefined => {
      if (newest !== undefined && newest > walkedFrom) walkedFrom = newest;
      return last;
    };
    try {
      for (let page = 0; page < TAIL_PAGES; page += 1) {
        const before = visited;
        for await (const { event } of resilient(what, open, signal)) {
          const position = placeOf(event);
          if (event === undefined || position === undefined) continue;
          if (oldest !== undefined && position >= oldest) continue;
          oldest = position;
          newest ??= position;
          visited += 1;
          if (position <= known || position <= looked) return answer(known === '' ? undefined : known);
          if (isSystem(event) || isOwnStream(event.streamId) || !ours.has(event.streamId)) continue;
          watermark.saw(position);
          return answer(position);
        }
        if (visited === before) return answer(known === '' ? undefined : known);
      }
      return oldest;
    } catch (error) {
      throw translated(what, error, signal);
    }
  };

  const end = async (signal?: AbortSignal): Promise<Position | undefined> => {
    const what = 'reading the end of the log';
    const open = (api: LedgerClient['api']): StreamingRead<Resolved> =>
      api.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1, requiresLeader: true });
    try {
      for await (const { event } of resilient(what, open, signal)) return placeOf(event);
      return undefined;
    } catch (error) {
      throw translated(what, error, signal);
    }
  };

  const idAt = async (position: Position, signal?: AbortSignal): Promise<string | undefined> => {
    const what = `reading at position ${position}`;
    try {
      const fromPosition = parsePosition(position);
      const open = (api: LedgerClient['api']): StreamingRead<Resolved> =>
        api.readAll({ direction: FORWARDS, fromPosition, maxCount: 1, requiresLeader: true });
      for await (const { event } of resilient(what, open, signal))
        return placeOf(event) === position ? event?.id : undefined;
      return undefined;
    } catch (error) {
      if (error instanceof ImpossiblePosition) return undefined;
      // No record begins inside another one: the server fails there, and answers elsewhere.
      if (isUnknown(error) && (await end(signal)) !== undefined) return undefined;
      throw translated(what, error, signal);
    }
  };

  /** Proves that the store answers a read, within its own patience. */
  const ping = async (patienceMs: number, signal?: AbortSignal): Promise<void> => {
    const open = (api: LedgerClient['api']): StreamingRead<Resolved> =>
      api.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1 });
    try {
      for await (const _ of resilient('ping', open, signal, patienceMs)) return;
    } catch (error) {
      throw translated('ping', error, signal);
    }
  };

  return {
    readStream,
    readAll,
    currentRevision,
    lastPosition,
    end,
    idAt,
    ping,
    close: async (): Promise<void> => {
      await Promise.allSettled([...(client ? [client] : []), ...retired].map((one) => one.dispose()));
    },
  };
};

export type Reader = ReturnType<typeof createReader>;
