import { createRequire } from 'node:module';
import { CompressionTypes, Kafka, Partitioners, logLevel } from 'kafkajs';
import { crc32c, encodeBatch, encodeRecord, isPlain, murmur2, type PlainBatch } from './record-encoding.ts';

/**
 * kafkajs 2.2.4 with the repair of its request queue: as published, every connection to a broker
 * arms a timer of 1 ms again and again for as long as it lives, also when it has nothing to send. And with an
 * encoding of
 * records that takes a tenth of the time (record-encoding.ts): it was a third of what publishing takes. Whoever
 * needs kafkajs
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

type Encode = (record: object) => Encoded;
/** What kafkajs takes for one of its encoders. */
type Encoded = { readonly buf: Buffer; readonly buffer: Buffer; readonly size: () => number };
const encoded = (buffer: Buffer): Encoded => ({ buf: buffer, buffer, size: () => buffer.length });

replaceModule<Encode>('kafkajs/src/protocol/recordBatch/record/v0', (published) => (record) => {
  return isPlain(record) ? encoded(encodeRecord(record)) : published(record);
});
type Batches = {
  readonly RecordBatch: (batch: PlainBatch & { readonly compression: number }) => Promise<Encoded>;
};
replaceModule<(bytes: Buffer) => number>('kafkajs/src/protocol/recordBatch/crc32C', () => crc32c);
replaceModule<Batches>('kafkajs/src/protocol/recordBatch/v0', (published) => ({
  ...published,
  RecordBatch: async (batch) =>
    batch.compression === CompressionTypes.None ? encoded(encodeBatch(batch)) : published.RecordBatch(batch),
}));

/** What reads an answer of the protocol. `Compact` in the protocol is `UVarInt` here. */
export type Decoder = {
  offset: number;
  readInt16(): number;
  readInt32(): number;
  readBoolean(): boolean;
  readBytes(length: number): Buffer;
  readUVarInt(): number;
  readUVarIntString(): string | null;
  readUVarIntArray<Item>(read: (decoder: Decoder) => Item): readonly Item[] | null;
};
const Decoders = require('kafkajs/src/protocol/decoder') as new (answer: Buffer) => Decoder;
const decoderOf = (answer: Buffer): Decoder => new Decoders(answer);

/** As published, but without zeros in front of what is written over them at once. */
type Encoder = { buf: Buffer; offset: number };
const { prototype: encoder } = require('kafkajs/src/protocol/encoder') as {
  readonly prototype: { ensureAvailable: (this: Encoder, length: number) => void };
};
encoder.ensureAvailable = function (length) {
  const needed = this.offset + length;
  if (needed <= this.buf.length) return;
  const larger = Buffer.allocUnsafe(2 ** Math.ceil(Math.log2(needed + 1)));
  this.buf.copy(larger, 0, 0, this.offset);
  this.buf = larger;
};

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
  /** By the number of the request, what the broker understands; known once it is connected. */
  readonly versions: { readonly [apiKey: number]: { readonly maxVersion: number } } | null;
  readonly connectionPool: {
    /** Sends what kafkajs has no request for. */
    send<Response>(request: ProtocolRequest<Response>): Promise<Response>;
  };
};
export type ProtocolRequest<Response> = {
  readonly request: {
    readonly apiKey: number;
    readonly apiVersion: number;
    readonly apiName: string;
    /** What follows the client's name in the header. */
    encode(): Promise<Encoded>;
  };
  readonly response: {
    /** Of what follows the number of the request. */
    decode(answer: Buffer): Promise<Response>;
    parse(decoded: Response): Promise<Response>;
  };
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
  if (make === undefined) throw new TypeError('this is not the version of kafkajs that is known here');
  const create = (kafka as unknown as Record<symbol, (options: object) => KafkaConnection>)[make];
  if (create === undefined) throw new TypeError('this is not the version of kafkajs that is known here');
  return create({ allowAutoTopicCreation: false, metadataMaxAge: 300_000 });
};

export { CompressionTypes, createPartitioner, decoderOf, encoded, Kafka, Partitioners, logLevel };
