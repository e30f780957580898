import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { deriveDeploymentKeys } from '../../../src/adapters/keys/deployment-keys.ts';
import {
  createSimulatedHub,
  type SimulatedHub,
} from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { createMemorySecretStore } from '../../../src/adapters/secrets/memory-secret-store.ts';
import {
  createSimulatedSite,
  type SimulatedSite,
} from '../../../src/adapters/site/simulated/simulated-site.ts';
import type { Automation } from '../../../src/app/automation/automation.ts';
import type { Clock, Timers } from '../../../src/app/ports.ts';
import type { ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import type { SystemPorts } from '../../../src/composition/system.ts';
import { readHubObjects, readHubOrders, type HubObjectRow, type HubOrder } from '../hubs/hub-journal.ts';
import { createAgenda, type Agenda } from './agenda.ts';
import { NO_NETWORK_FAULTS } from './caller.ts';
import { createAutomationPort } from './automation-port.ts';
import { createHubPort } from './hub-port.ts';
import { createPlaybooks, type Playbooks, type Run } from './playbooks.ts';
import { createRealHub, type RealHub } from './real-hub.ts';
import { BEGINNING, startIncarnation, type Incarnation } from './incarnation.ts';
import { createLedger, Violation, type Ledger } from './invariants.ts';
import type { Life, Moment } from './life.ts';
import { deathOf, type Death, type Plan, type RealHubPlan } from './plan.ts';
import { randomOf, type Random } from './random.ts';
import { createSitePort } from './site-port.ts';
import { createStorePort, NO_STORE_FAULTS } from './store-port.ts';
import { createTrace, type Trace } from './trace.ts';

/** Real hubs take no settings: what goes wrong there is in the plan. */
export type WorldHub = ManagementCluster & { readonly control: Pick<SimulatedHub['control'], 'configure'> };

export type Plant = (ports: SystemPorts, life: Life) => SystemPorts;

/** What survives every incarnation, and the incarnations themselves. */
export type World = {
  readonly plan: Plan;
  readonly agenda: Agenda;
  readonly trace: Trace;
  readonly random: Random;
  readonly ledger: Ledger;
  readonly log: SystemPorts['store'];
  readonly hubs: ReadonlyMap<string, WorldHub>;
  /** What stands around the hubs of a zone. */
  readonly site: SimulatedSite;
  /** Every ClusterOrder that ever was on a hub, read from its own file. */
  ordersOn(hub: string): readonly HubOrder[];
  /** The same of every kind, on simulated hubs. */
  objectsOn(hub: string): readonly HubObjectRow[];
  /** Incarnations that live now, whether they answer or not. */
  living(): readonly Incarnation[];
  /** Starts an instance in its place; it is started again whenever it has died or stopped. */
  keepRunning(place: number): void;
  /** Nobody reaches these hubs, until others are named. */
  sendAway(hubs: readonly string[]): void;
  /** From now on nothing goes wrong any more and nobody dies. */
  calmDown(): void;
  isCalm(): boolean;
  /** Stops everybody, orderly. */
  stopAll(): Promise<void>;
  fail(violation: Violation): void;
  failure(): Violation | undefined;
  births(): number;
  /** Notes that this was done, for those who ask whether it ever was. */
  did(what: string): void;
  deeds(): readonly string[];
  /** How often each moment came in the life of the first incarnation. */
  moments(): ReadonlyMap<Moment, number>;
  /** What the automation of a hub was asked for. */
  runsOn(hub: string): readonly Run[];
  /** Milliseconds by which a wall clock was behind the furthest that there had been: back again, or in another place. */
  clockBack(): number;
  close(): Promise<void>;
};

/** The zone that has a site. */
export const ZONE = 'east';

/** Log lines that mean a bug, whatever went wrong around. */
const NEVER_LOGGED = [
  'run parked',
  'effect port failed unexpectedly',
  'process runner broke down',
  'hub observation failed',
  'effect result lost',
];

export const createWorld = (plan: Plan, folder: string, plant?: Plant): World => {
  const random = randomOf(plan.seed).fork('world');
  const agenda = createAgenda(random.fork('agenda'));
  const trace = createTrace(agenda.now);
  const log = createMemoryEventStore({
    singleWriter: plan.singleWriter,
    now: () => new Date(BEGINNING + Math.floor(agenda.now())).toISOString(),
  });
  let failure: Violation | undefined;
  let calm = false;
  let away: readonly string[] = plan.hubs.flatMap((hub) => (hub.away === true ? [hub.id] : []));
  let ending = false;
  /** Of each place, milliseconds by which its wall clock is off. */
  const clocks = new Map<number, number>();
  let furthestClock = 0;
  let clockBack = 0;
  let deathsLeft = plan.deaths;
  let births = 0;
  const done = new Set<string>();
  const firstMoments = new Map<Moment, number>();
  const lives = new Map<number, Incarnation>();
  const starting = new Set<Promise<void>>();
  const dead: Incarnation[] = [];
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => undefined);

  const fail = (violation: Violation): void => {
    failure ??= violation;
    trace.note('violation', violation.message);
  };

  const hubFile = (id: string): string => join(folder, `${id}.sqlite`);
  const reals = new Map<string, RealHub>();
  const playbooks = new Map<string, Playbooks>();
  const hubs = new Map(
    plan.hubs.map(({ id }): [string, WorldHub] => [
      id,
      plan.real === undefined ? createHub(id) : createReal(id, plan.real),
    ]),
  );
  function createReal(id: string, real: RealHubPlan): WorldHub {
    const hub = createRealHub(id, real, agenda);
    reals.set(id, hub);
    const world = {
      id,
      agenda,
      random: random.fork(`playbooks ${id}`),
      isCalm: () => calm,
      note: (what: string) => trace.note(id, what),
      violated: (what: string) => fail(new Violation(what)),
    };
    playbooks.set(id, createPlaybooks(hub, real, world));
    return { ...hub.cluster, control: { configure: async () => undefined } };
  }
  function createHub(id: string): SimulatedHub {
    const clock: Clock = {
      now: () => new Date(BEGINNING + Math.floor(agenda.now())).toISOString(),
      monotonicMs: agenda.now,
    };
    const timers: Timers = { after: (ms, run) => agenda.after(`hub ${id}`, ms, run) };
    const file = hubFile(id);
    const name = `${plan.seed} ${id}`;
    return createSimulatedHub({
      hubId: id,
      file,
      clock,
      timers,
      inline: true,
      seed: name,
      instance: 'world',
      watchPollMs: 3_600_000,
    });
  }

  const site = createSimulatedSite({
    zone: ZONE,
    file: join(folder, 'site.sqlite'),
    clock: {
      now: () => new Date(BEGINNING + Math.floor(agenda.now())).toISOString(),
      monotonicMs: agenda.now,
    },
    timers: { after: (ms, run) => agenda.after('site', ms, run) },
    inline: true,
    instance: 'world',
  });

  // A hub that nobody has called yet has no file.
  const ordersOn = (hub: string): readonly HubOrder[] =>
    reals.get(hub)?.orders() ?? (existsSync(hubFile(hub)) ? readHubOrders(hubFile(hub)) : []);
  const ledger = createLedger({
    ordersOn,
    hubs: () => [...hubs.keys()],
    fail,
  });
  const keys = deriveDeploymentKeys(Buffer.alloc(32, 1));
  const secrets = createMemorySecretStore({
    keys,
    now: () => new Date(BEGINNING + Math.floor(agenda.now())).toISOString(),
  });

  /** Files of a place as a dead process leaves them: what was committed is there, nothing is open. */
  const filesOf = (place: number, from: string | undefined): string => {
    const directory = join(folder, `place-${place}-${births}`);
    mkdirSync(directory, { recursive: true });
    if (from !== undefined) copyAfterDeath(from, directory);
    return directory;
  };

  const start = async (place: number, before: string | undefined, offset: number): Promise<string> => {
    births += 1;
    const name = `i${births}`;
    const mine = random.fork(name);
    const files = filesOf(place, before);
    const mayDie = !calm && deathsLeft > 0;
    const death: Death | undefined = mayDie ? (plan.death ?? deathOf(mine)) : undefined;
    if (death !== undefined) deathsLeft -= 1;
    const gone = Promise.withResolvers<void>();
    const ended = new AbortController();
    const moments = births === 1 ? firstMoments : new Map<Moment, number>();
    let alive = true;
    const die = (why: string): void => {
      if (!alive) return;
      alive = false;
      trace.note(name, `dies ${why}`);
      agenda.drop(name);
      if (mine.chance(0.5)) agenda.drop(`${name} sent`);
      const incarnation = lives.get(place);
      if (incarnation !== undefined) dead.push(incarnation);
      lives.delete(place);
      ended.abort();
      gone.resolve();
    };
    const life: Life = {
      name,
      owner: name,
      network: `${name} sent`,
      random: mine.fork('ports'),
      agenda,
      isAlive: () => alive,
      survives: (moment) => {
        const count = (moments.get(moment) ?? 0) + 1;
        moments.set(moment, count);
        if (!alive || death === undefined || calm || !('at' in death)) return alive;
        if (moment === death.at && count === death.count) die(moment);
        return alive;
      },
      ended: ended.signal,
      never: over.promise,
      note: (what) => trace.note(name, what),
    };
    const store = createStorePort({
      log,
      life,
      faults: () => (calm ? NO_STORE_FAULTS : plan.store),
      stored: ledger.stored,
    });
    const ports = new Map<string, ManagementCluster>();
    for (const [id, hub] of hubs) {
      const faults = () =>
        away.includes(id) ? { ...NO_NETWORK_FAULTS, refused: 1 } : calm ? NO_NETWORK_FAULTS : plan.network;
      ports.set(id, createHubPort({ hub, life, faults, witness: ledger.witness }));
    }
    const sitePort = createSitePort(ZONE, site, {
      life,
      faults: () => (calm ? NO_NETWORK_FAULTS : plan.network),
      witness: ledger.witness,
    });
    const automations = new Map<string, Automation>();
    for (const [id, { automation }] of playbooks) {
      const faults = () => (calm ? NO_NETWORK_FAULTS : plan.network);
      const port = { hub: id, automation, life, faults, witness: ledger.witness };
      automations.set(id, createAutomationPort(port));
    }
    trace.note(
      name,
      `starts in place ${place}${offset === 0 ? '' : `, its clock ${offset / 60_000} min off`}`,
    );
    const incarnation = await startIncarnation({
      life,
      store,
      clusters: { of: ({ id }) => ports.get(id) },
      automations: {
        of: ({ hub }) => {
          const automation = automations.get(hub);
          if (automation === undefined) throw new Error(`${hub} has no automation`);
          return automation;
        },
        close: async () => undefined,
      },
      sites: { of: (zone) => (zone === ZONE ? sitePort : undefined) },
      secrets,
      wallOffset: () => offset,
      processFile: plan.keepsIndex ? join(files, 'processes.sqlite') : ':memory:',
      upkeep: plan.everyKind !== undefined,
      ...(plant === undefined ? {} : { plant }),
      logged: (message, fields) => {
        if (!alive) return;
        const { err } = fields as { err?: unknown };
        const cause = err instanceof Error ? (err.stack ?? err.message) : '';
        if (NEVER_LOGGED.some((bad) => message.startsWith(bad))) fail(new Violation(`${message}: ${cause}`));
        else trace.note(name, `logs: ${message}`);
      },
    });
    incarnation.running.catch((error: unknown) => {
      if (alive) fail(new Violation(`${name} broke down: ${String((error as Error).stack)}`));
    });
    if (!alive) {
      dead.push(incarnation);
      return files;
    }
    lives.set(place, incarnation);
    if (death !== undefined && 'afterMs' in death) {
      agenda.after(name, death.afterMs, () => {
        if (calm) return;
        if (!death.graceful) return die(`after ${death.afterMs} ms`);
        trace.note(name, 'stops');
        lives.delete(place);
        void incarnation.stop().then(
          () => {
            checkLeft(incarnation);
            gone.resolve();
          },
          (error: unknown) => fail(new Violation(`${name} did not stop: ${String(error)}`)),
        );
      });
    }
    await gone.promise;
    return files;
  };

  const checkLeft = (stopped: Incarnation): void => {
    const left = stopped.timersLeft();
    if (left > 0) fail(new Violation(`${left} timers of ${stopped.life.name} are left after it has stopped`));
  };

  const place = async (number: number): Promise<void> => {
    let files: string | undefined;
    let offset = 0;
    clocks.set(number, offset);
    while (!ending) {
      files = await start(number, files, offset);
      if (ending) return;
      await agenda.sleep('world', calm ? 100 : random.int(3_000, 12_000));
      if (plan.clockJumps && !calm && random.chance(0.7)) {
        const jump = random.pick([-3_600_000, 3_600_000]);
        offset += jump;
        clocks.set(number, offset);
        furthestClock = Math.max(furthestClock, offset);
        clockBack = Math.max(clockBack, furthestClock - Math.min(...clocks.values()));
      }
    }
  };

  return {
    plan,
    agenda,
    trace,
    random,
    ledger,
    log,
    hubs,
    site,
    ordersOn,
    objectsOn: (hub) => (existsSync(hubFile(hub)) ? readHubObjects(hubFile(hub)) : []),
    living: () => [...lives.values()],
    keepRunning: (number) => {
      const kept = place(number).catch((error: unknown) =>
        fail(new Violation(`an incarnation could not be started: ${String((error as Error).stack)}`)),
      );
      starting.add(kept);
    },
    sendAway: (those) => {
      away = those;
    },
    calmDown: () => {
      calm = true;
    },
    isCalm: () => calm,
    stopAll: async () => {
      ending = true;
      const stopping = [...lives.values()];
      lives.clear();
      await Promise.all(
        stopping.map(async (incarnation) => {
          await incarnation.stop();
          checkLeft(incarnation);
        }),
      );
    },
    fail,
    failure: () => failure,
    births: () => births,
    did: (what) => done.add(what),
    deeds: () => [...done],
    moments: () => new Map(firstMoments),
    runsOn: (hub) => playbooks.get(hub)?.runs() ?? [],
    clockBack: () => clockBack,
    close: async () => {
      ending = true;
      over.reject(new Error('the simulation is over'));
      for (const incarnation of [...dead, ...lives.values()]) await incarnation.bury();
      for (const hub of hubs.values()) await hub.close();
      await site.close();
      await log.close();
    },
  };
};

/** Without the shared memory of connections that are still open; SQLite makes it anew from the write-ahead log. */
const copyAfterDeath = (from: string, to: string): void => {
  for (const entry of readdirSync(from)) {
    cpSync(join(from, entry), join(to, entry), {
      recursive: true,
      filter: (source) => !source.endsWith('-shm'),
    });
  }
};
