import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import autocannon from 'autocannon';
import { serviceStore } from './event-store.ts';
import { startService, type ServiceProcess } from '../../../src/cli/demo/service-process.ts';

const MAIN = join(import.meta.dirname, '../../../src/main.ts');
const CATALOG = join(import.meta.dirname, '../../../fixtures/catalog');

export type BenchService = {
  readonly service: ServiceProcess;
  readonly dataDir: string;
  /** Milliseconds from its start until it was ready. */
  readonly readyMs: number;
  readonly userToken: string;
  readonly adminToken: string;
  /** Ends the service and starts it on the same data, with other settings. */
  restart(more: Readonly<Record<string, string>>): Promise<void>;
  close(): Promise<void>;
};

/**
 * The real service with the demo catalogue, hubs without limits (with what `hubSpec` makes of them), on a data directory that is empty but for what `prepare`
 * writes there, with `more` settings. The log is the embedded one, or an EventStoreDB (`event-store.ts`), unless `prepare`
 * writes one.
 */
export const startBenchService = async (
  roles: string,
  nodeOptions: readonly string[] = [],
  prepare?: (dataDir: string) => Promise<void>,
  more: Readonly<Record<string, string>> = {},
  hubSpec: (spec: HubSpec) => HubSpec = (spec) => spec,
): Promise<BenchService> => {
  const dir = mkdtempSync(join(tmpdir(), 'ledger-bench-'));
  const dataDir = join(dir, 'data');
  const store = prepare === undefined ? await serviceStore() : EMBEDDED;
  const environment = {
    LEDGER_DATA_DIR: dataDir,
    LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
    LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
    LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
    LEDGER_CATALOG: unlimitedCatalog(dir, hubSpec),
    LEDGER_ROLES: roles,
    LEDGER_LOG_LEVEL: 'warn',
    // What the service can do is measured here, not what one tenant is allowed.
    LEDGER_RATE_LIMIT_TENANT: '0',
    ...store.settings,
    LEDGER_BYTE_LIMIT_TENANT: '0',
  };
  await prepare?.(dataDir);
  let readyMs = 0;
  const start = async (settings: Readonly<Record<string, string>>): Promise<ServiceProcess> => {
    const begun = performance.now();
    const started = await startService({
      command: [MAIN, 'serve'],
      environment: { ...environment, ...settings },
      nodeOptions,
    });
    await ready(started.http);
    readyMs = performance.now() - begun;
    return started;
  };
  let service = await start(more);
  const token = (...args: string[]): string =>
    execFileSync(process.execPath, [MAIN, 'token', '--ttl', '2h', ...args], {
      encoding: 'utf8',
      env: { ...process.env, LEDGER_DATA_DIR: dataDir, ...store.settings },
    }).trim();
  return {
    get service() {
      return service;
    },
    dataDir,
    get readyMs() {
      return readyMs;
    },
    userToken: token('--tenant', 'acme', '--user', 'bench'),
    adminToken: token('--admin', '--user', 'bench-admin'),
    restart: async (settings) => {
      await service.stop();
      service = await start(settings);
    },
    close: async () => {
      await service.stop();
      await store.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

const EMBEDDED: Awaited<ReturnType<typeof serviceStore>> = { settings: {}, stop: () => Promise.resolve() };

/** Long enough for read models of a million events on a busy machine. */
const READY_MS = 900_000;

/** The service listens before its catalogue is loaded: orders that come earlier are refused. */
const ready = async (http: string): Promise<void> => {
  const deadline = performance.now() + READY_MS;
  for (;;) {
    const answer = await fetch(`${http}/readyz`);
    const body = await answer.text();
    if (answer.ok) return;
    if (performance.now() > deadline) throw new Error(`the service did not get ready: ${body}`);
    await pause(20);
  }
};

type HubSpec = Readonly<Record<string, unknown>>;

const unlimitedCatalog = (dir: string, change: (spec: HubSpec) => HubSpec): string => {
  const catalog = join(dir, 'catalog');
  cpSync(CATALOG, catalog, { recursive: true });
  const file = join(catalog, 'hubs.json');
  const hubs = JSON.parse(readFileSync(file, 'utf8')) as { spec: HubSpec }[];
  for (const hub of hubs) {
    const { capacity: _capacity, ...spec } = hub.spec;
    hub.spec = change(spec);
  }
  writeFileSync(file, JSON.stringify(hubs));
  return catalog;
};

export type LoadResult = {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly errors: number;
};

/** Drives one request shape with so many connections for so many seconds, from this process. */
export const load = async (
  url: string,
  token: string,
  connections: number,
  seconds: number,
  request: Partial<autocannon.Request>,
): Promise<LoadResult> => {
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    requests: [request as autocannon.Request],
  });
  return {
    perSecond: result['2xx'] / result.duration,
    p50: result.latency.p50,
    p99: result.latency.p99,
    errors: result.errors + result.timeouts + result.non2xx,
  };
};

/** A POST of a cluster under a fresh name each time; on a log that an earlier run filled, too. */
export const orderRequest = (prefix: string): Partial<autocannon.Request> => {
  const run = randomUUID().slice(0, 4);
  let n = 0;
  return {
    method: 'POST',
    path: '/api/fulfillment/v1/clusters',
    setupRequest: (request) => {
      n += 1;
      const name = `${prefix}-${run}-${n}`;
      const body = {
        metadata: { name, labels: { env: 'bench' } },
        spec: { template: { id: 'osac.templates.ocp_small' } },
      };
      return { ...request, body: JSON.stringify(body) };
    },
  };
};

/** Value of one sample of the metrics listener, for example `ledger_watches`. */
export const metric = async (metricsUrl: string, sample: string): Promise<number> =>
  sampleIn(await (await fetch(metricsUrl)).text(), sample);

/** Delay of the service's HTTP thread since its metrics were asked last: 99th percentile and longest, in ms. */
export const loopDelay = async (metricsUrl: string): Promise<string> => {
  const text = await (await fetch(metricsUrl)).text();
  const ms = (quantile: string): string =>
    (1000 * sampleIn(text, `ledger_event_loop_delay_seconds{quantile="${quantile}"}`)).toFixed(1);
  return `${ms('0.99')}/${ms('1')}`;
};

const sampleIn = (text: string, sample: string): number => {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${sample} `));
  return line === undefined ? Number.NaN : Number(line.slice(sample.length + 1));
};
