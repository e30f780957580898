import { setTimeout as pause } from 'node:timers/promises';
import type { LastRecord } from '../../app/publisher/ports.ts';
import type { FetchedTopic, KafkaConnection } from './kafkajs-library.ts';
import { offsetsOf } from './topic-ends.ts';

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

/**
 * The newest record of each partition of topics that exist, by an open connection; nothing of topics that we have no right
 * to read. Throws what kafkajs throws.
 */
export const readLastRecords = async (
  connection: KafkaConnection,
  topics: readonly string[],
): Promise<ReadonlyMap<string, readonly LastRecord[]>> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await readNow(connection, topics);
    } catch (error) {
      if (!WITHOUT_LEADER.has(typeOf(error)) || tries === TRIES) throw error;
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

/** Retention has removed the record since the offsets were asked for. */
const EXPIRED = 'OFFSET_OUT_OF_RANGE';
const UNREADABLE = 'TOPIC_AUTHORIZATION_FAILED';

/** Error type of the protocol; empty: it has none. */
const typeOf = (error: unknown): string => {
  const { type } = error as { readonly type?: unknown };
  return typeof type === 'string' ? type : '';
};

const readNow = async (
  connection: KafkaConnection,
  topics: readonly string[],
): Promise<ReadonlyMap<string, readonly LastRecord[]>> => {
  const found = new Map<string, LastRecord[]>(topics.map((topic) => [topic, []]));
  if (topics.length === 0) return found;
  await connection.addMultipleTargetTopics(topics);
  const unreadable = new Set<string>();
  const [lows, highs] = await Promise.all([
    offsetsOf(connection, topics, true),
    offsetsOf(connection, topics, false),
  ]);
  for (const [nodeId, places] of placesByLeader(connection, lows, highs)) {
    const broker = await connection.findBroker({ nodeId });
    for (let first = 0; first < places.length; first += AT_ONCE)
      for (const response of await fetched(broker, places.slice(first, first + AT_ONCE), unreadable))
        found.get(response.topicName)?.push(...newestOf(response));
  }
  for (const topic of unreadable) found.delete(topic);
  return found;
};

type Offsets = Awaited<ReturnType<typeof offsetsOf>>;
type Place = { readonly topic: string; readonly partition: number; readonly offset: string };

/** Where the last record of each partition stands, by the broker that leads it; nothing where none is, or all have expired. */
const placesByLeader = (
  connection: KafkaConnection,
  lows: Offsets,
  highs: Offsets,
): ReadonlyMap<string, readonly Place[]> => {
  const places = new Map<string, Place[]>();
  for (const [topic, ends] of highs)
    for (const [partition, high] of ends) {
      if ((lows.get(topic)?.get(partition) ?? 0n) >= high) continue;
      const [leader] = Object.keys(connection.findLeaderForPartitions(topic, [partition]));
      if (leader === undefined) continue;
      const known = places.get(leader) ?? [];
      known.push({ topic, partition, offset: String(high - 1n) });
      places.set(leader, known);
    }
  return places;
};

/** One partition that refuses fails the request of all: then each is asked by itself. */
const fetched = async (
  broker: Awaited<ReturnType<KafkaConnection['findBroker']>>,
  places: readonly Place[],
  /** Topics that we may not read: those that are found are added. */
  unreadable: Set<string>,
): Promise<readonly FetchedTopic[]> => {
  const [only] = places;
  try {
    const { responses } = await broker.fetch({
      maxWaitTime: WAIT_MS,
      minBytes: 1,
      maxBytes: ANSWER_BYTES,
      isolationLevel: READ_COMMITTED,
      topics: requestOf(places),
    });
    return responses;
  } catch (error) {
    const type = typeOf(error);
    if (type !== EXPIRED && type !== UNREADABLE) throw error;
    if (only === undefined || places.length === 1) {
      if (only !== undefined && type === UNREADABLE) unreadable.add(only.topic);
      return [];
    }
  }
  const each: FetchedTopic[] = [];
  for (const place of places)
    if (!unreadable.has(place.topic)) each.push(...(await fetched(broker, [place], unreadable)));
  return each;
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
