import { createCommandRunner, type CommandHooks } from '../app/commands/command-runner.ts';
import type { CommandRunner } from '../app/commands/command.ts';
import { createCheckpoint } from '../app/log/checkpoint.ts';
import { createEventCodec, type EventCodec } from '../app/log/event-codec.ts';
import type { EventStore } from '../app/log/event-store.ts';
import { createHolders } from '../app/hubs/holders.ts';
import { lanesOfHub, lookWhenClosed, pacingOfLanes, probeOnNewCredentials } from '../app/hubs/hub-lanes.ts';
import { finishDecommissions } from '../app/hubs/hub-decommission.ts';
import { createHubHealth, type HubHealthMonitor } from '../app/hubs/hub-health.ts';
import { createObjectLooks } from '../app/hubs/hub-looks.ts';
import { drivenClusters } from '../app/hubs/driven-hubs.ts';
import type { Deployment } from '../app/deployment/deployment.ts';
import { createHubEpochs } from '../app/hubs/hub-epochs.ts';
import { createHubMarks, type HubMarks } from '../app/hubs/hub-marks.ts';
import { createHubObserver, type HubObserver } from '../app/hubs/hub-observer.ts';
import { createHubRegistry, type HubRegistry } from '../app/hubs/hub-registry.ts';
import type { ManagementClusters } from '../app/hubs/management-cluster.ts';
import { createNameRepair, type NameRepair } from '../app/names/name-repair.ts';
import { createNames } from '../app/names/names.ts';
import { orderLog } from '../app/process-runner/order-log.ts';
import type { Ownership } from '../app/deployment/ownership.ts';
import type { Ids, RecordRejection, Runtime } from '../app/ports.ts';
import { createProcessPort } from '../app/process-runner/process-port.ts';
import { pause } from '../app/process-runner/pause.ts';
import { createProcessRunner } from '../app/process-runner/process-runner.ts';
import type {
  CommandTarget,
  Failpoint,
  ProcessHooks,
  ProcessRunner,
  ProcessRunnerSettings,
} from '../app/process-runner/types.ts';
import { createResourceCommands, type ResourceCommands } from '../app/commands/resource-commands.ts';
import { declareCapacities } from '../app/hubs/scheduler.ts';
import type { LongFolds } from '../app/commands/long-folds.ts';
import type { SnapshotStore } from '../app/commands/snapshot-store.ts';
import type { ActingKind } from '../domain/acting-kind.ts';
import { actingKinds, workflowOn } from '../domain/acting-kinds.ts';
import { LANE_PAUSES } from '../domain/hubs/lane-pauses.ts';
import { aggregates, kinds, lanePausesAggregate, lifecycle } from '../domain/kinds.ts';
import type { OpenPersonal } from '../domain/personal.ts';
import { processEventTypes } from '../domain/process/event-types.ts';
import { eventTypes } from '../domain/registry.ts';
import type { JsonObject } from '../domain/json.ts';
import { appliedTo } from '../projections/applied-to.ts';
import { openReadModels, type ReadModelsOptions } from '../projections/open-read-models.ts';
import type { ReadModels } from '../projections/read-models.ts';
import { createViews } from '../projections/views.ts';
import { createAuditing, type AuditorPorts, type Auditing } from './auditing.ts';
import { caughtUpWith } from './read-model-wait.ts';
import { createEffectPorts, type EffectSurroundings } from './effect-ports.ts';
import { REPAIRS } from './repairs.ts';
import { describeRun, refsOfRun } from './run-state.ts';
import { SWEEP_EVERY_MS, sweepSecrets } from './secret-sweeps.ts';
import { createSecretSweeper, createSecretUses } from '../app/secrets/stored-secrets.ts';
import { defined } from '../domain/json-tools.ts';

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
  };
};

export type System = {
  readonly codec: EventCodec;
  readonly runner: CommandRunner;
  readonly commands: ResourceCommands;
  readonly readModels: ReadModels;
  readonly hubs: HubRegistry;
  readonly hubHealth: HubHealthMonitor;
  readonly marks: HubMarks;
  readonly processes: ProcessRunner;
  readonly observer: HubObserver;
  readonly names: NameRepair;
  /** Tree over the log, its signed heads and proofs; undefined without the role `auditor`. */
  readonly auditing: Auditing | undefined;
  /** Follows the registered hubs; every instance needs it. Returns when the signal was aborted. */
  runHubRegistry(signal: AbortSignal): Promise<void>;
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
  const effects = createEffectPorts({ hubs, looks, runner, marks, processes: port }, ports);
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
      workflows: actingKinds.map(({ workflow }) => workflow),
      runEventTypes: processEventTypes.map(({ type }) => type),
      effectPorts: effects.effectPorts,
      effectDeadlinesMs: effects.effectDeadlinesMs,
      commandTargets: commandTargets(commands, ports.tenantsSeeJobErrors === true),
      // Instances that stand by need neither watch the hubs nor repair names.
      whileLive: async (signal) => {
        const ending = { registry: hubs, commandRunner: runner, commands, clock, timers, logger, signal };
        const holders = createHolders(port, runner);
        const pages = (kind: string, size: number) => readModels.resources.pages(kind, size);
        await Promise.all([
          observer.run(signal),
          hubHealth.run(signal),
          finishDecommissions(ending),
          ...REPAIRS.map((repair) => repair({ ...ending, holders, pages })),
          repair.run(signal),
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
    hubHealth,
    marks,
    processes,
    observer,
    names: repair,
    auditing:
      ports.auditor === undefined
        ? undefined
        : createAuditing(readModels, { ...ports, auditor: ports.auditor }),
    runHubRegistry: (signal) => hubs.run(signal),
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
