import { expect } from 'chai';
import { createMetrics } from '../../../src/adapters/metrics/metrics.ts';
import type { HubWatchStatus } from '../../../src/app/hubs/hub-observer.ts';
import type { Logger } from '../../../src/app/ports.ts';
import type { LaneStatus } from '../../../src/app/process-runner/types.ts';
import type { TopicStatus } from '../../../src/app/publisher/topic-status.ts';
import { measure } from '../../../src/composition/measure.ts';
import type { ReadinessProbe } from '../../../src/composition/readiness.ts';
import type { System } from '../../../src/composition/system.ts';
import { ghostMark } from '../../../src/domain/clusters/cluster.resource.ts';

const readiness = { storeAnswers: () => Promise.resolve(true) } as unknown as ReadinessProbe;
/** Only what the scrape asks, of a service without anything. */
const idle = {
  readModels: { status: () => [], resources: { countMarked: () => 0 } },
  processes: { status: () => ({ parkedRuns: [], timersDue: 0, timerLatenessSeconds: 0, lanes: [] }) },
  hubs: { hubs: () => [], spacesOn: () => [] },
  pools: { pools: () => [] },
  observer: { status: () => [] },
  names: { pending: () => 0, skipped: () => 0 },
};

describe('what is measured when Prometheus asks', () => {
  it('tells of each hub how it is watched, and forgets those that are gone', async () => {
    const hub = { facts: { id: 'hub-1' }, health: {}, deleting: false };
    const marks = new Map([
      [ghostMark('hub-1'), 2],
      [ghostMark('hub-2'), 9],
    ]);
    const counts = { orders: 3, unknown: 2, observations: 3, orphans: 1, failures: 4 };
    const watch = { hub: 'hub-1', kind: 'ClusterOrder', synced: true, ...counts };
    let watches: readonly HubWatchStatus[] = [
      { ...watch, namespace: 'a' },
      { ...watch, namespace: 'b', synced: false },
    ];
    const hubs = [hub];
    const system = {
      ...idle,
      readModels: {
        status: () => [],
        resources: {
          countMarked: (kind: string, mark: string) =>
            (kind === 'cluster' ? marks.get(mark) : undefined) ?? 0,
        },
      },
      hubs: { hubs: () => hubs, spacesOn: () => [] },
      observer: { status: () => watches },
    } as unknown as System;
    const metrics = createMetrics();
    try {
      measure(metrics).follow(system, readiness);
      const text = await metrics.text();
      for (const line of [
        'ledger_hub_watch_up{hub="hub-1"} 0',
        'ledger_hub_watch_failures_total{hub="hub-1"} 8',
        'ledger_hub_orphans_total{hub="hub-1"} 2',
        'ledger_hub_ghosts{hub="hub-1"} 2',
        'ledger_hub_unknown_orders{hub="hub-1"} 4',
      ])
        expect(text).to.contain(line);
      expect(text).not.to.contain('hub-2');
      expect(await metrics.text(), 'a second scrape counts nothing twice').to.contain(
        'ledger_hub_orphans_total{hub="hub-1"} 2',
      );
      watches = [];
      hubs.splice(0);
      expect(await metrics.text()).not.to.contain('hub-1');
    } finally {
      metrics.close();
    }
  });

  it('tells of the log, the read models, the processes and the orders what alerts ask for', async () => {
    const marks = new Map([
      ['waiting', 3],
      ['needs-operator', 4],
      ['hub-not-accepting', 5],
      ['deletion-overdue', 6],
      ['job-status-unknown', 12],
    ]);
    const view = { name: 'resources', lagSeconds: 7, caughtUp: false, parkedStreams: ['cluster-1'] };
    const system = {
      ...idle,
      readModels: {
        status: () => [view],
        resources: {
          countMarked: (kind: string, mark: string) =>
            (kind === 'cluster' ? marks.get(mark) : undefined) ?? 0,
        },
      },
      processes: {
        status: () => ({ parkedRuns: ['a', 'b'], timersDue: 8, timerLatenessSeconds: 9, lanes: [] }),
      },
      names: { pending: () => 10, skipped: () => 11 },
    } as unknown as System;
    const metrics = createMetrics();
    const silent = { info: () => undefined } as unknown as Logger;
    try {
      const { commandsAndProcesses: hooks, request, views, recordRejection, follow } = measure(metrics);
      hooks.onCommand?.('OrderCluster', 'accepted', 1);
      hooks.onAppend?.(250, 1);
      hooks.onConflict?.('cluster-1');
      hooks.clockDiverged?.(-3_600_000);
      request({ method: 'GET', route: '/healthz', status: 200, seconds: 0.5, tenant: undefined, bytes: 0 });
      for (let n = 0; n < 1_002; n += 1)
        request({ method: 'POST', route: '/x', status: 200, seconds: 0, tenant: `t${n}`, bytes: 7 });
      views.applied?.({ view: 'resources', events: 12 } as never);
      recordRejection(silent, () => undefined)({ outcome: 'denied', code: 'NOPE' } as never);
      follow(system, { storeAnswers: () => Promise.resolve(false) } as unknown as ReadinessProbe);
      const text = await metrics.text();
      for (const line of [
        'ledger_commands_total{type="OrderCluster",outcome="accepted"} 1',
        'ledger_append_seconds_sum 0.25',
        'ledger_append_conflicts_total 1',
        'ledger_clock_divergence_seconds -3600',
        'ledger_http_request_seconds_sum{method="GET",route="/healthz",status="200"} 0.5',
        'ledger_request_body_bytes_total{tenant="t999"} 7',
        'ledger_request_body_bytes_total{tenant="other tenants"} 14',
        'ledger_projection_events_total{view="resources"} 12',
        'ledger_rejections_total{outcome="denied",code="NOPE"} 1',
        'ledger_store_up 0',
        'ledger_projection_lag_seconds{view="resources"} 7',
        'ledger_projection_caught_up{view="resources"} 0',
        'ledger_projection_parked_streams{view="resources"} 1',
        'ledger_process_parked_runs 2',
        'ledger_timers_due 8',
        'ledger_timer_lateness_seconds 9',
        'ledger_orders_waiting 3',
        'ledger_orders_needing_operator 4',
        'ledger_hub_not_accepting 5',
        'ledger_deletions_overdue 6',
        'ledger_job_status_unknown 12',
        'ledger_name_reservations_pending 10',
        'ledger_name_repair_skipped 11',
      ])
        expect(text).to.include(`${line}\n`);
    } finally {
      metrics.close();
    }
  });

  it('shows no lane as open that has closed and is idle since', async () => {
    const open: LaneStatus = {
      lane: 'hub:hub-1',
      breaker: 'open',
      paused: false,
      inFlight: 0,
      waiting: 7,
      consecutiveFailures: 5,
      failing: [],
      failingOrders: 1,
      openedBy: { order: 'o1', reason: 'Unavailable', message: 'connect ECONNREFUSED' },
    };
    let lanes: readonly LaneStatus[] = [open];
    const system = {
      ...idle,
      processes: { status: () => ({ ...idle.processes.status(), lanes }) },
    } as unknown as System;
    const metrics = createMetrics();
    try {
      measure(metrics).follow(system, readiness);
      const text = await metrics.text();
      expect(text).to.match(/ledger_process_lane_open\{lane="hub:hub-1"\} 1/);
      expect(text).to.include(
        'ledger_process_lane_opened_by{lane="hub:hub-1",order="o1",error="Unavailable: connect ECONNREFUSED"} 1\n',
      );
      expect(text).to.match(/ledger_process_lane_failing_orders\{lane="hub:hub-1"\} 1/);
      lanes = [];
      expect(await metrics.text()).to.not.match(
        /ledger_process_lane_(open|opened_by|paused|parked|failing_orders|in_flight)\{/,
      );
    } finally {
      metrics.close();
    }
  });

  describe('of the Kafka publisher', () => {
    const topic: TopicStatus = {
      topic: 't',
      state: 'waiting',
      position: undefined,
      waitingEvents: 3,
      waitingRecords: 3,
      isMoreWaiting: false,
      waitingSince: 'then',
      lagSeconds: 12,
      sent: 4,
      confirmedAt: undefined,
      published: true,
      fillingSince: undefined,
      trying: undefined,
      lastError: undefined,
      parked: [{ stream: 's-1', revision: 2, position: 'p', error: 'e', at: 'then' }],
    };
    const scraped = async (follow: (measured: ReturnType<typeof measure>) => void): Promise<string> => {
      const metrics = createMetrics();
      try {
        follow(measure(metrics));
        return await metrics.text();
      } finally {
        metrics.close();
      }
    };
    const brokers = { lastAnswerAt: undefined, trouble: undefined };
    const problem = { topic: 't', code: 'missing' as const, message: 'is missing' };
    const follows = (epoch: number | undefined) => (measured: ReturnType<typeof measure>) =>
      measured.followPublisher({
        status: () => ({ epoch, brokers, topics: [topic], problems: [problem], notCompared: [] }),
      });

    it('shows nothing where no brokers are set, so that no alarm asks who publishes', async () => {
      expect(await scraped(() => undefined)).to.not.match(/^ledger_kafka_publishing/m);
    });

    it('shows each topic on the instance that publishes', async () => {
      const text = await scraped((measured) => {
        follows(1)(measured);
        measured.published('t', 4);
      });
      for (const line of [
        'ledger_kafka_publishing{lease="publisher"} 1',
        'ledger_kafka_topic_lag_seconds{topic="t"} 12',
        'ledger_kafka_topic_stalled{topic="t"} 1',
        'ledger_kafka_parked_streams{topic="t"} 1',
        'ledger_kafka_topic_problems{problem="missing"} 1',
        'ledger_kafka_topic_problems{problem="cleanup"} 0',
        'ledger_kafka_records_total{topic="t"} 4',
      ])
        expect(text).to.include(`${line}\n`);
    });

    it('shows no topics on an instance that stands by', async () => {
      const text = await scraped(follows(undefined));
      expect(text).to.include('ledger_kafka_publishing{lease="publisher"} 0');
      expect(text).to.not.match(/^ledger_kafka_topic_(lag_seconds|stalled)\{/m);
    });
  });
});
