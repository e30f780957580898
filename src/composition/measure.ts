import type { Metrics } from '../adapters/metrics/metrics.ts';
import type { CommandHooks } from '../app/commands/command-runner.ts';
import { logRefusal } from '../app/process-runner/order-log.ts';
import { POOL_KINDS } from '../app/pools/pool-kinds.ts';
import type { PoolRegistry } from '../app/pools/pool-registry.ts';
import type { Logger, RecordRejection } from '../app/ports.ts';
import type { Publisher } from '../app/publisher/publisher.ts';
import type { ProcessHooks } from '../app/process-runner/types.ts';
import type { RequestHook } from '../http/exchange.ts';
import type { Watch } from '../http/osac/watch/routes.ts';
import type { ViewHooks } from '../projections/runner/supervisor.ts';
import { ASPECTS } from '../domain/hubs/health.ts';
import type { HubRegistry } from '../app/hubs/hub-registry.ts';
import { isWaitingSpace } from '../app/hubs/tenant-space-book.ts';
import { watchesByHub } from '../app/hubs/hub-watches.ts';
import { actingKinds } from '../domain/acting-kinds.ts';
import { ghostMark } from '../domain/clusters/cluster.resource.ts';
import { SHOWN_TWICE } from '../domain/networks/external-ip-pool.resource.ts';
import type { ReadinessProbe } from './readiness.ts';
import type { System } from './system.ts';

/** Those that give out something: a retired pool is nobody's trouble. */
const measurePools = (metrics: Metrics, pools: Pick<PoolRegistry, 'pools'>): void => {
  const { poolSize, poolFree, poolUsed, poolQuarantined } = metrics;
  for (const gauge of [poolSize, poolFree, poolUsed, poolQuarantined]) gauge.reset();
  const now = new Date().toISOString();
  for (const { kind, id, pool } of pools.pools()) {
    if (pool.retired) continue;
    for (const { family = '', size, free, used, quarantined } of POOL_KINDS[kind].countsOf(pool, now)) {
      const labels = { kind, pool: id, family };
      poolSize.set(labels, Number(size));
      poolFree.set(labels, Number(free));
      poolUsed.set(labels, Number(used));
      poolQuarantined.set(labels, Number(quarantined));
    }
  }
};

/** Tenants whose bytes are told apart: each is a time series. */
const MOST_TENANTS = 1_000;

/** Hooks of every part, each writing its own metrics. */
export const measure = (metrics: Metrics) => {
  const tenants = new Set<string>();
  const request: RequestHook = ({ method, route, status, seconds, tenant, bytes }) => {
    metrics.httpSeconds.observe({ method, route, status: String(status) }, seconds);
    if (tenant === undefined || bytes === 0) return;
    if (tenants.size < MOST_TENANTS) tenants.add(tenant);
    metrics.requestBytes.inc({ tenant: tenants.has(tenant) ? tenant : 'other tenants' }, bytes);
  };

  const commandsAndProcesses: CommandHooks & ProcessHooks = {
    onCommand: (type, outcome) => metrics.commands.inc({ type, outcome }),
    onAppend: (ms) => metrics.appendSeconds.observe(ms / 1000),
    onConflict: () => metrics.appendConflicts.inc(),
    effectFinished: ({ port, operation, outcome }) => metrics.effects.inc({ port, operation, outcome }),
    clockDiverged: (deltaMs) => metrics.clockDivergence.set(deltaMs / 1000),
  };

  const views: ViewHooks = {
    applied: ({ view, events }) => metrics.projectionEvents.inc({ view }, events),
  };

  const recordRejection =
    (logger: Logger, keep: RecordRejection): RecordRejection =>
    (record) => {
      metrics.rejections.inc({ outcome: record.outcome, code: record.code });
      // Neither what was sent or typed, nor who it was in person: no erasure reaches the log.
      const { tenant, subjectId, command, commandId, kind, outcome, code, error, correlationId, actor } =
        record;
      const told = { tenant, subjectId, command, commandId, kind, outcome, code, error, correlationId };
      logRefusal(logger, record, { ...told, roles: actor?.roles, authMethod: actor?.authMethod });
      keep(record);
    };

  /** What is read when Prometheus asks, instead of being counted as it happens. */
  const follow = (system: System, readiness: ReadinessProbe): void => {
    metrics.onScrape(async () => {
      metrics.storeUp.set((await readiness.storeAnswers()) ? 1 : 0);
      for (const view of system.readModels.status()) {
        metrics.projectionLag.set({ view: view.name }, view.lagSeconds);
        metrics.projectionCaughtUp.set({ view: view.name }, view.caughtUp ? 1 : 0);
        metrics.projectionParked.set({ view: view.name }, view.parkedStreams.length);
      }
      const processes = system.processes.status();
      metrics.parkedRuns.set(processes.parkedRuns.length);
      metrics.timersDue.set(processes.timersDue);
      metrics.timerLateness.set(processes.timerLatenessSeconds);
      // A lane that is well and idle is not told of: what stood there would stand for ever.
      const { laneOpen, laneOpenedBy, lanePaused, laneParked, laneFailing, laneInFlight } = metrics;
      for (const gauge of [laneOpen, laneOpenedBy, lanePaused, laneParked, laneFailing, laneInFlight])
        gauge.reset();
      for (const lane of processes.lanes) {
        laneOpen.set({ lane: lane.lane }, lane.breaker === 'closed' ? 0 : 1);
        lanePaused.set({ lane: lane.lane }, lane.paused ? 1 : 0);
        laneFailing.set({ lane: lane.lane }, lane.failingOrders);
        laneParked.set({ lane: lane.lane }, lane.waiting);
        laneInFlight.set({ lane: lane.lane }, lane.inFlight);
        if (lane.openedBy === undefined) continue;
        const { order, reason, message } = lane.openedBy;
        laneOpenedBy.set({ lane: lane.lane, order, error: `${reason}: ${message}` }, 1);
      }
      const { resources } = system.readModels;
      const marked = (mark: string): number =>
        actingKinds.reduce((sum, { kind }) => sum + resources.countMarked(kind, mark), 0);
      const { hubProblem, hubLeavingOrders, hubWatchUp, hubUnknownOrders, hubGhosts } = metrics;
      const { tenantSpacesWaiting, tenantSpaceWait } = metrics;
      const ofHubs = [hubProblem, hubLeavingOrders, hubWatchUp, hubUnknownOrders, hubGhosts];
      const gauges = [...ofHubs, tenantSpacesWaiting, tenantSpaceWait];
      // Of a hub that is gone nothing is told any more; the counters are those of the watches, which count themselves.
      for (const metric of [...gauges, metrics.hubWatchFailures, metrics.hubOrphans]) metric.reset();
      for (const [hub, watch] of watchesByHub(system.observer.status())) {
        metrics.hubWatchUp.set({ hub }, watch.synced ? 1 : 0);
        metrics.hubWatchFailures.inc({ hub }, watch.failures);
        metrics.hubOrphans.inc({ hub }, watch.orphans);
        metrics.hubUnknownOrders.set({ hub }, watch.unknown);
      }
      for (const hub of system.hubs.hubs()) {
        const { id } = hub.facts;
        for (const aspect of ASPECTS) {
          const known = hub.health[aspect];
          if (known !== undefined) metrics.hubProblem.set({ hub: id, aspect }, known.ok ? 0 : 1);
        }
        metrics.hubGhosts.set({ hub: id }, marked(ghostMark(id)));
        const waits = system.hubs.spacesOn(id).filter(isWaitingSpace);
        tenantSpacesWaiting.set({ hub: id }, waits.length);
        const begun = Math.min(...waits.map(({ since }) => Date.parse(since)));
        tenantSpaceWait.set({ hub: id }, waits.length === 0 ? 0 : Math.max(0, (Date.now() - begun) / 1_000));
        if (hub.deleting) metrics.hubLeavingOrders.set({ hub: id }, holdersOn(system.hubs, id));
      }
      metrics.ordersWaiting.set(marked('waiting'));
      metrics.ordersNeedingOperator.set(marked('needs-operator'));
      metrics.hubNotAccepting.set(marked('hub-not-accepting'));
      metrics.jobStatusUnknown.set(marked('job-status-unknown'));
      metrics.deletionsOverdue.set(marked('deletion-overdue'));
      metrics.addressesShownTwice.set(marked(SHOWN_TWICE));
      measurePools(metrics, system.pools);
      metrics.namesPending.set(system.names.pending());
      metrics.nameRepairSkipped.set(system.names.skipped());
    });
  };

  const followWatch = ({ status }: Pick<Watch, 'status'>): void => {
    metrics.onScrape(async () => {
      const { watchers, waiting } = status();
      metrics.watches.set(watchers);
      metrics.watchesWaiting.set(waiting);
    });
  };

  const published = (topic: string, records: number): void => metrics.kafkaRecords.inc({ topic }, records);

  const followPublisher = ({ status }: Pick<Publisher, 'status'>): void => {
    metrics.onScrape(async () => {
      const { epoch, topics, problems } = status();
      metrics.kafkaPublishing.set({ lease: 'publisher' }, epoch === undefined ? 0 : 1);
      // Whoever publishes tells of topics; what stood on an instance that lost its lease would stand for ever.
      for (const gauge of [metrics.kafkaLag, metrics.kafkaStalled, metrics.kafkaParked]) gauge.reset();
      if (epoch !== undefined)
        for (const { topic, state, lagSeconds, parked } of topics) {
          metrics.kafkaLag.set({ topic }, lagSeconds);
          metrics.kafkaStalled.set({ topic }, state === 'waiting' || state === 'failed' ? 1 : 0);
          metrics.kafkaParked.set({ topic }, parked.length);
        }
      for (const problem of TOPIC_PROBLEMS)
        metrics.kafkaTopicProblems.set({ problem }, problems.filter(({ code }) => code === problem).length);
    });
  };

  return {
    request,
    commandsAndProcesses,
    views,
    recordRejection,
    published,
    follow,
    followPublisher,
    followWatch,
  };
};

const TOPIC_PROBLEMS = [
  'missing',
  'cleanup',
  'retention',
  'partitions',
  'replicas',
  'insync',
  'history',
] as const;

const holdersOn = (hubs: Pick<HubRegistry, 'tenantsOn' | 'holdersOf'>, id: string): number =>
  hubs.tenantsOn(id).reduce((sum, tenant) => sum + hubs.holdersOf(id, tenant), 0);
