import { expect } from 'chai';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { MOST_PARKED } from '../../../src/app/publisher/parking.ts';
import { NewerRelease } from '../../../src/app/streams/current-version.ts';
import type { RecordMapper } from '../../../src/app/streams/stream.ts';
import { createRig, expectDelivered, recordOf, TOPIC, valuesOf, type Rig } from './publisher-rig.ts';

const STREAM = `sys-kafkaParked-${TOPIC}`;

/** A release that does not know the events with these revisions. */
const olderRelease =
  (...unknown: readonly number[]) =>
  (topic: string): RecordMapper =>
  (event) => {
    if (event.stream !== 'thing-b' && unknown.includes(event.revision))
      throw new NewerRelease('not known here');
    return [recordOf(topic, event)];
  };

describe('an event that a newer release wrote', () => {
  let rig: Rig;
  beforeEach(() => {
    rig = createRig();
  });

  it('parks its stream until the publisher is of that release, which asks nobody', async () => {
    await rig.append('thing-a', 'thing-a', 'thing-a', 'thing-b');
    const older = rig.start({ map: olderRelease(1) });
    await rig.time.pass(2_000);
    expect(older.topic(TOPIC).parked.map(({ stream, reason }) => [stream, reason])).to.deep.equal([
      ['thing-a', 'newer-release'],
    ]);
    await older.stop();
    expect(valuesOf(rig.kafka).toSorted()).to.deep.equal(['thing-a@0', 'thing-b@0']);
    await rig.append('thing-a');
    const newer = rig.start();
    await rig.time.pass(2_000);
    expect(newer.topic(TOPIC)).to.deep.include({ state: 'live', parked: [] });
    await newer.stop();
    await expectDelivered(rig);
  });

  it('is tried again by each publisher that begins, without a word in the log while it is unknown', async () => {
    await rig.append('thing-a', 'thing-a', 'thing-b');
    const first = rig.start({ map: olderRelease(1) });
    await rig.time.pass(2_000);
    await first.stop();
    const before = await rig.store.currentRevision(STREAM);
    const second = rig.start({ map: olderRelease(1) });
    await rig.time.pass(2_000);
    expect(second.topic(TOPIC)).to.include({ state: 'live' });
    await second.stop();
    expect(await rig.store.currentRevision(STREAM)).to.equal(before);
    expect(valuesOf(rig.kafka).toSorted()).to.deep.equal(['thing-a@0', 'thing-b@0']);
  });

  it('that was parked before any position was stored takes none with it: what others of the log say is sent still', async () => {
    await rig.append('thing-a', 'thing-b', 'thing-b', 'thing-a', 'thing-a', 'thing-a');
    const stuck = new Promise<void>(() => undefined);
    const older = rig.start({ map: olderRelease(0), failpoint: () => stuck });
    await rig.time.pass(2_000);
    expect(older.topic(TOPIC).parked).to.have.length(1);
    void older.end();
    let isStored = false;
    // Killed behind the first position that it stores once it has sent all of the stream.
    const newer = rig.start({
      settings: { checkpointRecords: 1 },
      failpoint: (point) => {
        isStored ||= point === 'after-checkpoint' && valuesOf(rig.kafka).includes('thing-a@3');
        return isStored ? stuck : undefined;
      },
    });
    await rig.time.pass(5_000);
    expect(isStored).to.equal(true);
    void newer.end();
    const next = rig.start();
    await rig.time.pass(5_000);
    await next.stop();
    await expectDelivered(rig);
  });

  it('is parked further on by a release that knows some of what follows', async () => {
    await rig.append('thing-a', 'thing-a', 'thing-a', 'thing-a', 'thing-b');
    const first = rig.start({ map: olderRelease(1, 3) });
    await rig.time.pass(2_000);
    await first.stop();
    const second = rig.start({ map: olderRelease(3) });
    await rig.time.pass(2_000);
    expect(second.topic(TOPIC).parked.map(({ revision, reason }) => [revision, reason])).to.deep.equal([
      [3, 'newer-release'],
    ]);
    await second.stop();
    const third = rig.start();
    await rig.time.pass(2_000);
    await third.stop();
    await expectDelivered(rig);
  });

  it('of too many streams stops the topic, and the newer release loses nothing', async () => {
    const streams = Array.from({ length: MOST_PARKED + 20 }, (_, i) => `thing-n${i}`);
    await rig.append('thing-b', ...streams);
    const older = rig.start({ map: olderRelease(0) });
    await rig.time.pass(2_000);
    expect(older.topic(TOPIC)).to.include({ state: 'failed' });
    await older.stop();
    const newer = rig.start();
    await rig.time.pass(10_000);
    expect(newer.topic(TOPIC)).to.deep.include({ state: 'live', parked: [] });
    await newer.stop();
    await expectDelivered(rig);
  });

  it('is not passed over on a topic that reads everything, which writes no position for what it only reads', async () => {
    const things: RecordMapper = (event) =>
      event.stream.startsWith('thing-') ? olderRelease(1)(TOPIC)(event) : [];
    const unfiltered: EventStore = {
      ...rig.store,
      subscribe: ({ filter: _filter, ...options }) => rig.store.subscribe(options),
    };
    await rig.append('thing-a', 'other-c', 'thing-a', 'thing-b');
    const older = rig.start({ store: unfiltered, map: () => things });
    await rig.time.pass(10_000);
    const end = await rig.store.lastPosition();
    await rig.time.pass(120_000);
    expect(await rig.store.lastPosition()).to.equal(end);
    await older.stop();
    const map = (): RecordMapper => (event) =>
      event.stream.startsWith('thing-') ? [recordOf(TOPIC, event)] : [];
    const newer = rig.start({ store: unfiltered, map });
    await rig.time.pass(2_000);
    await newer.stop();
    await expectDelivered(rig);
  });
});
