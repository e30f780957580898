/**
 * `npm run bench -- kafka [--part latency,away] [--rate 200] [--seconds 10] [--orders 2000] [--repeat 1]`: the publisher
 * of the real service with a real Apache Kafka. `latency`: from an event's own time to a consumer in another process, at
 * about so many events per second of the log. `away`: a log of so many orders (15 events each; `--orders 66667` makes a
 * million) that no broker has: memory while the brokers are away, and how fast the publisher catches up. Prints min–max of
 * the repetitions.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openSqliteEventStore } from '../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { createKafkaCluster } from '../../src/adapters/kafka/kafkajs-cluster.ts';
import { systemClock } from '../../src/adapters/system/system-ports.ts';
import type { Logger } from '../../src/app/ports.ts';
import { eventsTopic, METERING_TOPICS, stateTopic, topicsOf } from '../../src/app/streams/topics.ts';
import { createApiClient } from '../../src/cli/api-client.ts';
import { kinds } from '../../src/domain/kinds.ts';
import { registry } from '../../src/domain/registry.ts';
import { kafkaInstallation } from '../real/kafka/installation.ts';
import { startRealKafka, type RealKafka } from '../real/kafka/server.ts';
import { writeOrders } from './support/order-history.ts';
import { percentile, printMachine, processorMs, range, residentMb } from './support/report.ts';
import { startBenchService, type BenchService } from './support/service.ts';

const { values } = parseArgs({
  options: {
    part: { type: 'string', default: 'latency,away' },
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '10' },
    orders: { type: 'string', default: '2000' },
    repeat: { type: 'string', default: '1' },
  },
});
const parts = values.part.split(',');
const [rate, seconds] = [Number(values.rate), Number(values.seconds)];
const [orders, repeat] = [Number(values.orders), Number(values.repeat)];

const CLUSTERS = '/api/fulfillment/v1/clusters';
const PATIENCE_MS = 600_000;
const LOOK_MS = 100;
const WATCHED = [eventsTopic('clusters'), stateTopic('cluster')];

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
const figures = new Map<string, number[]>();
const note = (name: string, value: number): void => {
  figures.set(name, [...(figures.get(name) ?? []), value]);
};

type Status = {
  readonly topics: readonly {
    readonly topic: string;
    readonly state: string;
    readonly waiting_events: number;
    readonly sent_records: number;
  }[];
};
const statusOf = async ({ service, adminToken }: BenchService): Promise<Status> =>
  createApiClient(service.http, adminToken).get<Status>('/api/ledger/v1/kafka');
const sentOf = ({ topics }: Status): number => topics.reduce((sum, { sent_records: sent }) => sum + sent, 0);

const until = async <Value>(what: string, look: () => Promise<Value | undefined>): Promise<Value> => {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await look();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`it took too long: ${what}`);
    await pause(LOOK_MS);
  }
};
/** Topics that events fill, and that are behind no more. Heartbeats are off. */
const isCaughtUp = ({ topics }: Status): boolean =>
  topics
    .filter(({ topic }) => !NOT_FILLED.has(topic))
    .every(({ state, waiting_events: waiting }) => state === 'live' && waiting === 0);
const NOT_FILLED: ReadonlySet<string> = new Set([METERING_TOPICS.heartbeat, METERING_TOPICS.corrections]);

const makeTopics = (kafka: RealKafka): Promise<readonly string[]> =>
  createKafkaCluster(
    { brokers: kafka.brokers, clientId: 'bench' },
    { logger: silent, clock: systemClock() },
  ).admin.create(topicsOf(registry, kinds), new AbortController().signal);

const startConsumer = async (kafka: RealKafka) => {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'support/kafka-consumer.ts'), kafka.brokers.join(','), WATCHED.join(',')],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  return async (): Promise<Readonly<Record<string, readonly number[]>>> => {
    child.stdin.end();
    const { value } = await lines.next();
    return JSON.parse(String(value)) as Record<string, number[]>;
  };
};

/** So many events are in the log. */
const countEvents = async ({ service, adminToken }: BenchService): Promise<number> => {
  let events = 0;
  const admin = createApiClient(service.http, adminToken);
  for await (const _ of admin.lines('GET', '/api/ledger/v1/events?limit=100000')) events += 1;
  return events;
};

const placeOrder = async ({ service, userToken }: BenchService, name: string): Promise<string> => {
  const user = createApiClient(service.http, userToken);
  const { id } = await user.send<{ id: string }>('POST', CLUSTERS, {
    metadata: { name, annotations: { simulation: 'factor=0.05' } },
    spec: { template: { id: 'osac.templates.ocp_ci_small' } },
  });
  return id;
};

/** Events of one order, from its acceptance to READY. */
const eventsOfAnOrder = async (bench: BenchService): Promise<number> => {
  const before = await countEvents(bench);
  const user = createApiClient(bench.service.http, bench.userToken);
  const id = await placeOrder(bench, 'first');
  await until('the first cluster is READY', async () => {
    const { status } = await user.get<{ status?: { state?: string } }>(`${CLUSTERS}/${id}`);
    return status?.state === 'CLUSTER_STATE_READY' || undefined;
  });
  return (await countEvents(bench)) - before;
};

/** Orders at a steady rate; each runs on by itself. */
const placeOrders = async (bench: BenchService, eventsOfOne: number): Promise<void> => {
  const total = Math.ceil((rate * seconds) / eventsOfOne);
  const started = performance.now();
  for (let n = 0; n <= total; n += 1) {
    const wait = started + (n * seconds * 1000) / total - performance.now();
    if (wait > 0) await pause(wait);
    if (n < total) await placeOrder(bench, `k-${n}`);
  }
};

const latency = async (): Promise<void> => {
  const kafka = await startRealKafka({ installation: kafkaInstallation(console.error) });
  try {
    await makeTopics(kafka);
    const bench = await startBenchService('api,processes,publisher', [], undefined, {
      LEDGER_KAFKA_BROKERS: kafka.brokers.join(','),
    });
    try {
      const status = () => statusOf(bench);
      await until('the catalogue is published', async () => isCaughtUp(await status()) || undefined);
      const eventsOfOne = await eventsOfAnOrder(bench);
      const finish = await startConsumer(kafka);
      const before = await countEvents(bench);
      const [computed, started] = [processorMs(bench.service.pid), performance.now()];
      await placeOrders(bench, eventsOfOne);
      const took = (performance.now() - started) / 1000;
      const used = processorMs(bench.service.pid) - computed;
      note('processor of the service, % of a core', used / took / 10);
      await until('the last is published', async () => isCaughtUp(await status()) || undefined);
      for (const [topic, delays] of Object.entries(await finish())) {
        note(`${topic}: records`, delays.length);
        note(`${topic}: event → consumer p50 ms`, percentile(delays, 0.5));
        note(`${topic}: event → consumer p99 ms`, percentile(delays, 0.99));
        note(`${topic}: event → consumer max ms`, Math.max(...delays));
      }
      note('events/s of the log', ((await countEvents(bench)) - before) / took);
    } finally {
      await bench.close();
    }
  } finally {
    await kafka.close();
  }
};

/** Resident memory when it has settled, and the most there was meanwhile. */
const memoryOf = async ({ service }: BenchService): Promise<{ last: number; most: number }> => {
  let most = 0;
  let last = 0;
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    last = residentMb(service.pid);
    most = Math.max(most, last);
    await pause(LOOK_MS);
  }
  return { last, most };
};

const away = async (): Promise<void> => {
  const kafka = await startRealKafka({ installation: kafkaInstallation(console.error) });
  let events = 0;
  try {
    await makeTopics(kafka);
    await kafka.stop();
    const brokers = { LEDGER_KAFKA_BROKERS: kafka.brokers.join(',') };
    const bench = await startBenchService('api', [], async (dataDir) => {
      const store = await openSqliteEventStore({ dataDir });
      events = await writeOrders(store, orders);
      await store.close();
    });
    try {
      note('events', events);
      // Read models are there from now on: their building is not measured.
      await bench.restart({ LEDGER_ROLES: 'api' });
      note('memory without publisher: MB', (await memoryOf(bench)).last);
      await bench.restart({ LEDGER_ROLES: 'api,publisher', ...brokers });
      const held = await memoryOf(bench);
      note('memory with the brokers away: MB', held.last);
      note('memory with the brokers away, most: MB', held.most);
      note(
        'events held by all topics with the brokers away',
        (await statusOf(bench)).topics.reduce((sum, { waiting_events: waiting }) => sum + waiting, 0),
      );
      await kafka.restart();
      await bench.restart({ LEDGER_ROLES: 'api,publisher', ...brokers });
      const [computed, started] = [processorMs(bench.service.pid), performance.now()];
      let most = 0;
      const records = await until('all is published', async () => {
        most = Math.max(most, residentMb(bench.service.pid));
        const status = await statusOf(bench);
        return isCaughtUp(status) ? sentOf(status) : undefined;
      });
      const took = (performance.now() - started) / 1000;
      const used = processorMs(bench.service.pid) - computed;
      note('catch-up: s', took);
      note(
        'catch-up: processor µs of the service, all threads, per event of the log',
        (used * 1000) / events,
      );
      note('catch-up: events/s of the log', events / took);
      note('catch-up: records/s of all topics', records / took);
      note('catch-up, most memory: MB', most);
    } finally {
      await bench.close();
    }
  } finally {
    await kafka.close();
  }
};

printMachine({ part: values.part, rate, seconds, orders, repeat, broker: 'Apache Kafka 4.3.1, loopback' });
for (let n = 0; n < repeat; n += 1) {
  if (parts.includes('latency')) await latency();
  if (parts.includes('away')) await away();
}
for (const [name, list] of figures) console.log(`${name}: ${range(list, Math.max(...list) < 100 ? 1 : 0)}`);
