import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createApiClient, ApiError, type ApiClient } from '../api-client.ts';
import type { TokenRequest } from '../connection.ts';
import { duration } from '../output.ts';
import { readHubFiles } from './hub-files.ts';
import { ClaimFailed, createNarrator, type Narrator } from './narrator.ts';
import { startService, type ServiceProcess } from './service-process.ts';

export type DemoOptions = {
  /** The service's executable and arguments, for example `['…/main.ts', 'serve']`. */
  readonly command: readonly string[];
  readonly catalog: string;
  readonly mintToken: (secretsDir: string, request: TokenRequest) => Promise<string>;
  readonly stream: NodeJS.WriteStream;
};

type Cluster = {
  readonly id: string;
  readonly metadata: { readonly name: string; readonly version?: number };
  readonly spec: { readonly node_sets: Readonly<Record<string, { readonly size?: number }>> };
  readonly status?: {
    readonly state?: string;
    readonly api_url?: string;
    readonly node_sets?: Readonly<Record<string, { readonly size?: number }>>;
  };
};
type Timeline = { readonly items?: readonly TimelineItem[] };
type TimelineItem = {
  readonly position: string;
  readonly at: string;
  readonly type: string;
  readonly summary: string;
};

const CLUSTERS = '/api/fulfillment/v1/clusters';
const READY = 'CLUSTER_STATE_READY';
/** The whole demo has to be over in a minute; no single wait may take longer than this. */
const PATIENCE_MS = 30_000;

/** Everything that a step needs: rebuilt when the service is started again. */
type Stage = {
  readonly narrator: Narrator;
  readonly dataDir: string;
  readonly service: () => ServiceProcess;
  readonly tenant: () => ApiClient;
  readonly admin: () => ApiClient;
  readonly restart: () => Promise<void>;
  /** Positions of timeline entries that were printed. */
  readonly shown: Set<string>;
};

/** Runs the demo; 0 when everything was as it says, 1 when something was not. */
export const runDemo = async (options: DemoOptions): Promise<number> => {
  const started = performance.now();
  const narrator = createNarrator(options.stream);
  const dir = mkdtempSync(join(tmpdir(), 'fulfillment-ledger-demo-'));
  const running: { service?: ServiceProcess } = {};
  try {
    narrator.chapter('Start: the service on its embedded event log, in a temporary directory');
    const stage = await setStage(options, narrator, join(dir, 'data'), running);
    const first = await orderAndWatch(stage);
    await scale(stage, first);
    await repeatOrder(stage, first);
    const second = await crashAndRecover(stage);
    askTheHubs(stage, [first, second]);
    await deleteBoth(stage, [first, second]);
    await verifyHistory(stage);
    await summarise(stage, (performance.now() - started) / 1000);
    return 0;
  } catch (error) {
    const failed = error instanceof ClaimFailed ? `NOT AS CLAIMED: ${error.message}` : String(error);
    options.stream.write(`\n   ${failed}\n${(running.service?.log ?? []).slice(-15).join('\n')}\n`);
    return 1;
  } finally {
    await running.service?.stop('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }
};

const setStage = async (
  options: DemoOptions,
  narrator: Narrator,
  dataDir: string,
  running: { service?: ServiceProcess },
): Promise<Stage> => {
  const start = async (): Promise<ServiceProcess> => {
    const environment = {
      LEDGER_DATA_DIR: dataDir,
      LEDGER_CATALOG: options.catalog,
      LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
      LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
    };
    const service = await startService({ command: options.command, environment });
    running.service = service;
    await untilReady(service.http);
    narrator.say(`listening on ${service.http} (process ${service.pid})`);
    return service;
  };
  let service = await start();
  const secretsDir = join(dataDir, 'secrets');
  const mint = (request: Partial<TokenRequest> & { user: string }): Promise<string> =>
    options.mintToken(secretsDir, { admin: false, roles: [], ttlSeconds: 600, ...request });
  const tenantToken = await mint({ tenant: 'acme', user: 'alice' });
  const adminToken = await mint({ user: 'operator', admin: true });
  narrator.say('tokens of the development issuer for tenant user alice of acme, and for a provider admin');
  const stage: Stage = {
    narrator,
    dataDir,
    service: () => service,
    tenant: () => createApiClient(service.http, tenantToken),
    admin: () => createApiClient(service.http, adminToken),
    restart: async () => {
      service = await start();
    },
    shown: new Set(),
  };
  const { items = [] } = await stage
    .tenant()
    .get<{ items?: { id: string; title: string }[] }>('/api/fulfillment/v1/cluster_templates');
  narrator.check(
    'the catalogue is offered to the tenant',
    items.length >= 3,
    items.map(({ title }) => title).join(', '),
  );
  return stage;
};

/** `/readyz` says when the catalogue is loaded and the read models know the log. */
const untilReady = async (http: string): Promise<void> => {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = await fetch(`${http}/readyz`);
    const text = await answer.text();
    if (answer.ok) return;
    if (performance.now() > deadline) throw new ClaimFailed(`the service is not ready: ${text}`);
    await pause(50);
  }
};

const orderAndWatch = async (stage: Stage): Promise<Cluster> => {
  const { narrator } = stage;
  narrator.chapter('Order: POST /api/fulfillment/v1/clusters as tenant acme');
  const cluster = await order(stage, 'demo-first', 'demo-order-1');
  narrator.say(`cluster ${cluster.id}`);
  const ready = await follow(stage, cluster.id, (seen) => seen.status?.state === READY);
  narrator.check(
    'it became READY, as observed on the hub',
    ready.status?.state === READY,
    ready.status?.api_url ?? '',
  );
  const kubeconfig = await stage.tenant().text(`${CLUSTERS}/${cluster.id}/kubeconfig`);
  narrator.check('its kubeconfig is handed out', kubeconfig.includes('clusters:'));
  return ready;
};

const order = (stage: Stage, name: string, key: string): Promise<Cluster> =>
  stage
    .tenant()
    .send<Cluster>(
      'POST',
      CLUSTERS,
      { metadata: { name, labels: { env: 'demo' } }, spec: { template: { id: 'osac.templates.ocp_small' } } },
      { 'idempotency-key': `"${key}"` },
    );

const scale = async (stage: Stage, cluster: Cluster): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('Scale: PATCH node_sets.workers.size 2 → 3');
  await stage.tenant().send('PATCH', `${CLUSTERS}/${cluster.id}?update_mask=spec.node_sets.workers.size`, {
    spec: { node_sets: { workers: { size: 3 } } },
  });
  const workers = (seen: Cluster): number => seen.status?.node_sets?.['workers']?.size ?? 0;
  const scaled = await follow(
    stage,
    cluster.id,
    (seen) => seen.status?.state === READY && workers(seen) === 3,
  );
  narrator.check('three nodes are there and it is READY', workers(scaled) === 3);
};

const repeatOrder = async (stage: Stage, cluster: Cluster): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('Retry: the same POST again, with the same Idempotency-Key');
  const again = await order(stage, 'demo-first', 'demo-order-1');
  narrator.check('the answer is the same cluster', again.id === cluster.id);
  const { total } = await stage.tenant().get<{ total: number }>(`${CLUSTERS}?limit=0`);
  narrator.check('no second order was made', total === 1, `${total} cluster of acme`);
};

const crashAndRecover = async (stage: Stage): Promise<Cluster> => {
  const { narrator } = stage;
  narrator.chapter('Crash: a second order, and SIGKILL in the middle of it');
  const cluster = await order(stage, 'demo-second', 'demo-order-2');
  await follow(stage, cluster.id, (_, types) => types.has('ClusterDispatchStarted'));
  const pid = stage.service().pid;
  await stage.service().stop('SIGKILL');
  narrator.say(`process ${pid} was killed while the hub was building the cluster; starting it again`);
  await stage.restart();
  const again = await order(stage, 'demo-second', 'demo-order-2');
  narrator.check('a retry of the order after the crash finds the same cluster', again.id === cluster.id);
  const ready = await follow(stage, cluster.id, (seen) => seen.status?.state === READY);
  narrator.check('the order was finished by the new process', ready.status?.state === READY);
  return ready;
};

const askTheHubs = (stage: Stage, clusters: readonly Cluster[]): void => {
  const { narrator } = stage;
  narrator.chapter("The hubs' own journals");
  const { calls, objectsByCluster } = readHubFiles(stage.dataDir);
  for (const { id, metadata } of clusters)
    narrator.check(`the hub holds exactly one object for ${metadata.name}`, objectsByCluster.get(id) === 1);
  narrator.check(
    'nothing else was ever created',
    objectsByCluster.size === clusters.length,
    `${calls} calls in the journals`,
  );
};

const deleteBoth = async (stage: Stage, clusters: readonly Cluster[]): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('Delete: both clusters, gone only when the hub confirms it');
  for (const { id } of clusters) await stage.tenant().send('DELETE', `${CLUSTERS}/${id}`);
  for (const { id, metadata } of clusters) {
    const deadline = performance.now() + PATIENCE_MS;
    while ((await read(stage, id)) !== undefined) {
      if (performance.now() > deadline) throw new ClaimFailed(`${metadata.name} is still there`);
      await pause(100);
    }
    narrator.check(`${metadata.name} answers 404`, true);
  }
};

const verifyHistory = async (stage: Stage): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('History: rebuild every read model from the log and compare');
  const { items } = await stage.admin().get<{ items: { name: string }[] }>('/api/ledger/v1/projections');
  for (const { name } of items) {
    let outcome = 'no report';
    for await (const line of stage
      .admin()
      .lines<{ report?: { outcome: string; events: number } }>(
        'POST',
        `/api/ledger/v1/projections/${name}/rebuild`,
      ))
      if (line.report !== undefined) outcome = line.report.outcome;
    narrator.check(
      `${name}, rebuilt from the first event, equals the live one`,
      outcome === 'switched',
      outcome,
    );
  }
};

const summarise = async (stage: Stage, seconds: number): Promise<void> => {
  const { narrator } = stage;
  let events = 0;
  for await (const _ of stage.admin().lines('GET', '/api/ledger/v1/events?limit=100000')) events += 1;
  const code = await stage.service().stop('SIGTERM');
  narrator.check('the service stopped cleanly on SIGTERM', code === 0, `exit ${code}`);
  narrator.chapter(
    `Done: ${events} events in the log, ${narrator.checked} claims checked, ${duration(seconds)}`,
  );
};

/** Prints timeline entries as they come, until the cluster is as wanted. */
const follow = async (
  stage: Stage,
  id: string,
  wanted: (cluster: Cluster, types: ReadonlySet<string>) => boolean,
): Promise<Cluster> => {
  const deadline = performance.now() + PATIENCE_MS;
  const types = new Set<string>();
  for (;;) {
    const cluster = await read(stage, id);
    await showNews(stage, id, types);
    if (cluster !== undefined && wanted(cluster, types)) return cluster;
    if (performance.now() > deadline)
      throw new ClaimFailed(
        `cluster ${id} is ${cluster?.status?.state ?? 'gone'} after ${PATIENCE_MS / 1000} s`,
      );
    await pause(100);
  }
};

const showNews = async (stage: Stage, id: string, types: Set<string>): Promise<void> => {
  const shown = stage.shown;
  const { items = [] } = await stage.tenant().get<Timeline>(`${CLUSTERS}/${id}/timeline`);
  for (const { position, at, type, summary } of items) {
    types.add(type);
    if (shown.has(position)) continue;
    shown.add(position);
    stage.narrator.event(at, type, summary);
  }
};

const read = async (stage: Stage, id: string): Promise<Cluster | undefined> => {
  try {
    return await stage.tenant().get<Cluster>(`${CLUSTERS}/${id}`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
};
