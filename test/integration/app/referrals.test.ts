import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createEventCodec } from '../../../src/app/event-codec.ts';
import type { EventStore } from '../../../src/app/event-store.ts';
import { aggregateOf } from '../../../src/app/names.ts';
import { clusterCatalogItem } from '../../../src/domain/catalog/cluster-catalog-item.resource.ts';
import type { ClusterCommand } from '../../../src/domain/clusters/commands.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import { reject } from '../../../src/domain/decider.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import {
  cluster,
  clusterTemplate,
  clusterVersion,
  hostType,
  kinds,
  role,
  roleBinding,
  secret,
  tenant,
} from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import type { ResourceView } from '../../../src/domain/resource.ts';
import { parseStreamName } from '../../../src/domain/stream-name.ts';
import { collect, fakeContext } from '../../support/fake-context.ts';
import { createIncarnation } from '../../support/fake-incarnation.ts';
import { checkAsync } from '../../support/property.ts';
import { ordered } from '../../unit/domain/clusters/samples.ts';

/** No order of events makes a live object point at a missing one, or lie in a tenant that is gone (`referrals.ts`). */
const at = '2026-11-21T10:00:00.000Z';
const codec = createEventCodec(eventTypes);
const DOCUMENTS = {
  clusterCatalogItem,
  clusterTemplate,
  clusterVersion,
  hostType,
  role,
  roleBinding,
  secret,
  tenant,
};
type DocumentKind = keyof typeof DOCUMENTS;
type Kind = DocumentKind | 'cluster';
const declared = (kind: Kind) => (kind === 'cluster' ? cluster : DOCUMENTS[kind]) as typeof secret;

/** What an object of a kind refers to: always number `n` of each other kind. */
const REFERRING: { readonly [kind in Kind]?: (n: number) => JsonObject } = {
  clusterCatalogItem: (n) => ({ title: 'i', template: { id: `clusterTemplate${n}` } }),
  clusterTemplate: (n) => ({ node_sets: { w: { host_type: { id: `hostType${n}` }, size: 1 } } }),
  roleBinding: (n) => ({ spec: { role: { id: `role${n}` }, users: [{ id: 'u1' }] } }),
};
/** What else a document must hold. */
const OWN: { readonly [kind in Kind]?: (id: string) => JsonObject } = {
  clusterVersion: (id) => ({ spec: { version: `4.2${id.at(-1)}.0`, image: 'registry.invalid/r:1' } }),
};
const TARGETS: readonly DocumentKind[] = ['clusterTemplate', 'clusterVersion', 'hostType', 'role', 'secret'];
const T1 = 't1';

type Live = readonly { readonly kind: Kind; readonly view: Extract<ResourceView, { exists: true }> }[];

/** `blind`: deletions do not wait for the read model, which knows nothing: the planted bug. */
const start = (store: EventStore, name: string, { blind = false }: { readonly blind?: boolean } = {}) => {
  const model: { live: Live } = { live: [] };
  const caughtUp = async (): Promise<boolean> => {
    if (!blind) model.live = await liveIn(store);
    return true;
  };
  const lifecycle = { starts: [], ends: [] };
  return { ...createIncarnation(store, name, { codec, kinds, lifecycle, caughtUp }), model };
};
type Incarnation = ReturnType<typeof start>;

/** Everything that is live, as a read model that knows the whole log shows it. */
const liveIn = async (store: EventStore): Promise<Live> => {
  const states = new Map<string, unknown>();
  for (const event of await collect(store.readAll({ limit: 10_000 }))) {
    const { category } = parseStreamName(event.stream);
    const kind = kinds.find((one) => one.kind === category);
    if (kind === undefined) continue;
    const state = states.get(event.stream) ?? kind.decider.initialState();
    states.set(event.stream, kind.decider.evolve(state, codec.decode(event)));
  }
  return [...states].flatMap(([stream, state]) => {
    const kind = parseStreamName(stream).category as Kind;
    const view = declared(kind).view(state as never);
    return view.exists && !view.archived ? [{ kind, view }] : [];
  });
};

/** Live objects whose targets or tenants are gone. */
const dangling = async (store: EventStore): Promise<string[]> => {
  const live = await liveIn(store);
  const has = (kind: string, id: string): boolean =>
    live.some((one) => one.kind === kind && one.view.id === id);
  return live.flatMap(({ kind, view }) => {
    const targets = declared(kind).pointsAt(view.document);
    const all = view.tenant === T1 ? [...targets, { kind: 'tenant', id: T1 }] : targets;
    const missing = all.filter((target) => target.kind !== 'user' && !has(target.kind, target.id));
    return missing.map((target) => `${kind} ${view.id} -> ${target.kind} ${target.id}`);
  });
};

const isUsed = (live: Live, kind: Kind, id: string): boolean =>
  live.some(({ kind: from, view }) =>
    kind === 'tenant'
      ? from !== 'tenant' && view.tenant === id
      : declared(from)
          .pointsAt(view.document)
          .some((pointer) => pointer.kind === kind && pointer.id === id),
  );

/** What is referred to lies outside, so that nothing but what is created keeps the tenant. */
const tenantOf = (kind: Kind, id: string): string => {
  if (kind === 'tenant') return id;
  return TARGETS.some((target) => target === kind) ? 'shared' : T1;
};

const create = (on: Incarnation, kind: Kind, id: string, n: number, command = id) => {
  const common = { id, at, tenant: tenantOf(kind, id), project: '', name: id.toLowerCase(), creator: 'u' };
  if (kind !== 'cluster') {
    const document = { ...OWN[kind]?.(id), ...(n < 0 ? {} : REFERRING[kind]?.(n)) };
    return on.resources.execute(
      declared(kind),
      id,
      (abandonedBefore: number): DocumentCommand => ({
        type: 'CreateDocument',
        ...common,
        document,
        abandonedBefore,
      }),
      fakeContext(`create ${kind} ${command}`),
    );
  }
  const order: ClusterCommand = {
    ...ordered,
    type: 'OrderCluster',
    ...common,
    template: { id: `clusterTemplate${n}`, name: 't', revision: 0 },
    version: { ...ordered.version, id: `clusterVersion${n}` } as NonNullable<typeof ordered.version>,
    nodeSets: { w: { hostType: { id: `hostType${n}`, name: 'h' }, size: 1 } },
    pullSecretSecret: { id: `secret${n}`, name: 's' },
  };
  return on.resources.execute(cluster, id, order, fakeContext(`create cluster ${command}`));
};

const revise = (on: Incarnation, kind: DocumentKind, id: string, n: number, command: string) =>
  on.resources.execute(
    declared(kind),
    id,
    { type: 'ReviseDocument', at, document: REFERRING[kind]?.(n) ?? {} } as DocumentCommand,
    fakeContext(command),
  );

/** A deletion as the handler makes it. */
const remove = (on: Incarnation, kind: DocumentKind, id: string, command: string) => {
  const unreferenced = () =>
    isUsed(on.model.live, kind, id) ? reject('failed-precondition', 'STILL_REFERENCED', 'in use') : undefined;
  const deletion = { type: 'DeleteDocument', at } as DocumentCommand;
  return on.resources.execute(declared(kind), id, deletion, fakeContext(command), { unreferenced });
};

/** Tenant `t1` and numbers 0 and 1 of everything that can be referred to. */
const seed = async (store: EventStore): Promise<void> => {
  const on = start(store, 'first');
  const made = async (kind: Kind, id: string): Promise<void> => {
    const outcome = await create(on, kind, id, -1);
    expect(outcome.outcome, JSON.stringify(outcome)).to.equal('accepted');
  };
  await made('tenant', T1);
  for (const kind of TARGETS) for (const n of [0, 1]) await made(kind, `${kind}${n}`);
};

type Operation = { readonly what: 'create' | 'revise' | 'delete'; readonly kind: Kind; readonly n: number };

const run = (on: Incarnation, { what, kind, n }: Operation, i: number) => {
  if (what === 'create') return create(on, kind, `new${i}`, n);
  if (what === 'revise') return revise(on, kind as DocumentKind, `${kind}0`, n, `revise ${i}`);
  const id = kind === 'tenant' ? T1 : `${kind}${n}`;
  return remove(on, kind as DocumentKind, id, `delete ${i}`);
};

const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({
    what: fc.constant('create' as const),
    kind: fc.constantFrom<Kind[]>('cluster', 'clusterCatalogItem', 'clusterTemplate', 'roleBinding'),
    n: fc.nat(1),
  }),
  fc.record({
    what: fc.constant('revise' as const),
    kind: fc.constant<Kind>('clusterTemplate'),
    n: fc.nat(1),
  }),
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('delete' as const),
      kind: fc.constantFrom<Kind[]>(...TARGETS, 'tenant'),
      n: fc.nat(1),
    }),
  },
);

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

const neverDangling = (how: { readonly blind?: boolean } = {}) =>
  fc.asyncProperty(
    fc.scheduler(),
    fc.array(operation, { minLength: 2, maxLength: 7 }),
    async (scheduler, operations) => {
      const store = createMemoryEventStore({ singleWriter: true });
      await seed(store);
      const on = start(inTurn(store, scheduler), 'one', how);
      const all = Promise.all(operations.map((one, i) => run(on, one, i)));
      await scheduler.waitFor(all);
      for (const outcome of await all)
        if (outcome.outcome === 'rejected')
          expect(EXPECTED, outcome.rejection.message).to.include(outcome.rejection.code);
      expect(await dangling(store), 'left dangling').to.deep.equal([]);
    },
  );
const EXPECTED = ['REFERENCE_NOT_FOUND', 'TENANT_DELETING', 'STILL_REFERENCED', 'NOT_FOUND'];

describe('what is referred to, and its deletion', () => {
  it('no interleaving leaves an object whose target or tenant is gone', async function () {
    this.timeout(60_000);
    await checkAsync(neverDangling(), { numRuns: Number(process.env['LEDGER_TEST_RUNS'] ?? 500) });
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

  it('on a log with other writers a creation is taken back when another instance had deleted its target', async () => {
    for (const kind of ['cluster', 'roleBinding'] as const) {
      const store = createMemoryEventStore({ singleWriter: false });
      await seed(store);
      const two = start(store, 'two');
      const target = kind === 'cluster' ? 'clusterTemplate' : 'role';
      let overtaken = false;
      const overtaking: EventStore = {
        ...store,
        append: async (stream, ...rest) => {
          if (stream.startsWith(`${kind}-`) && !overtaken) {
            overtaken = true;
            const removed = await remove(two, target, `${target}0`, 'd1');
            expect(removed, JSON.stringify(removed)).to.include({ outcome: 'accepted' });
          }
          return store.append(stream, ...rest);
        },
      };
      const outcome = await create(start(overtaking, 'one'), kind, 'x', 0);
      expect(outcome.outcome === 'rejected' && outcome.rejection.code).to.equal('REFERENCE_NOT_FOUND');
      expect(await dangling(store)).to.deep.equal([]);
      // And its name is free.
      expect((await create(two, kind, 'y', 1)).outcome, kind).to.equal('accepted');
      const { state } = await two.runner.load(aggregateOf(declared(kind)), 'x');
      expect(declared(kind).view(state)).to.include({ exists: true, archived: true });
    }
  });

  it('what is taken back is that creation, changed or not, and never the next object under its id', async () => {
    const x = { id: 'x', tenant: T1, project: '', name: 'x', creator: 'u' };
    const again = { ...x, type: 'CreateDocument', at: '2026-11-21T10:59:00.000Z' } as const;
    for (const [follows, survives] of [
      ['changed', false],
      ['followed', true],
    ] as const) {
      const store = createMemoryEventStore({ singleWriter: false });
      await seed(store);
      const two = start(store, 'two');
      let overtaken = false;
      const overtaking: EventStore = {
        ...store,
        append: async (stream, ...rest) => {
          if (!stream.startsWith('roleBinding-') || overtaken) return store.append(stream, ...rest);
          overtaken = true;
          await remove(two, 'role', 'role0', 'd1');
          const appended = await store.append(stream, ...rest);
          if (follows === 'changed') await revise(two, 'roleBinding', 'x', 1, 'meanwhile');
          else {
            await remove(two, 'roleBinding', 'x', 'd2');
            const document = REFERRING.roleBinding?.(1) ?? {};
            const next: DocumentCommand = { ...again, document };
            const made = await two.resources.execute(declared('roleBinding'), 'x', next, fakeContext('next'));
            expect(made.outcome).to.equal('accepted');
          }
          return appended;
        },
      };
      const outcome = await create(start(overtaking, 'one'), 'roleBinding', 'x', 0);
      expect(outcome.outcome === 'rejected' && outcome.rejection.code).to.equal('REFERENCE_NOT_FOUND');
      const { state } = await two.runner.load(aggregateOf(declared('roleBinding')), 'x');
      const view = declared('roleBinding').view(state);
      expect(view.exists && !view.archived, follows).to.equal(survives);
    }
  });
});
