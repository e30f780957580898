import { createServer, type Server } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

/** Milliseconds between two looks at the event loop. Each wakes the thread, which may have nothing else to do. */
const LOOP_LOOK_MS = 50;
/** Seconds by which a look came late, of nanoseconds since the one before it. */
const delayOf = (sinceLast: number): number => Math.max(0, sinceLast / 1e9 - LOOP_LOOK_MS / 1_000);

/** `family` is empty for VLANs. */
const POOL_LABELS = ['kind', 'pool', 'family'] as const;

/**
 * Everything this service measures, one registry per instance (several may live in one process). Names are part of
 * the interface: alert rules and dashboards use them. Labels are bounded: no ids, and of tenants so many.
 */
export const createMetrics = () => {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_LOOK_MS });
  const seconds = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Counter<Label>({ name, help, labelNames, registers });
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge<Label>({ name, help, labelNames, registers });
  const histogram = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Histogram<Label>({ name, help, labelNames, buckets: seconds, registers });

  const loop = monitorEventLoopDelay({ resolution: LOOP_LOOK_MS });
  loop.enable();
  const loopDelay = new Gauge({
    name: 'ledger_event_loop_delay_seconds',
    help: 'Delay of the HTTP thread since the last scrape, by quantile.',
    labelNames: ['quantile'] as const,
    registers,
    collect() {
      for (const quantile of [50, 99, 100])
        this.set({ quantile: String(quantile / 100) }, delayOf(loop.percentile(quantile)));
      loop.reset();
    },
  });

  const scrapers: (() => Promise<void>)[] = [];
  return {
    registry,
    /** Called before each scrape, for what is looked up rather than counted. */
    onScrape: (read: () => Promise<void>): void => {
      scrapers.push(read);
    },
    text: async (): Promise<string> => {
      await Promise.all(scrapers.map((read) => read()));
      return registry.metrics();
    },
    commands: counter('ledger_commands_total', 'Commands by type and outcome.', ['type', 'outcome']),
    rejections: counter('ledger_rejections_total', 'Refused calls by outcome and code.', ['outcome', 'code']),
    appendSeconds: histogram('ledger_append_seconds', 'Time of an append until it was durable.'),
    appendConflicts: counter(
      'ledger_append_conflicts_total',
      'Appends that met another revision and were decided again.',
    ),
    storeUp: gauge('ledger_store_up', '1 while the event store answers.'),
    foreignEvents: counter(
      'ledger_store_foreign_events_total',
      'Events of other writers in the event store that reads passed over.',
    ),
    projectionLag: gauge(
      'ledger_projection_lag_seconds',
      'Seconds since the recorded time of the last applied event; 0 when caught up.',
      ['view'],
    ),
    projectionCaughtUp: gauge('ledger_projection_caught_up', '1 while the view has applied everything.', [
      'view',
    ]),
    projectionParked: gauge(
      'ledger_projection_parked_streams',
      'Streams whose events a view could not apply.',
      ['view'],
    ),
    projectionEvents: counter('ledger_projection_events_total', 'Events applied by a view.', ['view']),
    watches: gauge('ledger_watches', 'Watches that are open.'),
    watchesWaiting: gauge('ledger_watches_waiting', 'Open watches whose readers do not take what was sent.'),
    laneOpen: gauge('ledger_process_lane_open', '1 while the circuit breaker of a lane is open.', ['lane']),
    laneOpenedBy: gauge(
      'ledger_process_lane_opened_by',
      '1 while the circuit breaker of a lane is open: the order and the error that opened it. One series for each open lane.',
      ['lane', 'order', 'error'],
    ),
    lanePaused: gauge('ledger_process_lane_paused', '1 while people hold a lane back.', ['lane']),
    laneParked: gauge(
      'ledger_process_lane_parked',
      'Effects that wait behind an open circuit breaker or a full lane.',
      ['lane'],
    ),
    laneFailing: gauge(
      'ledger_process_lane_failing_orders',
      'Orders of which something failed in a lane and has not succeeded since.',
      ['lane'],
    ),
    laneInFlight: gauge('ledger_process_lane_in_flight', 'Effects that run now.', ['lane']),
    parkedRuns: gauge('ledger_process_parked_runs', 'Runs of orders that a fault stopped; the others go on.'),
    effects: counter('ledger_effects_total', 'Effects by port, operation and outcome.', [
      'port',
      'operation',
      'outcome',
    ]),
    timersDue: gauge('ledger_timers_due', 'Timers that are due and not handled yet.'),
    timerLateness: gauge('ledger_timer_lateness_seconds', 'How late the oldest due timer is.'),
    ordersWaiting: gauge(
      'ledger_orders_waiting',
      'Orders that wait because no hub fits, or because their hub has no hosts for them or for their change.',
    ),
    ordersNeedingOperator: gauge(
      'ledger_orders_needing_operator',
      'Orders that failed and wait for a person, and running clusters whose change failed.',
    ),
    jobStatusUnknown: gauge(
      'ledger_job_status_unknown',
      'Orders whose hub has not been able to ask its automation about their job for five minutes.',
    ),
    hubNotAccepting: gauge(
      'ledger_hub_not_accepting',
      'Orders that a hub holds without ever showing a phase.',
    ),
    hubProblem: gauge(
      'ledger_hub_problem',
      '1 while a look at a hub finds something wrong with this aspect of it, 0 while it is well.',
      ['hub', 'aspect'],
    ),
    hubLeavingOrders: gauge(
      'ledger_hub_leaving_orders',
      'Orders that are still on a hub which is being given up.',
      ['hub'],
    ),
    hubWatchUp: gauge(
      'ledger_hub_watch_up',
      '1 while everything that a hub holds of ours was listed and is followed, on the instance that does so.',
      ['hub'],
    ),
    hubWatchFailures: counter(
      'ledger_hub_watch_failures_total',
      'Times that the watch of a hub ended or broke and was opened again.',
      ['hub'],
    ),
    hubOrphans: counter(
      'ledger_hub_orphans_total',
      'Orders of clusters that are over, found on a hub and removed there.',
      ['hub'],
    ),
    hubUnknownOrders: gauge(
      'ledger_hub_unknown_orders',
      "Orders with a cluster's label on a hub which nobody here ever ordered.",
      ['hub'],
    ),
    hubGhosts: gauge('ledger_hub_ghosts', 'Orders whose cluster has vanished from their hub.', ['hub']),
    tenantSpacesWaiting: gauge(
      'ledger_tenant_spaces_waiting',
      'Tenants whose Namespace and Tenant a hub has not made or not removed yet.',
      ['hub'],
    ),
    tenantSpaceWait: gauge(
      'ledger_tenant_space_wait_seconds',
      'How long the oldest of these tenants has waited.',
      ['hub'],
    ),
    deletionsOverdue: gauge(
      'ledger_deletions_overdue',
      'Orders whose teardown on their hub takes longer than any should.',
    ),
    addressesShownTwice: gauge(
      'ledger_pools_with_address_shown_twice',
      'External IP pools whose hub shows one address for two holders.',
    ),
    poolSize: gauge('ledger_pool_size', 'VLANs of a pool, or its addresses of one family.', POOL_LABELS),
    poolFree: gauge('ledger_pool_free', 'What a pool can give out now.', POOL_LABELS),
    poolUsed: gauge('ledger_pool_used', 'What holders have of a pool.', POOL_LABELS),
    poolQuarantined: gauge(
      'ledger_pool_quarantined',
      'What was released to a pool and is in quarantine.',
      POOL_LABELS,
    ),
    clockDivergence: gauge(
      'ledger_clock_divergence_seconds',
      'Last measured difference between wall clock and monotonic clock.',
    ),
    namesPending: gauge(
      'ledger_name_reservations_pending',
      'Reserved names whose resource does not exist yet.',
    ),
    nameRepairSkipped: gauge(
      'ledger_name_repair_skipped',
      'Events and reservations that the repair of names gave up since the start; the log file names each.',
    ),
    // With a label, so that an instance without brokers shows none: an alert asks whether anybody publishes.
    kafkaPublishing: gauge(
      'ledger_kafka_publishing',
      '1 on the instance that publishes to Kafka, 0 on those that stand by; none where no brokers are set.',
      ['lease'],
    ),
    kafkaRecords: counter('ledger_kafka_records_total', 'Records that the brokers have confirmed.', [
      'topic',
    ]),
    kafkaLag: gauge(
      'ledger_kafka_topic_lag_seconds',
      'Seconds since the oldest event was recorded that a topic still has to be told of; 0 when there is none.',
      ['topic'],
    ),
    kafkaStalled: gauge(
      'ledger_kafka_topic_stalled',
      '1 while the brokers do not take what is next for a topic, or the topic broke down.',
      ['topic'],
    ),
    kafkaParked: gauge('ledger_kafka_parked_streams', 'Streams that a topic leaves out.', ['topic']),
    kafkaTopicProblems: gauge(
      'ledger_kafka_topic_problems',
      'Topics that are missing on the brokers or not set up as they should be.',
      ['problem'],
    ),
    auditSignedSize: gauge('ledger_audit_signed_size', 'Events under the last signed tree head.'),
    auditUnsigned: gauge(
      'ledger_audit_unsigned_leaves',
      'Events in the tree over the log that no signed head covers yet.',
    ),
    auditHeadAge: gauge('ledger_audit_head_age_seconds', 'Seconds since the last tree head was signed.'),
    auditFailures: counter('ledger_audit_sign_failures_total', 'Attempts to sign the tree that failed.'),
    auditMismatch: gauge(
      'ledger_audit_tree_mismatch',
      '1 while the tree over the log is not the one that was signed, or the log holds an event that is not the one that was recorded, as far as this instance has found.',
    ),
    danglingReferences: gauge(
      'ledger_dangling_references',
      'Objects and tenants that live objects refer to and that are not there; the log names them.',
    ),
    httpSeconds: histogram('ledger_http_request_seconds', 'Requests by method, route template and status.', [
      'method',
      'route',
      'status',
    ]),
    requestBytes: counter(
      'ledger_request_body_bytes_total',
      'Bytes of request bodies by tenant of the caller.',
      ['tenant'],
    ),
    loopDelay,
    close: () => loop.disable(),
  };
};

export type Metrics = ReturnType<typeof createMetrics>;

type Answer = { readonly status: number; readonly type: string; readonly text: string };

/**
 * Serves the registry on a listener of its own; every path answers with it (OSAC), but those of probes, which have no
 * certificate where the API asks for one.
 */
export const serveMetrics = async (
  metrics: Metrics,
  address: { readonly host: string; readonly port: number },
  readiness: () => Promise<{ readonly ready: boolean }>,
): Promise<Server> => {
  const answer = async (path: string | undefined): Promise<Answer> => {
    if (path === '/healthz') return { status: 200, type: 'text/plain', text: '' };
    if (path !== '/readyz')
      return { status: 200, type: metrics.registry.contentType, text: await metrics.text() };
    const found = await readiness();
    return { status: found.ready ? 200 : 503, type: 'application/json', text: JSON.stringify(found) };
  };
  const server = createServer((request, response) => {
    const send = ({ status, type, text }: Answer): void => {
      response.writeHead(status, { 'content-type': type }).end(text);
    };
    answer(request.url).then(send, (error: unknown) =>
      send({ status: 500, type: 'text/plain', text: String(error) }),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return server;
};
