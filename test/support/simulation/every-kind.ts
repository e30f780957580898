import { networkClass } from '../../../src/domain/networks/network-class.resource.ts';
import { actingKinds } from '../../../src/domain/acting-kinds.ts';
import type { ActingKind } from '../../../src/domain/acting-kind.ts';
import { placesOf, withValueAtPlace } from '../../../src/domain/document-places.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt, withoutValueAt, withValueAt } from '../../../src/domain/json-tools.ts';
import type { ResourceView } from '../../../src/domain/resource.ts';
import { isLiveCluster } from '../../../src/domain/clusters/state.ts';
import { HUB_ANNOTATION } from '../../../src/domain/networks/external-ip-pool.resource.ts';
import { KIND_SAMPLES, makeHousePool } from '../http/kind-samples.ts';
import { BEGINNING } from './incarnation.ts';
import { Violation } from './invariants.ts';
import type { Reply, Request } from './api.ts';
import { creationIdOf, principalOf, type Clients } from './clients.ts';
import { MACHINES, type MachineKind } from './machines.ts';
import { isAsWanted, isThere, KINDS, shuffled, thingsOf, type Thing } from './networks.ts';
import type { Random } from './random.ts';
import { TENANTS, type Workload } from './workload.ts';
import type { World } from './world.ts';

/**
 * Objects of every kind that acts, as its declaration and its sample say: each is ordered after what it refers to,
 * changed, powered off and on where it is a machine, and deleted, parents and children at once.
 */
export type EveryKind = {
  /** The catalogue, the pools of every hub, and what tenants get from the start. */
  prepare(): Promise<void>;
  /** What tenants and guests do. */
  run(): Promise<void>;
  /** A machine of each kind of which there has been none. */
  complete(): Promise<void>;
  /** All of it, its tenants too. */
  removeAll(): Promise<void>;
};

const QUICK = { simulation: 'factor=0.2' };
/** No look of the service back at such a machine is told from the next. */
const RESTART_IN_MS = 3_000;

const needs = ({ references }: ActingKind, other: ActingKind): boolean =>
  references.some(
    ({ kind }) => kind === other.kind || KINDS.some((one) => one.kind === kind && needs(one, other)),
  );
/** How many kinds have to be there before it. */
const depthOf = ({ references }: ActingKind): number =>
  Math.max(
    0,
    ...KINDS.filter((one) => references.some(({ kind }) => kind === one.kind)).map((one) => 1 + depthOf(one)),
  );
/** The address that the service made for a machine: whoever else attaches it holds up the end of that machine. */
const isMadeAddress = (kind: string, view: ResourceView): boolean =>
  kind === 'externalIp' &&
  view.exists &&
  stringAt(objectAt(view.document, 'metadata'), 'creator') === 'system';

/** Of tenants, each after what it refers to. */
const ORDERED: readonly ActingKind[] = KINDS.filter(({ kind }) => kind !== 'externalIpPool').toSorted(
  (left, right) => depthOf(left) - depthOf(right),
);
const isReferredTo = ({ kind }: ActingKind): boolean =>
  KINDS.some(({ references }) => references.some((one) => one.kind === kind));

/** Ranges of subnets of one network, some of which overlap. */
const RANGES = ['10.0.1.0/24', '10.0.2.0/24', '10.0.0.0/22', '10.0.2.128/25', '10.0.8.0/21'];

/** What the sample of a kind does not vary by itself. */
const VARIED: { readonly [kind: string]: (spec: JsonObject, random: Random) => JsonObject } = {
  subnet: (spec, random) => ({ ...spec, ipv4_cidr: random.pick(RANGES) }),
  computeInstance: (spec, random) => ({ ...spec, auto_external_ip_attachment: random.chance(0.25) }),
  externalIpAttachment: ({ external_ip: ip, cluster, target_endpoint: endpoint }, random): JsonObject =>
    random.chance(0.5)
      ? { external_ip: ip ?? {}, cluster: cluster ?? {}, target_endpoint: endpoint ?? '' }
      : { external_ip: ip ?? {}, compute_instance: { id: '' } },
};

/** What the house needs beside what acts: the requests that `makeHousePool` would send. */
const houseCatalogue = async (): Promise<readonly { readonly path: string; readonly body: JsonObject }[]> => {
  const asked: { readonly path: string; readonly body: JsonObject }[] = [];
  await makeHousePool(async (verb, at, body) => {
    const path = at.split('/').at(-1) ?? '';
    const acts = actingKinds.some(({ collection }) => collection === path);
    // Of everybody, where the sample names a tenant.
    if (verb === 'POST' && !acts)
      asked.push({ path, body: withoutValueAt(body as JsonObject, 'metadata.tenant') });
    return { status: 200, text: '' };
  });
  return asked;
};

const DEFAULTS: JsonObject = {
  virtual_network_ipv4_cidr: '10.128.0.0/16',
  subnet_ipv4_cidr: '10.128.0.0/20',
  enable_nat_gateway: true,
};

export const createEveryKind = (
  world: World,
  clients: Clients,
  workload: Workload,
  random: Random,
): EveryKind => {
  const { agenda, plan, ledger } = world;
  const around = { user: () => 'nobody' };
  let requests = 0;
  const ask = (
    verb: Request['verb'],
    path: string,
    body: JsonObject,
    tenant?: string,
    mask?: readonly string[],
  ): Request => ({
    verb,
    surface: tenant === undefined ? 'private' : 'public',
    path,
    body,
    idempotencyKey: `e${(requests += 1)}`,
    principal: principalOf(tenant),
    ...(mask === undefined ? {} : { mask }),
  });
  /** Parents may not be ready yet, and another instance may not know them. Undefined: it was refused. */
  const create = async (collection: string, body: JsonObject, tenant?: string, most = 10) => {
    for (let tries = 1; ; tries += 1) {
      const request = ask('POST', collection, body, tenant);
      const reply = await clients.send(request);
      if (reply?.status === 200) return stringAt(reply.body, 'id') || creationIdOf(request);
      const why = `${reply?.reason} ${reply?.message}`;
      const mayCome = /_NOT_READY|reference validation failed.*not found/.test(why);
      if (tries === most || !mayCome) return undefined;
      await agenda.sleep('client', 500 * tries);
    }
  };
  const surfaceOf = (kind: ActingKind, tenant: string): string | undefined =>
    kind.methods.public.includes('Delete') ? tenant : undefined;

  const ownedBy = (tenant: string): readonly Thing[] =>
    thingsOf(world).filter((thing) => isThere(thing) && thing.view.exists && thing.view.tenant === tenant);
  /** What may be referred to: of the tenant, or shared. */
  const idsOf = (kind: string, tenant: string): readonly string[] => {
    if (kind === 'cluster')
      return ledger.clusterIds().filter((id) => {
        const state = ledger.cluster(id);
        return isLiveCluster(state) && state.tenant === tenant && state.deletionRequestedAt === undefined;
      });
    const there = [...ownedBy(tenant), ...ownedBy('shared')].filter(
      ({ kind: of, view }) =>
        of.kind === kind &&
        view.exists &&
        view.deletionTimestamp === undefined &&
        !isMadeAddress(of.kind, view),
    );
    const ready = there.filter(isAsWanted);
    return (ready.length > 0 && random.chance(0.8) ? ready : there).map(({ id }) => id);
  };
  /** Empty once it is gone. */
  const ownerOf = (clusterId: string): string => {
    const state = ledger.cluster(clusterId);
    return isLiveCluster(state) ? state.tenant : '';
  };

  let names = 0;
  /** By its sample, with references to what the tenant has. Undefined: it has nothing to refer to. */
  const bodyOf = (kind: ActingKind, tenant: string): JsonObject | undefined => {
    const name = `${kind.kind.toLowerCase()}-${(names += 1)}`;
    const sample = (KIND_SAMPLES[kind.kind]?.body(name, around) ?? {}) as JsonObject;
    const metadata = { name, annotations: QUICK, ...(surfaceOf(kind, tenant) === undefined && { tenant }) };
    const vary = VARIED[kind.kind] ?? ((spec: JsonObject) => spec);
    let body: JsonObject = { ...sample, metadata, spec: vary(objectAt(sample, 'spec'), random) };
    for (const { path, kind: target } of kind.references) {
      if (!actingKinds.some((one) => one.kind === target)) continue;
      for (const place of placesOf(body, path)) {
        const ids = idsOf(target, tenant);
        if (ids.length === 0) return undefined;
        body = withValueAtPlace(body, place, { id: random.pick(ids) }) as JsonObject;
      }
    }
    if (surfaceOf(kind, tenant) === undefined) return body;
    return kind.privateOnly.reduce((shown, path) => withoutValueAt(shown, path), body);
  };
  const order = async (kind: ActingKind, tenant: string): Promise<string | undefined> => {
    const body = bodyOf(kind, tenant);
    return body && create(kind.collection, body, surfaceOf(kind, tenant));
  };

  /** Until it is as wanted, or for a while. */
  const become = async (id: string | undefined, ms = 60_000): Promise<boolean> => {
    const until = agenda.now() + ms;
    while (id !== undefined && agenda.now() < until) {
      const found = thingsOf(world).find((one) => one.id === id);
      if (found !== undefined && isAsWanted(found)) return true;
      await agenda.sleep('client', 1_000);
    }
    return false;
  };
  const revise = ({ kind, id, view }: Thing, body: JsonObject, mask: string): Promise<Reply | undefined> =>
    clients.send(
      ask('PATCH', `${kind.collection}/${id}`, body, view.exists ? surfaceOf(kind, view.tenant) : undefined, [
        mask,
      ]),
    );
  const remove = ({ kind, id, view }: Thing): Promise<Reply | undefined> =>
    clients.send(
      ask('DELETE', `${kind.collection}/${id}`, {}, view.exists ? surfaceOf(kind, view.tenant) : undefined),
    );

  /** A machine is told one thing after the other. */
  const power = async (thing: Thing): Promise<void> => {
    const { kind, id, view } = thing;
    if (!view.exists || !(await become(id, 20_000))) return;
    const { strategies, again } = MACHINES[kind.kind as MachineKind];
    const tell = async (what: string, spec: JsonObject): Promise<void> => {
      const [field = ''] = Object.keys(spec);
      const reply = await revise(thing, { spec }, `spec.${field}`);
      if (reply?.status === 200) world.did(`${kind.kind}: ${what}`);
      else if (reply?.status === 400 && reply.reason !== 'DELETION_REQUESTED')
        world.fail(new Violation(`${kind.kind} ${id} is not told ${field}: ${reply.message}`));
    };
    const runs = strategyOf(view.document) === strategies.on;
    const at = BEGINNING + Math.ceil(agenda.now()) + random.int(0, RESTART_IN_MS);
    if (runs && random.chance(0.4)) await tell('restart', again(at));
    else if (runs) await tell('off', { run_strategy: strategies.off });
    else await tell('on', { run_strategy: strategies.on });
    await become(id, 20_000);
  };

  const deed = async (tenant: string): Promise<void> => {
    const what = random.next();
    const own = ownedBy(tenant);
    if (what < 0.3 || own.length === 0) return void (await order(random.pick(ORDERED), tenant));
    const thing = random.pick(own);
    if (what < 0.45) return void (await remove(thing));
    const machines = own.filter(({ view }) => view.exists && strategyOf(view.document) !== '');
    if (what < 0.85 && machines.length > 0) {
      return power(random.pick(machines));
    }
    const labels = { colour: random.pick(['red', 'green', 'blue']) };
    await revise(thing, { metadata: { labels } }, 'metadata.labels');
  };

  const live = async (tenant: string): Promise<void> => {
    for (const kind of ORDERED) {
      const made = [await order(kind, tenant)];
      if (random.chance(0.4)) made.push(await order(kind, tenant));
      if (isReferredTo(kind)) await Promise.all(made.map((id) => become(id)));
    }
    for (let n = 0; n < (plan.everyKind?.deeds ?? 0); n += 1) {
      await agenda.sleep('client', random.int(0, 3_000));
      await deed(tenant);
    }
  };

  const guests = Array.from({ length: plan.everyKind?.guests ?? 0 }, (_, n) => `guest-${n + 1}`);
  const tenantIsThere = (tenant: string): boolean => {
    const last = ledger
      .events(`tenant-${tenant}`)
      .findLast(({ type }) => /^Tenant(Onboarded|Offboarded)$/.test(type));
    return last?.type === 'TenantOnboarded';
  };
  const dismiss = (tenant: string): Promise<Reply | undefined> =>
    clients.send(ask('DELETE', `tenants/${tenant}`, {}));
  /** Everything that is there of these tenants and is not about to go, in any order. */
  const clear = async (tenants: readonly string[] | undefined): Promise<boolean> => {
    const isMeant = (tenant: string): boolean => tenant !== '' && (tenants?.includes(tenant) ?? true);
    const things = thingsOf(world).filter(
      (one) => isThere(one) && one.view.exists && isMeant(one.view.tenant),
    );
    const clusters = ledger.clusterIds().filter((id) => isMeant(ownerOf(id)));
    const owners = (tenants ?? [...TENANTS, ...guests]).filter(tenantIsThere);
    if (things.length + clusters.length + owners.length === 0) return false;
    const isDefault = ({ id }: Thing): boolean => id.startsWith('default-');
    const going = things.filter(
      (one) =>
        one.view.exists &&
        one.view.deletionTimestamp === undefined &&
        // Which goes with its tenant, whatever people try.
        (!isDefault(one) || random.chance(0.1)),
    );
    const isEmpty = (tenant: string): boolean =>
      !things.some((one) => one.view.exists && one.view.tenant === tenant && !isDefault(one)) &&
      !clusters.some((id) => ownerOf(id) === tenant);
    await Promise.all([
      ...shuffled(going, random).map(remove),
      ...clusters.map((id) => workload.remove(id)),
      ...owners.filter(isEmpty).map(dismiss),
    ]);
    return true;
  };

  const visit = async (guest: string): Promise<void> => {
    await agenda.sleep('client', random.int(0, plan.activeMs / 2));
    if ((await create('tenants', { metadata: { name: guest } }, undefined, 30)) === undefined) return;
    await live(guest);
    for (let rounds = 0; rounds < 10 && random.chance(0.8) && (await clear([guest])); rounds += 1)
      await agenda.sleep('client', 3_000);
  };

  return {
    prepare: async () => {
      for (const { path, body } of await houseCatalogue()) {
        if (path !== networkClass.collection) await create(path, body, undefined, 50);
      }
      // Two of one hub would have addresses in common: one of them is refused.
      const [first] = plan.hubs;
      const pools = plan.hubs.map(({ id }, n) => ({ hub: id, range: `192.0.2.${16 * n}/28` }));
      if (first !== undefined) pools.push({ hub: first.id, range: '192.0.2.0/29' });
      const made = pools.map(async ({ hub, range }, n) => {
        const annotations = { ...QUICK, [HUB_ANNOTATION]: hub, 'fulfillment-ledger/quarantine': 'PT0S' };
        const spec = { cidrs: [range], ip_family: 'IP_FAMILY_IPV4' };
        const metadata = { name: `pool-${n}`, annotations };
        await become(await create('external_ip_pools', { metadata, spec }, undefined, 50));
      });
      await Promise.all(made);
      const example = withValueAt(networkClass.example as JsonObject, 'spec.defaults', DEFAULTS);
      await create(networkClass.collection, { ...example, metadata: {}, is_default: true }, undefined, 50);
    },
    run: async () => {
      await Promise.all([...TENANTS.map(live), ...guests.map(visit)]);
    },
    complete: async () => {
      const [tenant] = TENANTS;
      for (const machine of ORDERED) {
        if (!(machine.kind in MACHINES) || ledger.streams(machine.kind).length > 0) continue;
        const isMissing = ({ kind }: ActingKind): boolean =>
          !thingsOf(world).some(
            (one) =>
              one.kind.kind === kind && one.view.exists && one.view.tenant === tenant && isAsWanted(one),
          );
        for (const kind of ORDERED.filter((one) => one === machine || needs(machine, one)))
          for (let tries = 0; isMissing(kind); tries += 1) {
            if (tries === 20) throw new Violation(`${machine.kind}: no ${kind.words} is made`);
            await become(await order(kind, tenant));
          }
      }
    },
    removeAll: async () => {
      while (await clear(undefined)) await agenda.sleep('client', 3_000);
    },
  };
};

const strategyOf = (document: JsonObject): string => stringAt(objectAt(document, 'spec'), 'run_strategy');
