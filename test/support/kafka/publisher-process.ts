import { createEventStoreDbStore } from '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { createKafkaCluster } from '../../../src/adapters/kafka/kafkajs-cluster.ts';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import { systemClock, systemIds, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createPublisher } from '../../../src/app/publisher/publisher.ts';
import type { PublisherFailpoint } from '../../../src/app/publisher/types.ts';
import { recordOf, specOf } from '../../integration/kafka/publisher-rig.ts';
import { recordingLogger } from '../loggers.ts';

/** What the process is told, as JSON in its first argument. */
export type ProcessOrder = {
  readonly store: { readonly dataDir: string } | { readonly connectionString: string };
  readonly brokers: readonly string[];
  readonly topic: string;
  readonly instance: string;
  /** Ends by SIGKILL when it comes to this point for the `n`-th time. */
  readonly dieAt?: { readonly point: Parameters<PublisherFailpoint>[0]; readonly n: number };
  /** Milliseconds of the lease. */
  readonly ttlMs?: number;
};
/** A line that it prints whenever something of it has changed. */
export type ProcessReport = {
  readonly epoch?: number;
  readonly state: string;
  readonly waitingEvents: number;
  readonly sent: number;
  readonly position?: string;
};

const LOOK_MS = 25;

/** One publisher of one topic as a process of its own, which can be killed and suspended. */
const run = async ({ store: where, brokers, topic, instance, dieAt, ttlMs }: ProcessOrder): Promise<void> => {
  const clock = systemClock();
  const timers = systemTimers();
  const logger = recordingLogger();
  const store =
    'dataDir' in where
      ? await openSqliteEventStore(where)
      : await createEventStoreDbStore({ ...where, instance });
  let left = dieAt?.n ?? 0;
  const publisher = createPublisher({
    streams: () => [{ topic: specOf(topic), map: (event) => [recordOf(topic, event)] }],
    topics: [specOf(topic)],
    cluster: createKafkaCluster({ brokers, clientId: instance, requestMs: 5_000 }, { logger, clock }),
    store,
    ownership: createLeases({
      store,
      instance,
      directory: instance,
      clock,
      timers,
      logger,
      ...(ttlMs === undefined ? {} : { ttlMs }),
    })('publisher'),
    clock,
    timers,
    ids: systemIds(),
    instance,
    logger,
    settings: { batch: { records: 3, bytes: 100_000 }, checkpointRecords: 5, checkpointMs: 100 },
    failpoint: (point) => {
      if (point !== dieAt?.point) return;
      left -= 1;
      if (left === 0) process.kill(process.pid, 'SIGKILL');
    },
  });
  let last = '';
  setInterval(() => {
    const { epoch, topics } = publisher.status();
    const [status] = topics;
    if (status === undefined) return;
    const { state, waitingEvents, sent, position } = status;
    const line = JSON.stringify({ epoch, state, waitingEvents, sent, position } as ProcessReport);
    if (line !== last) process.stdout.write(`${line}\n`);
    last = line;
  }, LOOK_MS);
  const stop = new AbortController();
  process.once('SIGTERM', () => stop.abort());
  await publisher.run(stop.signal);
  await store.close();
  process.exit(0);
};

await run(JSON.parse(process.argv[2] ?? '') as ProcessOrder);
