import { createClients } from './clients.ts';
import { createEveryKind } from './every-kind.ts';
import { checkAccounts, checkBills, checkNothingLeft } from './every-kind-checks.ts';
import { createNetworkWorkload } from './networks.ts';
import { planOf, type Plan } from './plan.ts';
import { randomOf } from './random.ts';
import { checkHubs } from './settle.ts';
import {
  compareReadModels,
  pass,
  playOut,
  settle,
  settleNetworks,
  until,
  type Simulated,
} from './simulate.ts';
import { createWorkload } from './workload.ts';
import type { Plant, World } from './world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Misfortunes as in any world, on roomy simulated hubs, one of which may be away for an hour. */
export const planOfEveryKind = (seed: number): Plan => {
  const random = randomOf(seed).fork('every kind');
  const { real: _real, networks: _networks, ...plan } = planOf(seed);
  const outage = { from: random.int(5, 40) * 1_000, ms: HOUR };
  const isAway = random.chance(0.15);
  return {
    ...plan,
    store: { ...plan.store, brokenRead: plan.store.brokenRead / 8 },
    hubs: ['sim-a', 'sim-b'].map((id) => ({ id, controlPlanes: 10, nodes: 100 })),
    clusters: random.int(1, 2),
    activeMs: random.int(15, 30) * 1_000,
    clockJumps: false,
    hubTroubles: 0,
    deletesAll: true,
    everyKind: { guests: random.int(0, 2), deeds: random.int(2, 8), ...(isAway ? { outage } : {}) },
  };
};

export const simulateEveryKind = (seed: number, plant?: Plant): Promise<Simulated> =>
  playOut(planOfEveryKind(seed), act, plant);

const act = async (world: World): Promise<void> => {
  const { plan } = world;
  const clients = createClients(world, world.random.fork('clients'));
  const workload = createWorkload(world, clients, world.random.fork('workload'));
  const networks = createNetworkWorkload(world, clients, world.random.fork('networks'));
  const all = createEveryKind(world, clients, workload, world.random.fork('every kind'));

  for (let place = 1; place <= plan.instances; place += 1) world.keepRunning(place);
  await until(world, 'the catalogue is there', workload.prepare(), 5 * MINUTE);
  await until(world, 'every kind can be ordered', all.prepare(), 10 * MINUTE);
  const [first] = plan.hubs;
  const { from = 0, ms = 0 } = plan.everyKind?.outage ?? {};
  const back = world.agenda.now() + from + ms;
  if (ms > 0) {
    world.agenda.after('world', from, () => world.sendAway([first?.id ?? '']));
    world.agenda.after('world', from + ms, () => world.sendAway([]));
  }
  const busy = Promise.all([workload.run(), all.run()]);
  await until(world, 'every request is answered', busy, plan.activeMs + 3 * HOUR);
  await pass(world, Math.max(0, back - world.agenda.now()));

  world.calmDown();
  world.trace.note('world', 'calms down');
  for (const hub of world.hubs.values()) await hub.control.configure({});
  await settle(world, workload);
  await settleNetworks(world, networks);
  await until(world, 'there is a machine of each kind', all.complete(), HOUR);
  await settleNetworks(world, networks);
  await checkHubs(world);
  checkAccounts(world);
  world.trace.note('world', 'deletes everything');
  await until(world, 'all is gone', all.removeAll(), 2 * HOUR);
  await settle(world, workload);
  await settleNetworks(world, networks);
  clients.check();
  checkBills(world);
  await checkNothingLeft(world);
  await until(world, 'the read models are compared', compareReadModels(world), 5 * MINUTE);
  await until(world, 'everybody has stopped', world.stopAll(), 5 * MINUTE);
};
