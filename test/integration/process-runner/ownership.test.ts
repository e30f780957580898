import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createLeaseOwnership } from '../../../src/adapters/ownership/lease-ownership.ts';
import { StoreUnavailable, type EventStore } from '../../../src/app/event-store.ts';
import type { Lease } from '../../../src/app/ownership.ts';
import { manualTime, type ManualTime } from '../../support/manual-time.ts';
import { readAll } from '../../support/toy-workflow.ts';
import { silentLogger } from '../../support/loggers.ts';

const TTL = 15_000;

describe('ownership by a lease', () => {
  const candidate = (store: EventStore, instance: string, time: ManualTime, exclusive = false) => {
    const ownership = createLeaseOwnership({
      store,
      name: 'processes',
      instance,
      clock: time.clock,
      timers: time.timers,
      logger: silentLogger,
      exclusive,
      ttlMs: TTL,
    });
    const stop = new AbortController();
    const leases: Lease[] = [];
    const owns = (): boolean => leases.some((lease) => !lease.signal.aborted);
    const ended = ownership.hold(stop.signal, async (lease) => {
      leases.push(lease);
      if (lease.signal.aborted) return;
      await new Promise<void>((resolve) =>
        lease.signal.addEventListener('abort', () => resolve(), { once: true }),
      );
    });
    return {
      owns,
      epochs: () => leases.map((lease) => lease.epoch),
      stop: async () => {
        stop.abort();
        await ended;
      },
    };
  };
  /** A store that can be cut off for one instance. */
  const cuttable = (store: EventStore): EventStore & { cut: boolean } => {
    const state = { cut: false };
    return Object.assign(state, {
      ...store,
      append: async (...args: Parameters<EventStore['append']>) => {
        if (state.cut) throw new StoreUnavailable('cut off');
        return store.append(...args);
      },
    });
  };

  it('is taken by one of two and goes over as soon as it is given back', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const time = manualTime();
    const first = candidate(store, 'a', time);
    await time.pass(0);
    const second = candidate(store, 'b', time);
    await time.pass(60_000);
    expect([first.owns(), second.owns()]).to.deep.equal([true, false]);
    await first.stop();
    await time.pass(TTL);
    expect(second.owns()).to.equal(true);
    expect([...first.epochs(), ...second.epochs()]).to.deep.equal([1, 2]);
    await second.stop();
  });

  it('is won by one when two take it at once', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const time = manualTime();
    const all = ['a', 'b', 'c'].map((instance) => candidate(store, instance, time));
    await time.pass(0);
    expect(all.filter((each) => each.owns())).to.have.length(1);
    await Promise.all(all.map((each) => each.stop()));
  });

  it('is taken over after it was not renewed for its time, and lost before that by its holder', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const time = manualTime();
    const line = cuttable(store);
    const first = candidate(line, 'a', time);
    await time.pass(0);
    const second = candidate(store, 'b', time);
    await time.pass(TTL);
    line.cut = true;
    let lostAt: number | undefined;
    let takenAt: number | undefined;
    for (let passed = 0; passed < 60_000 && takenAt === undefined; passed += 500) {
      await time.pass(500);
      if (lostAt === undefined && !first.owns()) lostAt = passed;
      if (second.owns()) takenAt = passed;
    }
    expect(lostAt).to.be.at.most(TTL);
    expect(takenAt).to.be.within(TTL, 2 * TTL);
    expect(lostAt).to.be.below(takenAt ?? 0);
    line.cut = false;
    await time.pass(TTL);
    expect([first.owns(), second.owns()]).to.deep.equal([false, true]);
    await first.stop();
    await second.stop();
  });

  it('is kept through a short interruption', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const time = manualTime();
    const line = cuttable(store);
    const first = candidate(line, 'a', time);
    await time.pass(0);
    const second = candidate(store, 'b', time);
    await time.pass(TTL);
    line.cut = true;
    await time.pass(TTL / 2);
    line.cut = false;
    await time.pass(4 * TTL);
    expect([first.owns(), second.owns()]).to.deep.equal([true, false]);
    await first.stop();
    await second.stop();
  });

  it('only counts the starts where the data directory is locked', async () => {
    const store = createMemoryEventStore();
    const time = manualTime();
    const first = candidate(store, 'a', time, true);
    await time.pass(60_000);
    expect((await readAll(store, 'sys-lease-processes')).map((event) => event.type)).to.deep.equal([
      'LeaseTaken',
    ]);
    await first.stop();
    // As after kill -9: the former holder gave nothing back, and nobody waits for its time to run out.
    const killed = candidate(store, 'b', time, true);
    await time.pass(0);
    const next = candidate(store, 'c', time, true);
    await time.pass(0);
    expect(next.epochs()).to.deep.equal([3]);
    await killed.stop();
    await next.stop();
  });

  it('keeps its stream short', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const time = manualTime();
    const only = candidate(store, 'a', time);
    await time.pass(100 * TTL);
    expect((await readAll(store, 'sys-lease-processes')).length).to.be.at.most(20);
    await only.stop();
  });
});
