import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createCheckpoint, type Checkpoint } from '../../../src/app/log/checkpoint.ts';
import { StoreUnavailable, type EventStore, type Position } from '../../../src/app/log/event-store.ts';
import type { AnyKind } from '../../../src/domain/kinds.ts';
import { nameAggregate } from '../../../src/domain/kinds.ts';
import { nameStreamId } from '../../../src/app/names/names.ts';
import { collect, createFakeClock, fakeContext } from '../../support/commands/fake-context.ts';
import { createGadget, gadget } from '../../support/commands/fake-gadget.ts';
import { crashing, createFakeIds, createIncarnation } from '../../support/commands/fake-incarnation.ts';

const checkpointOf = (store: EventStore, instance: string): Checkpoint =>
  createCheckpoint({ store, name: 'loop', clock: createFakeClock(), ids: createFakeIds(instance), instance });

describe('checkpoint in the log', () => {
  it('is where the next one begins, and only the newest is kept', async () => {
    const store = createMemoryEventStore();
    const first = checkpointOf(store, 'one');
    expect(await first.load()).to.equal(undefined);
    expect(await first.save('0000000000000005')).to.equal(true);
    expect(await first.save('0000000000000009')).to.equal(true);
    expect(await checkpointOf(store, 'two').load()).to.equal('0000000000000009');
    expect(await collect(store.readStream('sys-loop'))).to.have.length(1);
  });

  it('tells the one who was replaced', async () => {
    const store = createMemoryEventStore();
    const [one, two] = [checkpointOf(store, 'one'), checkpointOf(store, 'two')];
    await one.load();
    await two.load();
    expect(await one.save('0000000000000001')).to.equal(true);
    expect(await two.save('0000000000000002')).to.equal(false);
    await two.load();
    expect(await two.save('0000000000000002')).to.equal(true);
  });
});

describe('name repair over restarts', () => {
  const remembering = (): Checkpoint & { saved: Position | undefined } => {
    const checkpoint: Checkpoint & { saved: Position | undefined } = {
      saved: undefined,
      load: async () => checkpoint.saved,
      save: async (position) => {
        checkpoint.saved = position;
        return true;
      },
    };
    return checkpoint;
  };
  const create = (on: ReturnType<typeof createIncarnation>, id: string) =>
    on.resources.execute(gadget, id, createGadget(id, `name-${id}`), fakeContext(`create ${id}`));

  it('never resumes behind a reservation that is not settled yet', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const before = createIncarnation(store, 'before');
    for (const id of ['a', 'b']) await create(before, id);
    await create(createIncarnation(crashing(store, { at: 2, when: 'before' }), 'dying'), 'left').catch(
      () => undefined,
    );
    for (const id of ['c', 'd']) await create(before, id);

    const checkpoint = remembering();
    const first = createIncarnation(store, 'first', { checkpoint });
    const stop = new AbortController();
    const running = first.repair.run(stop.signal);
    for (let i = 0; i < 50 && checkpoint.saved === undefined; i += 1)
      await new Promise((resolve) => setImmediate(resolve));
    expect(first.repair.pending()).to.equal(1);
    stop.abort();
    await running;
    const left = (await collect(store.readAll({ limit: 100 }))).find(
      ({ stream }) => stream === `name-${nameStreamId('gadget', 'acme', '', 'name-left')}`,
    );
    expect(checkpoint.saved !== undefined && left !== undefined && checkpoint.saved < left.position).to.equal(
      true,
    );

    const second = createIncarnation(store, 'second', { checkpoint });
    const stopSecond = new AbortController();
    const runningSecond = second.repair.run(stopSecond.signal);
    const isFree = async (): Promise<boolean> =>
      (await second.runner.load(nameAggregate, left?.stream.slice('name-'.length) ?? '')).state.status ===
      'free';
    for (let i = 0; i < 50 && !(await isFree()); i += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      second.clock.advance(600);
      second.timers.fire();
    }
    stopSecond.abort();
    await runningSecond;
    expect(await isFree()).to.equal(true);
  });

  it('waits for a log that is away and goes on', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    await create(createIncarnation(crashing(store, { at: 2, when: 'before' }), 'dying'), 'left').catch(
      () => undefined,
    );
    let away = true;
    let refused = 0;
    const flaky: EventStore = {
      ...store,
      append: (...args) => {
        if (!away) return store.append(...args);
        refused += 1;
        return Promise.reject(new StoreUnavailable('away'));
      },
    };
    const on = createIncarnation(flaky, 'on');
    const stop = new AbortController();
    const running = on.repair.run(stop.signal);
    const turns = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        on.clock.advance(600);
        on.timers.fire();
      }
    };
    await turns(20);
    expect(refused).to.be.greaterThan(1);
    expect(on.repair.pending()).to.equal(1);
    away = false;
    await turns(20);
    expect(on.repair.pending()).to.equal(0);
    stop.abort();
    await running;
    expect((await collect(store.readAll({ limit: 10 }))).map(({ type }) => type)).to.include('NameReleased');
  });

  const turnsOf =
    (on: ReturnType<typeof createIncarnation>) =>
    async (count: number): Promise<void> => {
      for (let i = 0; i < count; i += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        on.clock.advance(600);
        on.timers.fire();
      }
    };

  it('passes over an event that nothing can be done about, says so, and goes on', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    await create(createIncarnation(store, 'before'), 'gone');
    await store.append('gadget-broken', 'no_stream', [
      { id: 'broken', type: 'GadgetRetired', data: '{"poison":true}', metadata: '{}' },
    ]);
    await create(createIncarnation(crashing(store, { at: 2, when: 'before' }), 'dying'), 'left').catch(
      () => undefined,
    );
    const evolve: typeof gadget.decider.evolve = (state, event) => {
      if ('poison' in event.data) throw new TypeError('this event cannot be folded, today or tomorrow');
      return gadget.decider.evolve(state, event);
    };
    const fragile = { ...gadget, decider: { ...gadget.decider, evolve } } as unknown as AnyKind;
    const on = createIncarnation(store, 'on', { kinds: [fragile] });
    const stop = new AbortController();
    const running = on.repair.run(stop.signal);
    await turnsOf(on)(40);
    expect(on.repair.skipped()).to.equal(1);
    expect(on.repair.pending()).to.equal(0);
    stop.abort();
    await running;
    expect((await collect(store.readAll({ limit: 20 }))).map(({ type }) => type)).to.include('NameReleased');
  });

  it('begins at the checkpoint again when another instance has saved meanwhile', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const loads: (Position | undefined)[] = [];
    let refuse = true;
    let saved: Position | undefined;
    const checkpoint: Checkpoint = {
      load: async () => {
        loads.push(saved);
        return saved;
      },
      save: async (position) => {
        if (refuse) {
          refuse = false;
          return false;
        }
        saved = position;
        return true;
      },
    };
    await create(createIncarnation(store, 'before'), 'a');
    const on = createIncarnation(store, 'on', { checkpoint });
    const stop = new AbortController();
    const running = on.repair.run(stop.signal);
    await turnsOf(on)(10);
    expect(loads).to.deep.equal([undefined, undefined]);
    expect(saved).to.not.equal(undefined);
    stop.abort();
    await running;
  });
});
