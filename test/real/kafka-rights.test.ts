import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { RealKafka } from '../../ops/real/kafka/server.ts';
import { createKafkaCluster } from '../../src/adapters/kafka/kafkajs-cluster.ts';
import { Kafka, logLevel } from '../../src/adapters/kafka/kafkajs-library.ts';
import { systemClock } from '../../src/adapters/system/system-ports.ts';
import { KafkaFault, type KafkaCluster } from '../../src/app/publisher/ports.ts';
import { readTopic } from '../integration/kafka/real-cluster.ts';
import { specOf } from '../integration/kafka/publisher-rig.ts';
import { startTestKafka } from '../support/kafka/broker.ts';
import { recordingLogger } from '../support/loggers.ts';

const USER = 'publisher';
/** Enums of kafkajs that exist in its types only. */
const [TOPIC_RESOURCE, LITERAL, ALLOW] = [2, 3, 3] as const;
const [READ, WRITE, DESCRIBE] = [3, 4, 8] as const;

/** What the documents say about rights: to publish, write and describe on each topic are enough. */
describe('the rights that the publisher needs on a real Apache Kafka', function () {
  this.timeout(120_000);
  const signal = new AbortController().signal;
  let kafka: RealKafka;
  let cluster: KafkaCluster;
  let folder: string;
  const record = (topic: string) => ({
    topic,
    key: 'k',
    value: 'v',
    headers: {},
  });
  const reasonOf = async (call: Promise<unknown>): Promise<string> => {
    const outcome = await call.then(
      () => 'it succeeded',
      (error: unknown) => error,
    );
    return outcome instanceof KafkaFault ? outcome.reason : String(outcome);
  };

  before(async function () {
    folder = mkdtempSync(join(tmpdir(), 'ledger-kafka-rights-'));
    const passwordFile = join(folder, 'password');
    writeFileSync(passwordFile, 'right-Pa55word', { mode: 0o600 });
    kafka = await startTestKafka(this, {
      users: { [USER]: 'right-Pa55word' },
      properties: {
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        'super.users': 'User:ANONYMOUS',
      },
    });
    cluster = createKafkaCluster(
      {
        brokers: kafka.secureBrokers,
        clientId: 'rights',
        retry: { retries: 2, maxRetryTime: 200 },
        sasl: { mechanism: 'scram-sha-512', username: USER, passwordFile },
      },
      { logger: recordingLogger(), clock: systemClock() },
    );
    const admin = new Kafka({ brokers: [...kafka.brokers], logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    await admin.createTopics({
      waitForLeaders: true,
      topics: ['ours', 'theirs', 'read'].map((topic) => ({ topic, numPartitions: 1 })),
    });
    await admin.createAcls({
      acl: (
        [
          ['ours', WRITE],
          ['ours', DESCRIBE],
          ['read', WRITE],
          ['read', DESCRIBE],
          ['read', READ],
        ] as const
      ).map(([resourceName, operation]) => ({
        resourceType: TOPIC_RESOURCE,
        resourceName,
        resourcePatternType: LITERAL,
        principal: `User:${USER}`,
        host: '*',
        operation,
        permissionType: ALLOW,
      })),
    });
    await admin.disconnect();
  });
  after(async () => {
    await kafka?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('are to write and to describe: then it publishes', async () => {
    const producer = await cluster.producers.open(signal);
    await producer.send([record('ours')]);
    await producer.close();
    expect((await readTopic(kafka.brokers, 'ours')).map(({ value }) => value)).to.deep.equal(['v']);
  });

  it('let it see that the topic is there, not how it is set up, of which it then says nothing', async () => {
    const { topics } = await cluster.admin.describe(['ours'], signal);
    const found = topics.get('ours');
    expect(found).to.include({ partitions: 1, replicas: 1, cleanup: '' });
    expect(found?.retentionMs).to.deep.equal(Number.NaN);
  });

  it('let it compare the topics that it may read, whatever others there are', async () => {
    const producer = await cluster.producers.open(signal);
    await producer.send([record('ours'), record('read')]);
    await producer.close();
    const newest = await cluster.admin.lastRecords(['ours', 'read'], signal);
    expect([...newest].map(([topic, records]) => [topic, records.map(({ value }) => value)])).to.deep.equal([
      ['read', ['v']],
    ]);
  });

  it('do not reach to other topics, nor to making any', async () => {
    const producer = await cluster.producers.open(signal);
    expect(await reasonOf(producer.send([record('theirs')]))).to.equal('unauthorized');
    await producer.close();
    expect(await reasonOf(cluster.admin.create([specOf('new')], signal))).to.equal('unauthorized');
  });
});
