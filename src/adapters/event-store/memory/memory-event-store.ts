import {
  EventTooLarge,
  MAX_EVENT_BYTES,
  StoreUnavailable,
  WrongExpectedRevision,
  type Appended,
  type EventFilter,
  type EventStore,
  type EventToAppend,
  type ExpectedRevision,
  type Position,
  type RecordedEvent,
  type SubscriptionItem,
} from '../../../app/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';

/** Width of a position: enough for 2^53, so that positions sort as text. */
const POSITION_DIGITS = 16;

export type MemoryEventStoreOptions = {
  readonly storeId?: string;
  readonly now?: () => string;
  /** Default true: this process is the only writer. */
  readonly singleWriter?: boolean;
};

/** An event log in memory for specs and the simulation. Survives only as long as the object does. */
export const createMemoryEventStore = (options: MemoryEventStoreOptions = {}): EventStore => {
  const now = options.now ?? (() => new Date().toISOString());
  const log: RecordedEvent[] = [];
  const streams = new Map<string, RecordedEvent[]>();
  const maxCounts = new Map<string, number>();
  const wakers = new Set<() => void>();
  let closed = false;

  const refuseWhenClosed = (): void => {
    if (closed) throw new StoreUnavailable('the event store is closed', 'closed');
  };
  const visible = (stream: string): readonly RecordedEvent[] => {
    const events = streams.get(stream) ?? [];
    const maxCount = maxCounts.get(stream);
    return maxCount === undefined ? events : events.slice(-maxCount);
  };
  const revisionOf = (stream: string): ExpectedRevision =>
    streams.get(stream)?.at(-1)?.revision ?? 'no_stream';
  const last = (): Position | undefined => log.at(-1)?.position;

  const append = (stream: string, expected: ExpectedRevision, events: readonly EventToAppend[]): Appended => {
    refuseWhenClosed();
    if (events.length === 0) throw new TypeError('an append needs at least one event');
    for (const event of events) {
      const bytes = Buffer.byteLength(event.data) + Buffer.byteLength(event.metadata);
      if (bytes > MAX_EVENT_BYTES) throw new EventTooLarge(event.type, bytes);
    }
    const stored = streams.get(stream) ?? [];
    const actual = revisionOf(stream);
    const first = expected === 'no_stream' ? 0 : expected + 1;
    if (actual !== expected) {
      const already = stored.slice(first, first + events.length);
      const same =
        already.length === events.length && already.every((event, i) => event.id === events[i]?.id);
      const end = already.at(-1);
      if (!same || end === undefined) throw new WrongExpectedRevision(stream, expected, actual);
      return { revision: end.revision, position: end.position, duplicate: true };
    }
    const recorded = events.map(
      (event, i): RecordedEvent => ({
        position: String(log.length + i + 1).padStart(POSITION_DIGITS, '0'),
        stream,
        revision: first + i,
        id: event.id,
        type: event.type,
        data: JSON.parse(event.data) as JsonObject,
        metadata: JSON.parse(event.metadata) as JsonObject,
        recordedAt: now(),
      }),
    );
    log.push(...recorded);
    streams.set(stream, [...stored, ...recorded]);
    for (const wake of wakers) wake();
    const end = recorded[recorded.length - 1] as RecordedEvent;
    return { revision: end.revision, position: end.position, duplicate: false };
  };

  async function* subscribe(
    after: Position | undefined,
    filter: EventFilter | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<SubscriptionItem> {
    const wanted = matcher(filter);
    let index = after === undefined ? 0 : Number(after);
    let caughtUp = false;
    while (!signal.aborted) {
      const event = log[index];
      if (event === undefined) {
        if (!caughtUp) {
          caughtUp = true;
          yield { kind: 'caught-up', position: last() };
          continue;
        }
        await nextAppend(signal);
        continue;
      }
      index += 1;
      if (wanted(event)) yield { kind: 'event', event };
      else yield { kind: 'checkpoint', position: event.position };
    }
  }

  const nextAppend = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        wakers.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      wakers.add(done);
      signal.addEventListener('abort', done, { once: true });
    });

  return {
    storeId: options.storeId ?? 'memory',
    kind: 'memory',
    singleWriter: options.singleWriter ?? true,
    append: async (stream, expected, events, appendOptions) => {
      appendOptions?.signal?.throwIfAborted();
      return append(stream, expected, events);
    },
    async *readStream(stream, { from, direction = 'forward', limit = Infinity, signal } = {}) {
      refuseWhenClosed();
      const events = visible(stream);
      const wanted =
        direction === 'forward'
          ? events.filter((event) => event.revision >= (from ?? 0))
          : events.filter((event) => event.revision <= (from ?? Infinity)).toReversed();
      for (const event of wanted.slice(0, limit)) {
        signal?.throwIfAborted();
        yield event;
      }
    },
    async *readAll({ after, limit, signal }) {
      refuseWhenClosed();
      const start = after === undefined ? 0 : Number(after);
      for (const event of log.slice(start, start + limit)) {
        signal?.throwIfAborted();
        yield event;
      }
    },
    subscribe: ({ after, filter, signal }) => subscribe(after, filter, signal),
    currentRevision: async (stream) => {
      refuseWhenClosed();
      return revisionOf(stream);
    },
    lastPosition: async () => {
      refuseWhenClosed();
      return last();
    },
    setMaxCount: async (stream, maxCount) => {
      maxCounts.set(stream, maxCount);
    },
    ping: async () => refuseWhenClosed(),
    close: async () => {
      closed = true;
      for (const wake of wakers) wake();
    },
  };
};

const matcher = (filter: EventFilter | undefined): ((event: RecordedEvent) => boolean) => {
  if (filter === undefined) return () => true;
  if ('streamPrefixes' in filter)
    return (event) => filter.streamPrefixes.some((p) => event.stream.startsWith(p));
  return (event) => filter.typePrefixes.some((p) => event.type.startsWith(p));
};
