import { aggregateOf } from '../../../../src/domain/kinds.ts';
import { expect } from 'chai';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../../src/app/log/event-store.ts';
import type { CommandOutcome } from '../../../../src/app/commands/command.ts';
import type { Timers } from '../../../../src/app/ports.ts';
import { ReferencesBusy } from '../../../../src/app/references/reference-guard.ts';
import { collect } from '../../../support/commands/fake-context.ts';
import { createRandom } from '../../../support/event-store/faulty-store.ts';
import { delaying, gateBefore } from '../../../support/event-store/held-appends.ts';
import { createBench } from '../../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../../support/eventstoredb-peer/peer.ts';
import {
  create,
  dangling,
  declared,
  remove,
  revise,
  run,
  seed,
  start,
  type Incarnation,
  type Kind,
  type Operation,
} from '../../../support/commands/referring-objects.ts';
import { eventually } from '../../../support/eventually.ts';

/** Waits of seconds end in fractions of one. */
const quick: Timers = {
  after: (ms, fire) => {
    const timer = setTimeout(fire, ms / 20);
    return () => clearTimeout(timer);
  },
};

const codeOf = (outcome: CommandOutcome<unknown>): string =>
  outcome.outcome === 'rejected' ? outcome.rejection.code : outcome.outcome;

/** How something comes to refer to something: `event` says that it does, `retired` that its target is gone. */
const CASES = [
  {
    words: 'an order',
    event: 'ClusterOrdered',
    target: 'clusterTemplate',
    retired: 'ClusterTemplateRetired',
    from: 'cluster',
  },
  { words: 'a creation', event: 'RoleBound', target: 'role', retired: 'RoleRetired', from: 'roleBinding' },
  {
    words: 'a change',
    event: 'ClusterTemplateRevised',
    target: 'hostType',
    retired: 'HostTypeRetired',
    from: 'clusterTemplate',
  },
] as const;
type Case = (typeof CASES)[number];

/** Object `x` (of changes: the seeded template 0) comes to refer to number 0 of the target. */
const refer = (on: Incarnation, { from }: Case): Promise<CommandOutcome<unknown>> =>
  from === 'clusterTemplate' ? revise(on, from, 'clusterTemplate0', 0, 'refer') : create(on, from, 'x', 0);

/** References and deletions of two instances that share one EventStoreDB (`src/app/references/referrals.ts`). */
describe('what is referred to, with two instances on one EventStoreDB', function () {
  this.timeout(60_000);
  const bench = createBench();
  let peer: Peer;
  let stores: readonly [EventStore, EventStore];
  beforeEach(async () => {
    peer = await bench.peer();
    stores = [await bench.store(peer), await bench.store(peer)];
    await seed(stores[0]);
  });
  afterEach(() => bench.clean());

  const typesIn = async (): Promise<string[]> =>
    (await collect(stores[1].readAll({ limit: 10_000 }))).map(({ type }) => type);
  const begin = (store: EventStore, name: string): Incarnation => start(store, name, {}, quick);
  const isLive = async (on: Incarnation, kind: Kind, id: string): Promise<boolean> => {
    const view = declared(kind).view((await on.runner.load(aggregateOf(declared(kind)), id)).state);
    return view.exists && !view.archived;
  };
  /** Until another instance has stored such an event. */
  const stored = (type: string): Promise<void> =>
    eventually(`${type} is stored`, async () => (await typesIn()).includes(type));

  it('one order that is posted many times at once, to one instance or to both, is one order each time', async () => {
    const both = [begin(stores[0], 'one'), begin(stores[1], 'two')];
    for (const instances of [both.slice(0, 1), both]) {
      const id = `often${instances.length}`;
      const posts = Array.from({ length: 4 }, () => instances.map((on) => create(on, 'cluster', id, 0)));
      const codes = (await Promise.all(posts.flat())).map(codeOf);
      expect(new Set(codes), codes.join(', ')).to.deep.equal(new Set(['accepted']));
    }
    expect((await typesIn()).filter((type) => type === 'ClusterOrdered')).to.have.length(2);
  });

  for (const one of CASES) {
    const { words, event, target, retired } = one;
    const id = `${target}0`;

    it(`${words} that is overtaken by a deletion is refused, each time it is repeated, and left nothing`, async () => {
      const gate = gateBefore(stores[0], event);
      const two = begin(stores[1], 'two');
      const referring = refer(begin(gate.store, 'one'), one);
      await gate.reached;
      const before = (await typesIn()).filter((type) => type === event).length;
      expect(codeOf(await remove(two, target, id, 'd1'))).to.equal('accepted');
      gate.open();
      expect(codeOf(await referring)).to.equal('REFERENCE_NOT_FOUND');
      for (const store of stores)
        expect(codeOf(await refer(begin(store, 'again'), one))).to.equal('REFERENCE_NOT_FOUND');
      expect((await typesIn()).filter((type) => type === event)).to.have.length(before);
      expect(await dangling(stores[1])).to.deep.equal([]);
    });

    it(`${words} that is stored before a deletion was announced keeps its target`, async () => {
      const gate = gateBefore(stores[1], 'DeletionAnnounced');
      const removing = remove(begin(gate.store, 'two'), target, id, 'd1');
      await gate.reached;
      expect(codeOf(await refer(begin(stores[0], 'one'), one))).to.equal('accepted');
      gate.open();
      expect(codeOf(await removing)).to.equal('STILL_REFERENCED');
      // And nobody who comes later waits for it.
      expect(codeOf(await create(begin(stores[0], 'last'), 'cluster', 'y', 1))).to.equal('accepted');
      expect(await dangling(stores[1])).to.deep.equal([]);
    });

    it(`${words} waits for a deletion that is announced, and is refused after it`, async () => {
      const late = gateBefore(stores[1], retired);
      const removing = remove(begin(late.store, 'two'), target, id, 'd1');
      await late.reached;
      const referring = refer(begin(stores[0], 'one'), one);
      await stored('ReferencesAnnounced');
      late.open();
      expect(codeOf(await removing)).to.equal('accepted');
      expect(codeOf(await referring)).to.equal('REFERENCE_NOT_FOUND');
      expect(await dangling(stores[1])).to.deep.equal([]);
    });

    it(`${words} goes on when whoever announced a deletion has died; that deletion cannot come any more`, async () => {
      const dead = gateBefore(stores[1], retired);
      const removing = remove(begin(dead.store, 'two'), target, id, 'd1');
      await dead.reached;
      expect(codeOf(await refer(begin(stores[0], 'one'), one))).to.equal('accepted');
      dead.open();
      expect(codeOf(await removing)).to.equal('CONCURRENT_MODIFICATION');
      expect(await dangling(stores[1])).to.deep.equal([]);
    });

    it(`${words} that is still on the wire when its target is deleted never arrives`, async () => {
      const wire = delaying(stores[0], event);
      const referring = await refer(begin(wire.store, 'one'), one).catch((error: unknown) => error);
      expect(referring).to.be.instanceOf(OutcomeUnknown);
      expect(codeOf(await remove(begin(stores[1], 'two'), target, id, 'd1'))).to.equal('accepted');
      const arrived = await wire.deliver();
      expect(arrived.map(({ status }) => status))
        .to.include('rejected')
        .and.not.include('fulfilled');
      expect(codeOf(await refer(begin(stores[1], 'again'), one))).to.equal('REFERENCE_NOT_FOUND');
      expect(await dangling(stores[1])).to.deep.equal([]);
    });

    it(`a deletion that is still on the wire when ${words} comes to refer to its object never arrives`, async () => {
      const wire = delaying(stores[1], retired);
      const removing = await remove(begin(wire.store, 'two'), target, id, 'd1').catch((e: unknown) => e);
      expect(removing).to.be.instanceOf(OutcomeUnknown);
      expect(codeOf(await refer(begin(stores[0], 'one'), one))).to.equal('accepted');
      const arrived = await wire.deliver();
      expect(arrived.map(({ status }) => status))
        .to.include('rejected')
        .and.not.include('fulfilled');
      expect(await isLive(begin(stores[0], 'last'), target, id)).to.equal(true);
      expect(await dangling(stores[1])).to.deep.equal([]);
    });
  }

  it('nothing dangles while both create, change, delete and restore at once and answers are lost', async () => {
    const seedOf = Number(process.env['LEDGER_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    const random = createRandom(seedOf);
    const pick = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
    const jittery = (store: EventStore): EventStore => ({
      ...store,
      append: async (...args) => {
        await new Promise((resolve) => setTimeout(resolve, random() * 6));
        return store.append(...args);
      },
    });
    const both = stores.map((store, i) => begin(jittery(store), `i${i}`));
    peer.faults.chooseWith((on) => {
      if (on !== 'append' || random() > 0.1) return undefined;
      return pick({ kind: 'lose-answer', cut: false }, { kind: 'drop' }, { kind: 'late-work', ms: 30 });
    });
    const operation = (): Operation => {
      const what = pick('create', 'create', 'revise', 'delete', 'delete', 'restore');
      if (what === 'create')
        return {
          what,
          n: pick(0, 1),
          kind: pick('cluster', 'clusterCatalogItem', 'roleBinding', 'clusterTemplate'),
        };
      if (what === 'revise') return { what, kind: 'clusterTemplate', n: pick(0, 1) };
      return { what, n: pick(0, 1), kind: pick('role', 'hostType', 'clusterTemplate', 'secret', 'tenant') };
    };
    const operations = Array.from({ length: 80 }, operation);
    const unknown: [Operation, number][] = [];
    const accepted: [Operation, number][] = [];
    const work = async (lane: number): Promise<void> => {
      for (let i = lane; i < operations.length; i += 8) {
        const one = operations[i] as Operation;
        try {
          const outcome = await run(both[i % 2] as Incarnation, one, i);
          // A change of nothing is not remembered.
          if (outcome.outcome === 'accepted' && outcome.events.length > 0) accepted.push([one, i]);
        } catch (error) {
          if (error instanceof OutcomeUnknown) unknown.push([one, i]);
          else if (!(error instanceof StoreUnavailable || error instanceof ReferencesBusy)) throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, lane) => work(lane)));
    peer.faults.clear();
    const hint = `seed ${seedOf}`;
    expect(await dangling(stores[0]), hint).to.deep.equal([]);
    // Whoever was not told repeats; whoever was told is told the same.
    for (const [one, i] of unknown) await run(both[(i + 1) % 2] as Incarnation, one, i);
    for (const [one, i] of accepted) {
      const again = await run(both[(i + 1) % 2] as Incarnation, one, i);
      expect(again.outcome, `${JSON.stringify(one)} ${i}, ${hint}`).to.equal('accepted');
    }
    expect(await dangling(stores[0]), hint).to.deep.equal([]);
    expect(accepted.length, hint).to.be.greaterThan(5);
  });
});
