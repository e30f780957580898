import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { directoryId } from '../../../src/adapters/data-directory/directory-id.ts';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import type { Lease } from '../../../src/app/deployment/ownership.ts';
import { manualTime, type ManualTime } from '../../support/manual-time.ts';
import { readAll } from '../../support/process-runner/toy-workflow.ts';
import { silentLogger } from '../../support/loggers.ts';

const TTL = 15_000;

describe('ownership by a lease', () => {
  const candidate = (
    store: EventStore,
    instance: string,
    time: ManualTime,
    { exclusive = false, directory = `of-${instance}` } = {},
  ) => {
    const warnings: string[] = [];
    const ownership = createLeases({
      store,
      instance,
      clock: time.clock,
      timers: time.timers,
      logger: { ...silentLogger, warn: (_fields, message) => void warnings.push(message) },
      exclusive,
      directory,
      ttlMs: TTL,
    })('processes');
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
      warnings: () => warnings,
      epochs: () => leases.map((lease) => lease.epoch),
      stop: async () => {
        stop.abort();
        await ended;
      },
    };
  };
  /** A store that can be cut off for one instance, or that loses its answers. */
  const cuttable = (store: EventStore): EventStore & { cut: boolean; losesAnswers: boolean } => {
    const state = { cut: false, losesAnswers: false };
    return Object.assign(state, {
      ...store,
      append: async (...args: Parameters<EventStore['append']>) => {
        if (state.cut) throw new StoreUnavailable('cut off');
        const appended = await store.append(...args);
        if (state.losesAnswers) throw new OutcomeUnknown(args[0]);
        return appended;
      },
    });
  };
  /** Holds the lease and ends as with kill -9: it gives nothing back. */
  const killed = async (store: EventStore, instance: string, time: ManualTime, directory: string) => {
    const line = cuttable(store);
    const dead = candidate(line, instance, time, { directory });
    await time.pass(TTL);
    expect(dead.owns()).to.equal(true);
    line.cut = true;
    await dead.stop();
  };
  const msUntil = async (time: ManualTime, holds: () => boolean): Promise<number> => {
    for (let passed = 0; passed <= 4 * TTL; passed += 250) {
      await time.pass(0);
      if (holds()) return passed;
      await time.pass(250);
    }
    throw new Error('not within four times the time of a lease');
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
    const first = candidate(store, 'a', time, { exclusive: true });
    await time.pass(60_000);
    expect((await readAll(store, 'sys-lease-processes')).map((event) => event.type)).to.deep.equal([
      'LeaseTaken',
    ]);
    await first.stop();
    // As after kill -9: the former holder gave nothing back, and nobody waits for its time to run out.
    const killed = candidate(store, 'b', time, { exclusive: true });
    await time.pass(0);
    const next = candidate(store, 'c', time, { exclusive: true });
    await time.pass(0);
    expect(next.epochs()).to.deep.equal([3]);
    await killed.stop();
    await next.stop();
  });

  it('is taken back at once by the next start on the same data directory, under a new epoch', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const time = manualTime();
    await killed(store, 'a', time, 'one');
    const stranger = candidate(store, 'b', time, { directory: 'two' });
    await time.pass(0);
    expect(stranger.owns()).to.equal(false);
    const restarted = candidate(store, 'c', time, { directory: 'one' });
    await time.pass(0);
    expect([restarted.owns(), stranger.owns()]).to.deep.equal([true, false]);
    expect(restarted.epochs()).to.deep.equal([2]);
    await restarted.stop();
    await stranger.stop();
  });

  it('is not given to the copy of a data directory while the holder on the original lives', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ledger-copy-'));
    try {
      const [original, copied] = [join(folder, 'original'), join(folder, 'copied')];
      await mkdir(original);
      const store = createMemoryEventStore({ singleWriter: false });
      const time = manualTime();
      const first = candidate(store, 'a', time, { directory: directoryId(original) });
      await time.pass(0);
      await cp(original, copied, { recursive: true });
      const copy = candidate(store, 'b', time, { directory: directoryId(copied) });
      await time.pass(8 * TTL);
      expect([first.epochs(), copy.epochs()]).to.deep.equal([[1], []]);
      await first.stop();
      await copy.stop();
      expect(directoryId(original, 'one'), 'after a restart').to.equal(directoryId(original, 'one'));
      expect(directoryId(original, 'one'), 'on another host').not.to.equal(directoryId(original, 'two'));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('is not taken back and forth between a machine and a clone of it', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const time = manualTime();
    const first = candidate(store, 'a', time, { directory: 'one' });
    await time.pass(0);
    const copy = candidate(store, 'b', time, { directory: 'one' });
    await time.pass(8 * TTL);
    expect([first.owns(), copy.owns()]).to.deep.equal([false, true]);
    expect([first.epochs(), copy.epochs()]).to.deep.equal([[1], [2]]);
    await first.stop();
    await copy.stop();
  });

  it('is had again at once by its own holder, whose renewals were stored and not answered', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const time = manualTime();
    const line = cuttable(store);
    const only = candidate(line, 'a', time);
    await time.pass(TTL);
    line.losesAnswers = true;
    await msUntil(time, () => !only.owns());
    line.losesAnswers = false;
    expect(await msUntil(time, only.owns)).to.be.at.most(2_000);
  });

  it('is held within a second of the end of an outage of 10 s, whenever that began', async () => {
    for (const after of [0, 1_000, 2_500, 4_500]) {
      const store = createMemoryEventStore({ singleWriter: false });
      const time = manualTime();
      const line = cuttable(store);
      const only = candidate(line, 'a', time);
      await time.pass(TTL + after);
      line.cut = true;
      await time.pass(10_000);
      line.cut = false;
      expect(await msUntil(time, only.owns), `${after} ms after a renewal`).to.be.at.most(1_000);
      await time.pass(4 * TTL);
      expect(only.owns()).to.equal(true);
      await only.stop();
    }
  });

  it('goes over within a second of its time, and of being given back', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const time = manualTime();
    await killed(store, 'a', time, 'one');
    const second = candidate(store, 'b', time);
    expect(await msUntil(time, second.owns)).to.be.within(TTL, 1.2 * TTL + 1_000);
    const third = candidate(store, 'c', time);
    await time.pass(TTL / 2);
    await second.stop();
    expect(await msUntil(time, third.owns)).to.be.at.most(1_000);
    await third.stop();
  });

  it('tells of an outage once, and not at each look', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const time = manualTime();
    const line = cuttable(store);
    const only = candidate(line, 'a', time);
    await time.pass(TTL);
    line.cut = true;
    await time.pass(3 * TTL);
    line.cut = false;
    await time.pass(TTL);
    expect(only.owns()).to.equal(true);
    expect(only.warnings()).to.deep.equal([
      'lease not renewed; retrying',
      'lease lost',
      'lease not taken; retrying',
    ]);
    await only.stop();
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
