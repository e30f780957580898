import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createEventStoreDbStore } from '../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { createMemoryEventStore } from '../../src/adapters/event-store/memory/memory-event-store.ts';
import { openSqliteEventStore } from '../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import type { EventStore, EventToAppend } from '../../src/app/log/event-store.ts';
import { EVENTSTOREDB, openEventStoreDb } from './support/event-store.ts';
import { percentile, printMachine, range, watchLoop } from './support/report.ts';

/**
 * `npm run bench -- store [--store sqlite|memory|eventstoredb] [--seconds 3] [--repetitions 3]`: single-event appends to new and
 * growing streams at several concurrencies, then a subscription from the beginning until it has caught up.
 * Prints min–max over the repetitions, each on a fresh log. `eventstoredb` is our adapter on the server that
 * LEDGER_TEST_EVENTSTOREDB names, whose log goes on growing. Without one it is the protocol peer of the tests in a process
 * of its own, which stores nothing: what adapter and protocol cost, not what a server does.
 */
type Opened = { readonly store: EventStore; readonly settings: string; readonly remove: () => Promise<void> };

const stores: Record<string, () => Promise<Opened>> = {
  sqlite: async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'bench-store-'));
    const store = await openSqliteEventStore({ dataDir });
    const pragmas = await store.pragmas();
    return {
      store,
      settings: `journal_mode=${pragmas.journalMode} synchronous=${pragmas.synchronous} page_size=${pragmas.pageSize} wal_autocheckpoint=${pragmas.walAutocheckpoint}`,
      remove: () => rm(dataDir, { recursive: true }),
    };
  },
  memory: async () => ({
    store: createMemoryEventStore(),
    settings: 'in this process',
    remove: () => Promise.resolve(),
  }),
  eventstoredb: async () => {
    const { connectionString, stop } = await openEventStoreDb();
    return {
      store: await createEventStoreDbStore({ connectionString, instance: 'bench' }),
      settings: EVENTSTOREDB,
      remove: stop,
    };
  },
};

const CONCURRENCIES = [1, 16, 64, 256];
/** Appends that one client makes to a stream before it starts another. */
const PER_STREAM = 5;

const event = (): EventToAppend => ({
  id: randomUUID(),
  type: 'ClusterOrdered',
  data: JSON.stringify({ order: randomUUID(), template: 'ocp_4_17_small', parameters: 'x'.repeat(250) }),
  metadata: JSON.stringify({ tenant: 'acme', correlationId: randomUUID(), trace: 'x'.repeat(180) }),
});

type Figures = Map<string, number[]>;
const note = (figures: Figures, name: string, value: number): void => {
  figures.set(name, [...(figures.get(name) ?? []), value]);
};

const append = async (
  store: EventStore,
  clients: number,
  seconds: number,
  figures: Figures,
): Promise<void> => {
  const end = performance.now() + seconds * 1000;
  const latencies: number[] = [];
  const delay = watchLoop();
  const client = async (): Promise<void> => {
    for (;;) {
      const stream = `bench-${randomUUID()}`;
      for (let revision = 0; revision < PER_STREAM; revision += 1) {
        const started = performance.now();
        if (started > end) return;
        await store.append(stream, revision === 0 ? 'no_stream' : revision - 1, [event()]);
        latencies.push(performance.now() - started);
      }
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const delayed = delay();
  note(figures, `append, ${clients} clients: events/s`, latencies.length / seconds);
  note(figures, `append, ${clients} clients: p50 ms`, percentile(latencies, 0.5));
  note(figures, `append, ${clients} clients: p99 ms`, percentile(latencies, 0.99));
  // A store in memory never gives the loop a turn: then there is nothing to report.
  if (delayed !== undefined)
    note(figures, `append, ${clients} clients: event-loop delay p99 ms`, delayed.p99);
};

const catchUp = async (store: EventStore, figures: Figures): Promise<void> => {
  const controller = new AbortController();
  const started = performance.now();
  let events = 0;
  for await (const item of store.subscribe({ signal: controller.signal })) {
    if (item.kind === 'event') events += 1;
    if (item.kind === 'caught-up') controller.abort();
  }
  note(figures, 'catch-up: events/s', (events / (performance.now() - started)) * 1000);
  note(figures, 'catch-up: events', events);
};

const bench = async (
  name: string,
  open: () => Promise<Opened>,
  seconds: number,
  repetitions: number,
): Promise<void> => {
  const figures: Figures = new Map();
  let settings = '';
  for (let n = 0; n < repetitions; n += 1) {
    const opened = await open();
    settings = opened.settings;
    for (const clients of CONCURRENCIES) await append(opened.store, clients, seconds, figures);
    await catchUp(opened.store, figures);
    await opened.store.close();
    await opened.remove();
  }
  console.log(`\n${name} (${settings})`);
  for (const [figure, values] of figures)
    console.log(`  ${figure.padEnd(46)} ${range(values, Math.max(...values) < 100 ? 2 : 0)}`);
};

const { values } = parseArgs({
  options: {
    store: { type: 'string', multiple: true, default: Object.keys(stores) },
    seconds: { type: 'string', default: '3' },
    repetitions: { type: 'string', default: '3' },
  },
});
const { seconds, repetitions } = values;
printMachine({ seconds, repetitions, 'event bytes': event().data.length + event().metadata.length });
for (const name of values.store) {
  const open = stores[name];
  if (open === undefined) throw new Error(`--store is one of ${Object.keys(stores).join(', ')}, not ${name}`);
  await bench(name, open, Number(seconds), Number(repetitions));
}
