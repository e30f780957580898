import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { SimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import {
  createSimulatedHubs,
  simulatedHubFile,
} from '../../../src/adapters/management-cluster/simulated/simulated-hubs.ts';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { createObjectLooks } from '../../../src/app/hubs/hub-looks.ts';
import { createHubObserver } from '../../../src/app/hubs/hub-observer.ts';
import { createManagementClusterEffects } from '../../../src/app/hubs/management-cluster-effects.ts';
import { createProcessRunner } from '../../../src/app/process-runner/process-runner.ts';
import type {
  Aggregates,
  AnyWorkflow,
  ProcessRunner,
  ProcessRunnerOptions,
} from '../../../src/app/process-runner/types.ts';
import { createScheduler } from '../../../src/app/hubs/scheduler.ts';
import { clusterOrderDraft } from '../../../src/domain/clusters/cluster-order-manifest.ts';
import type { ClusterState } from '../../../src/domain/clusters/state.ts';
import type { ClusterCommand } from '../../../src/domain/clusters/commands.ts';
import { clusterOrderWorkflow } from '../../../src/domain/clusters/order-workflow/workflow.ts';
import { aggregates, clusterAggregate } from '../../../src/domain/kinds.ts';
import { processEventTypes } from '../../../src/domain/process/event-types.ts';
import { commandContext, hubFixture, type HubFixture } from './hub-fixture.ts';
import { silentLogger } from '../loggers.ts';

/**
 * Cluster orders from the log to simulated hubs: the process runner with the real workflow and the real effect ports.
 * The store and the folder of the hubs outlive it, as they outlive a crash.
 */
export type OrderFixture = HubFixture & {
  readonly processes: ProcessRunner;
  readonly order: (id: string, more?: OrderOptions) => Promise<void>;
  readonly command: (id: string, command: ClusterCommand) => Promise<void>;
  readonly cluster: (id: string) => Promise<ClusterState>;
  /** From now on no call to this hub is answered. */
  readonly killHub: (hub: string) => Promise<void>;
  /** A create call of this cluster that reaches the hub only now. */
  readonly late: (hub: string, id: string) => Promise<void>;
  readonly hubFile: (hub: string) => string;
  /** Graceful; the store and the hubs stay. */
  readonly close: () => Promise<void>;
};
export type OrderOptions = {
  readonly size?: number;
  readonly zone?: string;
  readonly simulation?: string;
};

export const orderFixture = (options: {
  readonly folder: string;
  readonly store?: EventStore;
  readonly instance?: string;
  /** Settings of all hubs. */
  readonly hubs?: string;
  /** False: the hubs have a thread of their own, as in the service. Default true. */
  readonly inline?: boolean;
  readonly more?: Partial<ProcessRunnerOptions>;
}): OrderFixture => {
  const store = options.store ?? createMemoryEventStore();
  const instance = options.instance ?? 'one';
  const clock = options.more?.clock ?? systemClock();
  const timers = options.more?.timers ?? systemTimers();
  const logger = options.more?.logger ?? silentLogger;
  const clusters = createSimulatedHubs({
    dir: options.folder,
    clock,
    timers,
    inline: options.inline ?? true,
    instance,
    watchPollMs: 50,
    settings: options.hubs ?? 'factor=0.02',
  });
  const fixture = hubFixture(clusters, store);
  const { codec, commandRunner, registry } = fixture;
  const secrets = { reveal: async () => undefined };
  let processes: ProcessRunner | undefined;
  const looks = createObjectLooks();
  const observer = createHubObserver({
    registry,
    looks,
    observe: (_kind, clusterId, observation) =>
      processes?.observe(clusterOrderWorkflow.name, clusterId, observation) ?? false,
    isOver: (_kind, clusterId) => processes?.isClosed(clusterOrderWorkflow.name, clusterId) ?? false,
    clock,
    timers,
    logger,
    backoffMs: 20,
  });
  const runner = createProcessRunner({
    store,
    codec,
    commandRunner,
    aggregates: Object.fromEntries(
      aggregates.map((aggregate) => [aggregate.category, aggregate]),
    ) as unknown as Aggregates,
    workflows: [clusterOrderWorkflow as unknown as AnyWorkflow],
    runEventTypes: processEventTypes.map(({ type }) => type),
    effectPorts: {
      scheduler: createScheduler({
        registry,
        commandRunner,
        clock,
        logger,
        isBlocked: (hub, clusterId) => processes?.laneBlocked(`hub:${hub}`, clusterId) ?? false,
      }),
      'management-cluster': createManagementClusterEffects({
        registry,
        secrets,
        clock,
        looks,
        callDeadlineMs: 1_000,
      }),
    },
    clock,
    timers,
    instance,
    logger,
    ownership: createLeases({
      store,
      instance,
      directory: instance,
      clock,
      timers,
      logger,
    })('processes'),
    dataFile: ':memory:',
    whileLive: (signal) => observer.run(signal),
    ...options.more,
    settings: { stopGraceMs: 2_000, effectDeadlineMs: 3_000, ...options.more?.settings },
  });
  processes = runner;
  const stop = new AbortController();
  const ended = runner.start(stop.signal);
  const command: OrderFixture['command'] = async (id, given) => {
    const context = commandContext(`${id}-${given.type}-${clock.monotonicMs()}`, 'acme');
    const done = await commandRunner.execute(clusterAggregate, id, given, context);
    if (done.outcome === 'rejected') throw new Error(done.rejection.message);
  };
  return {
    ...fixture,
    processes: runner,
    command,
    order: (id, { size = 2, zone, simulation } = {}) =>
      command(id, {
        type: 'OrderCluster',
        id,
        at: clock.now(),
        tenant: 'acme',
        project: 'default',
        name: id,
        creator: 'someone',
        labels: {},
        annotations: simulation === undefined ? {} : { simulation },
        template: { id: 'small', name: 'small', revision: 0 },
        templateParameters: {},
        nodeSets: { workers: { hostType: { id: 'fc430', name: 'fc430' }, size } },
        version: { id: 'v', name: '4.17', version: '4.17.0', releaseImage: 'quay.io/release:4.17' },
        ...(zone === undefined ? {} : { zone }),
      }),
    cluster: async (id) => (await commandRunner.load(clusterAggregate, id)).state,
    killHub: async (id) => {
      const hub = clusters.of({ id, namespace: 'orders' }) as SimulatedHub | undefined;
      await hub?.control.configure('silent=forever');
    },
    late: async (hub, id) => {
      const draft = clusterOrderDraft(
        {
          id,
          tenant: 'acme',
          template: { id: 'small' },
          templateParameters: {},
          nodeSets: { workers: { hostType: { id: 'fc430', name: 'fc430' }, size: 1 } },
          version: { releaseImage: 'quay.io/release:4.17' },
        },
        { namespace: 'orders', mode: 'operator', simulated: true },
      );
      const call = { effectId: 'late', deadlineMs: 1_000, signal: new AbortController().signal };
      await clusters.of({ id: hub, namespace: 'orders' })?.create(CLUSTER_ORDER, draft, call);
    },
    hubFile: (hub) => simulatedHubFile(options.folder, hub),
    close: async () => {
      stop.abort();
      await ended;
      await fixture.stop();
      await clusters.close();
    },
  };
};
