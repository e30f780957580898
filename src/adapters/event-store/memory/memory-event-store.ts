import { completeMetadata } from '../../../app/log/metadata.ts';
import {
  StoreUnavailable,
  WrongExpectedRevision,
  type Appended,
  type EventFilter,
  type EventStore,
  type EventToAppend,
  type ExpectedRevision,
  type Position,
  type RecordedEvent,
} from '../../../app/log/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { checkAppend, checkMaxCount, matcher } from '../shared/checks.ts';
import { frozen } from '../shared/frozen.ts';
import { createGrowth, pagedSubscription, type Page } from '../shared/paged-subscription.ts';
import { formatPosition, parsePosition } from '../shared/position.ts';

/** Events a subscription looks at before it yields a checkpoint and leaves the thread to others. */
const PAGE = 500;

export type MemoryEventStoreOptions = {
  readonly storeId?: string;
  readonly now?: () => string;
  /** Default true: this process is the only writer. */
  readonly singleWriter?: boolean;
};

/**
 * An event log in memory for specs and the simulation. Survives only as long as the object does.
 * An append takes effect in the call itself, so that the order of calls is the order of the log.
 */
export const createMemoryEventStore = (options: MemoryEventStoreOptions = {}): EventStore => {
  const now = options.now ?? (() => new Date().toISOString());
  /** Event number n stands at index n - 1. */
  const log: RecordedEvent[] = [];
  /** All events of a stream, also those that `$maxCount` hides: index = revision. */
  const streams = new Map<string, RecordedEvent[]>();
  const maxCounts = new Map<string, number>();
  const growth = createGrowth();
  let closed = false;

  const refuse = (signal?: AbortSignal): void => {
    if (closed) throw new StoreUnavailable('the event store is closed', 'closed');
    signal?.throwIfAborted();
  };
  const revisionOf = (stream: string): ExpectedRevision => {
    const length = streams.get(stream)?.length ?? 0;
    return length === 0 ? 'no_stream' : length - 1;
  };

  const append = (stream: string, expected: ExpectedRevision, events: readonly EventToAppend[]): Appended => {
    const stored = streams.get(stream) ?? [];
    const first = expected === 'no_stream' ? 0 : expected + 1;
    if (first !== stored.length)
      return repeated(stream, expected, stored.slice(first, first + events.length), events);
    const recordedAt = now();
    const recorded = events.map(({ id, type, ...texts }, i): RecordedEvent => {
      const data = JSON.parse(texts.data) as JsonObject;
      const metadata = completeMetadata(JSON.parse(texts.metadata) as JsonObject, data);
      const position = formatPosition(log.length + i + 1);
      return deepFreeze({ position, stream, revision: first + i, id, type, data, metadata, recordedAt });
    });
    log.push(...recorded);
    stored.push(...recorded);
    streams.set(stream, stored);
    growth.grew(log.length);
    return { revision: stored.length - 1, position: formatPosition(log.length), duplicate: false };
  };

  const repeated = (
    stream: string,
    expected: ExpectedRevision,
    already: readonly RecordedEvent[],
    events: readonly EventToAppend[],
  ): Appended => {
    const end = already.at(-1);
    const same = already.length === events.length && already.every((event, i) => event.id === events[i]?.id);
    if (!same || end === undefined) throw new WrongExpectedRevision(stream, expected, revisionOf(stream));
    return { revision: end.revision, position: end.position, duplicate: true };
  };

  const pageOf =
    (filter: EventFilter | undefined) =>
    (after: number): Page => {
      const looked = log.slice(after, after + PAGE);
      const considered = after + looked.length;
      return {
        events: looked.filter(matcher(filter)),
        considered,
        atEnd: considered === log.length,
        last: log.length,
      };
    };

  const lastPosition = async (signal?: AbortSignal): Promise<Position | undefined> => {
    refuse(signal);
    return log.length === 0 ? undefined : formatPosition(log.length);
  };

  return {
    storeId: options.storeId ?? 'memory',
    kind: 'memory',
    singleWriter: options.singleWriter ?? true,
    append: async (stream, expected, events, appendOptions) => {
      if (appendOptions?.after !== undefined) await appendOptions.after;
      refuse(appendOptions?.signal);
      checkAppend(stream, expected, events);
      return append(stream, expected, events);
    },
    async *readStream(stream, { from, direction = 'forward', limit = Infinity, signal } = {}) {
      refuse(signal);
      const events = streams.get(stream) ?? [];
      const oldest = Math.max(0, events.length - (maxCounts.get(stream) ?? Infinity));
      const step = direction === 'forward' ? 1 : -1;
      let at = step === 1 ? Math.max(from ?? 0, oldest) : Math.min(from ?? Infinity, events.length - 1);
      for (let read = 0; read < limit && at >= oldest && at < events.length; read += 1, at += step) {
        yield events[at] as RecordedEvent;
        refuse(signal);
      }
    },
    async *readAll({ after, limit, signal }) {
      refuse(signal);
      const start = parsePosition(after);
      for (let at = start; at < Math.min(start + limit, log.length); at += 1) {
        yield log[at] as RecordedEvent;
        refuse(signal);
      }
    },
    subscribe: ({ after, filter, signal }) =>
      pagedSubscription(
        {
          readPage: pageOf(filter),
          changed: growth.changed,
          isClosed: () => closed,
          recover: () => Promise.resolve(),
          breathe: () => Promise.resolve(),
        },
        parsePosition(after),
        signal,
      ),
    currentRevision: async (stream, signal) => {
      refuse(signal);
      return revisionOf(stream);
    },
    lastPosition,
    end: lastPosition,
    idAt: async (position, signal) => {
      refuse(signal);
      return log[parsePosition(position) - 1]?.id;
    },
    setMaxCount: async (stream, maxCount) => {
      refuse();
      checkMaxCount(stream, maxCount);
      maxCounts.set(stream, maxCount);
    },
    ping: async (signal) => refuse(signal),
    close: async () => {
      closed = true;
      growth.wakeAll();
    },
  };
};

/** Every reader gets the same object, so nobody may change it. */
const deepFreeze = <T extends RecordedEvent>(event: T): T => {
  frozen(event.data);
  frozen(event.metadata);
  return Object.freeze(event);
};
