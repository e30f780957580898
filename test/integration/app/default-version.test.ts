import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { nameStreamId } from '../../../src/app/names/names.ts';
import { DEFAULT_VERSION_SLOT } from '../../../src/domain/catalog/cluster-version.resource.ts';
import { isStored, type DocumentCommand } from '../../../src/domain/catalog/document.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import { aggregateOf, clusterVersion, kinds, nameAggregate } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import { crashing, createIncarnation } from '../../support/commands/fake-incarnation.ts';

const settings = {
  codec: createEventCodec(eventTypes),
  kinds,
  lifecycle: { starts: ['ClusterVersionAdded'], ends: ['ClusterVersionRetired'] },
};
const start = (store: EventStore, name: string) => createIncarnation(store, name, settings);
type Incarnation = ReturnType<typeof start>;

const SLOT = nameStreamId(DEFAULT_VERSION_SLOT.scope, '', '', DEFAULT_VERSION_SLOT.value);
const at = '2026-11-21T10:00:00.000Z';
const ALL = ['v1', 'v2', 'v3', 'v4'];

const add = (on: Incarnation, id: string, spec: object = {}) =>
  on.resources.execute(
    clusterVersion,
    id,
    (abandonedBefore: number): DocumentCommand => ({
      type: 'CreateDocument',
      at,
      id,
      tenant: 'shared',
      project: '',
      name: id,
      creator: 'system',
      document: {
        metadata: {},
        spec: { version: `4.20.${id.slice(1)}`, image: `quay.io/r:${id}`, is_default: true, ...spec },
      },
      abandonedBefore,
    }),
    fakeContext(`add ${id} ${JSON.stringify(spec)}`),
  );
const mark = (on: Incarnation, id: string, isDefault = true) =>
  on.resources.execute(
    clusterVersion,
    id,
    {
      type: 'ReviseDocument',
      at,
      document: { spec: { is_default: isDefault } },
      paths: ['spec.is_default'],
    },
    fakeContext(`mark ${id} ${String(isDefault)}`),
  );
const defaults = async (on: Incarnation): Promise<string[]> => {
  const shown: string[] = [];
  for (const id of ALL) {
    const { state } = await on.runner.load(aggregateOf(clusterVersion), id);
    if (isStored(state) && objectAt(state.document, 'spec')['is_default'] === true) shown.push(id);
  }
  return shown;
};
const owner = async (on: Incarnation): Promise<string | undefined> => {
  const { state } = await on.runner.load(nameAggregate, SLOT);
  return state.status === 'held' ? state.holder : undefined;
};

describe('the default version', () => {
  it('passes from one version to the next, by creation and by change', async () => {
    const one = start(createMemoryEventStore(), 'one');
    for (const id of ['v1', 'v2', 'v3']) {
      expect((await add(one, id)).outcome).to.equal('accepted');
      expect(await defaults(one)).to.deep.equal([id]);
    }
    expect((await mark(one, 'v1')).outcome).to.equal('accepted');
    expect([await defaults(one), await owner(one)]).to.deep.equal([['v1'], 'v1']);
    await mark(one, 'v1', false);
    expect([await defaults(one), await owner(one)]).to.deep.equal([[], undefined]);
    expect((await add(one, 'v4')).outcome).to.equal('accepted');
    expect([await defaults(one), await owner(one)]).to.deep.equal([['v4'], 'v4']);
  });

  it('stays where it is when the one that was to follow is refused, whatever for', async () => {
    const store = createMemoryEventStore();
    const one = start(store, 'one');
    await add(one, 'v1');
    await add(one, 'v2', { is_default: false });
    const before = await one.runner.load(aggregateOf(clusterVersion), 'v1');
    const refused = [
      await add(one, 'v3', { version: '4.20.2' }),
      await add(one, 'v2', { image: 'other' }),
      await add(one, 'v3', { enabled: false }),
      await add(one, 'v3', { image: '' }),
    ];
    for (const { outcome } of refused) expect(outcome).to.equal('rejected');
    expect(await one.runner.load(aggregateOf(clusterVersion), 'v1')).to.deep.equal(before);
    expect([await defaults(one), await owner(one)]).to.deep.equal([['v1'], 'v1']);
  });

  it('is one after any number of callers chose one at once', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const [one, two] = [start(store, 'one'), start(store, 'two')];
    await add(one, 'v1');
    const outcomes = await Promise.all([add(one, 'v2'), add(two, 'v3'), add(one, 'v4')]);
    for (const { outcome } of outcomes) expect(outcome).to.equal('accepted');
    await one.repair.settle(SLOT);
    const shown = await defaults(two);
    expect(shown).to.have.length(1);
    expect(await owner(two)).to.equal(shown[0]);
  });

  for (const [how, act] of [
    ['creation', (on: Incarnation) => add(on, 'v3')],
    ['change', (on: Incarnation) => mark(on, 'v2')],
  ] as const)
    it(`is never lost, wherever the ${how} of the next one dies, and is one after the repair`, async () => {
      const ends = new Set<string>();
      for (let crashAt = 1; ; crashAt += 1) {
        let died = false;
        for (const when of ['before', 'after'] as const) {
          const store = createMemoryEventStore({ singleWriter: false });
          const one = start(store, 'one');
          await add(one, 'v1');
          await add(one, 'v2', { is_default: false });
          const plan = { at: crashAt, when };
          const dying = start(crashing(store, plan), 'dying');
          await act(dying).catch(() => {
            died = true;
          });
          const where = `${when} append ${crashAt}`;
          expect((await defaults(one)).length, where).to.be.within(1, 2);
          await one.repair.settle(SLOT);
          const shown = await defaults(one);
          expect(shown, where).to.have.length(1);
          expect(await owner(one), where).to.equal(shown[0]);
          ends.add(shown[0] ?? '');
          expect((await add(one, 'v4')).outcome, where).to.equal('accepted');
          expect(await defaults(one), where).to.deep.equal(['v4']);
        }
        if (!died && crashAt > 8) break;
      }
      expect([...ends].sort()).to.deep.equal(['v1', how === 'creation' ? 'v3' : 'v2']);
    });

  it('shows on one version only soon after a crash that left it on two: nobody has to repeat anything', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const one = start(store, 'one');
    await add(one, 'v1');
    // Name, version number and slot (at the second try) are reserved and v2 is written; v1 has not yielded yet.
    const dying = start(crashing(store, { at: 6, when: 'before' }), 'dying');
    await add(dying, 'v2');
    expect(await defaults(one)).to.deep.equal(['v1', 'v2']);
    const stop = new AbortController();
    const running = one.repair.run(stop.signal);
    for (let round = 0; round < 100 && (await defaults(one)).length > 1; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      one.clock.advance(600);
      one.timers.fire();
    }
    stop.abort();
    await running;
    expect([await defaults(one), await owner(one)]).to.deep.equal([['v2'], 'v2']);
  });
});
