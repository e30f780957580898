import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import type { Timers } from '../../../src/app/ports.ts';
import { ReferencesBusy } from '../../../src/app/references/reference-guard.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import { DELETION_ANNOUNCED } from '../../../src/domain/announcements.ts';
import { collect, fakeContext } from '../../support/commands/fake-context.ts';
import { crashing } from '../../support/commands/fake-incarnation.ts';
import { delaying } from '../../support/event-store/held-appends.ts';
import { cases, checkAsync } from '../../support/property.ts';
import {
  at,
  create,
  dangling,
  declared,
  operation,
  REFERRING,
  remove,
  run,
  seed,
  start,
  T1,
  type Planted,
} from '../../support/commands/referring-objects.ts';

/** No order of events makes a live object point at a missing one, or lie in a tenant that is gone (`referrals.ts`). */

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
  async *readAll(...args) {
    const events = await collect(store.readAll(...args));
    await scheduler.schedule(Promise.resolve(), 'read all');
    yield* events;
  },
});

const neverDangling = (how: Planted = {}) =>
  fc.asyncProperty(
    fc.scheduler(),
    fc.array(operation, { minLength: 2, maxLength: 7 }),
    async (scheduler, operations) => {
      const store = createMemoryEventStore({ singleWriter: true });
      await seed(store);
      const on = start(inTurn(store, scheduler), 'one', how);
      const all = Promise.all(
        operations.map(async (one, i) => {
          await scheduler.schedule(Promise.resolve(), 'begin');
          return run(on, one, i);
        }),
      );
      await scheduler.waitFor(all);
      for (const outcome of await all)
        if (outcome.outcome === 'rejected')
          expect(EXPECTED, outcome.rejection.message).to.include(outcome.rejection.code);
      expect(await dangling(store), 'left dangling').to.deep.equal([]);
    },
  );
const EXPECTED = [
  'REFERENCE_NOT_FOUND',
  'TENANT_DELETING',
  'STILL_REFERENCED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
];

/** Short pauses end when it is their turn; long ones, after which somebody gives up, never. */
const scheduledTimers = (scheduler: fc.Scheduler): Timers => ({
  after: (ms, fire) => {
    let cancelled = false;
    if (ms < 1_000)
      void scheduler.schedule(Promise.resolve(), 'pause').then(() => (cancelled ? undefined : fire()));
    return () => {
      cancelled = true;
    };
  },
});

/** The planted bug: an instance that never sees that a deletion is announced. */
const hidingDeletions = (store: EventStore): EventStore => ({
  ...store,
  async *readStream(...args) {
    for await (const event of store.readStream(...args))
      yield event.type === DELETION_ANNOUNCED ? { ...event, type: 'SomethingElse' } : event;
  },
});

type TwoWriters = Planted & { readonly hiding?: boolean };

/** Two instances, each of which may die at one of its appends; the other one goes on. */
const neverDanglingOnTwo = ({ hiding = false, ...how }: TwoWriters = {}) =>
  fc.asyncProperty(
    fc.scheduler(),
    fc.array(fc.tuple(operation, fc.nat(1)), { minLength: 2, maxLength: 6 }),
    fc.array(
      fc.record({
        at: fc.integer({ min: 2, max: 30 }),
        when: fc.constantFrom('before' as const, 'after' as const),
      }),
      { minLength: 2, maxLength: 2 },
    ),
    async (scheduler, operations, crashes) => {
      const store = createMemoryEventStore({ singleWriter: false });
      await seed(store);
      const scheduled = inTurn(hiding ? hidingDeletions(store) : store, scheduler);
      const timers = scheduledTimers(scheduler);
      const both = crashes.map((plan, i) => start(crashing(scheduled, plan), `i${i}`, how, timers));
      const all = Promise.allSettled(
        operations.map(async ([one, where], i) => {
          await scheduler.schedule(Promise.resolve(), 'begin');
          return run(both[where] as (typeof both)[0], one, i);
        }),
      );
      await scheduler.waitFor(all);
      for (const ended of await all) {
        if (ended.status === 'rejected')
          expect(isExpected(ended.reason), String(ended.reason)).to.equal(true);
        else if (ended.value.outcome === 'rejected')
          expect([...EXPECTED, 'CONCURRENT_MODIFICATION']).to.include(ended.value.rejection.code);
      }
      expect(await dangling(store), 'left dangling').to.deep.equal([]);
    },
  );

const isExpected = (error: unknown): boolean =>
  error instanceof ReferencesBusy || error instanceof StoreUnavailable || error instanceof OutcomeUnknown;

describe('what is referred to, and its deletion', () => {
  it('no interleaving leaves an object whose target or tenant is gone', async function () {
    this.timeout(60_000);
    await checkAsync(neverDangling(), { numRuns: cases(500) });
  });

  it('and the property finds a deletion that does not wait for the read model', async function () {
    this.timeout(60_000);
    const found = await fc.check(neverDangling({ blind: true }), { numRuns: 500, endOnFailure: true });
    expect(found.failed && String(found.errorInstance)).to.match(/left dangling/);
  });

  it('a creation that resolved before the deletion is refused after it, with the words of its kind', async () => {
    const store = createMemoryEventStore({ singleWriter: true });
    await seed(store);
    const on = start(store, 'one');
    expect((await remove(on, 'role', 'role0', 'd1')).outcome).to.equal('accepted');
    const refused = await create(on, 'roleBinding', 'b1', 0);
    expect(refused.outcome === 'rejected' && refused.rejection).to.include({
      kind: 'invalid',
      code: 'REFERENCE_NOT_FOUND',
      message: 'reference validation failed: Role "role0" has just been deleted: refer to another one',
    });
    expect((await remove(on, 'tenant', T1, 'd2')).outcome).to.equal('accepted');
    const late = await create(on, 'roleBinding', 'b2', 1);
    expect(late.outcome === 'rejected' && late.rejection.code).to.equal('TENANT_DELETING');
    expect(await dangling(store)).to.deep.equal([]);
  });

  it('what an object refers to already does not stop its changes', async () => {
    const store = createMemoryEventStore({ singleWriter: true });
    await seed(store);
    const on = start(store, 'one', { blind: true });
    await create(on, 'clusterTemplate', 'x', 0);
    await remove(on, 'hostType', 'hostType0', 'd1');
    expect(await dangling(store)).to.deep.equal(['clusterTemplate x -> hostType hostType0']);
    const document = { title: 'y', ...REFERRING.clusterTemplate?.(0) };
    const command = { type: 'ReviseDocument', at, document } as DocumentCommand;
    const outcome = await on.resources.execute(declared('clusterTemplate'), 'x', command, fakeContext('r'));
    expect(outcome.outcome).to.equal('accepted');
  });

  it('an append of the only writer whose outcome is not known does not come after the deletion of its target', async () => {
    const store = createMemoryEventStore({ singleWriter: true });
    await seed(store);
    const wire = delaying(store, 'RoleBound');
    const on = start(wire.store, 'one');
    const failed = await create(on, 'roleBinding', 'x', 0).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(OutcomeUnknown);
    expect((await remove(on, 'role', 'role0', 'd1')).outcome).to.equal('accepted');
    expect((await wire.deliver()).map(({ status }) => status))
      .to.include('rejected')
      .and.not.include('fulfilled');
    expect(await dangling(store)).to.deep.equal([]);
    const again = await create(on, 'roleBinding', 'x', 0);
    expect(again.outcome === 'rejected' && again.rejection.code).to.equal('REFERENCE_NOT_FOUND');
  });

  it('nor its deletion after what has come to refer to the object', async () => {
    const store = createMemoryEventStore({ singleWriter: true });
    await seed(store);
    const wire = delaying(store, 'RoleRetired');
    const on = start(wire.store, 'one');
    const failed = await remove(on, 'role', 'role0', 'd1').catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(OutcomeUnknown);
    expect((await create(on, 'roleBinding', 'x', 0)).outcome).to.equal('accepted');
    expect((await wire.deliver()).map(({ status }) => status))
      .to.include('rejected')
      .and.not.include('fulfilled');
    expect(await dangling(store)).to.deep.equal([]);
  });

  it('who repeats such an append while its target is being deleted does not keep the deletion waiting, nor it them', async () => {
    const store = createMemoryEventStore({ singleWriter: true });
    await seed(store);
    const wire = delaying(store, 'RoleBound');
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    const now = { append: wire.store.append, isLate: false };
    const on = start(
      {
        ...store,
        append: (...args) => now.append(...args),
        async *readAll(...args) {
          asked.resolve();
          if (now.isLate) await answer.promise;
          yield* store.readAll(...args);
        },
      },
      'one',
    );
    const failed = await create(on, 'roleBinding', 'x', 0).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(OutcomeUnknown);
    Object.assign(now, { append: store.append, isLate: true });
    const removed = remove(on, 'role', 'role0', 'd1');
    await asked.promise;
    const again = create(on, 'roleBinding', 'x', 0);
    for (let i = 0; i < 10; i += 1) await new Promise((resolve) => setImmediate(resolve));
    answer.resolve();
    // No timer of these incarnations ever fires: nobody gives up here.
    expect((await removed).outcome).to.equal('accepted');
    const refused = await again;
    expect(refused.outcome === 'rejected' && refused.rejection.code).to.equal('REFERENCE_NOT_FOUND');
    await wire.deliver();
    expect(await dangling(store)).to.deep.equal([]);
  });

  it('an id that has passed on to a tenant that the caller does not reach is as good as gone', async () => {
    for (const singleWriter of [true, false]) {
      const store = createMemoryEventStore({ singleWriter });
      await seed(store);
      const on = start(store, 'one');
      await remove(on, 'role', 'role0', 'd1');
      const role0 = { id: 'role0', tenant: 't2', project: '', name: 'role0', creator: 'u', document: {} };
      const passedOn: DocumentCommand = { type: 'CreateDocument', at, ...role0 };
      await on.resources.execute(declared('role'), 'role0', passedOn, fakeContext('passed on'));
      const document = REFERRING.roleBinding?.(0) ?? {};
      const bind = { ...passedOn, id: 'x', tenant: T1, name: 'x', document };
      const bound = (command: string, tenants: readonly string[]) =>
        on.resources.execute(declared('roleBinding'), 'x', bind, fakeContext(command), {
          reaches: (kind, tenant) => kind !== 'role' || tenants.includes(tenant),
        });
      const refused = await bound('b1', [T1, 'shared']);
      expect(refused.outcome === 'rejected' && refused.rejection.code).to.equal('REFERENCE_NOT_FOUND');
      expect((await bound('b2', [T1, 't2'])).outcome).to.equal('accepted');
    }
  });

  it('nothing is announced on a log with one writer', async () => {
    const store = createMemoryEventStore({ singleWriter: true });
    await seed(store);
    const on = start(store, 'one');
    await create(on, 'roleBinding', 'x', 0);
    await remove(on, 'role', 'role1', 'd1');
    const types = (await collect(store.readAll({ limit: 1_000 }))).map(({ type }) => type);
    expect(types.filter((type) => type.endsWith('Announced'))).to.deep.equal([]);
  });

  it('no interleaving of two instances does, whichever of them dies', async function () {
    this.timeout(120_000);
    await checkAsync(neverDanglingOnTwo(), { numRuns: cases(500) });
  });

  for (const [words, planted] of [
    ['knows nothing of announced references', { deaf: true }],
    ['does not see announced deletions', { hiding: true }],
  ] as const)
    it(`and the property finds an instance that ${words}`, async function () {
      this.timeout(120_000);
      const found = await fc.check(neverDanglingOnTwo(planted), { numRuns: 3_000, endOnFailure: true });
      expect(found.failed && String(found.errorInstance)).to.match(/left dangling/);
    });
});
