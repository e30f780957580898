import type { EventFilter, RecordedEvent } from '../log/event-store.ts';

/**
 * What of the log becomes records of which Kafka topic: pure, the broker is in `adapters/kafka`. The
 * form of the records, and what consumers may rely on, is described in docs/streams.md. A record has no time of its
 * own for
 * the brokers: retention goes by when it came to them, and what lies in the future they refuse.
 */
export type KafkaRecord = {
  readonly topic: string;
  /** Id of the aggregate: order is kept per key. */
  readonly key: string;
  /** One JSON object; null says that the document of this key is gone (compacted topics only). */
  readonly value: string | null;
  readonly headers: { readonly [name: string]: string };
};

/** Every event of the log, whatever its stream and type. */
export const EVERYTHING = 'everything';

/** A topic as it should be on the broker. */
export type TopicSpec = {
  readonly name: string;
  readonly kind: 'events' | 'state' | 'checkpoints' | 'metering';
  readonly cleanup: 'delete' | 'compact';
  readonly partitions: number;
  /** Milliseconds; -1: for as long as the broker has room. */
  readonly retentionMs: number;
  /**
   * Which events of the log the mapper wants to see; it leaves out more by itself. Absent: no event becomes a record of
   * this topic (heartbeats come from the clock).
   */
  readonly filter?: EventFilter | typeof EVERYTHING;
};

/**
 * The records of one event, in the order in which they are to be sent; none: this event says nothing on the topic.
 * Called with the events of the filter in the order of the log, one at a time; events that come again give the same
 * records again. Rejects with StoreUnavailable when the event's stream cannot be read; any other error is a poison
 * event.
 */
export type RecordMapper = (event: RecordedEvent) => readonly KafkaRecord[] | Promise<readonly KafkaRecord[]>;

/** A topic and what fills it. Each has a place in the log and a checkpoint of its own, and one publisher at a time. */
export type TopicStream = {
  readonly topic: TopicSpec;
  readonly map: RecordMapper;
  /** True: no record is made of this event, whatever came before it. Cheap, for topics that read the whole log: asked before anything is mapped. */
  readonly isNothing?: (event: Pick<RecordedEvent, 'stream' | 'type'>) => boolean;
};
