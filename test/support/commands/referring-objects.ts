import fc from 'fast-check';
import { secretData } from '../domain/secret-data.ts';
import { expect } from 'chai';
import { REFERENCES_ANNOUNCED } from '../../../src/domain/announcements.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore, RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { Timers } from '../../../src/app/ports.ts';
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
import { collect, fakeContext } from './fake-context.ts';
import { createIncarnation } from './fake-incarnation.ts';
import { ordered } from '../../unit/domain/clusters/samples.ts';

/** Objects that refer to each other, created, changed and deleted by several instances on one log. */
export const at = '2026-11-21T10:00:00.000Z';
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
export type DocumentKind = keyof typeof DOCUMENTS;
export type Kind = DocumentKind | 'cluster';
export const declared = (kind: Kind) => (kind === 'cluster' ? cluster : DOCUMENTS[kind]) as typeof secret;

/** What an object of a kind refers to: always number `n` of each other kind. */
export const REFERRING: { readonly [kind in Kind]?: (n: number) => JsonObject } = {
  clusterCatalogItem: (n) => ({ title: 'i', template: { id: `clusterTemplate${n}` } }),
  clusterTemplate: (n) => ({ node_sets: { w: { host_type: { id: `hostType${n}` }, size: 1 } } }),
  roleBinding: (n) => ({ spec: { role: { id: `role${n}` }, users: [{ id: 'u1' }] } }),
};
/** What else a document must hold. */
const OWN: { readonly [kind in Kind]?: (id: string) => JsonObject } = {
  clusterVersion: (id) => ({ spec: { version: `4.2${id.at(-1)}.0`, image: 'registry.invalid/r:1' } }),
};
const TARGETS: readonly DocumentKind[] = ['clusterTemplate', 'clusterVersion', 'hostType', 'role', 'secret'];
export const T1 = 't1';

type Live = readonly { readonly kind: Kind; readonly view: Extract<ResourceView, { exists: true }> }[];
type Model = {
  /** Events that it knows: like a read model it never goes back. */
  readonly events: number;
  readonly live: Live;
  /** Last events that announce references. */
  readonly announcing: readonly RecordedEvent[];
};

export type Planted = {
  /** Deletions do not wait for the read model, which knows nothing. */
  readonly blind?: boolean;
  /** Deletions do not hear of announced references. */
  readonly deaf?: boolean;
};

export const start = (
  store: EventStore,
  name: string,
  { blind = false, deaf = false }: Planted = {},
  waits?: Timers,
) => {
  const shown: { model: Model } = { model: { events: 0, live: [], announcing: [] } };
  const caughtUp = async (): Promise<boolean> => {
    if (blind) return true;
    const model = await modelOf(store);
    if (model.events > shown.model.events) shown.model = model;
    return true;
  };
  const announcedTo = (kind: string, id: string, before: string) =>
    (deaf ? [] : shown.model.announcing).flatMap(({ stream, revision, position, data }) => {
      const targets = data['targets'] as { kind: string; id: string }[];
      const is = position < before && targets.some((to) => to.kind === kind && to.id === id);
      const { category, id: from } = parseStreamName(stream);
      return is ? [{ kind: category, id: from, revision }] : [];
    });
  const lifecycle = { starts: [], ends: [] };
  const settings = { codec, kinds, lifecycle, caughtUp, announcedTo };
  return {
    ...createIncarnation(store, name, waits === undefined ? settings : { ...settings, waits }),
    shown,
  };
};
export type Incarnation = ReturnType<typeof start>;

/** What a read model that knows the whole log shows. */
const modelOf = async (store: EventStore): Promise<Model> => {
  const streams = new Map<string, { readonly state: unknown; readonly last: RecordedEvent }>();
  const events = await collect(store.readAll({ limit: 10_000 }));
  for (const event of events) {
    const { category } = parseStreamName(event.stream);
    const kind = kinds.find((one) => one.kind === category);
    if (kind === undefined) continue;
    const state = streams.get(event.stream)?.state ?? kind.decider.initialState();
    streams.set(event.stream, { state: kind.decider.evolve(state, codec.decode(event)), last: event });
  }
  const live = [...streams].flatMap(([stream, { state }]) => {
    const kind = parseStreamName(stream).category as Kind;
    const view = declared(kind).view(state as never);
    return view.exists && !view.archived ? [{ kind, view }] : [];
  });
  const lasts = [...streams.values()].map(({ last }) => last);
  return {
    events: events.length,
    live,
    announcing: lasts.filter(({ type }) => type === REFERENCES_ANNOUNCED),
  };
};

/** Live objects whose targets or tenants are gone. */
export const dangling = async (store: EventStore): Promise<string[]> => {
  const { live } = await modelOf(store);
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

export const create = (on: Incarnation, kind: Kind, id: string, n: number, command = id) => {
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
        ...(kind === 'secret' ? { secrets: secretData } : {}),
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

export const revise = (on: Incarnation, kind: DocumentKind, id: string, n: number, command: string) =>
  on.resources.execute(
    declared(kind),
    id,
    { type: 'ReviseDocument', at, document: REFERRING[kind]?.(n) ?? {} } as DocumentCommand,
    fakeContext(command),
  );

/** A deletion as the handler makes it. */
export const remove = (on: Incarnation, kind: DocumentKind, id: string, command: string) => {
  const unreferenced = () =>
    isUsed(on.shown.model.live, kind, id)
      ? reject('failed-precondition', 'STILL_REFERENCED', 'in use')
      : undefined;
  const deletion = { type: 'DeleteDocument', at } as DocumentCommand;
  return on.resources.execute(declared(kind), id, deletion, fakeContext(command), { unreferenced });
};

/** Tenant `t1` and numbers 0 and 1 of everything that can be referred to. */
export const seed = async (store: EventStore): Promise<void> => {
  const on = start(store, 'first');
  const made = async (kind: Kind, id: string): Promise<void> => {
    const outcome = await create(on, kind, id, -1);
    expect(outcome.outcome, JSON.stringify(outcome)).to.equal('accepted');
  };
  await made('tenant', T1);
  for (const kind of TARGETS) for (const n of [0, 1]) await made(kind, `${kind}${n}`);
};

export type Operation = {
  /** `restore`: something new under the id of a target, which may be there or gone. */
  readonly what: 'create' | 'revise' | 'delete' | 'restore';
  readonly kind: Kind;
  readonly n: number;
};

export const run = (on: Incarnation, { what, kind, n }: Operation, i: number) => {
  if (what === 'create') return create(on, kind, `new${i}`, n);
  if (what === 'revise') return revise(on, kind as DocumentKind, `${kind}0`, n, `revise ${i}`);
  const id = kind === 'tenant' ? T1 : `${kind}${n}`;
  if (what === 'restore') return create(on, kind, id, -1, `restore ${i}`);
  return remove(on, kind as DocumentKind, id, `delete ${i}`);
};

export const operation: fc.Arbitrary<Operation> = fc.oneof(
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
  fc.record({
    what: fc.constant('restore' as const),
    kind: fc.constantFrom<Kind[]>('role', 'hostType', 'clusterTemplate', 'tenant'),
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
