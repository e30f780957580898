import { basename } from 'node:path';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import type { Automations } from '../../../src/app/automation/automation.ts';
import type { ManagementClusters } from '../../../src/app/hubs/management-cluster.ts';
import type { Sites } from '../../../src/app/site/ports.ts';
import type { Clock, Ids, Logger, SecretStore, Timers } from '../../../src/app/ports.ts';
import { createSystem, type System, type SystemPorts } from '../../../src/composition/system.ts';
import { startUpkeep } from '../../../src/composition/upkeep.ts';
import { createApi, type Api } from './api.ts';
import { roundTrip, type Life } from './life.ts';
import { rest } from './agenda.ts';

/** Start of the virtual world. */
export const BEGINNING = Date.parse('2026-01-01T00:00:00.000Z');
/** Milliseconds of the settings that decide how long the simulated system waits. */
const HUB_CALL_MS = 2_000;
const EFFECT_MS = 5_000;
const BREAKER_MS = 8_000;
const LEASE_MS = 6_000;
const NAME_GRACE_MS = 4_000;
const STOP_GRACE_MS = 3_000;
const APPLIED_MS = 5_000;

export type IncarnationOptions = {
  readonly life: Life;
  readonly store: SystemPorts['store'];
  readonly clusters: ManagementClusters;
  readonly automations: Automations;
  readonly sites: Sites;
  readonly secrets: SecretStore;
  /** Milliseconds by which its wall clock is off; may change while it lives. */
  readonly wallOffset: () => number;
  readonly processFile: string;
  /** It looks after what tenants are given with their beginning. */
  readonly upkeep?: boolean;
  /** Exchanges ports for ones with a known bug (self-test). */
  readonly plant?: (ports: SystemPorts, life: Life) => SystemPorts;
  /** A line of its log at level error. */
  readonly logged: (message: string, fields: object) => void;
};

export type Incarnation = {
  readonly life: Life;
  readonly system: System;
  readonly api: Api;
  /** Rejects when a part that must run broke down. */
  readonly running: Promise<void>;
  /** True when it would say so on /readyz: its read models have caught up. */
  isReady(): boolean;
  /** Timers that neither fired nor were cancelled. */
  timersLeft(): number;
  /** Graceful: resolves when everything has stopped. The agenda has to go on meanwhile. */
  stop(): Promise<void>;
  /** After death: closes what would otherwise wait for the garbage collector. */
  bury(): Promise<void>;
};

export const startIncarnation = async (options: IncarnationOptions): Promise<Incarnation> => {
  const { life } = options;
  const logger = loggerOf(options.logged);
  const clock = clockOf(options);
  const waiting = new Set<object>();
  const timers: Timers = {
    after: (ms, run) => {
      const timer = {};
      waiting.add(timer);
      const cancel = life.agenda.after(life.owner, ms, () => {
        waiting.delete(timer);
        run();
      });
      return () => {
        waiting.delete(timer);
        cancel();
      };
    },
  };
  const ownership = (store: SystemPorts['store'], by: Timers) =>
    createLeases({
      store,
      instance: life.name,
      // A file that it keeps over its deaths is one that nobody else uses. Its folder has another name in each run.
      directory: options.processFile === ':memory:' ? life.name : basename(options.processFile),
      clock,
      timers: by,
      logger,
      ttlMs: LEASE_MS,
    })('processes');
  const bare: SystemPorts = {
    store: options.store,
    clock,
    timers,
    ids: idsOf(life, clock),
    newSalt: saltsOf(),
    logger,
    instance: life.name,
    clusters: options.clusters,
    automations: options.automations,
    sites: options.sites,
    secrets: slowly(options.secrets, life),
    ownership: ownership(options.store, timers),
    driver: {
      deployment: { deploymentId: 'deployment', name: 'ledger', formerIds: [] },
      holder: options.processFile === ':memory:' ? life.name : options.processFile,
    },
    recordRejection: () => undefined,
    readModels: {
      dir: undefined,
      source: { kind: 'inline', reader: options.store },
      nowMs: () => Date.parse(clock.now()),
    },
    processFile: options.processFile,
    failpoint: (name) => (life.survives(`at ${name}`) ? undefined : life.never),
    settings: {
      processes: {
        effectDeadlineMs: EFFECT_MS,
        breakerHalfOpenMs: BREAKER_MS,
        stopGraceMs: STOP_GRACE_MS,
      },
      nameGraceMs: NAME_GRACE_MS,
      hubCallDeadlineMs: HUB_CALL_MS,
    },
  };
  const ports = options.plant?.(bare, life) ?? bare;
  const system = await createSystem(ports);
  const api = createApi({ system, ports, life });
  const end = new AbortController();
  const running = Promise.all([system.runRegistries(end.signal), system.runProcesses(end.signal)]).then(
    () => undefined,
  );
  running.catch(() => undefined);
  const { resources, waitFor } = system.readModels;
  const upkeep =
    options.upkeep === true
      ? startUpkeep(
          {
            ...ports,
            ...system,
            resources,
            erasures: { finish: async () => 0 },
            applied: (position) => waitFor('resources', position, { timeoutMs: APPLIED_MS }),
          },
          end.signal,
        )
      : undefined;
  return {
    life,
    system,
    api,
    running,
    isReady: () => system.readModels.status().every(({ caughtUp }) => caughtUp),
    timersLeft: () => waiting.size,
    stop: async () => {
      end.abort();
      // As the listeners do, which answer what is under way first.
      await Promise.all([running, api.idle(), upkeep?.ended]);
      await system.idle();
      await system.close();
    },
    bury: async () => {
      end.abort();
      // What hangs on an answer that never comes stays; the files of the read models are closed by then.
      await Promise.race([system.close(), turns(5)]).catch(() => undefined);
    },
  };
};

const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i += 1) await rest();
};

const clockOf = ({ life, wallOffset }: IncarnationOptions): Clock => {
  const { agenda } = life;
  const born = agenda.now() - life.random.int(0, 1_000_000);
  return {
    now: () => new Date(BEGINNING + Math.floor(agenda.now()) + wallOffset()).toISOString(),
    monotonicMs: () => agenda.now() - born,
  };
};

/** UUIDv7 of the virtual time; unique in one simulation since every incarnation has random numbers of its own. */
const idsOf = ({ random }: Life, clock: Clock): Ids => {
  let count = 0;
  const hex = (digits: number): string =>
    random
      .int(0, 16 ** digits - 1)
      .toString(16)
      .padStart(digits, '0');
  return {
    uuidv7: () => {
      count = (count + 1) % 4096;
      const time = Date.parse(clock.now()).toString(16).padStart(12, '0');
      return `${time.slice(0, 8)}-${time.slice(8)}-7${count.toString(16).padStart(3, '0')}-8${hex(3)}-${hex(6)}${hex(6)}`;
    },
  };
};

/** One seed gives one history: salts are counted. */
const saltsOf = (): (() => string) => {
  let count = 0;
  return () => {
    count += 1;
    return count.toString(16).padStart(32, '0');
  };
};

const loggerOf = (logged: IncarnationOptions['logged']): Logger => {
  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: (fields, message) => logged(message, fields),
    child: () => logger,
  };
  return logger;
};

const slowly = (secrets: SecretStore, life: Life): SecretStore => ({
  put: async (secret) => {
    await roundTrip(life, life.random.int(0, 2));
    return secrets.put(secret);
  },
  reveal: async (ref, tenant) => {
    await roundTrip(life, life.random.int(0, 2));
    return secrets.reveal(ref, tenant);
  },
  remove: (ref) => secrets.remove(ref),
  list: () => secrets.list(),
});
