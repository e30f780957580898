import { createRequire } from 'node:module';
import { CompressionTypes, Kafka, Partitioners, logLevel } from 'kafkajs';
import { encodeBatch, encodeRecord, murmur2, type PlainBatch, type PlainRecord } from './record-encoding.ts';

/**
 * kafkajs 2.2.4 with the repair of its request queue (libraries.md §5): as published, every connection to a broker
 * arms a timer of 1 ms again and again for as long as it lives, also when it has nothing to send. And with an encoding of
 * records that takes a tenth of the time (record-encoding.ts): it was a third of what publishing takes. Whoever needs kafkajs
 * imports it from here, so that no client is made before the repair.
 */
type RequestQueue = { readonly pending: readonly unknown[]; readonly throttledUntil: number };
type Schedule = (this: RequestQueue) => void;

const require = createRequire(import.meta.url);
const { prototype } = require('kafkajs/src/network/requestQueue') as {
  readonly prototype: { scheduleCheckPendingRequests: Schedule };
};
const schedule = prototype.scheduleCheckPendingRequests;
prototype.scheduleCheckPendingRequests = function () {
  if (this.pending.length > 0 || this.throttledUntil > Date.now()) schedule.call(this);
};

/** What kafkajs loads with its first request to produce. */
const replaceModule = <Exports>(path: string, by: (published: Exports) => Exports): void => {
  const published = require(path) as Exports;
  const loaded = require.cache[require.resolve(path)];
  if (loaded !== undefined) loaded.exports = by(published);
};

/** What kafkajs takes for one of its encoders. */
type Encoded = { readonly buf: Buffer; readonly buffer: Buffer; readonly size: () => number };
const encoded = (buffer: Buffer): Encoded => ({ buf: buffer, buffer, size: () => buffer.length });

replaceModule<(record: PlainRecord) => Encoded>('kafkajs/src/protocol/recordBatch/record/v0', () => {
  return (record) => encoded(encodeRecord(record));
});
type Batches = { readonly RecordBatch: (batch: PlainBatch) => Promise<Encoded> };
replaceModule<Batches>('kafkajs/src/protocol/recordBatch/v0', (published) => ({
  ...published,
  RecordBatch: async (batch) => encoded(encodeBatch(batch)),
}));

/** Of the default partitioner, where a message has a key and no partition of its own; as its `murmur2` says. */
const createPartitioner: typeof Partitioners.DefaultPartitioner = () => {
  const other = Partitioners.DefaultPartitioner();
  return (args) => {
    const { key, partition } = args.message;
    if (typeof key !== 'string' || (partition !== undefined && partition !== null)) return other(args);
    return (murmur2(key) & 0x7fffffff) % args.partitionMetadata.length;
  };
};

/** The part of kafkajs' own connection to a cluster that reading single records takes; its consumers need a group for that. */
export type KafkaConnection = {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  refreshMetadata(): Promise<void>;
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>;
  findTopicPartitionMetadata(topic: string): readonly { readonly partitionId: number }[];
  findLeaderForPartitions(
    topic: string,
    partitions: readonly number[],
  ): { readonly [nodeId: string]: readonly number[] };
  fetchTopicsOffset(
    topics: readonly { topic: string; partitions: { partition: number }[]; fromBeginning: boolean }[],
  ): Promise<readonly { topic: string; partitions: readonly { partition: number; offset: string }[] }[]>;
  findBroker(of: { readonly nodeId: string }): Promise<KafkaBroker>;
};
export type KafkaBroker = {
  fetch(request: FetchRequest): Promise<{ readonly responses: readonly FetchedTopic[] }>;
};
type FetchRequest = {
  readonly maxWaitTime: number;
  readonly minBytes: number;
  readonly maxBytes: number;
  readonly isolationLevel: number;
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly { partition: number; fetchOffset: string; maxBytes: number }[];
  }[];
};
export type FetchedTopic = {
  readonly topicName: string;
  readonly partitions: readonly {
    readonly partition: number;
    readonly messages: readonly {
      readonly offset: string;
      readonly value: Buffer | null;
      readonly headers?: { readonly [name: string]: Buffer | readonly Buffer[] };
    }[];
  }[];
};

/** A connection of a client's own, which kafkajs gives to nobody but its producers, consumers and administrators. */
export const connectionOf = (kafka: Kafka): KafkaConnection => {
  const make = Object.getOwnPropertySymbols(kafka).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  );
  const clients = kafka as unknown as Record<symbol, (options: object) => KafkaConnection>;
  const create = make && clients[make];
  if (create === undefined) throw new TypeError('this is not the version of kafkajs that is known here');
  return create({ allowAutoTopicCreation: false, metadataMaxAge: 300_000 });
};

export { CompressionTypes, createPartitioner, Kafka, Partitioners, logLevel };
