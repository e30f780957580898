import { Kafka, logLevel } from './kafkajs-library.ts';
import { offsetsSoon } from './partition-leaders.ts';

/** What the demo asks brokers, without passwords. Throws what kafkajs throws. */
export type TopicContents = {
  /** Those of these topics that hold records. */
  withRecords(brokers: readonly string[], topics: readonly string[]): Promise<readonly string[]>;
  /** Deletes topics with all that they hold. */
  remove(brokers: readonly string[], topics: readonly string[]): Promise<void>;
};

/** Somebody waits for the answer. */
const RETRY = { retries: 3, maxRetryTime: 500 } as const;
const CONNECT_MS = 3_000;
const REQUEST_MS = 10_000;

export const topicContents: TopicContents = {
  withRecords: (brokers, topics) =>
    asAdmin(brokers, async (admin) => {
      const there = new Set(await admin.listTopics());
      const holding = topics
        .filter((topic) => there.has(topic))
        .map(async (topic) => {
          const partitions = await offsetsSoon(admin, topic).catch((error: unknown) => {
            // Deleted since the names were asked for.
            if ((error as { readonly type?: unknown }).type === 'UNKNOWN_TOPIC_OR_PARTITION') return [];
            throw error;
          });
          return partitions.some(({ low, high }) => BigInt(low) < BigInt(high)) ? [topic] : [];
        });
      return (await Promise.all(holding)).flat();
    }),
  remove: (brokers, topics) => asAdmin(brokers, (admin) => admin.deleteTopics({ topics: [...topics] })),
};

const asAdmin = async <Answer>(
  brokers: readonly string[],
  ask: (admin: ReturnType<Kafka['admin']>) => Promise<Answer>,
): Promise<Answer> => {
  const kafka = new Kafka({
    brokers: [...brokers],
    clientId: 'fulfillment-ledger-demo',
    logLevel: logLevel.NOTHING,
    retry: RETRY,
    connectionTimeout: CONNECT_MS,
    requestTimeout: REQUEST_MS,
  });
  const admin = kafka.admin();
  try {
    await admin.connect();
    return await ask(admin);
  } finally {
    // What went wrong before says more.
    await admin.disconnect().catch(() => undefined);
  }
};
