/**
 * `npm run bench -- rebuild [--orders 10000] [--repeat 3] [--seconds 3]`: how fast the read models are built from an
 * embedded log, how long a write waits for them, and what reads cost without HTTP. Prints min–max of the repetitions.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { openReadModels } from '../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../src/projections/read-models.ts';
import { createViews } from '../../src/projections/views.ts';
import { EVENTS_PER_ORDER, writeOrders } from './support/order-history.ts';
import { percentile, printMachine, range, watchLoop } from './support/report.ts';

const { values } = parseArgs({
  options: {
    orders: { type: 'string', default: '10000' },
    repeat: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '3' },
  },
});
const orders = Number(values.orders);
const repeat = Number(values.repeat);

const figures = new Map<string, number[]>();
const note = (name: string, value: number): void => {
  figures.set(name, [...(figures.get(name) ?? []), value]);
};

const moduleUrl = (path: string): string => new URL(path, import.meta.url).href;
const open = (dataDir: string, store: SqliteEventStore, dir: string, only?: string): Promise<ReadModels> =>
  openReadModels({
    dir,
    views: createViews().filter(({ name }) => only === undefined || name === only),
    source: {
      kind: 'worker',
      storeId: store.storeId,
      readerModule: moduleUrl('../../src/composition/log-reader-module.ts'),
      readerConfig: { kind: 'sqlite', dataDir },
      viewsModule: moduleUrl('../../src/projections/views.ts'),
      viewsConfig: {},
    },
  });

/** Runs `work` and notes how long turns of this thread, which in a service answers HTTP, were delayed meanwhile. */
const watched = async <Result>(name: string, work: () => Promise<Result>): Promise<Result> => {
  const delay = watchLoop();
  const result = await work();
  const { p99 = 0, max = 0 } = delay() ?? {};
  note(`${name}: event-loop delay p99 ms`, p99);
  note(`${name}: event-loop delay max ms`, max);
  return result;
};

/** Seconds from opening on an empty folder until the views have applied everything; thread start included. */
const buildSeconds = async (
  dataDir: string,
  store: SqliteEventStore,
  views: readonly string[],
): Promise<number> => {
  const dir = mkdtempSync(join(dataDir, 'views-'));
  const last = (await store.lastPosition()) ?? '';
  const started = performance.now();
  const models = await open(dataDir, store, dir, views.length === 1 ? views[0] : undefined);
  const reached = await Promise.all(views.map((view) => models.waitFor(view, last, { timeoutMs: 600_000 })));
  const seconds = (performance.now() - started) / 1000;
  if (reached.includes(false)) throw new Error(`the build did not end: ${JSON.stringify(models.status())}`);
  for (const view of views) {
    const { position } = models.status().find(({ name }) => name === view) ?? {};
    if (position !== last) throw new Error(`${view} is at ${position}, not at ${last}`);
  }
  await models.close();
  rmSync(dir, { recursive: true });
  return seconds;
};

const measureReads = (models: ReadModels, seconds: number): void => {
  const everyone = { all: true } as const;
  const own = { tenants: ['tenant-1', 'shared'] } as const;
  const { rows, total } = models.resources.list('cluster', everyone, { offset: 0, limit: 1000 });
  const documents = {
    kind: 'cluster',
    surface: 'public',
    limit: 100,
    indexed: new Set<string>(),
    nowMs: 0,
    signal: new AbortController().signal,
  } as const;
  const perSecond = (name: string, read: (n: number) => unknown): void => {
    let count = 0;
    const started = performance.now();
    while (performance.now() - started < (seconds * 1000) / 4) {
      for (let i = 0; i < 20; i += 1) read(count + i);
      count += 20;
    }
    note(`read: ${name}, per s`, (count / (performance.now() - started)) * 1000);
  };
  perSecond('get by id', (n) => models.resources.get('cluster', rows[n % rows.length]?.id ?? '', everyone));
  perSecond('get by id, own and shared', (n) =>
    models.resources.get('cluster', rows[n % rows.length]?.id ?? '', own),
  );
  perSecond('list of 100, all', (n) =>
    models.resources.list('cluster', everyone, { offset: (n * 100) % 1000, limit: 100 }),
  );
  perSecond('list of 100, own and shared', () =>
    models.resources.list('cluster', own, { offset: 0, limit: 100 }),
  );
  perSecond('documents of a list of 100, all', (n) =>
    models.resources.query({ ...documents, visibility: everyone, offset: (n * 100) % 1000 }),
  );
  perSecond('documents of a list of 100, own and shared', () =>
    models.resources.query({ ...documents, visibility: own, offset: 0 }),
  );
  perSecond('list of 100 at the last offset, all', () =>
    models.resources.list('cluster', everyone, { offset: total - 100, limit: 100 }),
  );
};

/** Milliseconds from the answer of an append until the read model shows it. */
const measureLive = async (
  models: ReadModels,
  store: SqliteEventStore,
  seconds: number,
  clients: number,
): Promise<void> => {
  const waits: number[] = [];
  const end = performance.now() + seconds * 1000;
  const client = async (n: number): Promise<void> => {
    for (let i = 0; performance.now() < end; i += 1) {
      const id = `live-${process.hrtime.bigint()}-${n}-${i}`;
      const { position } = await store.append(`hostType-${id}`, 'no_stream', [
        {
          id: crypto.randomUUID(),
          type: 'HostTypeDefined',
          data: JSON.stringify({
            id,
            at: '2026-11-21T10:00:00.000Z',
            tenant: 'shared',
            project: '',
            name: id,
            creator: 'bench',
            document: { title: 'x' },
          }),
          metadata: JSON.stringify({ commandId: crypto.randomUUID(), requestHash: 'x', schemaVersion: 1 }),
        },
      ]);
      const appended = performance.now();
      if (!(await models.waitFor('resources', position, { timeoutMs: 10_000 }))) throw new Error('too late');
      waits.push(performance.now() - appended);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, n) => client(n)));
  note(`live: wait after append, ${clients} clients, p50 ms`, percentile(waits, 0.5));
  note(`live: wait after append, ${clients} clients, p99 ms`, percentile(waits, 0.99));
  note(`live: appends with wait, ${clients} clients, per s`, waits.length / seconds);
};

printMachine({ orders, events: orders * EVENTS_PER_ORDER, repeat, synchronous: 'NORMAL' });
const dataDir = mkdtempSync(join(tmpdir(), 'ledger-bench-'));
const store = await openSqliteEventStore({ dataDir });
try {
  const events = await writeOrders(store, orders);
  for (let n = 0; n < repeat; n += 1) {
    for (const views of [['resources'], ['timeline'], ['resources', 'timeline']]) {
      const name = `build of ${views.join(' and ')}`;
      const seconds = await watched(name, () => buildSeconds(dataDir, store, views));
      note(`${name}: events of the log/s`, events / seconds);
    }
  }
  const dir = mkdtempSync(join(dataDir, 'views-'));
  const models = await open(dataDir, store, dir);
  const last = (await store.lastPosition()) ?? '';
  await models.waitFor('resources', last, { timeoutMs: 600_000 });
  await models.waitFor('timeline', last, { timeoutMs: 600_000 });
  for (let n = 0; n < repeat; n += 1) {
    const name = 'rebuild of resources with check and switch';
    const { seconds, outcome } = await watched(name, () => models.rebuild('resources'));
    if (outcome !== 'switched') throw new Error(`the rebuild ${outcome}`);
    note(`${name}: events of the log/s`, events / seconds);
  }
  for (let n = 0; n < repeat; n += 1) {
    measureReads(models, Number(values.seconds));
    for (const clients of [1, 8, 32]) await measureLive(models, store, Number(values.seconds) / 3, clients);
  }
  await models.close();
  note('size of the log, MB', statSync(join(dataDir, 'events.db')).size / 2 ** 20);
  for (const [name, measured] of figures)
    console.log(`  ${name.padEnd(64)} ${range(measured, Math.max(...measured) < 100 ? 2 : 0)}`);
} finally {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
}
