import { actingKinds } from '../../../src/domain/acting-kinds.ts';
import type { ActingKind } from '../../../src/domain/acting-kind.ts';
import { isOwned } from '../../../src/domain/hub-objects.ts';
import { claimOf } from '../../../src/domain/hubs/capacity.ts';
import type { OwnedObject } from '../../../src/domain/hubs/hub-object.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import {
  isSettled as isAsOrdered,
  type Place,
  type PlacedState,
} from '../../../src/domain/placed-document.ts';
import type { ResourceView } from '../../../src/domain/resource.ts';
import { parseStreamName } from '../../../src/domain/stream-name.ts';
import { creationIdOf, principalOf, type Clients } from './clients.ts';
import type { Reply, Request } from './api.ts';
import { Violation } from './invariants.ts';
import type { Random } from './random.ts';
import { TENANTS } from './workload.ts';
import type { World } from './world.ts';

/** Networks, what lies in them, and addresses: all kinds that are one object on one hub. */
export const KINDS: readonly ActingKind[] = actingKinds.filter(({ kind }) => kind !== 'cluster');
const POOL = 'the-pool';
const QUICK = { simulation: 'factor=0.2' };

export type Thing = {
  readonly kind: ActingKind;
  readonly id: string;
  readonly state: unknown;
  readonly view: ResourceView;
};

/** What was folded of each stream, and how many of its events. */
type Folded = { readonly thing: Thing; readonly events: number };
const folded = new WeakMap<World, Map<string, Folded>>();

export const thingsOf = (world: World): readonly Thing[] => {
  const known = folded.get(world) ?? new Map<string, Folded>();
  folded.set(world, known);
  return KINDS.flatMap((kind) =>
    world.ledger.streams(kind.kind).map((stream) => {
      const events = world.ledger.events(stream);
      const before = known.get(stream);
      if (before?.events === events.length) return before.thing;
      const { id } = parseStreamName(stream);
      const state = events
        .slice(before?.events ?? 0)
        .reduce(
          (so, event) => kind.decider.evolve(so, event),
          before?.thing.state ?? kind.decider.initialState(),
        );
      const thing = { kind, id, state, view: kind.view(state) };
      known.set(stream, { thing, events: events.length });
      return thing;
    }),
  );
};

export const isThere = ({ view }: Pick<Thing, 'view'>): boolean => view.exists && !view.archived;
const placeOf = ({ state }: Thing): Place | undefined => (state as { readonly place?: Place }).place;
export const isAsWanted = ({ state, view }: Thing): boolean =>
  isThere({ view }) && isAsOrdered(state as PlacedState);

/** What still has to happen to them, and what is held of another one that should be free. */
export const unsettledNetworks = (world: World): readonly string[] => {
  const things = thingsOf(world);
  const lives = (kind: string, id: string): boolean =>
    things.some((one) => one.kind.kind === kind && one.id === id && isThere(one));
  return things.flatMap((thing) => {
    const { kind, id, state, view } = thing;
    const what = `${kind.words} ${id}`;
    const dangling = (kind.lends?.held(state) ?? [])
      .filter(({ holder }) => !lives(holder.kind, holder.id))
      .map(({ holder }) => `${what}: is held by ${holder.kind} ${holder.id}, which is not there`);
    if (!view.exists) return dangling;
    if (!view.archived) {
      const why = view.deletionTimestamp === undefined ? `is ${view.state}` : 'is being deleted';
      const isSettled = view.deletionTimestamp === undefined && isAsWanted(thing);
      return isSettled ? dangling : [...dangling, `${what}: ${why}`];
    }
    const held = [...world.ledger.capacities()].filter(
      ([, capacity]) => claimOf(capacity, { kind: kind.kind, id }) !== undefined,
    );
    return [...dangling, ...held.map(([hub]) => `${what}: is gone, but has a place on ${hub}`)];
  });
};

const objectKindOf = (
  name: string,
): { readonly kind: ActingKind; readonly object: OwnedObject } | undefined => {
  for (const kind of KINDS)
    for (const object of kind.hubObjects)
      if (object.kind === name && isOwned(object)) return { kind, object };
  return undefined;
};
const asker = () => ({ effectId: 'check', deadlineMs: 1_000, signal: new AbortController().signal });

/** What is on a hub although nothing that lives explains it; asking the hub lets it notice what is gone. */
export const straysOfNetworks = async (world: World): Promise<readonly string[]> => {
  const things = thingsOf(world);
  const found: string[] = [];
  for (const [hub, adapter] of world.hubs)
    for (const { kind: name, namespace, name: called, uid, id = '', goneAt } of world.objectsOn(hub)) {
      const of = objectKindOf(name);
      const owner = things.find((one) => one.kind === of?.kind && one.id === id);
      const isExplained = owner !== undefined && isThere(owner) && placeOf(owner)?.hub === hub;
      if (of === undefined || goneAt !== undefined || isExplained) continue;
      const there = await adapter.get(of.object, { namespace, name: called }, asker());
      if (there?.uid === uid) found.push(`${name} ${called} on ${hub} belongs to nothing that lives (${id})`);
    }
  return found;
};

/** Whatever is ready is on its hub, and nothing ever had two objects there at one time. */
export const checkNetworks = (world: World): void => {
  for (const thing of thingsOf(world)) {
    const { kind, id } = thing;
    const [object] = kind.hubObjects;
    const hub = placeOf(thing)?.hub ?? '';
    const all = world.objectsOn(hub).filter((one) => one.kind === object?.kind && one.id === id);
    for (const [i, former] of all.slice(0, -1).entries()) {
      const next = all[i + 1];
      if (next !== undefined && (former.goneAt === undefined || former.goneAt > next.createdAt))
        world.fail(new Violation(`${kind.words} ${id} had a second object on ${hub}`));
    }
    if (isAsWanted(thing) && !all.some(({ goneAt }) => goneAt === undefined))
      world.fail(new Violation(`${kind.words} ${id} is ready, but not on ${hub || 'any hub'}`));
  }
};

export type NetworkWorkload = ReturnType<typeof createNetworkWorkload>;

/** What tenants do with networks. */
export const createNetworkWorkload = (world: World, clients: Clients, random: Random) => {
  const { agenda } = world;
  let requests = 0;
  const ask = (verb: Request['verb'], path: string, body: JsonObject, tenant?: string): Request => ({
    verb,
    surface: tenant === undefined ? 'private' : 'public',
    path,
    body,
    idempotencyKey: `n${(requests += 1)}`,
    principal: principalOf(tenant),
  });
  /** Another instance may not know yet what it refers to. Undefined: it was refused. */
  const create = async (
    collection: string,
    body: JsonObject,
    tenant?: string,
  ): Promise<string | undefined> => {
    for (let tries = 0; ; tries += 1) {
      const request = ask('POST', collection, body, tenant);
      const reply = await clients.send(request);
      if (reply?.status === 200) return stringAt(reply.body, 'id') || creationIdOf(request);
      if (tries === 50 || !/reference validation failed/.test(reply?.message ?? '')) return undefined;
      await agenda.sleep('client', 200);
    }
  };
  const named = (name: string, spec: JsonObject): JsonObject => ({
    metadata: { name, annotations: QUICK },
    spec,
  });
  const thing = (id: string): Thing | undefined => thingsOf(world).find((one) => one.id === id);
  /** Until it is ready, or for a while. */
  const become = async (id: string | undefined): Promise<boolean> => {
    if (id === undefined) return false;
    for (let looks = 0; looks < 240; looks += 1) {
      const found = thing(id);
      if (found !== undefined && isAsWanted(found)) return true;
      await agenda.sleep('client', 500);
    }
    return false;
  };
  const remove = ({ kind, id, view }: Thing): Promise<Reply | undefined> =>
    clients.send(
      ask(
        'DELETE',
        `${kind.collection}/${id}`,
        {},
        view.exists && kind.rights === 'owned' ? view.tenant : undefined,
      ),
    );
  const network = (tenant: string, name: string) =>
    create('virtual_networks', named(name, { ipv4_cidr: '10.0.0.0/16' }), tenant);
  const inside = (id: string) => ({ virtual_network: { id } });
  const subnet = (tenant: string, name: string, id: string, range: string) =>
    create('subnets', named(name, { ...inside(id), ipv4_cidr: range }), tenant);
  const group = (tenant: string, name: string, id: string) =>
    create('security_groups', named(name, { ...inside(id), ingress: [rule(80)] }), tenant);
  const address = (tenant: string, name: string) =>
    create('external_ips', named(name, { pool: { id: POOL } }), tenant);
  const gateway = (tenant: string, name: string, id: string, ip: string) =>
    create('nat_gateways', named(name, { ...inside(id), external_ip: { id: ip } }), tenant);
  const change = (tenant: string, id: string, port: number) =>
    clients.send(ask('PATCH', `security_groups/${id}`, { spec: { ingress: [rule(port)] } }, tenant));

  return {
    network,
    subnet,
    group,
    address,
    gateway,
    change,
    become,
    prepare: async (): Promise<void> => {
      await create('network_classes', {
        metadata: {},
        title: 'Networks',
        implementation_strategy: 'phys_net',
        fabric_manager: 'netris',
        is_default: true,
        capabilities: { supports_ipv4: true },
      });
      await create('external_ip_pools', {
        id: POOL,
        metadata: { name: POOL, annotations: { ...QUICK, 'fulfillment-ledger/quarantine': 'PT0S' } },
        spec: { cidrs: ['192.0.2.0/24'], ip_family: 'IP_FAMILY_IPV4' },
      });
    },
    /** Parents and children at once, in any order: what is refused is asked for again. */
    removeAll: async (): Promise<void> => {
      for (
        let left = thingsOf(world).filter(isThere);
        left.length > 0;
        left = thingsOf(world).filter(isThere)
      ) {
        const asked = left.filter(({ view }) => view.exists && view.deletionTimestamp === undefined);
        await Promise.all(shuffled(asked, random).map(remove));
        await agenda.sleep('client', 2_000);
      }
    },
    /** What operators do about what failed. */
    retryFailed: async (): Promise<void> => {
      for (const { id, view, state } of thingsOf(world))
        if (view.exists && !view.archived && (state as { readonly failure?: object }).failure !== undefined)
          await clients.send({ ...ask('POST', `orders/${id}/retry`, {}), surface: 'ledger' });
    },
    /** Two networks of one tenant and what lies in them; some of it cannot be had at once. */
    lead: async (number: number): Promise<void> => {
      const tenant = random.pick(TENANTS);
      await agenda.sleep('client', random.int(0, world.plan.activeMs / 3));
      const [first, second, ip] = await Promise.all([
        network(tenant, `a${number}`),
        network(tenant, `b${number}`),
        address(tenant, `ip${number}`),
      ]);
      if (first === undefined || second === undefined) return;
      await Promise.all([become(first), become(second), become(ip)]);
      const made = await Promise.all([
        group(tenant, `g${number}`, first),
        ...['10.0.1.0/24', '10.0.0.0/22', '10.0.1.128/25'].map((range, i) =>
          subnet(tenant, `s${number}-${i}`, first, range),
        ),
        ...(ip === undefined
          ? []
          : [first, second].map((id, i) => gateway(tenant, `n${number}-${i}`, id, ip))),
      ]);
      const [groupId] = made;
      if (groupId !== undefined && random.chance(0.7)) await change(tenant, groupId, random.int(1, 65_535));
      await agenda.sleep('client', random.int(0, 5_000));
      const gone = made.filter((id) => id !== undefined && random.chance(0.4));
      await Promise.all(
        [...gone, ...(random.chance(0.5) ? [first, second, ip] : [])].map(async (id) => {
          const found = id === undefined ? undefined : thing(id);
          if (found !== undefined) await remove(found);
        }),
      );
    },
  };
};

const rule = (port: number): JsonObject => ({
  protocol: 'PROTOCOL_TCP',
  port_from: port,
  port_to: port,
  ipv4_cidr: '0.0.0.0/0',
});

export const shuffled = <T>(list: readonly T[], random: Random): T[] =>
  list
    .map((entry) => ({ entry, at: random.next() }))
    .toSorted((left, right) => left.at - right.at)
    .map(({ entry }) => entry);
