import { expect } from 'chai';
import { createRig, TOPIC, type Rig } from './publisher-rig.ts';

const START = Date.parse('2026-01-01T00:00:00.000Z');
const at = (ms: number): string => new Date(START + ms).toISOString();

/** What operators see of brokers that die under a publisher: soon, and without asking the brokers for it. */
describe('the publisher whose brokers do not answer any more', () => {
  let rig: Rig;
  beforeEach(() => {
    rig = createRig();
  });

  it('says within seconds that records wait, since when, and what is tried', async () => {
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', confirmedAt: at(0), trying: undefined });
    const release = rig.kafka.faults.hold(TOPIC);
    await rig.append('thing-a', 'thing-b');
    await rig.time.pass(1_000);
    expect(running.topic(TOPIC).state).to.equal('live');
    await rig.time.pass(4_000);
    const held = running.topic(TOPIC);
    expect(held).to.include({
      state: 'waiting',
      waitingEvents: 2,
      waitingRecords: 2,
      waitingSince: at(2_000),
      lagSeconds: 5,
    });
    expect(held.trying).to.deep.equal({
      records: 1,
      since: at(2_000),
      attempt: 1,
      failed: 0,
      problem: undefined,
    });
    expect(running.publisher.status().brokers).to.deep.equal({ lastAnswerAt: at(0), trouble: undefined });
    release();
    await rig.time.pass(100);
    const after = running.topic(TOPIC);
    expect(after).to.include({ state: 'live', waitingSince: undefined, lagSeconds: 0, trying: undefined });
    expect(after.confirmedAt).to.equal(at(7_000));
    await running.stop();
  });

  it('says what is wrong with them at once, and counts the tries', async () => {
    const running = rig.start();
    await rig.time.pass(1_000);
    rig.kafka.faults.down(true);
    await rig.append('thing-a');
    await rig.time.pass(100);
    const { topics, brokers } = running.publisher.status();
    expect(brokers.trouble).to.deep.equal({
      message: 'no broker answers',
      since: at(1_000),
      reason: 'unreachable',
    });
    expect(topics[0]).to.include({ state: 'waiting' });
    await rig.time.pass(3_000);
    expect(running.topic(TOPIC).trying).to.include({
      attempt: 3,
      failed: 3,
      since: at(1_000),
      problem: 'no broker answers',
    });
    rig.kafka.faults.down(false);
    await rig.time.pass(10_000);
    expect(running.publisher.status().brokers.trouble).to.equal(undefined);
    expect(running.topic(TOPIC)).to.include({ state: 'live', trying: undefined });
    await running.stop();
  });

  it('tells what goes wrong on the way, although nothing has failed yet', async () => {
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    const release = rig.kafka.faults.hold(TOPIC);
    await rig.append('thing-a');
    await rig.time.pass(100);
    for (let i = 0; i < 2; i += 1) rig.kafka.faults.trouble('Connection error: connect ECONNREFUSED');
    const { topics, brokers } = running.publisher.status();
    expect(brokers.trouble?.message).to.equal('Connection error: connect ECONNREFUSED');
    expect(topics[0]?.state).to.equal('waiting');
    expect(topics[0]?.trying?.problem).to.equal('Connection error: connect ECONNREFUSED');
    expect(topics[0]?.trying).to.include({ attempt: 1, failed: 2 });
    release();
    await rig.time.pass(100);
    expect(running.publisher.status().brokers.trouble).to.equal(undefined);
    expect(running.topic(TOPIC).state).to.equal('live');
    await running.stop();
  });

  it('asks brokers that are well for nothing more than before', async () => {
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    const asked = rig.kafka.asked();
    for (let i = 0; i < 20; i += 1) {
      running.publisher.status();
      await rig.time.pass(10_000);
    }
    expect(rig.kafka.asked()).to.equal(asked);
    await running.stop();
  });

  it('goes on being well after a record that the brokers never take', async () => {
    rig.kafka.faults.maxBytes(10);
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(10_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', trying: undefined });
    expect(running.topic(TOPIC).parked).to.have.length(1);
    expect(running.publisher.status().brokers.trouble).to.equal(undefined);
    await running.stop();
  });

  const told = (): readonly (readonly [string, unknown])[] =>
    rig.log.lines
      .filter(({ level }) => level === 'warn' || level === 'error')
      .map(({ level, fields }) => [level, 'reason' in fields ? fields.reason : undefined]);

  it('one line tells that they are away, however long and for however many topics, and one that they are back', async () => {
    rig = createRig({ topics: ['a', 'b', 'c'] });
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    rig.kafka.faults.down(true);
    const before = rig.log.lines.length;
    await rig.append('thing-a', 'thing-b');
    await rig.time.pass(8 * 3_600_000);
    expect(told()).to.deep.equal([['warn', 'unreachable']]);
    rig.kafka.faults.down(false);
    await rig.time.pass(60_000);
    const infos = rig.log.lines.slice(before).filter(({ level }) => level === 'info');
    expect(infos).to.have.length(1);
    expect(infos[0]?.fields).to.include({ reason: 'unreachable' });
    expect(told()).to.have.length(1);
    await running.stop();
  });

  it('a moment without them is not worth a line', async () => {
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    const before = rig.log.lines.length;
    rig.kafka.faults.trouble('b:1 ended the connection');
    await rig.time.pass(10_000);
    expect(running.publisher.status().brokers.trouble).to.equal(undefined);
    expect(rig.log.lines.slice(before).filter(({ level }) => level !== 'debug')).to.deep.equal([]);
    await running.stop();
  });

  it('brokers that come back empty are seen soon, although there is nothing to send', async () => {
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    rig.kafka.faults.trouble('b:1 ended the connection');
    rig.kafka.deleteTopic(TOPIC);
    await rig.time.pass(3_000);
    expect(running.publisher.status().problems.map(({ code }) => code)).to.deep.equal(['missing']);
    expect(running.topic(TOPIC)).to.include({ state: 'live', published: true, fillingSince: undefined });
    await running.publisher.createTopics(new AbortController().signal);
    expect(running.publisher.status().problems, 'once they are made').to.deep.equal([]);
    await rig.time.pass(2_000);
    expect(rig.kafka.records(TOPIC)).to.have.length(1);
    expect(rig.log.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields)).to.deep.equal([
      { missing: [TOPIC] },
      { topics: [TOPIC] },
    ]);
    await running.stop();
  });
});
