import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import { createViews } from '../../../src/projections/views.ts';
import { rest } from './agenda.ts';
import { createClients } from './clients.ts';
import { Violation } from './invariants.ts';
import {
  checkNetworks,
  createNetworkWorkload,
  straysOfNetworks,
  unsettledNetworks,
  type NetworkWorkload,
} from './networks.ts';
import { planOf, type Plan, type RealHubPlan } from './plan.ts';
import { checkHubs, strays, unsettled } from './settle.ts';
import { createWorkload, type Workload } from './workload.ts';
import { createWorld, type Plant, type World } from './world.ts';

export type Simulated = {
  readonly plan: Plan;
  /** Undefined: everything held. */
  readonly failure: Violation | undefined;
  /** Equal for equal runs. */
  readonly hash: string;
  readonly lines: readonly string[];
  readonly steps: number;
  readonly events: number;
  /** Incarnations that were started. */
  readonly births: number;
  /** What was done with it, as `World.did` was told. */
  readonly deeds: readonly string[];
  /** Virtual milliseconds. */
  readonly ms: number;
};

const MINUTE = 60_000;
/** Virtual time for everything to come to its end once nothing goes wrong any more. */
const SETTLE_MS = 15 * MINUTE;
/** After a clock that went back, what was due then is due as much later, and a little more. */
const BACK_MS = 5 * MINUTE;
/** A webhook that was lost is posted again only when nothing was seen of it for long, each time for longer. */
const SETTLE_EDA_MS = 150 * MINUTE;
const LOOK_MS = 2_000;

/** Runs one simulation to its end or to the first thing that must never be. `mode`: see planOf. */
export const simulate = (
  seed: number,
  options: { readonly plant?: Plant; readonly mode?: RealHubPlan['mode'] | undefined } = {},
): Promise<Simulated> => playOut(planOf(seed, options.mode), act, options.plant);

/** Lets a planned world go its way, from its beginning to the end of `acts`. */
export const playOut = async (
  plan: Plan,
  acts: (world: World) => Promise<void>,
  plant?: Plant,
): Promise<Simulated> => {
  // Hubs write durably; in memory that costs nothing.
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'simulation-'));
  const world = createWorld(plan, folder, plant);
  const restore = catchRejections((error) => {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
    world.fail(new Violation(`unhandled rejection: ${what}`));
  });
  try {
    await acts(world);
  } catch (error) {
    if (error instanceof Violation) world.fail(error);
    else world.fail(new Violation(String((error as Error).stack)));
  } finally {
    await rest();
    await world.close();
    restore();
    rmSync(folder, { recursive: true, force: true });
  }
  return {
    plan,
    failure: world.failure(),
    hash: world.trace.hash(),
    lines: world.trace.lines(),
    steps: world.agenda.steps(),
    events: world.ledger.length(),
    births: world.births(),
    deeds: world.deeds(),
    ms: world.agenda.now(),
  };
};

const act = async (world: World): Promise<void> => {
  const { plan } = world;
  const clients = createClients(world, world.random.fork('clients'));
  const workload = createWorkload(world, clients, world.random.fork('workload'));

  const networks = createNetworkWorkload(world, clients, world.random.fork('networks'));
  const isNetworked = plan.networks !== undefined;

  for (let place = 1; place <= plan.instances; place += 1) world.keepRunning(place);
  await until(world, 'the catalogue is there', workload.prepare(), 5 * MINUTE);
  if (isNetworked) await until(world, 'networks can be made', networks.prepare(), 5 * MINUTE);
  const led = Array.from({ length: plan.networks ?? 0 }, (_, i) => networks.lead(i));
  const all = Promise.all([workload.run(), ...led]);
  await until(world, 'every request is answered', all, plan.activeMs + 10 * MINUTE);

  world.calmDown();
  world.trace.note('world', 'calms down');
  for (const hub of world.hubs.values()) await hub.control.configure({});
  await settle(world, workload);
  if (isNetworked) await settleNetworks(world, networks);
  if (plan.deletesAll) {
    world.trace.note('world', 'deletes everything');
    const removed = world.ledger.clusterIds().map((id) => workload.remove(id));
    await until(world, 'every deletion is answered', Promise.all(removed), 5 * MINUTE);
    await settle(world, workload);
    if (isNetworked) {
      await until(world, 'all networks are gone', networks.removeAll(), 30 * MINUTE);
      await settleNetworks(world, networks);
    }
  }
  clients.check();
  await checkHubs(world);
  await until(world, 'the read models are compared', compareReadModels(world), 5 * MINUTE);
  await until(world, 'everybody has stopped', world.stopAll(), 5 * MINUTE);
};

/** Lets the world go on until the promise has resolved. Throws Violation past the bound or when something broke. */
export const until = async (
  world: World,
  what: string,
  done: Promise<unknown>,
  ms: number,
): Promise<void> => {
  const { agenda } = world;
  let over = false;
  let failure: unknown;
  done.then(
    () => {
      over = true;
    },
    (error: unknown) => {
      over = true;
      failure = error;
    },
  );
  const bound = agenda.now() + ms;
  await rest();
  while (!over) {
    assertSound(world);
    if (!(await agenda.step(bound))) throw new Violation(`${what}: not within ${ms / 1000} s`);
  }
  assertSound(world);
  if (failure !== undefined) throw failure;
};

const assertSound = (world: World): void => {
  const failure = world.failure();
  if (failure !== undefined) throw failure;
};

/** What people do about orders that cannot go on by themselves; a hub builds no HostedCluster a second time. */
const operate = async (left: readonly string[], { retry, remove, isVain }: Workload): Promise<void> => {
  for (const each of left) {
    const [, id, what] =
      /^cluster (\S+): (failed|lost its hosted-cluster|lost|is on its way)/.exec(each) ?? [];
    if (id === undefined) continue;
    if (what === 'lost its hosted-cluster' || isVain(id)) await remove(id);
    else if (what !== 'is on its way') await retry(id);
  }
};

const boundOf = ({ plan, clockBack }: World): number => {
  const back = clockBack();
  return (plan.real?.mode === 'eda' ? SETTLE_EDA_MS : SETTLE_MS) + (back > 0 ? back + BACK_MS : 0);
};

export const settle = async (world: World, workload: Workload): Promise<void> => {
  const { agenda } = world;
  const bound = agenda.now() + boundOf(world);
  const look = async (): Promise<readonly string[]> => [...unsettled(world), ...(await strays(world))];
  let left = await look();
  while (left.length > 0) {
    if (agenda.now() > bound) throw new Violation(`not settled: ${left.join('; ')}`);
    await until(world, 'operators have acted', operate(left, workload), 5 * MINUTE);
    await pass(world, LOOK_MS);
    left = await look();
  }
  // What is late still has to arrive, and must not undo what was reached.
  await pass(world, 10_000);
  left = await look();
  if (left.length > 0) await settle(world, workload);
};

/** The same of networks and of what lies in them. */
export const settleNetworks = async (world: World, { retryFailed }: NetworkWorkload): Promise<void> => {
  const bound = world.agenda.now() + 2 * SETTLE_MS;
  for (;;) {
    const left = [...unsettledNetworks(world), ...(await straysOfNetworks(world))];
    if (left.length === 0) return checkNetworks(world);
    if (world.agenda.now() > bound) throw new Violation(`not settled: ${left.join('; ')}`);
    await until(world, 'operators have acted', retryFailed(), 5 * MINUTE);
    await pass(world, LOOK_MS);
  }
};

export const pass = async (world: World, ms: number): Promise<void> => {
  const bound = world.agenda.now() + ms;
  await until(world, 'time passes', world.agenda.sleep('world', ms), bound + 1);
};

/** Every incarnation's read models equal ones that are built from the log in one go. */
export const compareReadModels = async (world: World): Promise<void> => {
  const position = await world.log.lastPosition();
  if (position === undefined) return;
  const fresh = await openReadModels({
    dir: undefined,
    views: createViews(),
    source: { kind: 'inline', reader: world.log },
    timers: { after: (ms, run) => world.agenda.after('world', ms, run) },
    nowMs: () => 0,
  });
  try {
    for (const { name } of fresh.status()) {
      await fresh.waitFor(name, position, { timeoutMs: MINUTE });
      const wanted = await fresh.digest(name);
      for (const { system, life } of world.living()) {
        if (!(await system.readModels.waitFor(name, position, { timeoutMs: MINUTE }))) {
          throw new Violation(`${name} of ${life.name} does not reach the end of the log`);
        }
        const status = system.readModels.status().find((view) => view.name === name);
        if (status !== undefined && status.parkedStreams.length > 0) {
          throw new Violation(`${name} of ${life.name} parked ${JSON.stringify(status.parkedStreams)}`);
        }
        const found = await system.readModels.digest(name);
        if (found.position === wanted.position && found.digest !== wanted.digest) {
          throw new Violation(`${name} of ${life.name} differs from one that was built from the log`);
        }
      }
    }
  } finally {
    await fresh.close();
  }
};

/** Only while it simulates: a rejection that nobody handles is a finding, not the end of the process. */
const catchRejections = (found: (error: unknown) => void): (() => void) => {
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', found);
  return () => {
    process.removeListener('unhandledRejection', found);
    for (const other of others) process.on('unhandledRejection', other);
  };
};
