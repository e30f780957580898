import {
  AUTOMATION_EFFECT_DEADLINE_MS,
  AUTOMATION_PORT,
  createAutomationEffects,
  type AutomationEffectSettings,
} from '../app/automation-effects.ts';
import { repairCapacity } from '../app/capacity-repair.ts';
import { createCommandRunner, type CommandHooks } from '../app/command-runner.ts';
import type { CommandRunner } from '../app/command.ts';
import { createCheckpoint } from '../app/checkpoint.ts';
import { createEventCodec, type EventCodec } from '../app/event-codec.ts';
import type { EventStore } from '../app/event-store.ts';
import type { Automations } from '../app/automation.ts';
import {
  laneOfHub,
  lanesOfHub,
  lookWhenClosed,
  pacingOfLanes,
  probeOnNewCredentials,
} from '../app/hub-lanes.ts';
import { finishDecommissions } from '../app/hub-decommission.ts';
import { createHubHealth, type HubHealthMonitor } from '../app/hub-health.ts';
import { createClusterLooks } from '../app/hub-looks.ts';
import { drivenAutomations, drivenClusters } from '../app/driven-hubs.ts';
import type { Deployment } from '../app/deployment.ts';
import { createHubEpochs } from '../app/hub-epochs.ts';
import { createHubMarks, type HubMarks } from '../app/hub-marks.ts';
import { createHubObserver, type HubObserver } from '../app/hub-observer.ts';
import { createHubRegistry, type HubRegistry } from '../app/hub-registry.ts';
import { createManagementClusterEffects } from '../app/management-cluster-effects.ts';
import type { ManagementClusters } from '../app/management-cluster.ts';
import { createNameRepair, type NameRepair, type RepairableKind } from '../app/name-repair.ts';
import { createNames } from '../app/names.ts';
import { orderLog } from '../app/order-log.ts';
import type { Ownership } from '../app/ownership.ts';
import type { Clock, Ids, Logger, RecordRejection, SecretStore, Timers } from '../app/ports.ts';
import { pause } from '../app/process-runner/pause.ts';
import { createProcessRunner } from '../app/process-runner/process-runner.ts';
import type {
  AnyWorkflow,
  Failpoint,
  ProcessHooks,
  ProcessRunner,
  ProcessRunnerSettings,
} from '../app/process-runner/types.ts';
import { createResourceCommands, type ResourceCommands } from '../app/resource-commands.ts';
import { createScheduler, declareCapacities } from '../app/scheduler.ts';
import type { LongFolds } from '../app/long-folds.ts';
import type { SnapshotStore } from '../app/snapshot-store.ts';
import { clusterOrderWorkflow } from '../domain/clusters/order-workflow/workflow.ts';
import type { ClusterCommand } from '../domain/clusters/commands.ts';
import { isStoredCluster } from '../domain/clusters/state.ts';
import { LANE_PAUSES } from '../domain/hubs/lane-pauses.ts';
import {
  aggregates,
  cluster,
  clusterAggregate,
  kinds,
  lanePausesAggregate,
  lifecycle,
} from '../domain/kinds.ts';
import type { OpenPersonal } from '../domain/personal.ts';
import { processEventTypes } from '../domain/process/event-types.ts';
import { eventTypes } from '../domain/registry.ts';
import type { PendingEffect } from '../domain/workflow.ts';
import type { JsonObject } from '../domain/json.ts';
import { appliedTo } from '../projections/applied-to.ts';
import { openReadModels, type ReadModelsOptions } from '../projections/open-read-models.ts';
import type { ReadModels } from '../projections/read-models.ts';
import { createViews } from '../projections/views.ts';
import { createAuditing, type AuditorPorts, type Auditing } from './auditing.ts';
import { caughtUpWith } from './caught-up.ts';
import { describeRun, refsOfRun } from './run-state.ts';
import { SWEEP_EVERY_MS, sweepSecrets } from './secret-sweeps.ts';
import { createSecretSweeper, createSecretUses } from '../app/stored-secrets.ts';

/** Everything outside the system. The simulation schedules exactly these and nothing else. */
export type SystemPorts = {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly ids: Ids;
  /** Salts of events that hide something (`createEventCodec`); default: by chance. Simulations make their own. */
  readonly newSalt?: () => string;
  readonly logger: Logger;
  /** Name of this process incarnation, unique among all that share the store. */
  readonly instance: string;
  /** Adapters of management clusters. */
  readonly clusters: ManagementClusters;
  /** Simulated hubs take no orders here. */
  readonly refusesSimulated?: boolean;
  /** Tenants read what failed jobs of the hubs' automation said. */
  readonly tenantsSeeJobErrors?: boolean;
  /** Adapters of the hubs' automation; absent: only hubs are worked on that run their own. */
  readonly automations?: Automations;
  readonly secrets: SecretStore;
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
  readonly readModels: Pick<ReadModelsOptions, 'dir' | 'source' | 'hooks' | 'nowMs'>;
  /** The process runner's disposable index. */
  readonly processFile: string;
  readonly hooks?: CommandHooks & ProcessHooks;
  readonly failpoint?: Failpoint;
  readonly settings?: {
    readonly processes?: Partial<ProcessRunnerSettings>;
    readonly nameGraceMs?: number;
    readonly hubCallDeadlineMs?: number;
    readonly automation?: Partial<AutomationEffectSettings>;
    readonly hubCheckMs?: number;
    readonly drivingEpochMs?: number;
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
  /** What the workflow of an order has outstanding, folded from its own stream; undefined when it has no run. */
  runOf(clusterId: string): Promise<JsonObject | undefined>;
  /** Resolves when no command is being carried out. */
  idle(): Promise<void>;
  /** Closes the read models; the ports stay with their owner. */
  close(): Promise<void>;
};

/** Builds one system on its ports. Holds no state outside of what it returns: many can live in one process. */
export const createSystem = async (ports: SystemPorts): Promise<System> => {
  const { store, clock, timers, ids, logger, instance, hooks } = ports;
  const codec = createEventCodec(eventTypes, ports.newSalt);
  const readModels = await openReadModels({
    ...ports.readModels,
    views: createViews({
      audit: ports.auditor !== undefined,
      ...(ports.openPersonal === undefined ? {} : { open: ports.openPersonal }),
    }),
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
    ...(ports.snapshots === undefined ? {} : { snapshots: ports.snapshots }),
    ...(ports.longFolds === undefined ? {} : { longFolds: ports.longFolds }),
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
    onLeftBehind: (error) => logger.warn({ err: error }, 'names are given back later, by the repair loop'),
  });
  const hubs = createHubRegistry({
    store,
    codec,
    clusters: drivenClusters(ports.clusters, {
      assertDriven: (hub, signal) => marks.assertDriven(hub, signal),
    }),
    timers,
    logger: logger.child({ component: 'hub-registry' }),
  });
  const marks = createHubMarks({
    registry: hubs,
    epochs: createHubEpochs({ store, clock, ids, instance, holder: ports.driver.holder }),
    ...ports.driver,
    report: (hub, driver) => hubHealth.report(hub, { driver }),
    clock,
    timers,
    logger: logger.child({ component: 'hub-marks' }),
    ...(ports.settings?.drivingEpochMs === undefined ? {} : { epochMs: ports.settings.drivingEpochMs }),
  });

  const lane: {
    blocked: (hub: string, clusterId: string) => boolean;
    calls: ProcessRunner['laneCalls'];
    lookSoon: (hub: string) => void;
  } = { blocked: () => false, calls: () => undefined, lookSoon: () => undefined };
  const owning: { run: (signal: AbortSignal) => Promise<void> } = { run: async () => undefined };
  const scheduler = createScheduler({
    registry: hubs,
    commandRunner: runner,
    clock,
    logger,
    isBlocked: (hub, clusterId) => lane.blocked(hub, clusterId),
    callsOf: (hub) => lane.calls(hub),
    refusesSimulated: ports.refusesSimulated === true,
  });
  const deadline = ports.settings?.hubCallDeadlineMs;
  const looks = createClusterLooks();
  const managementClusters = createManagementClusterEffects({
    registry: hubs,
    secrets: ports.secrets,
    clock,
    looks,
    ...(deadline === undefined ? {} : { callDeadlineMs: deadline }),
  });
  const automations =
    ports.automations === undefined ? undefined : drivenAutomations(ports.automations, marks);
  const automation =
    automations === undefined
      ? {}
      : {
          [AUTOMATION_PORT]: createAutomationEffects({
            registry: hubs,
            automations,
            clock,
            timers,
            ...(ports.settings?.automation === undefined ? {} : { settings: ports.settings.automation }),
          }),
        };
  const heldBack = ({ operation, args: { hub } }: PendingEffect): string | undefined =>
    DRIVING.includes(operation) && typeof hub === 'string' ? marks.heldBack(hub) : undefined;
  // The runner knows no workflow's own types: state and run events pass through it unseen.
  const workflow = clusterOrderWorkflow as unknown as AnyWorkflow;
  const processes = createProcessRunner({
    store,
    codec,
    commandRunner: runner,
    aggregates: Object.fromEntries(aggregates.map((aggregate) => [aggregate.category, aggregate])),
    workflows: [workflow],
    runEventTypes: processEventTypes.map(({ type }) => type),
    effectPorts: { scheduler, 'management-cluster': managementClusters, ...automation },
    effectDeadlinesMs: { [AUTOMATION_PORT]: AUTOMATION_EFFECT_DEADLINE_MS },
    // A cluster that is gone gives its name back in the same step.
    commandTargets: {
      cluster: (id, command, context) =>
        commands.execute(
          cluster,
          id,
          {
            ...(command as ClusterCommand),
            ...(command.type === 'RecordObservation'
              ? {
                  jobErrors: {
                    correlationId: context.correlationId,
                    shown: ports.tenantsSeeJobErrors === true,
                  },
                }
              : {}),
          },
          context,
        ),
    },
    // Instances that stand by need neither watch the hubs nor repair names.
    whileLive: (signal) => owning.run(signal),
    clock,
    timers,
    instance,
    logger: logger.child({ component: 'processes' }),
    ownership: marks.marking(ports.ownership),
    isHeldBack: (effect) => heldBack(effect) !== undefined,
    dataFile: ports.processFile,
    pausedLanes: async () =>
      new Map(Object.entries((await runner.load(lanePausesAggregate, LANE_PAUSES)).state.paused)),
    lanePacing: pacingOfLanes(hubs, (hub) => observer.ordersOn(hub)),
    hooks: lookWhenClosed((hub) => lane.lookSoon(hub), hooks),
    ...(ports.failpoint === undefined ? {} : { failpoint: ports.failpoint }),
    ...(ports.settings?.processes === undefined ? {} : { settings: ports.settings.processes }),
  });
  lane.blocked = (hub, clusterId) => processes.laneBlocked(laneOfHub(hub), clusterId);
  lane.calls = (hub) => processes.laneCalls(laneOfHub(hub));
  const observer = createHubObserver({
    registry: hubs,
    looks,
    observe: (clusterId, observation) => processes.observe(workflow.name, clusterId, observation),
    isOver: (clusterId) => processes.isClosed(workflow.name, clusterId),
    isUnknown: (clusterId) => processes.isUnknown(workflow.name, clusterId),
    clock,
    timers,
    logger: logger.child({ component: 'hub-observer' }),
  });
  const hubHealth = createHubHealth({
    registry: hubs,
    commandRunner: runner,
    ...(ports.automations === undefined ? {} : { automations: ports.automations }),
    clock,
    timers,
    ids,
    logger: logger.child({ component: 'hub-health' }),
    ...(ports.settings?.hubCheckMs === undefined ? {} : { intervalMs: ports.settings.hubCheckMs }),
    recovered: (hub) => lanesOfHub(hub).forEach(processes.probeLane),
    isHeldUp: (hub) => lanesOfHub(hub).some((each) => processes.laneBlocked(each)),
  });
  lane.lookSoon = hubHealth.lookSoon;
  const repair = createNameRepair({
    store,
    runner,
    names,
    kinds: kinds as unknown as readonly RepairableKind[],
    lifecycle,
    checkpoint: createCheckpoint({ store, name: 'checkpoint-names', clock, ids, instance }),
    clock,
    timers,
    ids,
    logger: logger.child({ component: 'name-repair' }),
    ...(ports.settings?.nameGraceMs === undefined ? {} : { graceMs: ports.settings.nameGraceMs }),
  });
  const sweeper = createSecretSweeper({
    secrets: ports.secrets,
    use: createSecretUses({
      runner,
      kinds: kinds.filter(({ secrets }) => secrets.length > 0),
      referencedBy: (kind, id, page) => readModels.resources.referencedBy(kind, id, page),
      refsOfRun: (clusterId) => refsOfRun(workflow, clusterId, store, codec),
    }),
    olderThanMs: SWEEP_EVERY_MS,
    rest: (signal) => pause(timers, 0, signal),
  });
  owning.run = async (signal) => {
    const ending = { registry: hubs, commandRunner: runner, commands, clock, timers, logger, signal };
    await Promise.all([
      observer.run(signal),
      hubHealth.run(signal),
      finishDecommissions(ending),
      repairCapacity({
        ...ending,
        isOver: (clusterId) => processes.isClosed(workflow.name, clusterId),
        ownerOf: async (clusterId) => {
          const { state } = await runner.load(clusterAggregate, clusterId, { signal });
          return isStoredCluster(state) ? state : undefined;
        },
      }),
      repair.run(signal),
    ]);
  };

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
    runOf: (clusterId) => describeRun(workflow, clusterId, store, codec, heldBack),
    idle: () => runner.idle(),
    close: () => readModels.close(),
  };
};

/** Operations of effects that write to a hub or have its automation act. */
const DRIVING: readonly string[] = [
  'applyClusterOrder',
  'deleteClusterOrder',
  'prepareOrder',
  'writeOrderStatus',
  'releaseOrder',
  'trigger',
  'cancel',
];

/** Announced references that a deletion withdraws before it looks again. */
const ANNOUNCED_AT_ONCE = 100;
