import { setTimeout as pause } from 'node:timers/promises';
import type { Ends } from '../../app/publisher/ports.ts';
import type { KafkaConnection } from './kafkajs-library.ts';

/** Tries, and milliseconds between two: the broker that is asked may not have heard yet of a topic that was just made. */
const PATIENCE: Patience = { tries: 4, ms: 150, passing: new Set(['UNKNOWN_TOPIC_OR_PARTITION']) };

/** Where topics end, by an open connection. Throws what kafkajs throws. */
export const readTopicEnds = (
  connection: KafkaConnection,
  topics: readonly string[],
): Promise<ReadonlyMap<string, Ends>> =>
  withPatience(PATIENCE, async () => {
    await connection.addMultipleTargetTopics(topics);
    return offsetsOf(connection, topics, false);
  });

/** `passing`: types of errors of the protocol that pass by themselves. */
export type Patience = {
  readonly tries: number;
  readonly ms: number;
  readonly passing: ReadonlySet<string>;
};

/** `again` is called before another try. */
export const withPatience = async <Result>(
  { tries, ms, passing }: Patience,
  work: () => Promise<Result>,
  again: () => Promise<void> = async () => undefined,
): Promise<Result> => {
  for (let tried = 1; ; tried += 1) {
    try {
      return await work();
    } catch (error) {
      if (!passing.has(typeOf(error)) || tried === tries) throw error;
    }
    await pause(ms);
    await again();
  }
};

/** Error type of the protocol; empty: it has none. */
export const typeOf = (error: unknown): string => {
  const { type } = error as { readonly type?: unknown };
  return typeof type === 'string' ? type : '';
};

/** By topic, where each partition of it begins or ends. */
export const offsetsOf = async (
  connection: KafkaConnection,
  topics: readonly string[],
  fromBeginning: boolean,
): Promise<ReadonlyMap<string, Ends>> => {
  const answers = await connection.fetchTopicsOffset(
    topics.map((topic) => ({
      topic,
      partitions: connection
        .findTopicPartitionMetadata(topic)
        .map(({ partitionId }) => ({ partition: partitionId })),
      fromBeginning,
    })),
  );
  const partitionsOf = new Map(answers.map(({ topic, partitions }) => [topic, partitions]));
  return new Map(
    topics.map((topic) => {
      const ends = partitionsOf.get(topic) ?? [];
      return [topic, new Map(ends.map(({ partition, offset }) => [partition, BigInt(offset)]))];
    }),
  );
};
