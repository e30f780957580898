import { setTimeout as pause } from 'node:timers/promises';
import type { LastRecord } from '../../app/publisher/ports.ts';
import type { FetchedTopic, KafkaConnection } from './kafkajs-library.ts';

/** One batch at least comes, however large it is. */
const PARTITION_BYTES = 64 * 1024;
const ANSWER_BYTES = 8 * 1024 * 1024;
const WAIT_MS = 500;
const READ_COMMITTED = 1;
/** Partitions of one request: each may bring a whole batch. */
const AT_ONCE = 16;

/** Tries, and milliseconds between two: nobody may lead the partitions of a topic that has just been made. */
const TRIES = 40;
const TRY_AGAIN_MS = 250;

/** The newest record of each partition of topics that exist, by an open connection. Throws what kafkajs throws. */
export const readLastRecords = async (
  connection: KafkaConnection,
  topics: readonly string[],
): Promise<ReadonlyMap<string, readonly LastRecord[]>> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await readNow(connection, topics);
    } catch (error) {
      const { type } = error as { readonly type?: unknown };
      if (typeof type !== 'string' || !WITHOUT_LEADER.has(type) || tries === TRIES) throw error;
    }
    await pause(TRY_AGAIN_MS);
    await connection.refreshMetadata();
  }
};

/** Error types of the protocol that pass when a partition has its leader. */
const WITHOUT_LEADER: ReadonlySet<string> = new Set([
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'UNKNOWN_TOPIC_OR_PARTITION',
]);

const readNow = async (
  connection: KafkaConnection,
  topics: readonly string[],
): Promise<ReadonlyMap<string, readonly LastRecord[]>> => {
  const found = new Map<string, LastRecord[]>(topics.map((topic) => [topic, []]));
  if (topics.length === 0) return found;
  await connection.addMultipleTargetTopics(topics);
  const ends = await connection.fetchTopicsOffset(
    topics.map((topic) => ({
      topic,
      partitions: connection
        .findTopicPartitionMetadata(topic)
        .map(({ partitionId }) => ({ partition: partitionId })),
      fromBeginning: false,
    })),
  );
  for (const [nodeId, places] of placesByLeader(connection, ends)) {
    const broker = await connection.findBroker({ nodeId });
    for (let first = 0; first < places.length; first += AT_ONCE) {
      const { responses } = await broker.fetch({
        maxWaitTime: WAIT_MS,
        minBytes: 1,
        maxBytes: ANSWER_BYTES,
        isolationLevel: READ_COMMITTED,
        topics: requestOf(places.slice(first, first + AT_ONCE)),
      });
      for (const response of responses) found.get(response.topicName)?.push(...newestOf(response));
    }
  }
  return found;
};

type Place = { readonly topic: string; readonly partition: number; readonly offset: string };

/** Where the last record of each partition stands, by the broker that leads it; nothing of empty partitions. */
const placesByLeader = (
  connection: KafkaConnection,
  ends: readonly {
    readonly topic: string;
    readonly partitions: readonly { partition: number; offset: string }[];
  }[],
): ReadonlyMap<string, readonly Place[]> => {
  const places = new Map<string, Place[]>();
  for (const { topic, partitions } of ends)
    for (const { partition, offset } of partitions) {
      if (offset === '0') continue;
      const [leader] = Object.keys(connection.findLeaderForPartitions(topic, [partition]));
      if (leader === undefined) continue;
      const known = places.get(leader) ?? [];
      known.push({ topic, partition, offset: String(BigInt(offset) - 1n) });
      places.set(leader, known);
    }
  return places;
};

const requestOf = (places: readonly Place[]) =>
  [...Map.groupBy(places, ({ topic }) => topic)].map(([topic, each]) => ({
    topic,
    partitions: each.map(({ partition, offset }) => ({
      partition,
      fetchOffset: offset,
      maxBytes: PARTITION_BYTES,
    })),
  }));

const newestOf = ({ partitions }: FetchedTopic): readonly LastRecord[] =>
  partitions.flatMap(({ partition, messages }) => {
    const newest = messages.at(-1);
    if (newest === undefined) return [];
    const { value, headers = {} } = newest;
    return [
      {
        partition,
        value: value?.toString() ?? null,
        headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, String(text)])),
      },
    ];
  });
