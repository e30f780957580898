import { expect } from 'chai';
import type { Heartbeats } from '../../../src/app/publisher/heartbeat-publisher.ts';
import { createRig, specOf, TOPIC, valuesOf, type Rig } from './publisher-rig.ts';

const BEATS = 'beats';
const START = Date.parse('2026-01-01T00:00:00.000Z');

describe('metering heartbeats of the publisher', () => {
  let rig: Rig;
  let known: boolean;
  const heartbeats: Heartbeats = {
    topic: BEATS,
    intervalMs: 60_000,
    *recordsAt(nowMs: number) {
      for (const key of ['a', 'b'])
        yield [{ topic: BEATS, key, value: `${key} at ${nowMs - START}`, headers: {} }];
    },
  };
  const beats = { ...heartbeats, recordsAt: (ms: number) => (known ? heartbeats.recordsAt(ms) : undefined) };
  beforeEach(() => {
    known = true;
    rig = createRig();
    rig.kafka.createTopic({ ...specOf(BEATS), partitions: 1 });
  });

  it('come once in a window, at its beginning, and are no events', async () => {
    await rig.time.pass(10_000);
    const running = rig.start({ heartbeats: beats });
    await rig.time.pass(49_000);
    expect(valuesOf(rig.kafka, BEATS)).to.deep.equal([]);
    await rig.time.pass(61_500);
    expect(valuesOf(rig.kafka, BEATS)).to.deep.equal([
      'a at 60000',
      'b at 60000',
      'a at 120000',
      'b at 120000',
    ]);
    expect(running.topic(BEATS)).to.include({ state: 'live', sent: 4 });
    await running.stop();
    expect(await rig.store.lastPosition()).to.equal(undefined);
  });

  it('of a window that was over before the brokers took them are not made up for', async () => {
    const running = rig.start({ heartbeats: beats });
    rig.kafka.faults.down(true);
    await rig.time.pass(150_000);
    expect(running.topic(BEATS)).to.include({ state: 'waiting', sent: 0 });
    expect(running.topic(BEATS).lastError?.reason).to.equal('unreachable');
    rig.kafka.faults.down(false);
    await rig.time.pass(60_000);
    expect(running.topic(BEATS)).to.include({ state: 'live' });
    const values = valuesOf(rig.kafka, BEATS);
    expect(values).to.include('a at 180000').and.not.include('a at 60000');
    await running.stop();
    expect(rig.kafka.connections().open).to.equal(0);
  });

  it('of which an answer was lost are repeated by another producer', async () => {
    const running = rig.start({ heartbeats: beats });
    rig.kafka.faults.loseAnswers(BEATS, 1);
    await rig.time.pass(70_000);
    await running.stop();
    expect(valuesOf(rig.kafka, BEATS)).to.deep.equal(['a at 60000', 'a at 60000', 'b at 60000']);
  });

  it('wait until it is known what is billed, and delay no other topic', async () => {
    known = false;
    const running = rig.start({ heartbeats: beats });
    await rig.append('thing-a');
    await rig.time.pass(70_000);
    expect(running.topic(BEATS)).to.include({ state: 'waiting', sent: 0 });
    expect(running.topic(TOPIC)).to.include({ state: 'live', sent: 1 });
    known = true;
    await rig.time.pass(60_000);
    expect(running.topic(BEATS)).to.include({ state: 'live', sent: 4 });
    // The window is not over yet, and is told of as soon as it is known.
    expect(valuesOf(rig.kafka, BEATS)).to.deep.equal([
      'a at 60000',
      'b at 60000',
      'a at 120000',
      'b at 120000',
    ]);
    await running.stop();
  });

  it('of a window that was over before it was known what is billed are not made up for', async () => {
    known = false;
    const running = rig.start({ heartbeats: beats });
    await rig.time.pass(125_000);
    expect(running.topic(BEATS)).to.include({ state: 'waiting', sent: 0 });
    known = true;
    await rig.time.pass(30_000);
    expect(valuesOf(rig.kafka, BEATS)).to.deep.equal(['a at 120000', 'b at 120000']);
    await running.stop();
  });

  it('wake nobody where what is billed is known a moment after the window began, as at a start', async () => {
    const warnings = () => rig.log.lines.filter(({ level }) => level === 'warn');
    known = false;
    const running = rig.start({ heartbeats: beats });
    await rig.time.pass(64_000);
    known = true;
    await rig.time.pass(5_000);
    expect(running.topic(BEATS)).to.include({ state: 'live', sent: 2 });
    expect(warnings()).to.deep.equal([]);
    known = false;
    await rig.time.pass(70_000);
    expect(warnings()).to.have.length(1);
    await running.stop();
  });
});
