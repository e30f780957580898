import type { KafkaRecord, TopicSpec } from '../streams/stream.ts';

/**
 * Ports of the publisher. Two adapters pass one contract suite (test/integration/kafka/contract.ts):
 * kafkajs, and one in memory with faults on command.
 */

export type { KafkaRecord, RecordMapper, TopicSpec, TopicStream } from '../streams/stream.ts';

/** Where the records of one partition begin that a send has brought; it grows for as long as the topic is the same. */
export type Stored = { readonly topic: string; readonly partition: number; readonly offset: string };

/** One connection to the brokers, idempotent, in order, one `send` at a time. */
export type KafkaProducer = {
  /**
   * Resolves when every in-sync replica has all of the records. Throws KafkaFault; the records may then be stored in
   * part or whole, and this producer must not send anything else: close it.
   */
  send(records: readonly KafkaRecord[]): Promise<readonly Stored[]>;
  /** Ends a `send` that is under way, which then throws; nothing goes to the brokers afterwards. Never throws. */
  close(): Promise<void>;
};

export type KafkaProducers = {
  /**
   * Throws KafkaFault; `closed` when the signal was aborted. `mayWrite` is asked before anything goes to the
   * brokers, also
   * what is tried again; from the first no on, nothing goes there any more, and a send throws `closed`. `onTrouble`
   * is told
   * what goes wrong on the way and is tried again: a send may take minutes before it fails.
   */
  open(signal: AbortSignal, mayWrite?: () => boolean, onTrouble?: OnTrouble): Promise<KafkaProducer>;
};

/** Told of one try that was in vain, with the broker where that is known. */
export type OnTrouble = (problem: string, about?: TroubleAbout) => void;
export type TroubleAbout = {
  /** `host:port`. */
  readonly broker?: string;
  /** The broker has answered, and refused: it can be reached. Absent: no. */
  readonly isAnswer?: boolean;
};

/** A topic as the brokers have it. */
export type TopicOnBrokers = {
  readonly partitions: number;
  readonly replicas: number;
  /** `compact,delete` is possible. */
  readonly cleanup: string;
  readonly retentionMs: number;
  /** `min.insync.replicas`: how many replicas have what is confirmed. NaN where we may not see it. */
  readonly minInsync: number;
};

/** The newest record of one partition. */
export type LastRecord = Pick<KafkaRecord, 'value' | 'headers'> & { readonly partition: number };

/** By partition the offset that the next record gets; 0: nothing was ever written to it. */
export type Ends = {
  readonly offsets: ReadonlyMap<number, bigint>;
  /** Another topic of the same name has another one. Undefined: these brokers have no ids (Kafka before 3.1). */
  readonly topicId: string | undefined;
};

export type KafkaAdmin = {
  /** Those of the topics that exist. Throws KafkaFault. */
  describe(
    topics: readonly string[],
    signal: AbortSignal,
  ): Promise<{ readonly brokers: number; readonly topics: ReadonlyMap<string, TopicOnBrokers> }>;
  /**
   * Where each topic ends, and which one it is. Throws KafkaFault, `topic-missing` when one does not exist.
   */
  endsOf(topics: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, Ends>>;
  /**
   * The newest record of each partition that holds one, of topics that exist. A topic that we have no right to read is
   * not in the answer. Throws KafkaFault.
   */
  lastRecords(
    topics: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly LastRecord[]>>;
  /** Makes those that do not exist and returns their names. Throws KafkaFault. */
  create(
    topics: readonly Pick<TopicSpec, 'name' | 'cleanup' | 'partitions' | 'retentionMs'>[],
    signal: AbortSignal,
  ): Promise<readonly string[]>;
};

/** Replicas of a topic that we make, where there are as many brokers; and how many of them confirm. */
export const REPLICAS = 3;
export const insyncOf = (replicas: number): number => Math.min(replicas, 2);

export type KafkaCluster = { readonly producers: KafkaProducers; readonly admin: KafkaAdmin };

/**
 * Why the brokers did not do it. `unreachable`: no broker answers; `unauthorized`: credentials or rights are refused;
 * `topic-missing`; `too-large`: they do not take a record or batch of that size;
 * `invalid`: they do not take one of the records as it is; `full`: no room, or too few replicas;
 * `other-history`: the topic holds what this log does not have (history.ts); `closed`: ended from our side; `refused`:
 * anything else.
 */
export type KafkaFaultReason =
  | 'unreachable'
  | 'unauthorized'
  | 'topic-missing'
  | 'too-large'
  | 'invalid'
  | 'full'
  | 'other-history'
  | 'closed'
  | 'refused';

type FaultOptions = ErrorOptions & { readonly isAnswer?: boolean };

export class KafkaFault extends Error {
  override readonly name = 'KafkaFault';
  readonly reason: KafkaFaultReason;
  /** A broker has said so: it can be reached. Always of reasons but `unreachable` and `closed`. */
  readonly isAnswer: boolean;
  constructor(
    reason: KafkaFaultReason,
    message: string,
    { isAnswer = reason !== 'unreachable' && reason !== 'closed', ...options }: FaultOptions = {},
  ) {
    super(message, options);
    this.reason = reason;
    this.isAnswer = isAnswer;
  }
}

/** Bytes that a record takes in a request, about: key, value, headers and what is around them. */
export const sizeOf = ({ key, value, headers }: KafkaRecord): number => {
  let bytes = RECORD_OVERHEAD + Buffer.byteLength(key) + (value === null ? 0 : Buffer.byteLength(value));
  for (const name of Object.keys(headers))
    bytes += HEADER_OVERHEAD + Buffer.byteLength(name) + Buffer.byteLength(headers[name] ?? '');
  return bytes;
};

/** Lengths, offset and time of a record; lengths of a header (record format v2). */
const RECORD_OVERHEAD = 40;
const HEADER_OVERHEAD = 6;

/** Name of the lease under which one instance at a time publishes. */
export const PUBLISHER_LEASE = 'publisher';

export const REPLAY_NAME = /^[a-z0-9][a-z0-9-]{0,49}$/;

/** What is there already would stand in front of what comes; only one that goes on behind a position adds to it. */
export class ReplayTargetInUse extends Error {
  override readonly name = 'ReplayTargetInUse';
  constructor(target: string) {
    super(`topic ${target} holds records already: choose another name, or go on behind a position`);
  }
}
