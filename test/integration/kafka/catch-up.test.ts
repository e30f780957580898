import { expect } from 'chai';
import { StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import { createRig, expectDelivered, recordOf, specOf, TOPIC, type Rig } from './publisher-rig.ts';

const OTHER = 'others';
const SMALL = { outbox: { records: 20, bytes: 1_000_000 }, batch: { records: 10, bytes: 1_000_000 } };

/** So many events of a few streams, and others between them that are nobody's. */
const fill = async (rig: Rig, count: number): Promise<void> => {
  for (let n = 0; n < count; n += 1) await rig.append(n % 3 === 2 ? 'other-x' : `thing-${n % 5}`);
};
/** Counts what is read of the log page by page, and by subscription. */
const counted = (store: EventStore) => {
  const reads = { pages: 0, subscriptions: 0 };
  const counting: EventStore = {
    ...store,
    readAll: (options) => {
      reads.pages += 1;
      return store.readAll(options);
    },
    subscribe: (options) => {
      reads.subscriptions += 1;
      return store.subscribe(options);
    },
  };
  return { reads, store: counting };
};

describe('a publisher that is behind', () => {
  it('reads the log once for its topics, and each by itself from the end on', async () => {
    const rig = createRig({ topics: [TOPIC, OTHER] });
    await fill(rig, 3_000);
    const { reads, store } = counted(rig.store);
    const running = rig.start({ store });
    await rig.time.pass(5_000);
    expect(reads.subscriptions).to.equal(2);
    // Seven pages; and each of both looks whether something lies behind what was stored meanwhile.
    expect(reads.pages).to.be.lessThan(12);
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    for (const topic of [TOPIC, OTHER]) {
      expect(running.topic(topic)).to.include({ state: 'live', sent: 2_001, waitingEvents: 0 });
      await expectDelivered(rig, topic);
    }
    await running.stop();
  });

  it('goes on behind what the brokers have, wherever in a page it was ended', async () => {
    const rig = createRig();
    await fill(rig, 1_200);
    let sends = 0;
    for (const last of [3, 1, 7, 40]) {
      const release: (() => void)[] = [];
      const running = rig.start({
        settings: SMALL,
        // The brokers take so many batches and then no more, so that the reader stands amid a page.
        failpoint: (point) => {
          if (point !== 'before-send') return undefined;
          sends += 1;
          return sends > last ? new Promise<void>((resolve) => release.push(resolve)) : undefined;
        },
      });
      await rig.time.pass(2_000);
      const ended = running.end();
      for (const go of release) go();
      await rig.time.pass(5_000);
      await ended;
      sends = 0;
    }
    const running = rig.start({ settings: SMALL });
    await rig.time.pass(20_000);
    await running.stop();
    await expectDelivered(rig);
  });

  it('passes over nothing that it had no room for when it was ended, though all it held is confirmed then', async () => {
    const rig = createRig();
    await fill(rig, 1_200);
    const all = { outbox: SMALL.outbox, batch: SMALL.outbox };
    const release = rig.kafka.faults.hold(TOPIC);
    const first = rig.start({ settings: all });
    await rig.time.pass(1_000);
    expect(first.topic(TOPIC).waitingEvents).to.equal(20);
    const ended = first.end();
    await rig.time.pass(100);
    release();
    await rig.time.pass(5_000);
    await ended;
    expect(rig.kafka.records(TOPIC)).to.have.length(20);
    const second = rig.start({ settings: all });
    await rig.time.pass(20_000);
    await second.stop();
    expect(rig.kafka.records(TOPIC)).to.have.length(800);
    await expectDelivered(rig);
  });

  it('is not held up by a topic whose brokers take nothing, which reads again for itself later', async () => {
    const rig = createRig({ topics: [TOPIC, OTHER] });
    await fill(rig, 12_000);
    const release = rig.kafka.faults.hold(OTHER);
    const { reads, store } = counted(rig.store);
    const running = rig.start({ store });
    await rig.time.pass(20_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', sent: 8_000 });
    expect(rig.kafka.records(OTHER)).to.have.length(0);
    const before = reads.pages;
    release();
    await rig.time.pass(20_000);
    expect(running.topic(OTHER)).to.include({ state: 'live', sent: 8_000 });
    expect(reads.pages).to.be.greaterThan(before);
    await running.stop();
    for (const topic of [TOPIC, OTHER]) await expectDelivered(rig, topic);
  });

  it('reads pages again after the brokers were away for a while', async () => {
    const rig = createRig();
    const { reads, store } = counted(rig.store);
    const running = rig.start({ store, settings: SMALL });
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    expect(running.topic(TOPIC).state).to.equal('live');
    const before = { ...reads };
    const release = rig.kafka.faults.hold(TOPIC);
    await fill(rig, 1_500);
    await rig.time.pass(10_000);
    release();
    await rig.time.pass(10_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', waitingEvents: 0 });
    expect(reads.pages).to.be.within(before.pages + 3, before.pages + 8);
    expect(reads.subscriptions).to.equal(before.subscriptions + 1);
    await running.stop();
    await expectDelivered(rig);
  });

  it('waits while the log cannot be read, and leaves nothing out', async () => {
    const rig = createRig();
    await fill(rig, 1_200);
    let isAway = true;
    const { store } = rig;
    const running = rig.start({
      store: {
        ...store,
        async *readAll(options) {
          for await (const event of store.readAll(options)) {
            // Amid a page.
            if (isAway && event.position.endsWith('700')) throw new StoreUnavailable('away');
            yield event;
          }
        },
      },
    });
    await rig.time.pass(5_000);
    expect(running.topic(TOPIC).state).to.equal('catching-up');
    isAway = false;
    await rig.time.pass(5_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', sent: 800 });
    await running.stop();
    await expectDelivered(rig);
  });

  it('maps each event that its filter lets through, and no other', async () => {
    const rig = createRig();
    await fill(rig, 900);
    const mapped: string[] = [];
    const running = rig.start({
      map: (topic) => (event) => {
        mapped.push(event.stream);
        return [recordOf(topic, event)];
      },
    });
    await rig.time.pass(2_000);
    await rig.append('other-x', 'thing-a');
    await rig.time.pass(2_000);
    await running.stop();
    expect(mapped).to.have.length(601);
    const { filter } = specOf(TOPIC);
    expect(filter).to.deep.equal({ streamPrefixes: ['thing-'] });
    expect(mapped.every((stream) => stream.startsWith('thing-'))).to.equal(true);
  });
});
