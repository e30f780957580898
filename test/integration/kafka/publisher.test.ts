import { expect } from 'chai';
import type { TopicOnBrokers } from '../../../src/app/publisher/ports.ts';
import type { RecordMapper } from '../../../src/app/streams/stream.ts';
import { createRig, expectDelivered, recordOf, specOf, TOPIC, valuesOf, type Rig } from './publisher-rig.ts';

const many = (count: number, stream = 'thing-a'): readonly string[] =>
  Array.from({ length: count }, () => stream);

describe('the publisher', () => {
  let rig: Rig;
  beforeEach(() => {
    rig = createRig();
  });

  it('publishes every event once, in the order of its stream, and goes on where it was', async () => {
    await rig.append('thing-a', 'thing-b', 'other-c', 'thing-a');
    const first = rig.start();
    await rig.time.pass(2_000);
    expect(first.topic(TOPIC)).to.include({ state: 'live', waitingEvents: 0, lagSeconds: 0, sent: 3 });
    await rig.append('thing-b', 'thing-a');
    await first.stop();
    await rig.append('thing-a');
    const second = rig.start();
    await rig.time.pass(100);
    await second.stop();
    expect(rig.kafka.records(TOPIC)).to.have.length(6);
    await expectDelivered(rig);
  });

  it('stores its position after a second and not after every batch', async () => {
    const running = rig.start();
    for (let i = 0; i < 10; i += 1) {
      await rig.append('thing-a');
      await rig.time.pass(50);
    }
    await rig.time.pass(2_000);
    const revision = await rig.store.currentRevision(`sys-kafka-${TOPIC}`);
    expect(revision).to.be.oneOf([0, 1]);
    await rig.time.pass(60_000);
    expect(await rig.store.currentRevision(`sys-kafka-${TOPIC}`)).to.equal(revision);
    await running.stop();
  });

  it('writes nothing to the log while there is nothing to publish', async () => {
    const running = rig.start();
    await rig.append('other-a', 'other-b');
    await rig.time.pass(120_000);
    await running.stop();
    expect(await rig.store.currentRevision(`sys-kafka-${TOPIC}`)).to.equal('no_stream');
  });

  it('gives its connection back when there is no news for a minute, and makes another with the next', async () => {
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    expect(rig.kafka.connections()).to.deep.equal({ open: 1, made: 1 });
    await rig.time.pass(61_000);
    expect(rig.kafka.connections()).to.deep.equal({ open: 0, made: 1 });
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    expect(rig.kafka.connections()).to.deep.equal({ open: 1, made: 2 });
    await running.stop();
    expect(rig.kafka.connections().open).to.equal(0);
    await expectDelivered(rig);
  });

  it('makes another producer after a rejected send, so that nothing is lost without a word', async () => {
    const running = rig.start({ settings: { batch: { records: 1, bytes: 1_000 } } });
    await rig.append('thing-a');
    await rig.time.pass(100);
    rig.kafka.faults.loseAnswers(TOPIC, 1);
    await rig.append('thing-a', 'thing-a', 'thing-a');
    await rig.time.pass(5_000);
    await running.stop();
    await expectDelivered(rig);
    expect(rig.kafka.connections().made).to.equal(2);
    // What was stored without an answer came twice.
    expect(rig.kafka.records(TOPIC)).to.have.length(5);
  });

  it('says what is wrong while the brokers are away, and that it is over', async () => {
    rig.kafka.faults.down(true);
    await rig.append('thing-a');
    const running = rig.start();
    await rig.time.pass(10_000);
    const status = running.topic(TOPIC);
    expect(status).to.include({ state: 'waiting', waitingEvents: 1, sent: 0 });
    expect(status.lagSeconds).to.be.within(9, 11);
    expect(status.lastError).to.include({ reason: 'unreachable', message: 'no broker answers' });
    rig.kafka.faults.down(false);
    await rig.time.pass(31_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', waitingEvents: 0, lagSeconds: 0, sent: 1 });
    await running.stop();
  });

  it('checks its topics at the start, also when there is nothing to publish, and again', async () => {
    rig.kafka.faults.down(true);
    rig.kafka.deleteTopic(TOPIC);
    const running = rig.start();
    await rig.time.pass(1_000);
    const told = (text: string) =>
      rig.log.lines.filter(({ fields }) => JSON.stringify(fields).includes(text)).length;
    expect(told('no broker answers')).to.equal(1);
    rig.kafka.faults.down(false);
    await rig.time.pass(31_000);
    expect(running.publisher.status().problems).to.deep.equal([
      { topic: TOPIC, code: 'missing', message: 'does not exist; ledgerctl kafka create-topics creates it' },
    ]);
    expect(told(JSON.stringify({ missing: [TOPIC] }))).to.equal(1);
    rig.kafka.createTopic({ ...specOf(TOPIC), retentionMs: 1_000 });
    await rig.time.pass(301_000);
    expect(running.publisher.status().problems.map(({ code }) => code)).to.deep.equal(['retention']);
    await running.stop();
  });

  it('says which topics a broker that is lost takes records with, and which have keys in two places', async () => {
    const spec = specOf('wide');
    rig = createRig({ topics: ['wide'] });
    const running = rig.start({ cleanup: 'compact' });
    const problems = async (change: Partial<TopicOnBrokers>) => {
      rig.kafka.alterTopic('wide', { cleanup: 'compact', retentionMs: -1, ...change });
      const [plan] = await running.publisher.plan(new AbortController().signal);
      return plan?.problems.map(({ code }) => code);
    };
    expect(await problems({})).to.deep.equal([]);
    rig.kafka.faults.brokers(3);
    expect(await problems({ replicas: 1 })).to.deep.equal(['replicas']);
    expect(await problems({ replicas: 3, minInsync: 1 })).to.deep.equal(['insync']);
    expect(await problems({ minInsync: Number.NaN })).to.deep.equal([]);
    expect(await problems({ minInsync: 2 })).to.deep.equal([]);
    rig.kafka.faults.brokers(2);
    expect(await problems({ replicas: 2 })).to.deep.equal([]);
    expect(await problems({ partitions: spec.partitions + 1 })).to.deep.equal(['partitions']);
    expect(await problems({ partitions: spec.partitions - 1 })).to.deep.equal([]);
    await running.stop();
  });

  it('says that it is behind again when the log runs away from it, and by how much', async () => {
    const held = Promise.withResolvers<void>();
    const slow =
      (topic: string): RecordMapper =>
      async (event) => {
        if (event.revision === 1) await held.promise;
        return [recordOf(topic, event)];
      };
    const running = rig.start({ map: slow });
    await rig.append('thing-a');
    await rig.time.pass(60_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', lagSeconds: 0 });
    await rig.append('thing-a', 'thing-a');
    await rig.time.pass(60_000);
    expect(running.topic(TOPIC)).to.include({ state: 'catching-up', lagSeconds: 60 });
    held.resolve();
    await rig.time.pass(2_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', lagSeconds: 0, sent: 3 });
    await running.stop();
  });

  it('says that it waits when a send takes long, before that fails', async () => {
    const running = rig.start();
    const release = rig.kafka.faults.hold(TOPIC);
    await rig.append('thing-a');
    await rig.time.pass(20_000);
    expect(running.topic(TOPIC)).to.include({ state: 'waiting', waitingEvents: 1, lastError: undefined });
    release();
    await rig.time.pass(100);
    expect(running.topic(TOPIC)).to.include({ state: 'live', waitingEvents: 0, sent: 1 });
    await running.stop();
  });

  it('says that the password is refused, and goes on with the right one', async () => {
    rig.kafka.faults.wrongPassword(true);
    await rig.append('thing-a');
    const running = rig.start();
    await rig.time.pass(3_000);
    expect(running.topic(TOPIC).lastError?.reason).to.equal('unauthorized');
    rig.kafka.faults.wrongPassword(false);
    await rig.time.pass(31_000);
    await running.stop();
    await expectDelivered(rig);
  });

  it('keeps a bounded part in memory while the brokers are away for long, and loses nothing', async () => {
    const settings = { outbox: { records: 200, bytes: 1024 * 1024 } };
    const running = rig.start({ settings });
    rig.kafka.faults.down(true);
    for (let i = 0; i < 30; i += 1) await rig.append(...many(100, `thing-${i % 7}`));
    await rig.time.pass(24 * 3_600_000);
    expect(running.topic(TOPIC)).to.include({ state: 'waiting', waitingEvents: 200 });
    expect(running.topic(TOPIC).lagSeconds).to.be.within(86_000, 87_000);
    rig.kafka.faults.down(false);
    await rig.time.pass(60_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', waitingEvents: 0 });
    await running.stop();
    expect(rig.kafka.records(TOPIC)).to.have.length(3_000);
    await expectDelivered(rig);
  });

  it('gives a send that is under way at the end its time, and stores how far it came', async () => {
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(100);
    const release = rig.kafka.faults.hold(TOPIC);
    await rig.append('thing-a');
    await rig.time.pass(100);
    const stopped = running.end();
    await rig.time.pass(1_000);
    release();
    await rig.time.pass(100);
    await stopped;
    expect(valuesOf(rig.kafka)).to.deep.equal(['thing-a@0', 'thing-a@1']);
    const again = rig.start();
    await rig.time.pass(100);
    await again.stop();
    expect(valuesOf(rig.kafka)).to.deep.equal(['thing-a@0', 'thing-a@1']);
  });

  it('cuts a send off that does not end, and sends it again later', async () => {
    const running = rig.start();
    rig.kafka.faults.hold(TOPIC);
    await rig.append('thing-a');
    await rig.time.pass(100);
    await running.stop();
    expect(rig.kafka.connections().open).to.equal(0);
    rig.kafka.faults.hold(TOPIC)();
    const again = rig.start();
    await rig.time.pass(100);
    await again.stop();
    await expectDelivered(rig);
  });
});
