import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { nameStreamId } from '../../../src/app/names/names.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import { aggregateOf, kinds, nameAggregate } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { user } from '../../../src/domain/tenancy/user.resource.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import { crashing, createIncarnation } from '../../support/commands/fake-incarnation.ts';

const start = (store: EventStore, name: string) =>
  createIncarnation(store, name, {
    codec: createEventCodec(eventTypes),
    kinds,
    lifecycle: { starts: ['UserAdmitted'], ends: ['UserRemoved'] },
  });
type Incarnation = ReturnType<typeof start>;

const at = '2026-11-21T10:00:00.000Z';
const NAME = 'p0123';
const NAME_ID = nameStreamId('user', 't1', '', NAME);
let commands = 0;
const context = () => fakeContext(`command ${(commands += 1)}`);
const admit = (on: Incarnation, id: string) =>
  on.resources.execute(
    user,
    id,
    (abandonedBefore: number): DocumentCommand => ({
      type: 'CreateDocument',
      at,
      id,
      tenant: 't1',
      project: '',
      name: NAME,
      creator: 'system',
      document: {},
      abandonedBefore,
    }),
    context(),
  );
const remove = (on: Incarnation, id: string) =>
  on.resources.execute(user, id, { type: 'DeleteDocument', at }, context());
const isPresent = async (on: Incarnation, id: string): Promise<boolean> =>
  (await on.runner.load(aggregateOf(user), id)).state.status === 'present';
const holder = async (on: Incarnation): Promise<string | undefined> => {
  const { state } = await on.runner.load(nameAggregate, NAME_ID);
  return state.status === 'held' ? state.holder : undefined;
};

/** A removed user may come back under its id, so its end does not make its name free for good. */
describe('names of what may come back', () => {
  it('are held again after the return, and free in between', async () => {
    const one = start(createMemoryEventStore(), 'one');
    await admit(one, 'u1');
    await remove(one, 'u1');
    expect(await holder(one)).to.equal(undefined);
    expect((await admit(one, 'u1')).outcome).to.equal('accepted');
    expect(await holder(one)).to.equal('u1');
    expect((await admit(one, 'u2')).outcome).to.equal('rejected');
  });

  it('stay with a return that is under way: who wants the name meanwhile is told that it is taken', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const one = start(store, 'one');
    await admit(one, 'u1');
    await remove(one, 'u1');
    // The tenant is announced as referred to and the name reserved (at the second try, since its stream is not new),
    // the user itself not yet written.
    const dying = start(crashing(store, { at: 4, when: 'before' }), 'dying');
    await admit(dying, 'u1').catch(() => undefined);
    expect([await holder(one), await isPresent(one, 'u1')]).to.deep.equal(['u1', false]);
    expect((await admit(one, 'u2')).outcome).to.equal('rejected');
    // The repair frees it, and from then on anybody may have it.
    expect(await one.repair.settle(NAME_ID)).to.equal('released');
    expect((await admit(one, 'u2')).outcome).to.equal('accepted');
    expect(await holder(one)).to.equal('u2');
  });

  it('are never held by nobody while a slow return is written: the repair stops it first', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const one = start(store, 'one');
    await admit(one, 'u1');
    await remove(one, 'u1');
    const reserved = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const slow: EventStore = {
      ...store,
      append: async (...args) => {
        if (args[2].some(({ type }) => type === 'UserAdmitted')) {
          reserved.resolve();
          await goOn.promise;
        }
        return store.append(...args);
      },
    };
    const returning = admit(start(slow, 'slow'), 'u1');
    await reserved.promise;
    expect(await one.repair.settle(NAME_ID)).to.equal('released');
    const other = await admit(one, 'u2');
    goOn.resolve();
    const outcome = await returning;
    expect([other.outcome, outcome.outcome]).to.deep.equal(['accepted', 'rejected']);
    expect([await holder(one), await isPresent(one, 'u2'), await isPresent(one, 'u1')]).to.deep.equal([
      'u2',
      true,
      false,
    ]);
  });

  it('are taken from whoever crashed after the removal, but not from who is back by then', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const one = start(store, 'one');
    await admit(one, 'u1');
    // Removed, and the name not given back.
    const dying = start(crashing(store, { at: 2, when: 'before' }), 'dying');
    await remove(dying, 'u1').catch(() => undefined);
    expect([await holder(one), await isPresent(one, 'u1')]).to.deep.equal(['u1', false]);
    expect((await admit(one, 'u1')).outcome).to.equal('accepted');
    expect(await one.repair.settle(NAME_ID)).to.equal('kept');
    expect([await holder(one), await isPresent(one, 'u1')]).to.deep.equal(['u1', true]);
  });
});
