import { BACKWARDS, END, FORWARDS, START, type StreamingRead } from '@eventstore/db-client';
import type {
  ExpectedRevision,
  Position,
  ReadStreamOptions,
  RecordedEvent,
} from '../../../app/log/event-store.ts';
import type { LedgerClient } from './client.ts';
import { CorruptEvent, isSystem, knownPosition, parsePosition, positionOf, toRecorded } from './convert.ts';
import { isDeletedStream, isMissingStream, isUnknown, type StoreFaults } from './errors.ts';
import type { OurStreams } from './our-streams.ts';
import {
  createReadConnection,
  type ReadConnectionOptions,
  type ReadTurn,
  type Resolved,
} from './read-connection.ts';
import { isOwnStream } from './store-id.ts';
import { pause } from './waiting.ts';
import type { Watermark } from './watermark.ts';

export type ReaderOptions = ReadConnectionOptions & {
  readonly watermark: Watermark;
  readonly faults: StoreFaults;
  readonly ours: OurStreams;
  /** Milliseconds that the log stays shorter than a position until nothing counts as being there. */
  readonly replacedMs: number;
};

/** What is known of an event that was not decoded. */
export type StoredId = {
  readonly id: string;
  readonly revision: number;
  readonly position: Position;
  /** A record of the store itself: a link, or of a type that begins with `$`. */
  readonly system: boolean;
};

const placeOf = (event: Resolved['event']): Position | undefined => knownPosition(event?.position);

/** Events per page when walking backward over system events, and how many pages of the log at most. */
const TAIL_PAGE = 200;
const TAIL_PAGES = 500;
/** How often nothing is found at a position until it counts, and for how long each look and each pause lasts, in milliseconds. */
const LOOKS = 3;
const LOOK_MS = 500;
const LOOK_PAUSE_MS = 100;

export const createReader = (options: ReaderOptions) => {
  const { closing, watermark, faults, ours, replacedMs } = options;
  const { resilient, close } = createReadConnection(options);

  /** Throws the signal's reason and the adapter's own errors as they are, everything else as StoreUnavailable. */
  const translated = (
    what: string,
    error: unknown,
    signal: AbortSignal | undefined,
    stream = '$all',
  ): unknown => {
    if (signal?.aborted) return signal.reason;
    if (closing.aborted) return closing.reason;
    if (error instanceof CorruptEvent || error instanceof RangeError) return error;
    return faults.unavailable(what, error, { right: '$r', on: stream });
  };

  async function* readStream(
    stream: string,
    { from, direction = 'forward', limit = Infinity, signal }: ReadStreamOptions = {},
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
        for await (const { event } of resilient(what, open, signal)) {
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
      throw translated(what, error, signal, stream);
    }
  }

  /** The stored events of a stream as they are, in pages: nothing of them is decoded. */
  async function* raw(
    stream: string,
    from: bigint | typeof END,
    direction: typeof FORWARDS | typeof BACKWARDS,
    maxCount: number,
    signal?: AbortSignal,
    turn?: ReadTurn,
  ): AsyncGenerator<NonNullable<Resolved['event']>, void, undefined> {
    const what = `reading ${stream}`;
    const open = (api: LedgerClient['api']): StreamingRead<Resolved> =>
      api.readStream(stream, { fromRevision: from, direction, maxCount, requiresLeader: true });
    try {
      for await (const { event, link } of resilient(what, open, signal, turn)) {
        const stored = link ?? event;
        if (stored !== undefined) yield stored;
      }
    } catch (error) {
      if (isMissingStream(error) || isDeletedStream(error)) return;
      throw translated(what, error, signal, stream);
    }
  }

  /** The ids of `limit` events from revision `from` on. Goes before reads that wait: an append hangs on it. */
  const readIds = async (
    stream: string,
    from: number,
    limit: number,
    patienceMs: number,
  ): Promise<readonly StoredId[]> => {
    const found = new Map<number, StoredId>();
    const turn = { patienceMs, turn: 'ahead' } as const;
    for await (const event of raw(stream, BigInt(from), FORWARDS, limit, undefined, turn)) {
      const { id, position } = event;
      if (position === undefined) continue;
      const at = positionOf(position.commit, position.prepare);
      const revision = Number(event.revision);
      found.set(revision, { id, revision, position: at, system: isSystem(event) });
    }
    return [...found.values()];
  };

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

  /** Of the last event that reads of the stream show: links and `$` events may stand behind it. */
  const currentRevision = async (stream: string, signal?: AbortSignal): Promise<ExpectedRevision> => {
    let from: bigint | typeof END = END;
    for (let page = 1; ; page = TAIL_PAGE) {
      let oldest: bigint | undefined;
      for await (const event of raw(stream, from, BACKWARDS, page, signal)) {
        if (!isSystem(event)) return Number(event.revision);
        oldest = event.revision;
      }
      if (oldest === undefined || oldest === 0n) return 'no_stream';
      from = oldest - 1n;
    }
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

  /** What begins at a position: its id, `none`, or `beyond` when the log does not reach so far. */
  const lookAt = async (
    position: Position,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly id: string } | 'none' | 'beyond'> => {
    const what = `reading at position ${position}`;
    const fromPosition = parsePosition(position);
    const last = await end(signal);
    if (last === undefined || last < position) return 'beyond';
    const open = (api: LedgerClient['api']): StreamingRead<Resolved> =>
      api.readAll({ direction: FORWARDS, fromPosition, maxCount: 1, requiresLeader: true });
    try {
      for await (const { event } of resilient(what, open, signal, { patienceMs: LOOK_MS }))
        if (event !== undefined && placeOf(event) === position) return { id: event.id };
      return 'none';
    } catch (error) {
      // No record begins inside another one: the server fails there, and answers elsewhere.
      if (isUnknown(error)) return 'none';
      throw translated(what, error, signal);
    }
  };

  /** While a leader is elected a node may know less of the log, or fail: only what stays so says that nothing is there. */
  const idAt = async (position: Position, signal?: AbortSignal): Promise<string | undefined> => {
    const started = performance.now();
    for (let none = 0; ; ) {
      const found = await lookAt(position, signal);
      if (typeof found === 'object') return found.id;
      none = found === 'none' ? none + 1 : 0;
      if (none >= LOOKS || (found === 'beyond' && performance.now() - started >= replacedMs))
        return undefined;
      await pause(LOOK_PAUSE_MS, signal, closing);
    }
  };

  /** Proves that the store answers a read, within its own patience and whatever waits. */
  const ping = async (patienceMs: number, signal?: AbortSignal): Promise<void> => {
    const what = 'asking the event store';
    const open = (api: LedgerClient['api']): StreamingRead<Resolved> =>
      api.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1 });
    try {
      for await (const _ of resilient(what, open, signal, { patienceMs, turn: 'beside' })) return;
    } catch (error) {
      throw translated(what, error, signal);
    }
  };

  return {
    readStream,
    readAll,
    readIds,
    currentRevision,
    lastPosition,
    end,
    idAt,
    ping,
    close,
  };
};

export type Reader = ReturnType<typeof createReader>;
