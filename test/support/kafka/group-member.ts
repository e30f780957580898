import { Kafka, logLevel } from '../../../src/adapters/kafka/kafkajs-library.ts';

/** One member of a consumer group as a process of its own: arguments are brokers, topic and group. */
export type MemberLine =
  | { readonly partitions: readonly number[] }
  | { readonly value: string; readonly partition: number };

/** Shorter than consumers should have it: a suite cannot wait for half a minute to see that a member is gone. */
const SESSION_MS = 1_500;
const HEARTBEAT_MS = 200;

const run = async ([brokers = '', topic = '', groupId = '']: readonly string[]): Promise<void> => {
  const tell = (line: MemberLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
  const kafka = new Kafka({
    brokers: brokers.split(','),
    clientId: `member-${process.pid}`,
    logLevel: logLevel.NOTHING,
  });
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: SESSION_MS,
    heartbeatInterval: HEARTBEAT_MS,
    maxWaitTimeInMs: 100,
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    tell({ partitions: payload.memberAssignment[topic] ?? [] });
  });
  process.once('SIGTERM', () => void consumer.disconnect().then(() => process.exit(0)));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      tell({ value: message.value?.toString() ?? '', partition });
      // Committed after it was handled: what is handled twice is known by its id.
      await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }]);
    },
  });
};

await run(process.argv.slice(2));
