import { createRequire } from 'node:module';
import { CompressionTypes, Kafka, Partitioners, logLevel } from 'kafkajs';

/**
 * kafkajs 2.2.4 with the repair of its request queue (libraries.md §5): as published, every connection to a broker
 * arms a timer of 1 ms again and again for as long as it lives, also when it has nothing to send. Whoever needs kafkajs
 * imports it from here, so that no client is made before the repair.
 */
type RequestQueue = { readonly pending: readonly unknown[]; readonly throttledUntil: number };
type Schedule = (this: RequestQueue) => void;

const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as {
  readonly prototype: { scheduleCheckPendingRequests: Schedule };
};
const schedule = prototype.scheduleCheckPendingRequests;
prototype.scheduleCheckPendingRequests = function () {
  if (this.pending.length > 0 || this.throttledUntil > Date.now()) schedule.call(this);
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
  findBroker(of: { readonly nodeId: string }): Promise<{
    fetch(request: FetchRequest): Promise<{ readonly responses: readonly FetchedTopic[] }>;
  }>;
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

export { CompressionTypes, Kafka, Partitioners, logLevel };
