import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import { deleteGadget, gadget } from '../../support/commands/fake-gadget.ts';
import { createIncarnation } from '../../support/commands/fake-incarnation.ts';
import { eventually } from '../../support/eventually.ts';
import { create, holderOf, types } from './holding-names.ts';

type Fate = 'well' | 'away' | 'lost' | 'unanswered';
const FATES: readonly Fate[] = ['well', 'away', 'lost', 'unanswered'];

/** A store with one writer that plays a fate on each append: as with one batch, what is stored is known to the store alone. */
const fated = (store: EventStore, fates: readonly Fate[]): EventStore => {
  let appends = 0;
  const stored = new WeakSet<Promise<unknown>>();
  const play = async (
    fate: Fate,
    [stream, expected, events, options]: Parameters<EventStore['append']>,
    noteStored: () => void,
  ) => {
    if (fate === 'away') throw new StoreUnavailable('the store is away');
    if (fate === 'lost') throw new OutcomeUnknown(stream);
    const { after } = options ?? {};
    if (after !== undefined && !stored.has(after)) await after;
    const appended = await store.append(stream, expected, events);
    noteStored();
    if (fate === 'unanswered') throw new OutcomeUnknown(stream);
    return appended;
  };
  return {
    ...store,
    append: (...args) => {
      const fate = fates[appends] ?? 'well';
      appends += 1;
      let isStored = (): void => undefined;
      const appended = play(fate, args, () => isStored());
      isStored = () => void stored.add(appended);
      return appended;
    },
  };
};

/** Names on a store with one writer: reservation and resource go into one commit. */
describe('names that are committed with their resource', () => {
  it('are sent with it, before either is stored', async () => {
    const store = createMemoryEventStore();
    const sent: string[] = [];
    const open = Promise.withResolvers<void>();
    const held: EventStore = {
      ...store,
      append: async (...args) => {
        sent.push(...args[2].map(({ type }) => type));
        await open.promise;
        return store.append(...args);
      },
    };
    const creating = create(createIncarnation(held, 'one'), 'g1', 'drill');
    await eventually('both are sent', () => sent.join() === 'NameReserved,GadgetDefined');
    expect(await types(store)).to.deep.equal([]);
    open.resolve();
    expect((await creating).outcome).to.equal('accepted');
    expect(await types(store)).to.deep.equal(['NameReserved', 'GadgetDefined']);
  });

  it('that somebody else holds refuse the resource, and nothing of it is stored', async () => {
    const store = createMemoryEventStore();
    await create(createIncarnation(store, 'former'), 'g1', 'drill');
    const one = createIncarnation(store, 'one');
    const outcome = await create(one, 'g2', 'drill');
    expect(outcome.outcome === 'rejected' && outcome.rejection.code).to.equal('ALREADY_EXISTS');
    expect(await types(store)).to.deep.equal(['NameReserved', 'GadgetDefined']);
    expect(await holderOf(one, 'drill')).to.equal('g1');
  });

  it('that were given back before are reserved once more, in front of the resource', async () => {
    const store = createMemoryEventStore();
    const former = createIncarnation(store, 'former');
    await create(former, 'g1', 'drill');
    await former.resources.execute(gadget, 'g1', deleteGadget, fakeContext('delete'));
    const before = await types(store);
    const one = createIncarnation(store, 'one');
    expect((await create(one, 'g2', 'drill')).outcome).to.equal('accepted');
    const added = (await types(store)).slice(before.length);
    expect(added).to.deep.equal(['NameReserved', 'GadgetDefined']);
    expect(await holderOf(one, 'drill')).to.equal('g2');
  });

  for (const first of FATES)
    for (const second of FATES)
      it(`leave nothing half told when the first appends are ${first} and ${second}`, async () => {
        for (const more of FATES.flatMap((third) => FATES.map((fourth) => [third, fourth]))) {
          const store = createMemoryEventStore();
          const one = createIncarnation(fated(store, [first, second, ...more]), 'one');
          const error: unknown = await create(one, 'g1', 'drill').then(
            ({ outcome }) => expect(outcome).to.equal('accepted') && undefined,
            (thrown: unknown) => thrown,
          );
          const stored = await types(store);
          if (error === undefined) expect(stored).to.include('GadgetDefined');
          else if (error instanceof StoreUnavailable) expect(stored).to.deep.equal([]);
          else expect(error).to.be.instanceOf(OutcomeUnknown);
          if (stored.includes('GadgetDefined')) expect(stored[0]).to.equal('NameReserved');
          // The retry finishes what was begun, here on a process that knows nothing of it.
          const two = createIncarnation(store, 'two');
          expect((await create(two, 'g1', 'drill')).outcome).to.equal('accepted');
          expect((await types(store)).filter((type) => type === 'GadgetDefined')).to.have.length(1);
          expect(await holderOf(two, 'drill')).to.equal('g1');
        }
      });
});
