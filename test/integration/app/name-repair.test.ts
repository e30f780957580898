import { expect } from 'chai';
import fc from 'fast-check';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { nameAggregate } from '../../../src/domain/kinds.ts';
import { nameStreamId } from '../../../src/app/names/names.ts';
import { parseStreamName } from '../../../src/domain/stream-name.ts';
import { fakeContext, collect } from '../../support/commands/fake-context.ts';
import { createGadget, deleteGadget, gadget, reviseGadget } from '../../support/commands/fake-gadget.ts';
import { crashing, createIncarnation } from '../../support/commands/fake-incarnation.ts';
import { cases, checkAsync } from '../../support/property.ts';
import { codeHolderOf, create, holderOf, shared, types, type Incarnation } from './holding-names.ts';

describe('name repair', () => {
  /** Runs the loop until the condition holds, moving time on. */
  const runUntil = async (on: Incarnation, done: () => Promise<boolean>): Promise<void> => {
    const stop = new AbortController();
    const running = on.repair.run(stop.signal);
    for (let round = 0; round < 100 && !(await done()); round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      on.clock.advance(600);
      on.timers.fire();
    }
    stop.abort();
    await running;
    expect(await done()).to.equal(true);
  };

  it('releases a reservation whose resource was never written, and fences the creator first', async () => {
    const store = shared();
    await create(createIncarnation(crashing(store, { at: 2, when: 'before' }), 'dying'), 'g1', 'drill').catch(
      () => undefined,
    );
    const next = createIncarnation(store, 'next');
    await runUntil(next, async () => (await holderOf(next, 'drill')) === undefined);
    expect(await types(store)).to.deep.equal(['NameReserved', 'CreationAbandoned', 'NameReleased']);
    expect((await create(next, 'g2', 'drill')).outcome).to.equal('accepted');
  });

  it('lets the abandoned command finish later, if the name is still free', async () => {
    const store = shared();
    await create(createIncarnation(crashing(store, { at: 2, when: 'before' }), 'dying'), 'g1', 'drill').catch(
      () => undefined,
    );
    const next = createIncarnation(store, 'next');
    await runUntil(next, async () => (await holderOf(next, 'drill')) === undefined);
    const outcome = await create(next, 'g1', 'drill');
    expect(outcome).to.deep.include({ outcome: 'accepted', replayed: false });
    expect(outcome.loaded).to.include({ version: 0 });
    expect(await holderOf(next, 'drill')).to.equal('g1');
    expect(next.rejections).to.deep.equal([]);
  });

  it('keeps what is in use', async () => {
    const store = shared();
    const one = createIncarnation(store, 'one');
    await create(one, 'g1', 'drill', ['c1']);
    await one.resources.execute(gadget, 'g1', reviseGadget(['c2']), fakeContext('revise'));
    await runUntil(one, async () => one.repair.pending() === 0);
    expect([await holderOf(one, 'drill'), await codeHolderOf(one, 'c2')]).to.deep.equal(['g1', 'g1']);
    expect(await types(store)).not.to.include('CreationAbandoned');
  });

  it('releases what a gone resource still holds', async () => {
    const store = shared();
    const one = createIncarnation(store, 'one');
    await create(one, 'g1', 'drill', ['c1']);
    // Not through the resource commands, as a workflow would end it.
    await one.runner.execute(
      { category: 'gadget', decider: gadget.decider, stateVersion: 1 },
      'g1',
      deleteGadget,
      fakeContext('delete'),
    );
    expect(await holderOf(one, 'drill')).to.equal('g1');
    await runUntil(one, async () => (await codeHolderOf(one, 'c1')) === undefined);
    expect(await holderOf(one, 'drill')).to.equal(undefined);
  });

  it('releases what a gone resource held and the next one under its id has not taken', async () => {
    const store = shared();
    await create(createIncarnation(store, 'one'), 'g1', 'drill', ['c1', 'c2']);
    // Retired, and then nothing was given back.
    const dying = createIncarnation(crashing(store, { at: 2, when: 'before' }), 'dying');
    await dying.resources.execute(gadget, 'g1', deleteGadget, fakeContext('delete')).catch(() => undefined);
    const next = createIncarnation(store, 'next');
    const again = createGadget('g1', 'saw', ['c2']);
    const { outcome, loaded } = await next.resources.execute(gadget, 'g1', again, fakeContext('again'));
    expect([outcome, loaded.version]).to.deep.equal(['accepted', 0]);
    expect(await holderOf(next, 'drill')).to.equal('g1');
    await runUntil(next, async () => (await codeHolderOf(next, 'c1')) === undefined);
    expect(await Promise.all(['drill', 'saw'].map((name) => holderOf(next, name)))).to.deep.equal([
      undefined,
      'g1',
    ]);
    expect(await codeHolderOf(next, 'c2')).to.equal('g1');
    expect(
      (await next.runner.load({ category: 'gadget', decider: gadget.decider, stateVersion: 1 }, 'g1'))
        .version,
    ).to.equal(0);
    expect((await create(next, 'g2', 'drill', ['c1'])).outcome).to.equal('accepted');
  });

  it('releases a value that was reserved for a change that never came', async () => {
    const store = shared();
    await create(createIncarnation(store, 'one'), 'g1', 'drill', ['c1']);
    const dying = createIncarnation(crashing(store, { at: 2, when: 'before' }), 'dying');
    await dying.resources
      .execute(gadget, 'g1', reviseGadget(['c1', 'c2']), fakeContext('revise'))
      .catch(() => undefined);
    const next = createIncarnation(store, 'next');
    expect(await codeHolderOf(next, 'c2')).to.equal('g1');
    await runUntil(next, async () => (await codeHolderOf(next, 'c2')) === undefined);
    const { state, version } = await next.runner.load(
      { category: 'gadget', decider: gadget.decider, stateVersion: 1 },
      'g1',
    );
    expect(gadget.view(state)).to.include({ exists: true, archived: false });
    expect(version).to.equal(0);
  });
});

describe('names under crashes, retries and races', () => {
  const IDS = ['g1', 'g2', 'g3'];
  const operation = fc.record({
    command: fc.nat(6),
    on: fc.nat(1),
    id: fc.constantFrom(...IDS),
    what: fc.constantFrom('create', 'create', 'create', 'revise', 'delete', 'repair'),
    name: fc.constantFrom('drill', 'saw'),
    codes: fc.uniqueArray(fc.constantFrom('c1', 'c2'), { maxLength: 2 }),
  });
  const crash = fc.record({
    at: fc.integer({ min: 1, max: 8 }),
    when: fc.constantFrom('before' as const, 'after' as const),
  });

  const nameIds = async (store: EventStore): Promise<string[]> => {
    const streams = (await collect(store.readAll({ limit: 10_000 }))).map((event) => event.stream);
    return [...new Set(streams.filter((stream) => stream.startsWith('name-')))].map(
      (stream) => parseStreamName(stream).id,
    );
  };

  const run = async (
    on: Incarnation,
    store: EventStore,
    {
      what,
      id,
      name,
      codes,
      command,
    }: { what: string; id: string; name: string; codes: string[]; command: number },
  ): Promise<void> => {
    // The same command is the same request: its parts are in its id.
    const context = fakeContext(`${command} ${what} ${id} ${name} ${codes.join()}`);
    if (what === 'create') await on.resources.execute(gadget, id, createGadget(id, name, codes), context);
    else if (what === 'revise') await on.resources.execute(gadget, id, reviseGadget(codes), context);
    else if (what === 'delete') await on.resources.execute(gadget, id, deleteGadget, context);
    else for (const nameId of await nameIds(store)) await on.repair.settle(nameId);
  };

  const check = async (store: EventStore): Promise<void> => {
    const observer = createIncarnation(store, 'observer');
    const aggregate = { category: 'gadget', decider: gadget.decider, stateVersion: 1 };
    const owned = new Map<string, string>();
    for (const id of IDS) {
      const view = gadget.view((await observer.runner.load(aggregate, id)).state);
      if (!view.exists || view.archived) continue;
      const spec = view.document['spec'] as { codes?: string[] };
      const mine = [
        nameStreamId('gadget', 'acme', '', view.name),
        ...(spec.codes ?? []).map((code) => nameStreamId('gadget.code', '', '', code)),
      ];
      for (const nameId of mine) {
        expect(owned.get(nameId), `two live holders, ${owned.get(nameId)} and ${id}`).to.equal(undefined);
        owned.set(nameId, id);
      }
    }
    for (const nameId of await nameIds(store)) {
      const { state } = await observer.runner.load(nameAggregate, nameId);
      const holder = state.status === 'held' ? state.holder : undefined;
      expect(holder, 'who the name stream says holds it').to.equal(owned.get(nameId));
    }
  };

  /** Every call of the store waits for its turn, in an order that fast-check chooses. */
  const inTurn = (store: EventStore, scheduler: fc.Scheduler): EventStore => ({
    ...store,
    append: async (...args) => {
      await scheduler.schedule(Promise.resolve(), 'append');
      const appended = await store.append(...args);
      await scheduler.schedule(Promise.resolve(), 'appended');
      return appended;
    },
    async *readStream(...args) {
      await scheduler.schedule(Promise.resolve(), 'read');
      yield* store.readStream(...args);
    },
  });
  const repair = { what: 'repair', id: '', name: '', codes: [], command: 0 };
  const numRuns = cases(150);

  it('never have two live holders and are never stuck', async function () {
    this.timeout(60_000);
    await checkAsync(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(operation, { minLength: 2, maxLength: 8 }),
        fc.tuple(crash, crash),
        fc.array(fc.nat(7), { maxLength: 4 }),
        async (scheduler, operations, crashes, retried) => {
          const store = shared();
          const scheduled = inTurn(store, scheduler);
          const incarnations = crashes.map((plan, i) =>
            createIncarnation(crashing(scheduled, plan), `first ${i}`),
          );
          const first = operations.map((one) => run(incarnations[one.on] as Incarnation, store, one));
          await scheduler.waitFor(Promise.allSettled(first));
          // New incarnations repeat some of it while one of them already repairs.
          const next = [createIncarnation(scheduled, 'next 0'), createIncarnation(scheduled, 'next 1')];
          const again = retried.flatMap((index) => operations[index] ?? []);
          const second = again.map((one) => run(next[one.on] as Incarnation, store, one));
          await scheduler.waitFor(Promise.all([...second, run(next[0] as Incarnation, store, repair)]));
          await run(createIncarnation(store, 'last'), store, repair);
          await check(store);
        },
      ),
      { numRuns },
    );
  });

  it('stay with a command that runs twice at once beside a rival and the repair', async function () {
    this.timeout(60_000);
    const step = fc.constantFrom(
      { what: 'create', id: 'g1', name: 'drill', codes: ['c1'], command: 1 },
      { what: 'create', id: 'g2', name: 'drill', codes: ['c1'], command: 2 },
      { what: 'create', id: 'g2', name: 'saw', codes: ['c1'], command: 3 },
      { what: 'delete', id: 'g2', name: '', codes: [], command: 4 },
      { what: 'revise', id: 'g2', name: '', codes: [], command: 5 },
      repair,
    );
    await checkAsync(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.tuple(fc.nat(2), step), { minLength: 3, maxLength: 6 }),
        fc.boolean(),
        async (scheduler, steps, leftover) => {
          const store = shared();
          const command = { what: 'create', id: 'g1', name: 'drill', codes: ['c1'], command: 1 };
          if (leftover) {
            const dying = createIncarnation(crashing(store, { at: 3, when: 'before' }), 'dying');
            await run(dying, store, command).catch(() => undefined);
          }
          const scheduled = inTurn(store, scheduler);
          const all = [0, 1, 2].map((i) => createIncarnation(scheduled, `i${i}`));
          const running = steps.map(([on, what]) => run(all[on] as Incarnation, store, what));
          const twice = all.slice(0, 2).map((on) => run(on, store, command));
          await scheduler.waitFor(Promise.all([...running, ...twice]));
          await run(createIncarnation(store, 'last'), store, repair);
          await check(store);
        },
      ),
      { numRuns },
    );
  });
});
