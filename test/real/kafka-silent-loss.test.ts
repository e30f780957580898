import { expect } from 'chai';
import type { RealKafka } from '../../ops/real/kafka/server.ts';
import { Kafka, logLevel, Partitioners } from '../../src/adapters/kafka/kafkajs-library.ts';
import type { TopicSpec } from '../../src/app/streams/stream.ts';
import { readTopic } from '../integration/kafka/real-cluster.ts';
import { specOf } from '../integration/kafka/publisher-rig.ts';
import { until } from '../support/service/stack.ts';
import { startTestKafka } from '../support/kafka/broker.ts';
import { startCuttingProxy, type CuttingProxy } from '../support/kafka/cutting-proxy.ts';
import {
  clusterOf,
  createBrokerRig,
  expectDelivered,
  makeTopics,
  type BrokerRig,
} from '../support/kafka/publisher-on-broker.ts';

/** Few tries: a send whose answer is lost is rejected while nobody can be reached. */
const FEW = { retries: 1, maxRetryTime: 100 };
const onePartition = (name: string): TopicSpec => ({ ...specOf(name), partitions: 1 });

/**
 * The broker stores a batch, its answer is lost, and the producer's count of what it sent has not moved: the broker
 * takes
 * another batch of that size for the one it has.
 */
describe('an answer that is lost after the write, on a real broker', function () {
  this.timeout(120_000);
  let kafka: RealKafka;
  let proxy: CuttingProxy;
  before(async function () {
    kafka = await startTestKafka(this);
    await makeTopics(kafka.brokers, ...['naive', 'ours', 'stopped', 'patient'].map(onePartition));
  });
  beforeEach(async () => {
    proxy = await startCuttingProxy(kafka.brokers[0] ?? '');
  });
  afterEach(() => proxy.close());
  after(() => kafka?.close());
  const values = async (topic: string) => (await readTopic(kafka.brokers, topic)).map(({ value }) => value);

  it('loses the next batch of a producer that goes on with it, and calls it stored', async () => {
    const client = new Kafka({ brokers: [proxy.address], retry: FEW, logLevel: logLevel.NOTHING });
    const producer = client.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      createPartitioner: Partitioners.DefaultPartitioner,
    });
    await producer.connect();
    const send = (value: string) =>
      producer.send({ topic: 'naive', acks: -1, messages: [{ key: 'k', value }] });
    await send('A1');
    proxy.cutNextAnswer();
    expect(await outcome(send('A2'))).to.equal('rejected');
    expect(proxy.lost()).to.equal(1);
    proxy.mend();
    expect(await outcome(send('B'))).to.equal('stored');
    expect(await outcome(send('C'))).to.equal('stored');
    await producer.disconnect();
    // B was confirmed, and is nowhere.
    expect(await values('naive')).to.deep.equal(['A1', 'A2', 'C']);
  });

  describe('and the publisher', () => {
    let rig: BrokerRig;
    beforeEach(async () => {
      rig = await createBrokerRig(kafka.brokers);
    });
    afterEach(() => rig.dispose());
    const batch = (records: number) => ({ batch: { records, bytes: 100_000 } });
    const through = (retry = FEW) => clusterOf([proxy.address], rig.log, { retry });
    const startOn = (topic: string, records: number, retry = FEW) =>
      rig.start({ topics: [onePartition(topic)], settings: batch(records), cluster: through(retry) });

    it('loses nothing under the same cut: a new producer repeats what was not confirmed', async () => {
      const running = startOn('ours', 1);
      await rig.append(['thing-k']);
      await running.caughtUp('ours');
      proxy.cutNextAnswer();
      await rig.append(['thing-k']);
      await until('the send is rejected', () => running.topic('ours').lastError?.reason === 'unreachable');
      await rig.append(['thing-k']);
      await rig.append(['thing-k']);
      proxy.mend();
      await running.caughtUp('ours');
      expect(proxy.lost()).to.equal(1);
      expect(await values('ours')).to.deep.equal(
        [0, 1, 1, 2, 3].map((revision) => `thing-k@${revision}`),
        'what was stored without an answer comes twice, and all that follows is there',
      );
      await expectDelivered(rig.store, kafka.brokers, 'ours');
    });

    it('loses nothing when it stops then, and another one goes on with other batches', async () => {
      const first = startOn('stopped', 1);
      await rig.append(['thing-k']);
      await first.caughtUp('stopped');
      proxy.cutNextAnswer();
      await rig.append(['thing-k']);
      await until('the send is rejected', () => first.topic('stopped').lastError?.reason === 'unreachable');
      await first.stop();
      await rig.append(['thing-k'], 3);
      proxy.mend();
      const second = startOn('stopped', 2);
      await second.caughtUp('stopped');
      const { repeated } = await expectDelivered(rig.store, kafka.brokers, 'stopped');
      expect(repeated).to.be.within(1, 2);
    });

    it('repeats exactly the same send while it may still try: the broker knows it, and nothing comes twice', async () => {
      const running = startOn('patient', 1, { retries: 60, maxRetryTime: 100 });
      await rig.append(['thing-k']);
      await running.caughtUp('patient');
      proxy.cutNextAnswer();
      await rig.append(['thing-k'], 3);
      await until('the answer is lost', () => proxy.lost() === 1);
      proxy.mend();
      await running.caughtUp('patient');
      expect(running.topic('patient').lastError).to.equal(undefined);
      const { repeated } = await expectDelivered(rig.store, kafka.brokers, 'patient');
      expect(repeated).to.equal(0);
    });
  });
});

const outcome = (sending: Promise<unknown>): Promise<'stored' | 'rejected'> =>
  sending.then(
    () => 'stored' as const,
    () => 'rejected' as const,
  );
