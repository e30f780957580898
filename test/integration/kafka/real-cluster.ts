import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKafkaCluster } from '../../../src/adapters/kafka/kafkajs-cluster.ts';
import type { KafkaSettings } from '../../../src/adapters/kafka/kafkajs-client.ts';
import { Kafka, logLevel } from '../../../src/adapters/kafka/kafkajs-library.ts';
import { offsetsSoon } from '../../../src/adapters/kafka/partition-leaders.ts';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import type { Logger } from '../../../src/app/ports.ts';
import type { KafkaUnderTest, ReadRecord } from './contract.ts';

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };

/** Fewer tries than the service makes: what is refused for good is refused sooner. */
const FEW = { retries: 2, maxRetryTime: 200 };

export type RealBrokers = {
  /** A listener without passwords. */
  readonly brokers: readonly string[];
  /** A listener that asks for a SCRAM-SHA-512 password; absent: that is not tested. */
  readonly secure?: {
    readonly brokers: readonly string[];
    readonly username: string;
    readonly password: string;
    /** File with the certificate of the listener, when it is encrypted. */
    readonly tlsCa?: string;
  };
};

/** The adapter of the service on real brokers. Through the listener with passwords, where there is one. */
export const realKafkaUnderTest = async ({ brokers, secure }: RealBrokers): Promise<KafkaUnderTest> => {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-kafka-test-'));
  const withPassword = (name: string, password: string): KafkaSettings | undefined => {
    if (secure === undefined) return undefined;
    const passwordFile = join(folder, name);
    writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
    return {
      brokers: secure.brokers,
      clientId: 'contract',
      retry: FEW,
      ...(secure.tlsCa === undefined ? {} : { tlsCa: secure.tlsCa }),
      sasl: { mechanism: 'scram-sha-512', username: secure.username, passwordFile },
    };
  };
  const plain: KafkaSettings = { brokers, clientId: 'contract', retry: FEW };
  const ports = { logger: silent, clock: systemClock() };
  const wrong = withPassword('wrong', 'not-the-password');
  return {
    cluster: createKafkaCluster(withPassword('right', secure?.password ?? '') ?? plain, ports),
    ...(wrong === undefined ? {} : { withWrongPassword: createKafkaCluster(wrong, ports) }),
    unreachable: createKafkaCluster({ ...plain, brokers: ['127.0.0.1:1'] }, ports),
    read: (topic) => readTopic(brokers, topic),
    deleteTopic: (topic) => deleteTopic(brokers, topic),
    expire: (topic) => expireRecords(brokers, topic),
    dispose: async () => rmSync(folder, { recursive: true, force: true }),
  };
};

/** Resolves when it can be made anew: the controller has taken it away. */
const deleteTopic = async (brokers: readonly string[], topic: string): Promise<void> => {
  const kafka = new Kafka({ brokers: [...brokers], clientId: 'deleter', logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  await admin.deleteTopics({ topics: [topic] });
  const deadline = performance.now() + 10_000;
  while ((await admin.listTopics()).includes(topic))
    if (performance.now() > deadline) throw new Error(`topic ${topic} is still there`);
  await admin.disconnect();
};

/** As retention does, which nobody can wait for. */
const expireRecords = async (brokers: readonly string[], topic: string): Promise<void> => {
  const kafka = new Kafka({ brokers: [...brokers], clientId: 'expirer', logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const ends = await offsetsSoon(admin, topic);
  const partitions = ends
    .filter(({ low, high }) => low !== high)
    .map(({ partition, high }) => ({ partition, offset: high }));
  await admin.deleteTopicRecords({ topic, partitions });
  await admin.disconnect();
};

/** With the time that the brokers keep, milliseconds since 1970. */
export type StampedRecord = ReadRecord & { readonly timestamp: string };

/** Everything that a topic holds at the moment, each partition in its order. */
export const readTopic = async (
  brokers: readonly string[],
  topic: string,
): Promise<readonly StampedRecord[]> => {
  const kafka = new Kafka({ brokers: [...brokers], clientId: 'reader', logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const ends = await offsetsSoon(admin, topic);
  await admin.disconnect();
  const missing = new Map(
    ends.filter(({ low, high }) => low !== high).map(({ partition, high }) => [partition, Number(high)]),
  );
  const records: StampedRecord[] = [];
  if (missing.size === 0) return records;
  const consumer = kafka.consumer({
    groupId: `reader-${randomBytes(6).toString('hex')}`,
    maxWaitTimeInMs: 100,
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const all = Promise.withResolvers<void>();
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      const { key, value, headers = {}, timestamp, offset } = message;
      records.push({
        key: key?.toString() ?? '',
        value: value?.toString() ?? null,
        headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, String(text)])),
        timestamp,
        partition,
      });
      const end = missing.get(partition);
      if (end !== undefined && Number(offset) >= end - 1) missing.delete(partition);
      if (missing.size === 0) all.resolve();
    },
  });
  await all.promise;
  await consumer.disconnect();
  return records.toSorted((left, right) => left.partition - right.partition);
};
