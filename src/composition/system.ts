import { createCommandRunner, type CommandHooks } from '../app/commands/command-runner.ts';
import type { CommandRunner } from '../app/commands/command.ts';
import type { LongFolds } from '../app/commands/loaded-streams.ts';
import { createResourceCommands, type ResourceCommands } from '../app/commands/resource-commands.ts';
import type { SnapshotStore } from '../app/commands/snapshot-store.ts';
import type { Deployment } from '../app/deployment/deployment.ts';
import type { Ownership } from '../app/deployment/ownership.ts';
import { repairAddresses } from '../app/hubs/address-repair.ts';
import { type SiteOfHub, siteOfHubs } from '../app/agents/agent-effects.ts';
import { type HotPoolSettings, keepAgentPools } from '../app/agents/agent-keeper.ts';
import { repairAgents } from '../app/agents/agent-repair.ts';
import { repairCapacity } from '../app/hubs/capacity-repair.ts';
import { drivenClusters } from '../app/hubs/driven-hubs.ts';
import { createHolders } from '../app/hubs/holders.ts';
import { finishDecommissions } from '../app/hubs/hub-decommission.ts';
import { createHubEpochs } from '../app/hubs/hub-epochs.ts';
import { createHubHealth, type HubHealthMonitor } from '../app/hubs/hub-health.ts';
import { lanesOfHub, lookWhenClosed, pacingOfLanes, probeOnNewCredentials } from '../app/hubs/hub-lanes.ts';
import { createObjectLooks } from '../app/hubs/hub-looks.ts';
import { createHubMarks, type HubMarks } from '../app/hubs/hub-marks.ts';
import { createHubObserver, type HubObserver } from '../app/hubs/hub-observer.ts';
import { createHubRegistry, type HubRegistry } from '../app/hubs/hub-registry.ts';
import type { ManagementClusters } from '../app/hubs/management-cluster.ts';
import { declareCapacities } from '../app/hubs/scheduler.ts';
import { repairTakings } from '../app/hubs/taking-repair.ts';
import { createPoolRegistry, type PoolRegistry } from '../app/pools/pool-registry.ts';
import { createCheckpoint } from '../app/log/checkpoint.ts';
import { type EventCodec, createEventCodec } from '../app/log/event-codec.ts';
import type { EventStore } from '../app/log/event-store.ts';
import { createNameRepair, type NameRepair } from '../app/names/name-repair.ts';
import { createNames } from '../app/names/names.ts';
import type { Clock, Logger, Timers, Ids, RecordRejection, Runtime } from '../app/ports.ts';
import { foldRun } from '../app/process-runner/fold-run.ts';
import { orderLog } from '../app/process-runner/order-log.ts';
import { pause } from '../app/process-runner/pause.ts';
import { createProcessPort } from '../app/process-runner/process-port.ts';
import { createProcessRunner } from '../app/process-runner/process-runner.ts';
import { isKnown } from '../app/process-runner/run.ts';
import type {
  CommandTarget,
  Failpoint,
  ProcessHooks,
  ProcessRunner,
  ProcessRunnerSettings,
} from '../app/process-runner/types.ts';
import { ownsAgents } from '../app/site/offered-site.ts';
import { createSiteRegistry } from '../app/site/site-registry.ts';
import {
  secretRefsIn,
  type StoredValue,
  type SecretSweeper,
  createSecretSweeper,
  createSecretUses,
} from '../app/secrets/stored-secrets.ts';
import type { ActingKind } from '../domain/acting-kind.ts';
import { actingKinds, workflowOn, works } from '../domain/acting-kinds.ts';
import { LANE_PAUSES } from '../domain/hubs/lane-pauses.ts';
import { defined } from '../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../domain/json.ts';
import { kindOf, aggregates, hostType, kinds, lanePausesAggregate, lifecycle } from '../domain/kinds.ts';
import type { OpenPersonal } from '../domain/personal.ts';
import { shownDecisions } from '../domain/process/decisions.ts';
import { processEventTypes } from '../domain/process/event-types.ts';
import type { AnyRun } from '../domain/process/run.ts';
import { isUnwinding } from '../domain/process/undo.ts';
import { eventTypes } from '../domain/registry.ts';
import { parseStreamName } from '../domain/stream-name.ts';
import type { PendingEffect } from '../domain/workflow.ts';
import { appliedTo } from '../projections/applied-to.ts';
import { openReadModels, type ReadModelsOptions } from '../projections/open-read-models.ts';
import type { ReadModels } from '../projections/read-models.ts';
import { createViews } from '../projections/views.ts';
import { createAuditing, type AuditorPorts, type Auditing } from './auditing.ts';
import { createEffectPorts, type EffectSurroundings } from './effect-ports.ts';

/** Milliseconds that a deletion waits for the read model before it is to be repeated. */
const WAIT_MS = 2_000;
/** Events that the read model may be behind for it to be worth waiting. */
const MOST_BEHIND = 2_000;
const VIEW = 'resources';

/**
 * Resolves true once the read model shows every resource that the log held at the call. The end of the log alone does
 * not say that: the position of a view moves on at the events it shows, and only now and then at others.
 */
export const caughtUpWith =
  (store: Pick<EventStore, 'readAll'>, readModels: Pick<ReadModels, 'status' | 'waitFor'>) =>
  async (signal?: AbortSignal): Promise<boolean> => {
    const after = readModels.status().find(({ name }) => name === VIEW)?.position;
    const range = { limit: MOST_BEHIND, ...(after && { after }), ...(signal && { signal }) };
    let last: string | undefined;
    let behind = 0;
    for await (const { stream, position } of store.readAll(range)) {
      behind += 1;
      if (kindOf(parseStreamName(stream).category) !== undefined) last = position;
    }
    if (behind === MOST_BEHIND) return false;
    return (
      last === undefined || readModels.waitFor(VIEW, last, { timeoutMs: WAIT_MS, ...(signal && { signal }) })
    );
  };

/** Ids of all host types: a class of hosts is named by one. */
const hostTypes = ({ resources }: Pick<ReadModels, 'resources'>): readonly string[] =>
  [...resources.pages(hostType.kind, 100)].flat().map(({ id }) => id);

/** What gives back things that are held for objects that are over. */
const REPAIRS = [repairAgents, repairCapacity, repairAddresses, repairTakings];

/** What the run of an order still means to hand to a hub; nothing once it is closed. */
export const refsOfRun = async (
  { workflow }: ActingKind,
  runId: string,
  store: EventStore,
  codec: EventCodec,
): Promise<readonly StoredValue[]> => {
  const { state } = await foldRun(workflow, runId, store, codec);
  return workflow.isClosed(state) ? [] : [...secretRefsIn(state as JsonValue)];
};

/** What a workflow's run has outstanding; undefined when there is no such run. */
export const describeRun = async (
  { workflow }: ActingKind,
  runId: string,
  store: EventStore,
  codec: EventCodec,
  /** Why an effect is not tried; undefined: it is. */
  heldBack: (effect: PendingEffect) => string | undefined,
): Promise<JsonObject | undefined> => {
  const run = await foldRun(workflow, runId, store, codec);
  if (!isKnown(run)) return undefined;
  const { state, revision } = run;
  const { commands, effects, timers } = workflow.pending(state);
  const isIdle = commands.length + effects.length + timers.length === 0;
  const isHalted = (state as AnyRun).halted !== undefined && !isUnwinding(state as AnyRun);
  return {
    closed: workflow.isClosed(state),
    idle: isIdle || isHalted,
    events: revision + 1,
    ...shownDecisions(state as AnyRun),
    steps: workflow.shownSteps(state).map((step): JsonObject => ({ ...step })),
    commands: commands.map(({ command }) => command.type),
    effects: effects.map((effect) => {
      const { operation, attempt, mode, lane, notBefore } = effect;
      const held = heldBack(effect);
      return {
        operation,
        attempt,
        mode,
        lane,
        ...defined({ not_before: notBefore, held_back: held }),
      };
    }),
    timers: timers.map(({ timerId, dueAt }) => ({ timer: timerId, due_at: dueAt })),
  };
};

/** Milliseconds between two sweeps, and the age below which a stored secret may still get its event. */
export const SWEEP_EVERY_MS = 3_600_000;
/** Milliseconds after the start until what a crash left is looked for; other work comes first. */
export const FIRST_SWEEP_MS = 60_000;

type SweepGuards = {
  /** The runs are up to date: one that has not heard of a new secret yet still needs the old one. */
  readonly isLive: () => boolean;
  /**
   * Another service drives a hub of this log, so this log may be a copy that shares its secrets directory with the
   * original: what this log does not know may be in use there.
   */
  readonly isHeldBack: () => boolean;
};

/** Removes secrets that nothing uses any more, until the signal is aborted. */
export const sweepSecrets = async (
  { clock, timers, logger }: { readonly clock: Clock; readonly timers: Timers; readonly logger: Logger },
  sweeper: SecretSweeper,
  { isLive, isHeldBack }: SweepGuards,
  signal: AbortSignal,
): Promise<void> => {
  for (let wait = FIRST_SWEEP_MS; !signal.aborted; wait = SWEEP_EVERY_MS) {
    await pause(timers, wait, signal);
    if (signal.aborted || !isLive() || isHeldBack()) continue;
    try {
      const swept = await sweeper.sweep(clock.now(), signal);
      if (swept.removed > 0) logger.info(swept, 'unused secrets removed');
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error }, 'search for unused secrets failed; retrying later');
    }
  }
};

/** Everything outside the system. The simulation schedules exactly these and nothing else. */
export type SystemPorts = EffectSurroundings & {
  readonly store: EventStore;
  readonly ids: Ids;
  /** Salts of events that hide something (`createEventCodec`); default: by chance. Simulations make their own. */
  readonly newSalt?: () => string;
  /** Name of this process incarnation, unique among all that share the store. */
  readonly instance: string;
  /** Adapters of management clusters. */
  readonly clusters: ManagementClusters;
  /** Tenants read what failed jobs of the hubs' automation said. */
  readonly tenantsSeeJobErrors?: boolean;
  readonly ownership: Ownership;
  /** Whose mark stands on the hubs that this instance drives, and the id of its data directory. */
  readonly driver: {
    readonly deployment: Pick<Deployment, 'deploymentId' | 'name' | 'formerIds'>;
    readonly holder: string;
  };
  readonly recordRejection: RecordRejection;
  /** The role `auditor`; absent: no tree over the log is kept or signed. */
  readonly auditor?: AuditorPorts;
  readonly snapshots?: SnapshotStore;
  readonly longFolds?: LongFolds;
  /** Opens personal data of documents for the read models; without it they show ciphertext. */
  readonly openPersonal?: OpenPersonal;
  /** Where the read models live and how they read the log; inline for the simulation. */
  readonly readModels: Pick<ReadModelsOptions, 'dir' | 'source' | 'openFeed' | 'hooks' | 'nowMs'>;
  /** The process runner's disposable index. */
  readonly processFile: string;
  readonly hooks?: CommandHooks & ProcessHooks;
  readonly failpoint?: Failpoint;
  readonly settings?: {
    readonly processes?: Partial<ProcessRunnerSettings>;
    readonly nameGraceMs?: number;
    readonly hotPool?: HotPoolSettings;
  };
};

export type System = {
  readonly codec: EventCodec;
  readonly runner: CommandRunner;
  readonly commands: ResourceCommands;
  readonly readModels: ReadModels;
  readonly hubs: HubRegistry;
  readonly siteOfHub: SiteOfHub;
  readonly pools: PoolRegistry;
  readonly hubHealth: HubHealthMonitor;
  readonly marks: HubMarks;
  readonly processes: ProcessRunner;
  readonly observer: HubObserver;
  readonly names: NameRepair;
  /** Tree over the log, its signed heads and proofs; undefined without the role `auditor`. */
  readonly auditing: Auditing | undefined;
  /** Follows the registered hubs and the pools; every instance needs it. Returns when the signal was aborted. */
  runRegistries(signal: AbortSignal): Promise<void>;
  /** The role `processes`: workflows, hub watches, repair of names. Returns when everything has stopped. */
  runProcesses(signal: AbortSignal): Promise<void>;
  /** What the workflow of an order has outstanding; undefined when it has no run. */
  runOf(kind: ActingKind, id: string): Promise<JsonObject | undefined>;
  /** Resolves when no command is being carried out. */
  idle(): Promise<void>;
  /** Closes the read models; the ports stay with their owner. */
  close(): Promise<void>;
};

/** Builds one system on its ports. Holds no state outside of what it returns: many can live in one process. */
export const createSystem = async (ports: SystemPorts): Promise<System> => {
  const { store, clock, timers, ids, logger, instance, hooks } = ports;
  /** What most parts run on, each with a name of its own in the log. */
  const runtime = (component: string): Runtime => ({
    clock,
    timers,
    ids,
    instance,
    logger: logger.child({ component }),
  });
  const codec = createEventCodec(eventTypes, ports.newSalt);
  const readModels = await openReadModels({
    ...ports.readModels,
    views: createViews({ audit: ports.auditor !== undefined, ...defined({ open: ports.openPersonal }) }),
    logger: logger.child({ component: 'projections' }),
    timers,
  });
  const runner = createCommandRunner({
    store,
    codec,
    clock,
    instance,
    recordRejection: ports.recordRejection,
    commandIndex: {
      find: async (stream, commandId) => readModels.resources.findAppend(stream, commandId),
      appliedTo: (stream) => appliedTo(readModels, 'resources', stream),
    },
    ...defined({ snapshots: ports.snapshots, longFolds: ports.longFolds }),
    hooks: { ...hooks, onStored: orderLog(logger) },
  });
  const names = createNames({ runner, clock, ids });
  const commands = createResourceCommands({
    runner,
    names,
    clock,
    recordRejection: ports.recordRejection,
    timers,
    singleWriter: store.singleWriter,
    caughtUp: caughtUpWith(store, readModels),
    announcedTo: (kind, id, before) =>
      readModels.resources.announcedTo(kind, id, { before, limit: ANNOUNCED_AT_ONCE }),
    onLeftBehind: (error) => logger.warn({ err: error }, 'names not given back; name repair does it later'),
  });
  const hubs = createHubRegistry({
    store,
    codec,
    clusters: drivenClusters(ports.clusters, {
      assertDriven: (hub, signal) => marks.assertDriven(hub, signal),
    }),
    ...runtime('hub-registry'),
  });
  const pools = createPoolRegistry({ store, codec, ...runtime('pool-registry') });
  const port = createProcessPort();
  const hubHealth = createHubHealth({
    registry: hubs,
    commandRunner: runner,
    ...runtime('hub-health'),
    ...defined({ automations: ports.automations }),
    recovered: (hub) => lanesOfHub(hub).forEach(port.probeLane),
    isHeldUp: (hub) => lanesOfHub(hub).some((each) => port.laneBlocked(each)),
  });
  const marks = createHubMarks({
    registry: hubs,
    epochs: createHubEpochs({ store, clock, ids, instance, holder: ports.driver.holder }),
    ...ports.driver,
    report: (hub, driver) => hubHealth.report(hub, { driver }),
    ...runtime('hub-marks'),
  });
  const looks = createObjectLooks();
  const observer = createHubObserver({
    registry: hubs,
    looks,
    observe: (object, id, observation) => port.observe(workflowOn(object), id, observation),
    isOver: (object, id) => port.isClosed(workflowOn(object), id),
    isUnknown: (object, id) => port.isUnknown(workflowOn(object), id),
    ...runtime('hub-observer'),
  });
  const sites = createSiteRegistry(hubs, ports.sites);
  const effects = createEffectPorts(
    { hubs, sites, pools, looks, runner, commands, marks, processes: port },
    ports,
  );
  const repair = createNameRepair({
    store,
    runner,
    names,
    kinds,
    lifecycle,
    checkpoint: createCheckpoint({ store, name: 'checkpoint-names', clock, ids, instance }),
    ...runtime('name-repair'),
    ...defined({ graceMs: ports.settings?.nameGraceMs }),
  });
  const processes = port.plugIn(
    createProcessRunner({
      store,
      codec,
      commandRunner: runner,
      aggregates: Object.fromEntries(aggregates.map((aggregate) => [aggregate.category, aggregate])),
      workflows: works.map(({ workflow }) => workflow),
      runEventTypes: processEventTypes.map(({ type }) => type),
      effectPorts: effects.effectPorts,
      effectDeadlinesMs: effects.effectDeadlinesMs,
      commandTargets: commandTargets(commands, ports.tenantsSeeJobErrors === true),
      // Instances that stand by need neither watch the hubs nor repair names.
      whileLive: async (signal) => {
        const ending = { registry: hubs, commandRunner: runner, commands, clock, timers, logger, signal };
        const holders = createHolders(port, runner);
        const { pages, lent } = readModels.resources;
        await Promise.all([
          observer.run(signal),
          hubHealth.run(signal),
          finishDecommissions(ending),
          ...REPAIRS.map((repair) => repair({ ...ending, holders, pages, lent })),
          repair.run(signal),
          ...(ports.sites === undefined
            ? []
            : [
                keepAgentPools({
                  ...ending,
                  siteOf: (id) => {
                    const facts = hubs.get(id)?.facts;
                    return facts !== undefined && ownsAgents(facts, sites, pools)
                      ? siteOfHubs(hubs, sites)(id)
                      : undefined;
                  },
                  hostClasses: () => hostTypes(readModels),
                  ...defined({ settings: ports.settings?.hotPool }),
                }),
              ]),
        ]);
      },
      ...runtime('processes'),
      ownership: marks.marking(ports.ownership),
      isHeldBack: (effect) => effects.heldBack(effect) !== undefined,
      dataFile: ports.processFile,
      pausedLanes: async () =>
        new Map(Object.entries((await runner.load(lanePausesAggregate, LANE_PAUSES)).state.paused)),
      lanePacing: pacingOfLanes(hubs, observer.ordersOn),
      hooks: lookWhenClosed(hubHealth.lookSoon, hooks),
      ...defined({ failpoint: ports.failpoint, settings: ports.settings?.processes }),
    }),
  );
  const sweeper = createSecretSweeper({
    secrets: ports.secrets,
    use: createSecretUses({
      runner,
      kinds: kinds.filter(({ secrets }) => secrets.length > 0),
      referencedBy: (kind, id, page) => readModels.resources.referencedBy(kind, id, page),
      refsOfRun: (kind, id) => refsOfRun(kind, id, store, codec),
    }),
    olderThanMs: SWEEP_EVERY_MS,
    rest: (signal) => pause(timers, 0, signal),
  });

  return {
    codec,
    runner,
    commands,
    readModels,
    hubs,
    siteOfHub: siteOfHubs(hubs, sites),
    pools,
    hubHealth,
    marks,
    processes,
    observer,
    names: repair,
    auditing:
      ports.auditor === undefined
        ? undefined
        : createAuditing(readModels, { ...ports, auditor: ports.auditor }),
    runRegistries: async (signal) => {
      await Promise.all([hubs.run(signal), pools.run(signal)]);
    },
    runProcesses: async (signal) => {
      const isOwner = (): boolean => processes.status().epoch !== undefined;
      const stopDeclaring = declareCapacities({
        registry: hubs,
        commandRunner: runner,
        clock,
        logger,
        isOwner,
      });
      const stopProbing = probeOnNewCredentials(hubs, processes.probeLane);
      try {
        await Promise.all([
          processes.start(signal),
          marks.run(signal),
          sweepSecrets(
            ports,
            sweeper,
            {
              isLive: () => processes.status().state === 'live',
              isHeldBack: () => hubs.hubs().some(({ facts }) => marks.heldBack(facts.id) !== undefined),
            },
            signal,
          ),
        ]);
      } finally {
        stopProbing();
        stopDeclaring();
      }
    },
    runOf: (kind, id) => describeRun(kind, id, store, codec, effects.heldBack),
    idle: () => runner.idle(),
    close: () => readModels.close(),
  };
};

/** Workflows give commands to what they carry out: one that is gone gives its name back in the same step. */
const commandTargets = (
  commands: ResourceCommands,
  tenantsSeeJobErrors: boolean,
): { readonly [aggregate: string]: CommandTarget } =>
  Object.fromEntries(
    actingKinds.map((kind) => [
      kind.kind,
      (id, command, context) => {
        const { correlationId } = context;
        const whole = kind.completed?.(command, { correlationId, tenantsSeeJobErrors }) ?? command;
        return commands.execute(kind, id, whole, context);
      },
    ]),
  );

/** Announced references that a deletion withdraws before it looks again. */
const ANNOUNCED_AT_ONCE = 100;
