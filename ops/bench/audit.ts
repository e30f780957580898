/**
 * `npm run bench -- audit [--orders 5000] [--tenants 1000] [--repeat 3] [--seconds 2]`: the tree over the log and what auditors ask of it:
 * build, proofs, "all actions on one cluster", signing a head, an export and its verification, and what keeping the tree costs
 * appends to that log (at least three times each, `--seconds` at a time). An order is 15 events: `--orders 66667` makes a million.
 * Prints min–max of the repetitions.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { systemClock } from '../../src/adapters/system/system-ports.ts';
import { createAsOf } from '../../src/app/log/as-of.ts';
import { createLeafGuard } from '../../src/app/audit/verified-reads.ts';
import { rootAt } from '../../src/app/audit/merkle/compact-range.ts';
import { createAuditProofs } from '../../src/app/audit/proofs.ts';
import { createTenantHeads } from '../../src/app/audit/tenant-heads.ts';
import { createAuditHeads, type TreeHead } from '../../src/app/audit/tree-heads.ts';
import { createCommandRunner } from '../../src/app/commands/command-runner.ts';
import { createEventCodec } from '../../src/app/log/event-codec.ts';
import { clusterAggregate } from '../../src/domain/kinds.ts';
import { eventTypes } from '../../src/domain/registry.ts';
import type { AuditReader } from '../../src/projections/audit/audit-reader.ts';
import { auditView } from '../../src/projections/audit/audit-view.ts';
import { openReadModels } from '../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../src/projections/read-models.ts';
import { createViews } from '../../src/projections/views.ts';
import { measureAppends, type TreeKeeper } from './support/audit-appends.ts';
import { measureBundle, measurePins } from './support/audit-bundle.ts';
import { writeOrders } from './support/order-history.ts';
import { percentile, printMachine, range } from './support/report.ts';

const { values } = parseArgs({
  options: {
    orders: { type: 'string', default: '5000' },
    tenants: { type: 'string', default: '1000' },
    repeat: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '2' },
  },
});
const [orders, tenants, repeat] = [Number(values.orders), Number(values.tenants), Number(values.repeat)];
const seconds = Number(values.seconds);

const figures = new Map<string, number[]>();
const note = (name: string, value: number): void => {
  figures.set(name, [...(figures.get(name) ?? []), value]);
};
const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const moduleUrl = (path: string): string => new URL(path, import.meta.url).href;

const openAudit = (dataDir: string, store: SqliteEventStore, dir: string): Promise<ReadModels> =>
  openReadModels({
    dir,
    views: createViews({ audit: true }).filter(({ name }) => name === 'audit'),
    source: {
      kind: 'worker',
      storeId: store.storeId,
      readerModule: moduleUrl('../../src/composition/log-reader-module.ts'),
      readerConfig: { kind: 'sqlite', dataDir },
      viewsModule: moduleUrl('../../src/projections/views.ts'),
      viewsConfig: { audit: true },
    },
  });
const readerOf = ({ audit }: ReadModels): AuditReader => {
  if (audit === undefined) throw new Error('there is no audit view');
  return audit;
};
const follow = async (models: ReadModels, store: SqliteEventStore): Promise<void> => {
  if (!(await models.waitFor('audit', (await store.lastPosition()) ?? '', { timeoutMs: 1_200_000 })))
    throw new Error(`the build did not end: ${JSON.stringify(models.status())}`);
};

/** One event of a tenant of its own, so many times. */
const addTenants = async (store: SqliteEventStore, count: number): Promise<void> => {
  const events = Array.from({ length: count }, (_, n) => ({
    id: randomUUID(),
    type: 'TenantOnboarded',
    data: JSON.stringify({ n }),
    metadata: JSON.stringify({ tenant: `lone-${n}`, occurredAt: '2026-11-21T10:00:00.000Z' }),
  }));
  for (let at = 0; at < count; at += 500)
    await store.append(`tenant-lone-${at}`, 'no_stream', events.slice(at, at + 500));
};

/** Milliseconds of each call, many times over. */
const time = async (name: string, times: number, call: (n: number) => unknown): Promise<void> => {
  const took: number[] = [];
  for (let n = 0; n < times; n += 1) {
    const started = performance.now();
    await call(n);
    took.push(performance.now() - started);
  }
  note(`${name}: p50 ms`, percentile(took, 0.5));
  note(`${name}: p95 ms`, percentile(took, 0.95));
  note(`${name}: max ms`, Math.max(...took));
};

const headOfAll = (reader: AuditReader): TreeHead => ({
  at: '',
  size: reader.size(),
  position: '',
  root: '',
  tenantsRoot: '',
  tenants: 0,
  note: '',
  keyId: '',
  revision: 0,
});

const measureReads = async (store: SqliteEventStore, reader: AuditReader): Promise<void> => {
  const head = headOfAll(reader);
  const proofs = createAuditProofs({
    tree: reader,
    heads: createAuditHeads(store),
    keys: { chain: async () => [] },
    origin: 'bench',
    rest,
  });
  const anyLeaf = (n: number): number => (n * 7_919_317) % head.size;
  await time('proof of one event', 300, (n) => proofs.proofOf(anyLeaf(n), head));
  await time('consistency of two sizes', 300, (n) => proofs.consistency(1 + anyLeaf(n), head.size));
  await time('tile of hashes', 300, (n) => proofs.tile(tileOf(anyLeaf(n), head.size)));
  await time('tile of entries', 100, (n) =>
    proofs.tile(tileOf(anyLeaf(n), head.size).replace('/0/', '/entries/')),
  );
  await time('proof of a tenant, first of a head', 1, () => proofs.tenantProof('tenant-3', head));
  await time('proof of a tenant, further ones', 20, () => proofs.tenantProof('tenant-5', head));
  const clusters = reader
    .find({ tenants: 'all', types: ['ClusterOrdered'], limit: 500 })
    .leaves.map(({ resourceId }) => resourceId);
  await time('all actions on one cluster', 300, (n) =>
    reader.find({
      tenants: 'all',
      kind: 'cluster',
      resourceId: clusters[n % clusters.length] ?? '',
      limit: 1000,
    }),
  );
  await time('100 events of a tenant and a type', 100, (n) =>
    reader.find({
      tenants: [`tenant-${n % 20}`],
      types: ['ClusterConditionsObserved'],
      limit: 100,
      after: anyLeaf(n),
    }),
  );
  await time('a page of what is never together (bounded)', 50, (n) =>
    reader.find({
      tenants: [`tenant-${n % 20}`],
      types: ['TenantOnboarded'],
      subject: '3f0d4c26-6f0e-4a58-9a3c-5b3d0a1f7c11',
      limit: 100,
      after: anyLeaf(n),
    }),
  );
  await time('position of a time', 300, () => reader.positionAt('2030-01-01T00:00:00.000Z'));
};

/** One resource as it was: the position of a time, then the resource's own stream up to it. */
const measureAsOf = async (store: SqliteEventStore, reader: AuditReader): Promise<void> => {
  const runner = createCommandRunner({
    store,
    codec: createEventCodec(eventTypes),
    clock: systemClock(),
    instance: 'bench',
    recordRejection: () => undefined,
  });
  const asOf = createAsOf({ store, runner, guard: createLeafGuard(() => reader) });
  const orders = reader.find({ tenants: 'all', types: ['ClusterOrdered'], limit: 500 }).leaves;
  await time('as_of of one resource', 300, async (n) => {
    const { resourceId = '', index = 0 } = orders[n % orders.length] ?? {};
    reader.positionAt('2030-01-01T00:00:00.000Z');
    // Somewhere in its life: the events of some 200 orders lie between each other.
    const position = reader.positionOf(Math.min(reader.size() - 1, index + (n % 7) * 400)) ?? '';
    const loaded = await asOf.load(clusterAggregate, resourceId, position);
    if (loaded === undefined) throw new Error(`${resourceId} was not there at ${position}`);
  });
};

const tileOf = (index: number, size: number): string => {
  const n = Math.min(Math.floor(index / 256), Math.max(0, Math.floor(size / 256) - 1));
  const groups = String(n)
    .padStart(Math.ceil(String(n).length / 3) * 3, '0')
    .match(/\d{3}/g) as string[];
  return `tile/0/${groups.map((group, at) => (at === groups.length - 1 ? group : `x${group}`)).join('/')}`;
};

/** What signing computes: from nothing, as at a takeover, and for a thousand new events. */
const measureHeads = async (reader: AuditReader): Promise<void> => {
  const size = reader.size();
  const heads = createTenantHeads(reader, rest);
  const started = performance.now();
  await heads.advance(size - Math.min(1000, size - 1));
  await heads.root();
  note(`head of all leaves from nothing: ms`, performance.now() - started);
  const next = performance.now();
  await heads.advance(size);
  await heads.root();
  rootAt(size, reader.hashAt);
  note('head 1,000 leaves later: ms', performance.now() - next);
  note('root of the main tree alone: ms', await timed(() => rootAt(size, reader.hashAt)));
  note('tenants', heads.count());
};
const timed = async (work: () => unknown): Promise<number> => {
  const started = performance.now();
  await work();
  return performance.now() - started;
};

printMachine({ orders, tenants, repeat, synchronous: 'FULL' });
const dataDir = mkdtempSync(join(tmpdir(), 'ledger-bench-'));
const store = await openSqliteEventStore({ dataDir });
try {
  await addTenants(store, tenants);
  const events = tenants + (await writeOrders(store, orders));
  console.log(`  ${events.toLocaleString('en-US')} events`);
  let models: ReadModels | undefined;
  let dir = '';
  for (let n = 0; n < repeat; n += 1) {
    await models?.close();
    if (dir !== '') rmSync(dir, { recursive: true });
    dir = mkdtempSync(join(dataDir, 'views-'));
    const started = performance.now();
    models = await openAudit(dataDir, store, dir);
    await follow(models, store);
    note('build of the tree: events/s', (events / (performance.now() - started)) * 1000);
  }
  if (models === undefined) throw new RangeError('--repeat is at least 1');
  for (let n = 0; n < repeat; n += 1) {
    await measureReads(store, readerOf(models));
    await measureAsOf(store, readerOf(models));
    await measureHeads(readerOf(models));
    await measureBundle(store, readerOf(models), dataDir, note);
    await measurePins(store, readerOf(models), dataDir, note);
  }
  await models.close();
  const keepTree = async (): Promise<TreeKeeper> => {
    const kept = await openAudit(dataDir, store, dir);
    return { caughtUp: () => follow(kept, store), close: () => kept.close() };
  };
  note('size of the log, bytes/event', statSync(join(dataDir, 'events.db')).size / events);
  note(
    'size of the tree, bytes/event',
    statSync(join(dir, `audit-v${auditView().version}-1.sqlite`)).size / events,
  );
  await measureAppends(store, keepTree, { seconds, repeat: Math.max(3, repeat) }, note);
  for (const [name, measured] of figures)
    console.log(`  ${name.padEnd(64)} ${range(measured, Math.max(...measured) < 100 ? 2 : 0)}`);
} finally {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
}
