/**
 * `npm run bench -- audit-turns [--orders 6500] [--people 3000] [--tenants 500] [--times 20] [--only <word>]`: does any question of auditors hold the
 * thread that answers? A service over a hundred thousand events (an order is 15) is asked each question so many times, one after
 * the other; printed is the longest that its thread computed at a stretch while it was, and how long an answer took.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openSqliteEventStore } from '../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { openDeploymentKeys } from '../../src/adapters/keys/deployment-keys.ts';
import { openFileKeyStore } from '../../src/adapters/keys/file-key-store.ts';
import type { EventStore } from '../../src/app/log/event-store.ts';
import { writeOrders } from './support/order-history.ts';
import { percentile, printMachine } from './support/report.ts';
import { startBenchService } from './support/service.ts';

const { values } = parseArgs({
  options: {
    orders: { type: 'string', default: '6500' },
    people: { type: 'string', default: '3000' },
    tenants: { type: 'string', default: '500' },
    times: { type: 'string', default: '20' },
    only: { type: 'string', default: '' },
  },
});
const [orders, people, tenants] = [Number(values.orders), Number(values.people), Number(values.tenants)];
const times = Number(values.times);
const wanted = (name: string): boolean => name.includes(values.only);
const AT = '2026-11-21T10:00:00.000Z';

const textOf = (n: number): string => JSON.stringify({ userName: `person-${n}`, email: `p${n}@x.example` });

/** Two events of each person, with a name that is encrypted under a key of its own. */
const writePeople = async (store: EventStore, secretsDir: string): Promise<void> => {
  const keys = await openDeploymentKeys(secretsDir);
  const keyStore = await openFileKeyStore({ directory: join(secretsDir, 'subjects'), kek: keys.subjectKek });
  for (let n = 0; n < people; n += 1) {
    const subjectId = randomUUID();
    const personal = await keyStore.encrypt(subjectId, textOf(n));
    const metadata = JSON.stringify({
      tenant: `tenant-${n % 20}`,
      occurredAt: AT,
      actor: { type: 'user', subjectId, personal },
    });
    for (const at of ['a', 'b'])
      await store.append(`person-${n}-${at}`, 'no_stream', [
        { id: randomUUID(), type: 'AuditRead', data: JSON.stringify({ at: AT, what: 'events' }), metadata },
      ]);
  }
};

const writeTenants = async (store: EventStore): Promise<void> => {
  for (let n = 0; n < tenants; n += 1)
    await store.append(`tenant-lone-${n}`, 'no_stream', [
      {
        id: randomUUID(),
        type: 'TenantOnboarded',
        data: JSON.stringify({ n }),
        metadata: JSON.stringify({ tenant: `lone-${n}`, occurredAt: AT }),
      },
    ]);
};

printMachine({ orders, people, tenants, times });
const dir = mkdtempSync(join(tmpdir(), 'ledger-turns-'));
const file = join(dir, 'turns.json');
process.env['BENCH_TURNS_FILE'] = file;
const probe = join(import.meta.dirname, 'support/turns-probe.ts');
const bench = await startBenchService('api,processes,auditor', ['--import', probe], async (dataDir) => {
  const store = await openSqliteEventStore({ dataDir });
  await writeTenants(store);
  await writePeople(store, join(dataDir, 'secrets'));
  await writeOrders(store, orders);
  await store.close();
});

const ask = async (path: string, init: RequestInit = {}): Promise<{ status: number; text: string }> => {
  const headers = { authorization: `Bearer ${bench.adminToken}`, 'content-type': 'application/json' };
  const reply = await fetch(`${bench.service.http}${path}`, { ...init, headers });
  return { status: reply.status, text: await reply.text() };
};
const json = async (path: string, init?: RequestInit): Promise<Record<string, unknown>> =>
  JSON.parse((await ask(path, init)).text) as Record<string, unknown>;

const longest = (): number =>
  (JSON.parse(readFileSync(file, 'utf8')) as { longestComputedMs: number }).longestComputedMs;

/** Longer than it takes the probe to write what it saw. */
const WRITTEN_MS = 1_100;

const measure = async (name: string, pathOf: (n: number) => string, count = times): Promise<void> => {
  if (!wanted(name)) return;
  await ask(pathOf(0));
  await ask(pathOf(1));
  await pause(WRITTEN_MS);
  process.kill(bench.service.pid, 'SIGUSR2');
  const took: number[] = [];
  const statuses = new Set<number>();
  for (let n = 0; n < count; n += 1) {
    const started = performance.now();
    statuses.add((await ask(pathOf(n))).status);
    took.push(performance.now() - started);
  }
  await pause(WRITTEN_MS);
  const answers = `${percentile(took, 0.5).toFixed(1)} / ${Math.max(...took).toFixed(1)}`;
  console.log(
    `  ${name.padEnd(56)} ${[...statuses].join(',')}  longest turn ${longest().toFixed(1)} ms; p50 / max ${answers} ms`,
  );
};

const AUDIT = '/api/audit/v1';
const tilePath = (n: number): string =>
  `x${String(Math.floor(n / 1000)).padStart(3, '0')}/${String(n % 1000).padStart(3, '0')}`;
const tileNumber = (n: number): string => (n < 1000 ? String(n).padStart(3, '0') : tilePath(n));

try {
  const size = orders * 15;
  // The history is signed as far as it was when the service came up.
  for (let looks = 0; looks < 600; looks += 1) {
    const [head] = ((await json(`${AUDIT}/checkpoints`))['items'] ?? []) as { size?: number }[];
    if ((head?.size ?? 0) > size) break;
    await pause(500);
  }
  const found = (await json(`${AUDIT}/events?type=ClusterOrdered&limit=500`))['items'] as {
    id: string;
    resource_id: string;
    recorded_at?: string;
  }[];
  const event = (n: number): string => found[(n * 7) % found.length]?.id ?? '';
  const cluster = (n: number): string => found[(n * 7) % found.length]?.resource_id ?? '';
  const anyLeaf = (n: number): number => 1 + ((n * 7_919_317) % size);
  const late = (): string => new Date(Date.now() - 5_000).toISOString();
  await measure('nothing (healthz)', () => '/healthz');
  await measure('events, 100', () => `${AUDIT}/events`);
  await measure('events, 500 of a tenant', (n) => `${AUDIT}/events?tenant=tenant-${n % 20}&limit=500`);
  await measure('events of a cluster', (n) => `${AUDIT}/resources/cluster/${cluster(n)}/events`);
  await measure('one event', (n) => `${AUDIT}/events/${event(n)}`);
  await measure('proof of an event', (n) => `${AUDIT}/events/${event(n)}/proof`);
  await measure('checkpoints, 1,000', () => `${AUDIT}/checkpoints?after=0&limit=1000`);
  await measure('consistency', (n) => `${AUDIT}/consistency?from=${anyLeaf(n)}&to=${size}`);
  await measure('trust.json', () => `${AUDIT}/trust.json`, 3);
  await measure('tile of hashes', (n) => `${AUDIT}/tile/0/${tileNumber(Math.floor(anyLeaf(n) / 256))}`);
  await measure(
    'tile of entries',
    (n) => `${AUDIT}/tile/entries/${tileNumber(Math.floor(anyLeaf(n) / 256))}`,
  );
  await measure('cluster as of a moment', (n) => `${AUDIT}/resources/cluster/${cluster(n)}?as_of=${late()}`);
  await measure(
    'clusters as of a moment, 100',
    () => `/api/private/v1/clusters?as_of=${late()}&limit=100`,
    5,
  );
  await measure(
    'clusters as of a moment, 1,000',
    () => `/api/private/v1/clusters?as_of=${late()}&limit=1000`,
    5,
  );
  await measure(
    'usage of a month',
    () => '/api/ledger/v1/usage?from=2026-11-01T00:00:00Z&to=2026-12-01T00:00:00Z',
    5,
  );
  await measure(
    'subject by name, among all',
    (n) => `${AUDIT}/events?subject=person-${people - 1 - n}&limit=1`,
    3,
  );
  await measure('subject by name, nobody', (n) => `${AUDIT}/events?subject=nobody-${n}&limit=1`, 3);
  for (const body of [{ tenant: 'tenant-3', pins: Array.from({ length: 100 }, (_, n) => anyLeaf(n)) }, {}]) {
    const name = `export ${'tenant' in body ? 'of a tenant, 100 pins' : 'of everything'}`;
    if (!wanted(name)) continue;
    await pause(WRITTEN_MS);
    process.kill(bench.service.pid, 'SIGUSR2');
    const started = performance.now();
    const asked = await json(`${AUDIT}/exports`, { method: 'POST', body: JSON.stringify(body) });
    let state: unknown = asked['state'];
    while (state === 'waiting' || state === 'running') {
      await pause(500);
      state = (await json(`${AUDIT}/exports/${String(asked['id'])}`))['state'];
    }
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    await pause(WRITTEN_MS);
    console.log(
      `  ${name.padEnd(56)} ${String(state)}  longest turn ${longest().toFixed(1)} ms; ${seconds} s`,
    );
  }
} finally {
  await bench.close();
  rmSync(dir, { recursive: true, force: true });
}
