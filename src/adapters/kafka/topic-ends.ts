import { setTimeout as pause } from 'node:timers/promises';
import type { Ends } from '../../app/publisher/ports.ts';
import type { KafkaConnection } from './kafkajs-library.ts';
import { readTopicIds } from './topic-ids.ts';

/** Tries, and milliseconds between two: the broker that is asked may not have heard yet of a topic that was just made. */
const TRIES = 4;
const TRY_AGAIN_MS = 150;

/**
 * Where topics end, and which ones they are, by an open connection. The ids are read first: of a topic that is made anew between
 * the two the old one is told, and the next look sees it. Throws what kafkajs throws.
 */
export const readTopicEnds = async (
  connection: KafkaConnection,
  topics: readonly string[],
): Promise<ReadonlyMap<string, Ends>> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await readNow(connection, topics);
    } catch (error) {
      if ((error as { readonly type?: unknown }).type !== NOT_HEARD_OF || tries === TRIES) throw error;
    }
    await pause(TRY_AGAIN_MS);
  }
};

const NOT_HEARD_OF = 'UNKNOWN_TOPIC_OR_PARTITION';

const readNow = async (
  connection: KafkaConnection,
  topics: readonly string[],
): Promise<ReadonlyMap<string, Ends>> => {
  await connection.addMultipleTargetTopics(topics);
  const ids = await readTopicIds(connection, topics);
  const offsets = await offsetsOf(connection, topics, false);
  return new Map(
    topics.map((topic) => [
      topic,
      { topicId: ids.get(topic), offsets: offsets.get(topic) ?? new Map<number, bigint>() },
    ]),
  );
};

/** By topic and partition where it begins, or ends. */
export const offsetsOf = async (
  connection: KafkaConnection,
  topics: readonly string[],
  fromBeginning: boolean,
): Promise<ReadonlyMap<string, ReadonlyMap<number, bigint>>> => {
  const answers = await connection.fetchTopicsOffset(
    topics.map((topic) => ({
      topic,
      partitions: connection
        .findTopicPartitionMetadata(topic)
        .map(({ partitionId }) => ({ partition: partitionId })),
      fromBeginning,
    })),
  );
  return new Map(
    answers.map(({ topic, partitions }) => [
      topic,
      new Map(partitions.map(({ partition, offset }) => [partition, BigInt(offset)])),
    ]),
  );
};
