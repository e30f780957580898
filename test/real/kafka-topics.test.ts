import { expect } from 'chai';
import type { RealKafka } from '../../ops/real/kafka/server.ts';
import { Kafka, logLevel } from '../../src/adapters/kafka/kafkajs-library.ts';
import type { RecordMapper, TopicSpec } from '../../src/app/streams/stream.ts';
import { recordOf, specOf } from '../integration/kafka/publisher-rig.ts';
import { readTopic } from '../integration/kafka/real-cluster.ts';
import { until } from '../support/service/stack.ts';
import { startTestKafka } from '../support/kafka/broker.ts';
import {
  clusterOf,
  createBrokerRig,
  expectDelivered,
  makeTopics,
  streamsOf,
  type BrokerRig,
  type RunningPublisher,
} from '../support/kafka/publisher-on-broker.ts';

const never = new AbortController().signal;
const DAY_MS = 86_400_000;
/** `ConfigResourceTypes.TOPIC`: an enum of kafkajs that exists in its types only. */
const TOPIC_RESOURCE = 2;

describe('topics that are not as they should be, on a real broker', function () {
  this.timeout(60_000);
  let kafka: RealKafka;
  let rig: BrokerRig;
  before(async function () {
    kafka = await startTestKafka(this);
  });
  after(() => kafka?.close());
  beforeEach(async () => {
    rig = await createBrokerRig(kafka.brokers);
  });
  afterEach(() => rig.dispose());
  const admin = async (work: (admin: ReturnType<Kafka['admin']>) => Promise<unknown>): Promise<void> => {
    const connected = new Kafka({ brokers: [...kafka.brokers], logLevel: logLevel.NOTHING }).admin();
    await connected.connect();
    await work(connected);
    await connected.disconnect();
  };
  const takeUpTo = (topic: string, bytes: number): Promise<void> =>
    admin((connected) =>
      connected.alterConfigs({
        validateOnly: false,
        resources: [
          {
            type: TOPIC_RESOURCE,
            name: topic,
            configEntries: [{ name: 'max.message.bytes', value: String(bytes) }],
          },
        ],
      }),
    );
  const problemsOf = ({ publisher }: RunningPublisher): readonly string[] =>
    publisher.status().problems.map(({ topic, message }) => `${topic} ${message}`);

  it('says that one is missing and which command makes it, publishes the others, and goes on once it is there', async () => {
    await makeTopics(kafka.brokers, 'present');
    await rig.append(streamsOf(5), 3);
    const running = rig.start({ topics: ['present', 'absent'] });
    await running.caughtUp('present');
    await until('it is told', () => running.topic('absent').lastError !== undefined);
    const { state, lastError, waitingEvents } = running.topic('absent');
    expect({ state, reason: lastError?.reason }).to.deep.equal({ state: 'waiting', reason: 'topic-missing' });
    expect(waitingEvents).to.equal(15);
    expect(lastError?.message).to.equal(
      'topic absent does not exist on the brokers; ledgerctl kafka create-topics creates it',
    );
    expect(problemsOf(running)).to.deep.equal([
      'absent does not exist; ledgerctl kafka create-topics creates it',
    ]);
    expect(await running.publisher.createTopics(never)).to.deep.equal(['absent']);
    await running.caughtUp('absent');
    for (const topic of ['present', 'absent']) await expectDelivered(rig.store, kafka.brokers, topic);
    await running.publisher.plan(never);
    expect(problemsOf(running)).to.deep.equal([]);
  });

  it('says that one was deleted under it, and fills the one that is made anew from the beginning', async () => {
    await makeTopics(kafka.brokers, 'short-lived');
    await rig.append(['thing-a'], 2);
    const cluster = clusterOf(kafka.brokers, rig.log, { retry: { retries: 3, maxRetryTime: 200 } });
    const running = rig.start({ topics: ['short-lived'], cluster });
    await running.caughtUp('short-lived');
    await admin((connected) => connected.deleteTopics({ topics: ['short-lived'] }));
    await rig.append(['thing-a'], 2);
    await until(
      'it is told',
      () => running.topic('short-lived').lastError?.reason === 'topic-missing',
      40_000,
    );
    await running.publisher.createTopics(never);
    const told = async (): Promise<readonly unknown[]> =>
      (await readTopic(kafka.brokers, 'short-lived')).map(({ value }) => value);
    await until('all of it is there again', async () => (await told()).length >= 4, 40_000);
    expect(await told()).to.deep.equal(['thing-a@0', 'thing-a@1', 'thing-a@2', 'thing-a@3']);
  });

  it('fills one that was made anew while nobody published, although it holds as many records as the one before', async () => {
    await makeTopics(kafka.brokers, 'replaced');
    await rig.append(streamsOf(4), 2);
    const first = rig.start({ topics: ['replaced'] });
    await first.caughtUp('replaced');
    await first.stop();
    const before = await readTopic(kafka.brokers, 'replaced');
    await admin((connected) => connected.deleteTopics({ topics: ['replaced'] }));
    await until('it is gone', async () => {
      let names: readonly string[] = [];
      await admin(async (connected) => (names = await connected.listTopics()));
      return !names.includes('replaced');
    });
    await makeTopics(kafka.brokers, 'replaced');
    const other = await clusterOf(kafka.brokers, rig.log).producers.open(never);
    await other.send(
      before.map(({ key }) => ({ topic: 'replaced', key, value: 'of somebody else', headers: {} })),
    );
    await other.close();
    const next = rig.start({ topics: ['replaced'] });
    const told = async () => new Set((await readTopic(kafka.brokers, 'replaced')).map(({ value }) => value));
    await until('all of it is there again', async () => (await told()).size >= 9, 20_000);
    expect(await told()).to.include.all.keys(...before.map(({ value }) => value ?? ''));
    await next.stop();
  });

  it('says which cleanup policy or retention is wrong and which is right, and publishes all the same', async () => {
    const state = (name: string): TopicSpec => ({
      ...specOf(name),
      kind: 'state',
      cleanup: 'compact',
      retentionMs: -1,
    });
    // As somebody made them by hand.
    await makeTopics(
      kafka.brokers,
      { ...state('state'), cleanup: 'delete', retentionMs: DAY_MS },
      { ...specOf('events'), cleanup: 'compact' },
      { ...specOf('short'), retentionMs: 1_000 * 60 },
    );
    await rig.append(['thing-a'], 2);
    const running = rig.start({ topics: [state('state'), 'events', 'short'] });
    for (const topic of ['state', 'events', 'short']) await running.caughtUp(topic);
    expect(problemsOf(running)).to.deep.equal([
      'state has cleanup.policy=delete, by which it loses documents that do not change; set cleanup.policy=compact',
      'events has cleanup.policy=compact, by which it loses all but the newest record of each key; set cleanup.policy=delete',
      `short keeps records for 60000 ms only; set retention.ms=${DAY_MS}`,
    ]);
    const warned = rig.log.lines.filter(({ fields }) => 'problems' in fields);
    expect(warned).to.have.length(1);
    await expectDelivered(rig.store, kafka.brokers, 'state');
  });

  it('takes one with fewer partitions as it is: the plan shows how many, and each key keeps its order', async () => {
    await makeTopics(kafka.brokers, { ...specOf('narrow'), partitions: 1 });
    await rig.append(streamsOf(6), 10);
    const running = rig.start({ topics: [{ ...specOf('narrow'), partitions: 3 }] });
    await running.caughtUp('narrow');
    const [plan] = await running.publisher.plan(never);
    expect([plan?.topic.partitions, plan?.found?.partitions, plan?.problems]).to.deep.equal([3, 1, []]);
    const { records } = await expectDelivered(rig.store, kafka.brokers, 'narrow');
    expect(new Set(records.map(({ partition }) => partition)).size).to.equal(1);
  });

  it('has the time of sending for the brokers, also on topics that somebody else made', async () => {
    // Topics that we make, and one that somebody made by hand.
    await makeTopics(kafka.brokers, { ...specOf('ours'), retentionMs: DAY_MS });
    await admin((connected) =>
      connected.createTopics({
        waitForLeaders: true,
        topics: [
          {
            topic: 'theirs',
            numPartitions: 1,
            configEntries: [{ name: 'message.timestamp.type', value: 'CreateTime' }],
          },
        ],
      }),
    );
    const began = Date.now();
    await rig.append(['thing-a', 'thing-b'], 2);
    const running = rig.start({ topics: ['ours', 'theirs'] });
    for (const topic of ['ours', 'theirs']) {
      await running.caughtUp(topic);
      const { records } = await expectDelivered(rig.store, kafka.brokers, topic);
      const stamps = (await readTopic(kafka.brokers, topic)).map(({ timestamp }) => Number(timestamp));
      expect(stamps).to.have.length(records.length);
      for (const stamp of stamps) expect(stamp).to.be.within(began - 1_000, Date.now() + 1_000);
      expect(running.topic(topic).parked).to.deep.equal([]);
    }
  });

  it('one that takes no records of that size parks their streams by name, and delays no other', async () => {
    await makeTopics(kafka.brokers, 'roomy', 'narrow-minded');
    await takeUpTo('narrow-minded', 2_000);
    // What happens to thing-3 is long to tell.
    const map =
      (topic: string): RecordMapper =>
      (event) => {
        const record = recordOf(topic, event);
        const note = event.stream === 'thing-3' ? 'x'.repeat(5_000) : '';
        return [{ ...record, headers: { ...record.headers, note } }];
      };
    await rig.append(streamsOf(5), 4);
    const running = rig.start({ topics: ['roomy', 'narrow-minded'], map });
    await running.caughtUp('roomy');
    await running.caughtUp('narrow-minded');
    await rig.append(streamsOf(5), 1);
    await running.caughtUp('roomy');
    await running.caughtUp('narrow-minded');
    await expectDelivered(rig.store, kafka.brokers, 'roomy');
    const [parked, ...more] = running.topic('narrow-minded').parked;
    expect(more).to.deep.equal([]);
    expect([parked?.stream, parked?.revision]).to.deep.equal(['thing-3', 0]);
    expect(parked?.error).to.match(/larger than the max message size/);
    expect(running.topic('roomy').parked).to.deep.equal([]);
    const values = new Set((await readTopic(kafka.brokers, 'narrow-minded')).map(({ value }) => value ?? ''));
    expect([...values].filter((value) => value.startsWith('thing-3@'))).to.deep.equal([]);
    expect(values.size).to.equal(20);
    // Once the topic takes them, they are told.
    await takeUpTo('narrow-minded', 100_000);
    expect(await running.publisher.retry('narrow-minded', 'thing-3')).to.deep.equal({
      outcome: 'published',
      records: 5,
    });
    await expectDelivered(rig.store, kafka.brokers, 'narrow-minded');
  });
});
