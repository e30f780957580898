import { isStoredCluster } from '../../../src/domain/clusters/state.ts';
import { NO_NETWORK_FAULTS } from './caller.ts';
import { createClients } from './clients.ts';
import { Violation } from './invariants.ts';
import type { Moment } from './life.ts';
import { planOf, type Death, type Plan, type RealHubPlan } from './plan.ts';
import { checkHubs } from './settle.ts';
import { checkBills, createMachineWorkload, MACHINES, type MachineKind } from './machines.ts';
import { createNetworkWorkload } from './networks.ts';
import { leftOnSite, makePools, stepsOf } from './sites.ts';
import { pass, playOut, settle, settleNetworks, until, type Simulated } from './simulate.ts';
import { NO_STORE_FAULTS } from './store-port.ts';
import { createWorkload, TENANTS } from './workload.ts';
import { ZONE, type Plant, type World } from './world.ts';

/** One order is created, scaled and deleted; the service dies once, in one certain moment. */
export type Drill = {
  /** Absent: a hub whose operator does everything. */
  readonly real?: Pick<RealHubPlan, 'mode' | 'controller'>;
  readonly death?: Death;
  /** The ledger does the steps of the order around its hub. */
  readonly site?: true;
  /** The cluster gets external IPs of its own. */
  readonly addresses?: true;
  /** Networks of all kinds instead of a cluster. */
  readonly networks?: true;
  /** A machine of this kind instead of a cluster: made, stopped, started, restarted and deleted. */
  readonly machines?: MachineKind;
  /** What goes wrong is drawn, and the machine is stopped, started and restarted as chance has it. */
  readonly restless?: true;
  /** The hub that is chosen first is never reached; there is a second one. */
  readonly firstHubAway?: boolean;
};

const MINUTE = 60_000;

export const runDrill = (seed: number, drill: Drill, plant?: Plant): Promise<Simulated> =>
  playOut(
    planOfDrill(seed, drill),
    async (world) => {
      await actOf(drill)(world, () => undefined);
      await stop(world);
    },
    plant,
  );

/** Who dies while everybody stops is not started again. */
const stop = async (world: World): Promise<void> => {
  world.calmDown();
  await until(world, 'everybody has stopped', world.stopAll(), 5 * MINUTE);
};

/** Every moment between the order and the end of its deletion in which an incarnation may die, but for its stop. */
export const momentsOf = async (seed: number, drill: Omit<Drill, 'death'>): Promise<readonly Death[]> => {
  let before: ReadonlyMap<Moment, number> = new Map();
  let after: ReadonlyMap<Moment, number> = new Map();
  const { failure } = await playOut(planOfDrill(seed, drill), async (world) => {
    await actOf(drill)(world, () => {
      before = world.moments();
    });
    after = world.moments();
    await stop(world);
  });
  if (failure !== undefined) throw failure;
  return [...after].flatMap(([at, count]) => {
    const first = before.get(at) ?? 0;
    return Array.from({ length: count - first }, (_, i) => ({ at, count: first + 1 + i }));
  });
};

export const planOfDrill = (seed: number, drill: Drill): Plan =>
  drill.restless === true ? restless(seed, calmPlan(seed, drill)) : calmPlan(seed, drill);

/** Whatever may go wrong, but for clocks: a bill is as exact as they are. */
const restless = (seed: number, calm: Plan): Plan => {
  const { store, network, deaths, keepsIndex } = planOf(seed);
  return { ...calm, store, network, deaths: deaths + 1, keepsIndex };
};

const calmPlan = (seed: number, { real, death, site, firstHubAway = false }: Drill): Plan => ({
  seed,
  singleWriter: true,
  instances: 1,
  keepsIndex: seed % 2 === 0,
  store: NO_STORE_FAULTS,
  network: NO_NETWORK_FAULTS,
  hubs: [
    // The emptiest is chosen.
    ...(firstHubAway ? [{ id: 'sim-away', controlPlanes: 100, nodes: 1_000, away: true as const }] : []),
    {
      id: real === undefined ? 'sim-a' : 'hub-a',
      controlPlanes: 2,
      nodes: 8,
      ...(site === true ? { zone: ZONE } : {}),
    },
  ],
  ...(real === undefined ? {} : { real: { ...real, failures: 0, pace: 1 } }),
  deaths: death === undefined ? 0 : 1,
  ...(death === undefined ? {} : { death }),
  clusters: 1,
  activeMs: 0,
  clockJumps: false,
  hubTroubles: 0,
  stalls: 0,
  deletesAll: false,
});

const actOf = ({ networks, machines, restless: isRestless, addresses, site }: Drill) =>
  networks === true
    ? actOnNetworks
    : machines !== undefined
      ? (world: World, ordering: () => void) => actOnMachine(world, ordering, isRestless === true, machines)
      : site === true && isRestless === true
        ? (world: World) => actOnSite(world)
        : (world: World, ordering: () => void) => act(world, ordering, addresses === true, site === true);

/** A network and one of all that lies in it: made, changed, and deleted at once, in any order. */
const actOnNetworks = async (world: World, ordering: () => void): Promise<void> => {
  const clients = createClients(world, world.random.fork('clients'));
  const workload = createWorkload(world, clients, world.random.fork('workload'));
  const networks = createNetworkWorkload(world, clients, world.random.fork('networks'));
  const [tenant] = TENANTS;
  world.keepRunning(1);
  await until(world, 'the catalogue is there', workload.prepare(), 5 * MINUTE);
  await until(world, 'networks can be made', networks.prepare(), 5 * MINUTE);
  await settleNetworks(world, networks);
  ordering();
  const story = async (): Promise<void> => {
    const known = <T>(made: T | undefined): T => {
      if (made === undefined) throw new Violation('it was refused');
      return made;
    };
    const [network, ip] = (
      await Promise.all([networks.network(tenant, 'net'), networks.address(tenant, 'ip')])
    ).map(known);
    await Promise.all([networks.become(network), networks.become(ip)]);
    const [group = ''] = (
      await Promise.all([
        networks.group(tenant, 'group', known(network)),
        networks.subnet(tenant, 'subnet', known(network), '10.0.1.0/24'),
        networks.gateway(tenant, 'gateway', known(network), known(ip)),
      ])
    ).map(known);
    await networks.become(group);
    await networks.change(tenant, group, 443);
  };
  await until(world, 'all is made', story(), 30 * MINUTE);
  await settleNetworks(world, networks);
  await until(world, 'all is gone', networks.removeAll(), 30 * MINUTE);
  await settleNetworks(world, networks);
  const [hub] = world.plan.hubs;
  const made = world.objectsOn(hub?.id ?? '').map(({ kind, id }) => `${kind} ${id}`);
  if (new Set(made).size !== made.length || made.length < 6)
    throw new Violation(`the hub was given ${made.join(', ')}`);
  clients.check();
};

const actOnMachine = async (
  world: World,
  ordering: () => void,
  isRestless: boolean,
  kind: MachineKind,
): Promise<void> => {
  const clients = createClients(world, world.random.fork('clients'));
  const workload = createWorkload(world, clients, world.random.fork('workload'));
  const networks = createNetworkWorkload(world, clients, world.random.fork('networks'));
  const machines = createMachineWorkload(world, clients, networks, kind);
  const chance = world.random.fork('machines');
  world.keepRunning(1);
  await until(world, 'the catalogue is there', workload.prepare(), 5 * MINUTE);
  await until(world, 'networks can be made', networks.prepare(), 5 * MINUTE);
  await until(world, 'machines can be ordered', machines.prepare(), 5 * MINUTE);
  await settleNetworks(world, networks);
  ordering();
  let id = '';
  const story = async (): Promise<void> => {
    id = await machines.order();
  };
  await until(world, 'a machine is ordered', story(), 30 * MINUTE);
  const { stop: halt, start, restart, retouch } = machines;
  const deeds = isRestless
    ? Array.from({ length: chance.int(2, 8) }, () => chance.pick([halt, start, restart, retouch]))
    : [halt, start, restart];
  /** Where things go wrong all the time, tries come ever later: then nothing goes wrong any more. */
  const inTheEnd = async (reached: () => Promise<void>): Promise<void> => {
    try {
      await reached();
    } catch (error) {
      if (!isRestless || world.isCalm() || world.failure() !== undefined) throw error;
      world.calmDown();
      await reached();
    }
  };
  const becomesAsWanted = async (): Promise<void> => {
    await inTheEnd(() => settleNetworks(world, networks));
    checkBills(world);
  };
  for (const deed of deeds) {
    await becomesAsWanted();
    if (isRestless)
      await until(world, 'time passes', world.agenda.sleep('client', chance.int(0, 20_000)), MINUTE);
    await until(world, 'a change is answered', deed(id), 10 * MINUTE);
  }
  await becomesAsWanted();
  const hub = world.plan.hubs.map(({ id: name }) => name).at(-1) ?? '';
  const wanted: readonly string[] = [MACHINES[kind].prefix, MACHINES[kind].secret].toSorted();
  const made = (): readonly string[] =>
    world
      .objectsOn(hub)
      .map((object) => object.kind)
      .filter((one) => wanted.includes(one))
      .toSorted();
  if (made().join() !== wanted.join()) throw new Violation(`the hub was given ${made().join(', ')}`);
  await until(world, 'a deletion is answered', machines.remove(id), 10 * MINUTE);
  const removal = networks.removeAll();
  await inTheEnd(() => until(world, 'all is gone', removal, 30 * MINUTE));
  await becomesAsWanted();
  if (made().length !== 2) throw new Violation(`the hub was given ${made().join(', ')}`);
  clients.check();
};

const act = async (
  world: World,
  ordering: () => void,
  withAddresses: boolean,
  onSite: boolean,
): Promise<void> => {
  const clients = createClients(world, world.random.fork('clients'));
  const workload = createWorkload(world, clients, world.random.fork('workload'));
  const [tenant] = TENANTS;
  world.keepRunning(1);
  await until(world, 'the catalogue is there', workload.prepare(), 5 * MINUTE);
  if (onSite) await until(world, 'there are pools', makePools(world), 5 * MINUTE);
  const networks = createNetworkWorkload(world, clients, world.random.fork('networks'));
  if (withAddresses) {
    await until(world, 'there is a pool', networks.prepare(), 5 * MINUTE);
    await settleNetworks(world, networks);
  }
  const more = withAddresses ? { auto_external_ip_attachment: true } : {};
  ordering();
  await until(world, 'an order is answered', workload.order(tenant, 2, 'drill', more), 5 * MINUTE);
  const [id] = world.ledger.clusterIds();
  if (id === undefined) throw new Violation('the order is not in the log');
  await settle(world, workload);
  if (withAddresses) {
    await settleNetworks(world, networks);
    checkAddresses(world);
  }
  await until(world, 'a change is answered', workload.resize(id, tenant, 3), 5 * MINUTE);
  await settle(world, workload);
  await checkHubs(world);
  await until(world, 'a deletion is answered', workload.remove(id), 5 * MINUTE);
  await settle(world, workload);
  await checkHubs(world);
  checkFarSide(world, id);
  if (onSite) await checkSite(world, id);
  if (withAddresses) {
    await settleNetworks(world, networks);
    const left = world.ledger.streams('externalIp').filter((stream) => !isDeleted(world, stream));
    if (left.length > 0) throw new Violation(`${left.join(', ')} outlived the cluster`);
  }
  clients.check();
};

const isDeleted = (world: World, stream: string): boolean =>
  world.ledger.events(stream).some(({ type }) => type === 'ExternalIPDeleted');

/** Orders on a site while everything goes wrong, deleted or not; then a calm world in which all of it ends. */
const actOnSite = async (world: World): Promise<void> => {
  const clients = createClients(world, world.random.fork('clients'));
  const workload = createWorkload(world, clients, world.random.fork('workload'));
  const chance = world.random.fork('site');
  const [tenant] = TENANTS;
  world.keepRunning(1);
  await until(world, 'the catalogue is there', workload.prepare(), 5 * MINUTE);
  await until(world, 'there are pools', makePools(world), 5 * MINUTE);
  const orders = Array.from({ length: chance.int(1, 3) }, (_, i) => workload.order(tenant, 2, `site-${i}`));
  await until(world, 'orders are answered', Promise.all(orders), 10 * MINUTE);
  await pass(world, chance.int(2_000, 120_000));
  const some = world.ledger.clusterIds().filter(() => chance.chance(0.5));
  const removed = some.map((id) => workload.remove(id));
  await until(world, 'deletions are answered', Promise.all(removed), 10 * MINUTE);
  await pass(world, chance.int(0, 60_000));
  world.calmDown();
  await settle(world, workload);
  const rest = world.ledger.clusterIds().map((id) => workload.remove(id));
  await until(world, 'the rest is deleted', Promise.all(rest), 10 * MINUTE);
  await settle(world, workload);
  await checkHubs(world);
  await nothingIsLeft(world);
  clients.check();
};

/** All of it was the order's for a while, and nothing is any more once its nodes are wiped. */
const checkSite = async (world: World, id: string): Promise<void> => {
  const missed = ['agents', 'vlan', 'ports', 'prefix', 'l3-bind', 'dns', 'validation-applications'].filter(
    (step) => !stepsOf(world, id).includes(step),
  );
  if (missed.length > 0) throw new Violation(`the order did not go through ${missed.join(', ')}`);
  await nothingIsLeft(world);
};

const nothingIsLeft = async (world: World): Promise<void> => {
  const bound = world.agenda.now() + 5 * MINUTE;
  for (;;) {
    let left: readonly string[] = [];
    const look = async (): Promise<void> => {
      left = await leftOnSite(world);
    };
    await until(world, 'a look at the site', look(), MINUTE);
    if (left.length === 0) return;
    if (world.agenda.now() > bound) throw new Violation(`left behind: ${left.join('; ')}`);
    await pass(world, 5_000);
  }
};

/** Two addresses, each attached once. */
const checkAddresses = (world: World): void => {
  for (const kind of ['ExternalIP', 'ExternalIPAttachment']) {
    const made = world.plan.hubs.flatMap(({ id }) => world.objectsOn(id)).filter((one) => one.kind === kind);
    if (made.length !== 2) throw new Violation(`${made.length} objects of kind ${kind} were made`);
  }
};

/** One order, and one run of the automation for each thing that was asked; a webhook may be posted again after a look. */
const checkFarSide = (world: World, id: string): void => {
  const { plan } = world;
  const state = world.ledger.cluster(id);
  if (!isStoredCluster(state) || state.status !== 'deleted') throw new Violation(`${id} is ${state.status}`);
  for (const { id: hub, away = false } of plan.hubs) {
    const orders = world.ordersOn(hub);
    if (away && orders.length > 0) throw new Violation(`${hub} was reached`);
    if (away) continue;
    if (orders.length !== 1) throw new Violation(`${orders.length} orders were made on ${hub}`);
    if (plan.real === undefined) continue;
    const runs = world.runsOn(hub).map(({ purpose }) => purpose);
    const [built, tornDown] = (['provision', 'deprovision'] as const).map(
      (purpose) => runs.filter((each) => each === purpose).length,
    );
    const most = plan.real.mode === 'aap' ? 0 : 1;
    const isWrong = (count: number | undefined, wanted: number): boolean =>
      count === undefined || count < wanted || count > wanted + most;
    if (isWrong(built, 2) || isWrong(tornDown, 1))
      throw new Violation(`the automation ran ${runs.join(', ')}`);
  }
};
