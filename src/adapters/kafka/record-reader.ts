import { randomUUID } from 'node:crypto';
import type { Admin } from 'kafkajs';
import { Kafka, logLevel } from './kafkajs-library.ts';
import { offsetsSoon } from './partition-leaders.ts';

/** A record as a consumer reads it. */
export type ReadRecord = {
  readonly topic: string;
  readonly partition: number;
  readonly key: string;
  /** Null: a tombstone. */
  readonly value: string | null;
  readonly headers: { readonly [name: string]: string };
};

export type RecordReader = { close(): Promise<void> };

const WAIT_MS = 200;

/**
 * Reads what comes to these topics from now on: everything that is written after the promise has resolved, each partition
 * in its order. For the demo and for measurements: without passwords, and without a memory of what was read.
 *
 * @throws what kafkajs throws: no broker answers, or one of the topics is not there.
 */
export const followRecords = async (
  brokers: readonly string[],
  topics: readonly string[],
  onRecord: (record: ReadRecord) => void,
): Promise<RecordReader> => {
  const kafka = new Kafka({
    brokers: [...brokers],
    clientId: 'fulfillment-ledger-reader',
    logLevel: logLevel.NOTHING,
    // With fewer, a consumer whose broker is started again ends for good.
    retry: { retries: 30, maxRetryTime: 1_000 },
  });
  const admin = kafka.admin();
  await admin.connect();
  let ends: readonly End[];
  try {
    ends = await endsOf(admin, topics);
  } finally {
    await admin.disconnect();
  }
  const consumer = kafka.consumer({
    groupId: `fulfillment-ledger-reader-${randomUUID()}`,
    allowAutoTopicCreation: false,
    maxWaitTimeInMs: WAIT_MS,
  });
  const places = createPlaces(ends);
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics] });
  const joined = Promise.withResolvers<void>();
  // Joins again after a trouble, and knows no place then: nothing is stored with the brokers.
  consumer.on(consumer.events.GROUP_JOIN, () => {
    for (const place of places.all()) consumer.seek(place);
    joined.resolve();
  });
  consumer.on(consumer.events.CRASH, ({ payload: { error, restart } }) => {
    if (!restart) joined.reject(error);
  });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ topic, partition, message: { offset, key, value, headers = {} } }) => {
      if (!places.pass({ topic, partition, offset })) return;
      onRecord({
        topic,
        partition,
        key: key?.toString() ?? '',
        value: value?.toString() ?? null,
        headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, String(text)])),
      });
    },
  });
  await joined.promise;
  return { close: () => consumer.disconnect() };
};

/** Where each partition is to be read next. */
const createPlaces = (ends: readonly End[]) => {
  const next = new Map(ends.map((end) => [`${end.topic} ${end.partition}`, end]));
  return {
    all: (): Iterable<End> => next.values(),
    /** False: it was read before, or is older than the first look. */
    pass: (read: End): boolean => {
      const name = `${read.topic} ${read.partition}`;
      const place = next.get(name);
      if (place !== undefined && BigInt(read.offset) < BigInt(place.offset)) return false;
      next.set(name, { ...read, offset: String(BigInt(read.offset) + 1n) });
      return true;
    },
  };
};

type End = { readonly topic: string; readonly partition: number; readonly offset: string };

const endsOf = async (admin: Admin, topics: readonly string[]): Promise<readonly End[]> => {
  const all = await Promise.all(
    topics.map(async (topic) =>
      (await offsetsSoon(admin, topic)).map(({ partition, high }) => ({ topic, partition, offset: high })),
    ),
  );
  return all.flat();
};
