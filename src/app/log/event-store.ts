import type { JsonObject } from '../../domain/json.ts';

/**
 * Port of the event log. Three adapters pass one contract suite (test/integration/event-store/contract.ts):
 * `eventstoredb` (production), `sqlite` (embedded default), `memory` (simulation).
 *
 * Positions are fixed-width decimals that sort as text; they are valid for one store only.
 */
export type Position = string;

export type RecordedEvent = {
  readonly position: Position;
  readonly stream: string;
  /** 0 for the first event of a stream. */
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
  readonly metadata: JsonObject;
  /** ISO time at which the store recorded it. */
  readonly recordedAt: string;
};

/** What is known of an event that cannot be read. */
export type UnreadableEvent = Pick<
  RecordedEvent,
  'position' | 'stream' | 'revision' | 'id' | 'type' | 'recordedAt'
> & { readonly reason: string };

/** `data` and `metadata` are JSON texts: serialised (and so checked) by the caller before any adapter sees them. */
export type EventToAppend = {
  /** UUIDv5 of command id, stream and index: the same for every retry of one append. */
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
};

/** There is no `any`: only `no_stream` and a number give durable idempotency. */
export type ExpectedRevision = 'no_stream' | number;

export type AppendOptions = {
  readonly signal?: AbortSignal;
  /** Milliseconds until the outcome counts as unknown. Default of the adapter: 10,000. */
  readonly deadlineMs?: number;
  /** Milliseconds that it may wait for others, for a store that commits several together. Default 0. */
  readonly patienceMs?: number;
  /**
   * An append to another stream that this one rests on: nothing is stored before that one is, and when that one fails,
   * this one throws what it threw. A store that commits several together may take both at once, when this is the
   * promise that its own `append` returned.
   */
  readonly after?: Promise<Appended>;
};

export type Appended = {
  /** Revision of the last event of this append. */
  readonly revision: number;
  /** Position of the last event of this append. */
  readonly position: Position;
  /**
   * True when exactly these ids were already there: an earlier attempt had succeeded. Also when that may be so: the
   * answer to an earlier attempt was lost, and the store answers both alike.
   */
  readonly duplicate: boolean;
};

export type ReadStreamOptions = {
  /** First revision to return; default 0 forward, the last one backward. */
  readonly from?: number;
  readonly direction?: 'forward' | 'backward';
  /**
   * Default: no limit. Forward it is a stretch of so many revisions, backward a number of events. Records that the
   * store
   * itself keeps in a stream (EventStoreDB: links) are not returned: a stream may have revisions without an event.
   */
  readonly limit?: number;
  readonly signal?: AbortSignal;
};

/** Reads a stream in its order: what folds it need not know where the events come from. */
export type ReadForward = (
  stream: string,
  options: Omit<ReadStreamOptions, 'direction'>,
) => AsyncIterable<RecordedEvent>;

/** One filter per subscription; neither: everything but the store's own (`$…`) events. */
export type EventFilter =
  | { readonly streamPrefixes: readonly string[] }
  | { readonly typePrefixes: readonly string[] }
  /**
   * Everything, and the records that the store itself keeps in our streams: events without data, of a type that begins
   * with `$`. They say which revisions of a stream have no event.
   */
  | { readonly alsoStoreRecords: true };

export type SubscribeOptions = {
  /** Exclusive. Absent: from the beginning of the log. */
  readonly after?: Position;
  readonly filter?: EventFilter;
  readonly signal: AbortSignal;
  /** Milliseconds that news may be late, for a store that reads more of them in one look then. Default 0. */
  readonly patienceMs?: number;
  /** Who subscribes, for the log. */
  readonly name?: string;
};

/** What a subscription yields, in log order. A checkpoint says that everything up to `position` was yielded. */
export type SubscriptionItem =
  | { readonly kind: 'event'; readonly event: RecordedEvent }
  /** An event of one of our streams that is no event of ours: no JSON object. What folds its stream must stop there. */
  | { readonly kind: 'unreadable'; readonly event: UnreadableEvent }
  | { readonly kind: 'checkpoint'; readonly position: Position }
  /** All that was in the log when the subscription reached its end has been yielded. May come again after a drop. */
  | { readonly kind: 'caught-up'; readonly position: Position | undefined };

/** Why a subscriber left: it goes on elsewhere behind what it took, within seconds, under the same name. */
export class GoesOnElsewhere extends Error {
  override readonly name: string = 'GoesOnElsewhere';
}

/** How far a subscriber has got that has handled `item`; undefined at the end of an empty log. */
export const reachedBy = (item: SubscriptionItem): Position | undefined =>
  'event' in item ? item.event.position : item.position;

export type EventStore = {
  /** Identifies this store across HTTP: a position of another store is refused with 400. */
  readonly storeId: string;
  /** Name of the adapter, for logs and health. */
  readonly kind: 'sqlite' | 'eventstoredb' | 'memory';
  /**
   * True when this process is the only writer, so that cached state needs no re-check before a rejection. Appends of
   * such a store take effect in the order in which they were sent, one whose outcome is not known included: once a
   * later one was stored or found a conflict, it is stored or never will be.
   */
  readonly singleWriter: boolean;
  /**
   * Appends all events or none. Throws WrongExpectedRevision, EventTooLarge, StreamDeleted, OutcomeUnknown,
   * StoreUnavailable. An empty list is a programming error.
   */
  append(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    options?: AppendOptions,
  ): Promise<Appended>;
  /** A missing stream yields nothing. Throws StoreUnavailable. */
  readStream(stream: string, options?: ReadStreamOptions): AsyncIterable<RecordedEvent>;
  /** Forward over the whole log after `after` (exclusive), at most `limit` events. */
  readAll(options: { after?: Position; limit: number; signal?: AbortSignal }): AsyncIterable<RecordedEvent>;
  /**
   * Ends only on its signal; resumes by itself after a drop, from the last yielded position. Throws LogReplaced when
   * that position is none of this log.
   */
  subscribe(options: SubscribeOptions): AsyncIterable<SubscriptionItem>;
  /** Revision of the last event of a stream, `no_stream` when there is none. */
  currentRevision(stream: string, signal?: AbortSignal): Promise<ExpectedRevision>;
  /** Position of the last event of the log; undefined when it is empty. */
  lastPosition(signal?: AbortSignal): Promise<Position | undefined>;
  /**
   * Position of the last record of the log, records of the store itself included; undefined when there is none.
   * Checkpoints may stand on such records, so that only this end tells whether a log is shorter than a checkpoint.
   */
  end(signal?: AbortSignal): Promise<Position | undefined>;
  /**
   * Id of the record at exactly this position; undefined when none begins there. An event keeps its position, so
   * another id under a remembered position means another log.
   */
  idAt(position: Position, signal?: AbortSignal): Promise<string | undefined>;
  /** Keeps at most `maxCount` newest events of a `sys-*` stream (`$maxCount`). */
  setMaxCount(stream: string, maxCount: number): Promise<void>;
  /** Resolves when the store answers; throws StoreUnavailable otherwise. For /readyz. */
  ping(signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
};

/**
 * Largest append in bytes, and so the largest event: MaxAppendSize of servers through 25.0. Of each event, its data,
 * its
 * metadata and twice the length of its type count, as the strictest server counts.
 */
export const MAX_APPEND_BYTES = 1024 * 1024;

export class WrongExpectedRevision extends Error {
  override readonly name = 'WrongExpectedRevision';
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly actual: ExpectedRevision;
  /** Every revision behind the expected one was read, and all are records of the store itself: no event was missed. */
  readonly onlyStoreRecords: boolean;
  constructor(
    stream: string,
    expected: ExpectedRevision,
    actual: ExpectedRevision,
    { onlyStoreRecords = false }: { readonly onlyStoreRecords?: boolean } = {},
  ) {
    super(`stream ${stream} is at revision ${actual}, not at ${expected}`);
    this.stream = stream;
    this.expected = expected;
    this.actual = actual;
    this.onlyStoreRecords = onlyStoreRecords;
  }
}

/** Nothing was stored. */
export class EventTooLarge extends Error {
  override readonly name = 'EventTooLarge';
  readonly bytes: number;
  /** Most that the store takes, in bytes. */
  readonly limit: number;
  /** `what`: `event <type>`, or `append of <n> events to <stream>` where they are too large together. */
  constructor(what: string, bytes: number, limit = MAX_APPEND_BYTES) {
    super(`${what} has ${bytes} bytes; the event store takes at most ${limit}`);
    this.bytes = bytes;
    this.limit = limit;
  }
}

/** The append may or may not have been stored. Repeat with the same ids and the same expected revision. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown';
  readonly stream: string;
  constructor(stream: string, options?: ErrorOptions) {
    super(`it is not known whether the append to ${stream} was stored`, options);
    this.stream = stream;
  }
}

/** The log holds something else than was written to it. `at`: the event that is wrong, where it is known. */
export class LogDamaged extends Error {
  override readonly name: string = 'LogDamaged';
  readonly at: DamagedAt | undefined;
  constructor(message: string, at: DamagedAt | undefined, options?: ErrorOptions) {
    super(message, options);
    this.at = at;
  }
}
/** The log is not the one that was read before: it was restored from an older copy, or is another one. */
export class LogReplaced extends Error {
  override readonly name = 'LogReplaced';
}
/** `event`: `<stream>@<revision>`. */
export type DamagedAt = { readonly event: string; readonly position: Position };

/** The stream was deleted for good in the store: it takes nothing any more, and what it held is gone. */
export class StreamDeleted extends LogDamaged {
  override readonly name = 'StreamDeleted';
  readonly stream: string;
  constructor(stream: string) {
    super(`stream ${stream} was deleted for good in the event store`, undefined);
    this.stream = stream;
  }
}

/**
 * Why nothing can be stored. `down`: not reachable; `full`: no space left; `denied`: the store's user lacks a right;
 * `credentials`: the store does not know the user, or not with this password; `untrusted`: TLS fails, as for a
 * certificate of another authority; `closed`: this process is stopping.
 */
export type UnavailableReason = 'down' | 'full' | 'denied' | 'credentials' | 'untrusted' | 'closed';

/** Nothing was stored. `retryAfterMs` says when trying again makes sense. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
  readonly retryAfterMs: number;
  readonly reason: UnavailableReason;
  constructor(
    message: string,
    reason: UnavailableReason = 'down',
    options?: ErrorOptions & { retryAfterMs?: number },
  ) {
    super(message, options);
    this.reason = reason;
    this.retryAfterMs = options?.retryAfterMs ?? 1000;
  }
}
