import { DELEGATED_STEPS } from '../../../src/domain/hubs/hub-facts.ts';
import { isStoredCluster } from '../../../src/domain/clusters/state.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { creationIdOf, principalOf, type Clients } from './clients.ts';
import type { Request } from './api.ts';
import { Violation } from './invariants.ts';
import type { HubPlan } from './plan.ts';
import type { Random } from './random.ts';
import type { World } from './world.ts';

export const TENANTS = ['acme', 'globex'] as const;
export const NAMESPACE = 'osac';
const HOST_TYPE = 'fc430';
const TEMPLATE = 'osac.templates.small';

/** What people and programs outside do to the service and to its hubs. */
export type Workload = {
  /** The catalogue and the first hubs, while nothing goes wrong yet. */
  prepare(): Promise<void>;
  /** Everything else; resolves when all of it has been answered. */
  run(): Promise<void>;
  /** Orders a cluster of this size; resolves with its id. */
  order(tenant: string, size: number, name: string, more?: JsonObject): Promise<string | undefined>;
  resize(clusterId: string, tenant: string, size: number): Promise<void>;
  retry(clusterId: string): Promise<void>;
  remove(clusterId: string): Promise<void>;
  /** A hub let its HostedCluster vanish before the service saw it available: it would wait until its deadline. */
  isVain(clusterId: string): boolean;
};

export const createWorkload = (world: World, clients: Clients, random: Random): Workload => {
  const { agenda, plan, ledger } = world;
  let requests = 0;
  const vanishing = new Set<string>();
  const key = (): string => `k${(requests += 1)}`;
  const admin = principalOf(undefined);
  const tenantOf = (id: string): string => {
    const state = ledger.cluster(id);
    return 'tenant' in state ? state.tenant : TENANTS[0];
  };

  const ask = (
    verb: Request['verb'],
    surface: Request['surface'],
    path: string,
    body: JsonObject,
    tenant?: string,
    mask?: readonly string[],
  ): Request => ({
    verb,
    surface,
    path,
    body,
    idempotencyKey: key(),
    principal: tenant === undefined ? admin : principalOf(tenant),
    ...(mask === undefined ? {} : { mask }),
  });

  /** Another instance may not know yet what it refers to: these callers send no position that it would wait for. */
  const mustCreate = async (collection: string, body: JsonObject): Promise<void> => {
    let reply = await clients.send(ask('POST', 'private', collection, body));
    for (let tries = 0; tries < 100 && reply?.reason === 'INVALID_ARGUMENT'; tries += 1) {
      await agenda.sleep('client', 200);
      reply = await clients.send(ask('POST', 'private', collection, body));
    }
    if (reply?.status !== 200) world.fail(new Violation(`${collection}: ${reply?.status} ${reply?.message}`));
  };

  const register = ({ id, controlPlanes, nodes, delegated, zone }: HubPlan): Promise<void> =>
    mustCreate('hubs', {
      id,
      spec: {
        namespace: NAMESPACE,
        capacity: capacityOf(controlPlanes, nodes),
        ...(zone === undefined ? {} : { zone }),
        ...(delegated === true ? { steps: everyStep('hub') } : {}),
        ...reality(),
      },
    });
  const everyStep = (rule: string): JsonObject =>
    Object.fromEntries(DELEGATED_STEPS.map((step) => [step, rule]));
  const reality = (): JsonObject => {
    if (plan.real === undefined) return {};
    const { mode, controller } = plan.real;
    return { mode, controller, endpoints: { [mode]: 'https://automation.example' } };
  };

  const order = async (
    tenant: string,
    size: number,
    name: string,
    more: JsonObject = {},
  ): Promise<string | undefined> => {
    const pullSecret = random.chance(0.3) ? { pull_secret: '{"auths":{}}' } : {};
    const request = ask(
      'POST',
      'public',
      'clusters',
      {
        metadata: { name },
        spec: { template: { id: TEMPLATE }, node_sets: { workers: { size } }, ...pullSecret, ...more },
      },
      tenant,
    );
    const patient = random.chance(0.85);
    let reply = random.chance(0.2)
      ? await clients.sendTwice(request)
      : await clients.send(request, { patient });
    // As in `mustCreate`: the instance may not know the template yet that another one has just taken.
    for (let tries = 0; tries < 100 && reply?.reason === 'INVALID_ARGUMENT'; tries += 1) {
      await agenda.sleep('client', 200);
      reply = await clients.send({ ...request, idempotencyKey: key() }, { patient });
    }
    const isTooLarge = reply?.reason === 'CAPACITY_IMPOSSIBLE' && plan.hubs.some(({ nodes }) => nodes < size);
    if (reply !== undefined && reply.status !== 200 && reply.status !== 409 && !isTooLarge) {
      world.fail(new Violation(`an order was refused: ${reply.status} ${reply.reason} ${reply.message}`));
    }
    return reply?.status === 200 ? creationIdOf(request) : undefined;
  };

  const resize = async (id: string, tenant: string, size: number): Promise<void> => {
    const body = { spec: { node_sets: { workers: { size } } } };
    await clients.send(
      ask('PATCH', 'public', `clusters/${id}`, body, tenant, ['spec.node_sets.workers.size']),
    );
  };
  const label = async (id: string, tenant: string): Promise<void> => {
    const body = { metadata: { labels: { colour: random.pick(['red', 'green', 'blue']) } } };
    await clients.send(ask('PATCH', 'public', `clusters/${id}`, body, tenant, ['metadata.labels']));
  };
  const remove = async (id: string): Promise<void> => {
    const request = ask('DELETE', 'public', `clusters/${id}`, {}, tenantOf(id));
    await (random.chance(0.2) ? clients.sendTwice(request) : clients.send(request));
  };
  const cancel = async (id: string): Promise<void> => {
    await clients.send(ask('POST', 'ledger', `orders/${id}/cancel`, {}));
  };
  const retry = async (id: string): Promise<void> => {
    await clients.send(ask('POST', 'ledger', `orders/${id}/retry`, {}));
  };

  /** The life of one order as its tenant leads it. */
  const lead = async (number: number): Promise<void> => {
    const tenant = random.pick(TENANTS);
    await agenda.sleep('client', random.int(0, plan.activeMs / 2));
    // Names are few, so that some are taken.
    const id = await order(tenant, random.int(1, 4), `c${random.chance(0.75) ? number : 0}`);
    if (id === undefined) return;
    if (random.chance(0.15)) {
      await agenda.sleep('client', random.int(0, 400));
      return cancel(id);
    }
    const until = agenda.now() + random.int(0, plan.activeMs / 2);
    while (agenda.now() < until) {
      await agenda.sleep('client', random.int(100, 10_000));
      const what = random.next();
      if (what < 0.45) await resize(id, tenant, random.int(0, 5));
      else if (what < 0.65) await label(id, tenant);
      else if (what < 0.8) await retry(id);
    }
    if (random.chance(0.5)) await remove(id);
  };

  const changeCapacity = async (hub: HubPlan): Promise<void> => {
    await agenda.sleep('client', random.int(0, plan.activeMs));
    const spec = {
      capacity: capacityOf(hub.controlPlanes + random.int(-1, 2), hub.nodes + random.int(-2, 4)),
    };
    const mask = ['spec.capacity'];
    await clients.send(ask('PATCH', 'private', `hubs/${hub.id}`, { spec }, undefined, mask));
  };

  const registerLater = async (hub: HubPlan): Promise<void> => {
    await agenda.sleep('client', hub.registeredAt ?? 0);
    await register(hub);
  };

  const trouble = async (): Promise<void> => {
    await agenda.sleep('client', random.int(0, plan.activeMs));
    const { id } = random.pick(plan.hubs);
    const settings = troubleOf(random);
    world.trace.note(id, `behaves ${JSON.stringify(settings)}`);
    if ('vanishHostedCluster' in settings) vanishing.add(id);
    await world.hubs.get(id)?.control.configure(settings);
  };

  const isVain = (id: string): boolean => {
    const state = ledger.cluster(id);
    return (
      isStoredCluster(state) &&
      state.status === 'dispatched' &&
      vanishing.has(state.hub.id) &&
      state.conditions.TemplateApplied?.status === 'True' &&
      state.conditions.ClusterAvailable?.reason === 'ControlPlaneMissing'
    );
  };

  /** As a long garbage collection: it comes back and still believes what it believed before. */
  const stall = async (): Promise<void> => {
    await agenda.sleep('client', random.int(0, plan.activeMs));
    const incarnations = world.living();
    if (incarnations.length === 0) return;
    const { life } = random.pick(incarnations);
    const ms = random.int(3_000, 15_000);
    life.note(`stalls for ${ms} ms`);
    agenda.stall(life.owner, agenda.now() + ms);
  };

  const many = (count: number, run: (number: number) => Promise<void>): Promise<void>[] =>
    Array.from({ length: count }, (_, i) => run(i + 1));

  return {
    order,
    resize,
    retry,
    remove,
    isVain,
    prepare: async () => {
      for (const name of TENANTS) await mustCreate('tenants', { metadata: { name } });
      await mustCreate('host_types', { id: HOST_TYPE, title: 'FC430' });
      await mustCreate('cluster_versions', {
        spec: { version: '4.17.0', image: 'quay.example/r:4.17', is_default: true },
      });
      await mustCreate('cluster_templates', {
        id: TEMPLATE,
        title: 'Small',
        node_sets: { workers: { host_type: { id: HOST_TYPE }, size: 2 } },
      });
      for (const hub of plan.hubs) if (hub.registeredAt === undefined) await register(hub);
    },
    run: async () => {
      await Promise.all([
        ...many(plan.clusters, lead),
        ...plan.hubs.filter(({ registeredAt }) => registeredAt !== undefined).map(registerLater),
        ...(random.chance(0.5) ? [changeCapacity(random.pick(plan.hubs.slice(0, 2)))] : []),
        ...many(plan.hubTroubles, trouble),
        ...many(plan.stalls, stall),
      ]);
    },
  };
};

const capacityOf = (controlPlanes: number, nodes: number): JsonObject => ({
  control_planes: Math.max(0, controlPlanes),
  nodes: { [HOST_TYPE]: Math.max(0, nodes) },
});

const percent = (random: Random, most: number): string => `${random.chance(0.5) ? random.int(1, most) : 0}%`;

/** What a hub may do from now on: each is a setting of the simulated hub. */
const troubleOf = (random: Random): { readonly [key: string]: string } => {
  const kind = random.next();
  if (kind < 0.15) return { dead: `${random.int(2, 25)}s` };
  if (kind < 0.25) return { silent: `${random.int(2, 15)}s` };
  const calls = {
    seed: String(random.int(1, 1_000_000)),
    conflict: percent(random, 20),
    throttle: percent(random, 20),
    unavailable: percent(random, 20),
    unauthorized: percent(random, 5),
    invalid: percent(random, 10),
    lostAnswer: percent(random, 20),
    slow: '300ms',
    slowCalls: percent(random, 30),
  };
  const lives = random.pick<{ readonly [key: string]: string }>([
    {},
    {},
    { degraded: '1', degradedAfter: '5s', degradedFor: '4s' },
    { stuckDeletion: '20s' },
    { failInstall: '1' },
    { failInstall: '1-2', failWhen: 'late' },
    { noPhase: '10s' },
    { cancelJob: '1' },
    { factor: '5' },
    { vanishOrder: '9s' },
    // After it was READY: one that never was there is missed only when its deadline has passed.
    { vanishHostedCluster: '40s' },
  ]);
  return { ...calls, ...lives };
};
