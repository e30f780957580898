import { expect } from 'chai';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import { createCheckpoint } from '../../../src/app/log/checkpoint.ts';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import type { Timers } from '../../../src/app/ports.ts';
import { systemIds } from '../../../src/adapters/system/system-ports.ts';
import { createRig, expectDelivered, TOPIC, valuesOf, type Rig } from './publisher-rig.ts';

/** Longer than a lease and the wait for what a silent owner had begun. */
const LONG_MS = 60_000;
/** Until a lease that nobody renews is taken over, and not much longer. */
const TAKEOVER_MS = 25_000;

/** Timers of a process that can be suspended: what is due meanwhile comes when it wakes. */
const suspendable = (timers: Timers) => {
  let isSuspended = false;
  const due: (() => void)[] = [];
  return {
    timers: {
      ...timers,
      after: (ms, call) =>
        timers.after(ms, () => {
          if (isSuspended) due.push(call);
          else call();
        }),
    } satisfies Timers,
    suspend: () => {
      isSuspended = true;
    },
    wake: () => {
      isSuspended = false;
      for (const call of due.splice(0)) call();
    },
  };
};

const leaseOf = (rig: Rig, instance: string, timers: Timers = rig.time.timers): Ownership =>
  createLeases({
    store: rig.store,
    instance,
    directory: instance,
    clock: rig.time.clock,
    timers,
    logger: rig.log,
  })('publisher');

/** What a consumer finds that begins after compaction: the record of each key that lies last. */
const compacted = (rig: Rig): object =>
  Object.fromEntries(rig.kafka.records(TOPIC).map(({ key, value }) => [key, value]));

describe('a compacted topic after a takeover', () => {
  let rig: Rig;
  beforeEach(() => {
    rig = createRig();
  });

  it('keeps the newest record although an owner that was suspended wakes with an older one in hand', async () => {
    const process = suspendable(rig.time.timers);
    const frozen = Promise.withResolvers<void>();
    const awake = Promise.withResolvers<void>();
    let isFrozen = false;
    const first = rig.start({
      cleanup: 'compact',
      ownership: leaseOf(rig, 'one', process.timers),
      failpoint: (point) => {
        // After that send it sleeps again: what it would send next is not there to put it right.
        if (point === 'after-send') return awake.promise;
        if (point !== 'before-send' || isFrozen) return undefined;
        isFrozen = true;
        return frozen.promise;
      },
    });
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    expect(isFrozen).to.equal(true);
    process.suspend();
    const second = rig.start({ cleanup: 'compact', ownership: leaseOf(rig, 'two') });
    await rig.append('thing-a', 'thing-a');
    await rig.time.pass(LONG_MS);
    expect(valuesOf(rig.kafka)).to.deep.equal(['thing-a@0', 'thing-a@1', 'thing-a@2']);
    // Its send is the first thing that it does, before it finds out about the lease.
    frozen.resolve();
    await rig.time.pass(100);
    expect(compacted(rig)).to.deep.equal({ 'thing-a': 'thing-a@2' });
    awake.resolve();
    process.wake();
    await rig.time.pass(LONG_MS);
    expect(first.publisher.status().epoch).to.equal(undefined);
    expect(compacted(rig)).to.deep.equal({ 'thing-a': 'thing-a@2' });
    await first.stop();
    await second.stop();
    await expectDelivered(rig);
  });

  it('keeps the newest record although one of an owner that died is still on its way', async () => {
    const process = suspendable(rig.time.timers);
    const arrive = rig.kafka.faults.delay(TOPIC);
    rig.start({
      cleanup: 'compact',
      ownership: leaseOf(rig, 'one', process.timers),
      // It never learns what became of its send.
      failpoint: (point) => (point === 'after-send' ? new Promise(() => undefined) : undefined),
    });
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    process.suspend();
    const second = rig.start({ cleanup: 'compact', ownership: leaseOf(rig, 'two') });
    await rig.append('thing-a', 'thing-a');
    await rig.time.pass(TAKEOVER_MS);
    expect(second.publisher.status().epoch).to.equal(2);
    expect(valuesOf(rig.kafka)).to.deep.equal([]);
    arrive();
    await rig.time.pass(LONG_MS);
    expect(valuesOf(rig.kafka)).to.deep.equal(['thing-a@0', 'thing-a@0', 'thing-a@1', 'thing-a@2']);
    expect(compacted(rig)).to.deep.equal({ 'thing-a': 'thing-a@2' });
    await second.stop();
  });

  it('does not wait when the owner before gave its lease back, and topics that keep everything never do', async () => {
    const first = rig.start({ cleanup: 'compact', ownership: leaseOf(rig, 'one') });
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    await first.stop();
    await rig.append('thing-a');
    const process = suspendable(rig.time.timers);
    rig.start({ cleanup: 'compact', ownership: leaseOf(rig, 'two', process.timers) });
    await rig.time.pass(1_000);
    expect(valuesOf(rig.kafka)).to.have.length(2);
    process.suspend();
    const third = rig.start({ ownership: leaseOf(rig, 'three') });
    await rig.time.pass(TAKEOVER_MS);
    expect(third.publisher.status().epoch).to.equal(3);
    expect(third.topic(TOPIC).state).to.equal('live');
    await third.stop();
  });
});

describe('an owner that loses its lease', () => {
  it('cuts off at once what is under way', async () => {
    const rig = createRig();
    const lost = new AbortController();
    const ownership: Ownership = {
      hold: (signal, whileOwner) => whileOwner({ epoch: 1, signal: AbortSignal.any([signal, lost.signal]) }),
    };
    const running = rig.start({ ownership });
    rig.kafka.faults.hold(TOPIC);
    await rig.append('thing-a');
    await rig.time.pass(100);
    expect(rig.kafka.connections().open).to.equal(1);
    lost.abort();
    await rig.time.pass(1);
    expect(rig.kafka.connections().open).to.equal(0);
    await running.stop();
  });

  it('gives its lease back when another one has stored a position', async () => {
    const rig = createRig();
    const running = rig.start({ ownership: leaseOf(rig, 'one') });
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    expect(running.publisher.status().epoch).to.equal(1);
    const other = createCheckpoint({
      store: rig.store,
      name: `kafka-${TOPIC}`,
      clock: rig.time.clock,
      ids: systemIds(),
      instance: 'rogue',
    });
    const position = await other.load();
    expect(await other.save(position ?? '')).to.equal(true);
    await rig.append('thing-a');
    await rig.time.pass(10_000);
    expect(running.publisher.status().epoch).to.equal(2);
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    expect(running.topic(TOPIC).state).to.equal('live');
    await running.stop();
    await expectDelivered(rig);
  });
});
