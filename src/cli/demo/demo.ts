import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createApiClient, ApiError, type ApiClient } from '../api-client.ts';
import type { DemoRequest, TokenRequest } from '../connection.ts';
import type { JsonObject } from '../../domain/json.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { duration } from '../output.ts';
import { checkOffline, takeExport } from './audit.ts';
import { readHubFiles } from './hub-files.ts';
import { followOnKafka, type FollowRecords } from './kafka.ts';
import { ClaimFailed, createNarrator, type Narrator } from './narrator.ts';
import { ordersOnHub, registerHub } from './real-hub.ts';
import { startService, type ServiceProcess } from './service-process.ts';

export type DemoOptions = Omit<DemoRequest, 'catalog'> & {
  /** The service's executable and arguments, for example `['…/main.ts', 'serve']`. */
  readonly command: readonly string[];
  readonly catalog: string;
  readonly mintToken: (secretsDir: string, request: TokenRequest) => Promise<string>;
  readonly followRecords: FollowRecords;
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
/** Where machines are installed, a cluster takes most of an hour. */
const PATIENCE_ON_A_HUB_MS = 2 * 3_600_000;
/** Tokens outlive the demo, but for one that takes hours. */
const TOKEN_SECONDS = 12 * 3_600;

/** Everything that a step needs: rebuilt when the service is started again. */
type Stage = {
  readonly narrator: Narrator;
  readonly request: DemoOptions;
  readonly patienceMs: number;
  readonly dataDir: string;
  readonly service: () => ServiceProcess;
  readonly tenant: () => ApiClient;
  readonly admin: () => ApiClient;
  /** Somebody of the tenant who may read its history. */
  readonly auditor: () => ApiClient;
  /** Bytes of a path, as the auditor. */
  readonly download: (path: string) => Promise<Uint8Array>;
  readonly restart: () => Promise<void>;
  /** Positions of timeline entries that were printed. */
  readonly shown: Set<string>;
};

/** Runs the demo; 0 when everything was as it says, 1 when something was not. */
export const runDemo = async (options: DemoOptions): Promise<number> => {
  const started = performance.now();
  const narrator = createNarrator(options.stream);
  const dir = mkdtempSync(join(tmpdir(), 'fulfillment-ledger-demo-'));
  const running: { service?: ServiceProcess; kafka?: { close(): Promise<void> } } = {};
  const ordered: string[] = [];
  try {
    narrator.chapter('Start: the service on its embedded event log, in a temporary directory');
    const stage = await setStage(options, narrator, join(dir, 'data'), running);
    if (options.hub !== undefined) {
      narrator.chapter(`Hub: ${stringAt(options.hub, 'id')}, a management cluster`);
      await registerHub(narrator, stage.admin(), options.hub, PATIENCE_MS);
    }
    const kafka = await followOnKafka({ ...stage, brokers: options.kafka, follow: options.followRecords });
    running.kafka = kafka;
    const first = await orderAndWatch(stage, ordered);
    await scale(stage, first);
    await kafka.showOrder(first.id);
    await repeatOrder(stage, first);
    const second = await crashAndRecover(stage, ordered);
    await kafka.showOrder(second.id);
    await askTheHubs(stage, [first, second]);
    await deleteBoth(stage, [first, second]);
    await kafka.showGone([first.id, second.id]);
    await verifyHistory(stage);
    const { patienceMs, auditor, download } = stage;
    const taken = await takeExport({ narrator, auditor: auditor(), download, dir, patienceMs });
    const events = await stopService(stage);
    await checkOffline(narrator, taken);
    narrator.chapter(
      `Done: ${events} events in the log, ${narrator.checked} claims checked, ${duration((performance.now() - started) / 1000)}`,
    );
    return 0;
  } catch (error) {
    const failed = error instanceof ClaimFailed ? `NOT AS CLAIMED: ${error.message}` : String(error);
    options.stream.write(`\n   ${failed}\n${(running.service?.log ?? []).slice(-15).join('\n')}\n`);
    options.stream.write(await leftBehind(options, ordered));
    return 1;
  } finally {
    await running.kafka?.close();
    await running.service?.stop('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }
};

/** A demo that failed leaves its orders on a real hub; nobody knows of them when its data are gone. */
const leftBehind = async ({ hub }: DemoOptions, ordered: readonly string[]): Promise<string> => {
  if (hub === undefined || ordered.length === 0) return '';
  const orders = await ordersOnHub(hub, ordered).catch(() => undefined);
  if (orders === undefined)
    return `\n   what it left on the hub cannot be seen; its clusters are ${ordered.join(', ')}\n`;
  return orders
    .map(
      ({ namespace, name }) => `\n   left on the hub: kubectl -n ${namespace} delete clusterorder ${name}\n`,
    )
    .join('');
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
      LEDGER_KAFKA_BROKERS: (options.kafka ?? []).join(','),
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
    options.mintToken(secretsDir, { admin: false, roles: [], ttlSeconds: TOKEN_SECONDS, ...request });
  const tenantToken = await mint({ tenant: 'acme', user: 'alice' });
  const adminToken = await mint({ user: 'operator', admin: true });
  const auditorToken = await mint({ tenant: 'acme', user: 'carol', roles: ['auditor'] });
  narrator.say(
    'tokens of the development issuer for tenant user alice of acme, its auditor carol, and a provider admin',
  );
  const stage: Stage = {
    narrator,
    request: options,
    patienceMs: options.patienceMs ?? (options.hub === undefined ? PATIENCE_MS : PATIENCE_ON_A_HUB_MS),
    dataDir,
    service: () => service,
    tenant: () => createApiClient(service.http, tenantToken),
    admin: () => createApiClient(service.http, adminToken),
    auditor: () => createApiClient(service.http, auditorToken),
    download: async (path) => {
      const headers = { authorization: `Bearer ${auditorToken}` };
      const answer = await fetch(new URL(path, service.http), { headers });
      if (!answer.ok) throw new ClaimFailed(`${path} answered ${answer.status}`);
      return new Uint8Array(await answer.arrayBuffer());
    },
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
    items.some(({ id }) => id === options.template),
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

const orderAndWatch = async (stage: Stage, ordered: string[]): Promise<Cluster> => {
  const { narrator } = stage;
  narrator.chapter('Order: POST /api/fulfillment/v1/clusters as tenant acme');
  const cluster = await order(stage, 'demo-first', 'demo-order-1');
  ordered.push(cluster.id);
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
      { metadata: { name, labels: { env: 'demo' } }, spec: specOf(stage.request) },
      { 'idempotency-key': `"${key}"` },
    );

const specOf = ({ template, pullSecret }: DemoOptions): object => ({
  template: { id: template },
  ...(pullSecret === undefined ? {} : { pull_secret: pullSecret }),
});

const scale = async (stage: Stage, cluster: Cluster): Promise<void> => {
  const { narrator } = stage;
  const [[set, { size: before = 0 }] = ['workers', {}]] = Object.entries(cluster.spec.node_sets);
  const size = before + 1;
  narrator.chapter(`Scale: PATCH node_sets.${set}.size ${before} → ${size}`);
  await stage.tenant().send('PATCH', `${CLUSTERS}/${cluster.id}?update_mask=spec.node_sets.${set}.size`, {
    spec: { node_sets: { [set]: { size } } },
  });
  const nodes = (seen: Cluster): number => seen.status?.node_sets?.[set]?.size ?? 0;
  const scaled = await follow(
    stage,
    cluster.id,
    (seen) => seen.status?.state === READY && nodes(seen) === size,
  );
  narrator.check(`${size} nodes are there and it is READY`, nodes(scaled) === size);
};

const repeatOrder = async (stage: Stage, cluster: Cluster): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('Retry: the same POST again, with the same Idempotency-Key');
  const again = await order(stage, 'demo-first', 'demo-order-1');
  narrator.check('the answer is the same cluster', again.id === cluster.id);
  const { total } = await stage.tenant().get<{ total: number }>(`${CLUSTERS}?limit=0`);
  narrator.check('no second order was made', total === 1, `${total} cluster of acme`);
};

const crashAndRecover = async (stage: Stage, ordered: string[]): Promise<Cluster> => {
  const { narrator } = stage;
  narrator.chapter('Crash: a second order, and SIGKILL in the middle of it');
  const cluster = await order(stage, 'demo-second', 'demo-order-2');
  ordered.push(cluster.id);
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

const askTheHubs = async (stage: Stage, clusters: readonly Cluster[]): Promise<void> => {
  const { hub } = stage.request;
  if (hub === undefined) askTheJournals(stage, clusters);
  else await askTheHub(stage, hub, clusters);
};

const askTheJournals = (stage: Stage, clusters: readonly Cluster[]): void => {
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

const askTheHub = async (stage: Stage, hub: JsonObject, clusters: readonly Cluster[]): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('The hub itself, through its kubeconfig');
  const orders = await ordersOnHub(
    hub,
    clusters.map(({ id }) => id),
  );
  for (const { id, metadata } of clusters) {
    const found = orders.filter(({ cluster }) => cluster === id);
    const names = found.map(({ namespace, name }) => `${namespace}/${name}`).join(', ');
    narrator.check(`the hub holds exactly one ClusterOrder for ${metadata.name}`, found.length === 1, names);
  }
  const { calls } = readHubFiles(stage.dataDir);
  narrator.check('no simulated hub was called', calls === 0);
};

const deleteBoth = async (stage: Stage, clusters: readonly Cluster[]): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('Delete: both clusters, gone only when the hub confirms it');
  for (const { id } of clusters) await stage.tenant().send('DELETE', `${CLUSTERS}/${id}`);
  for (const { id, metadata } of clusters) {
    const deadline = performance.now() + stage.patienceMs;
    while ((await read(stage, id)) !== undefined) {
      if (performance.now() > deadline) throw new ClaimFailed(`${metadata.name} is still there`);
      await pause(100);
    }
    narrator.check(`${metadata.name} answers 404`, true);
  }
  const { hub } = stage.request;
  if (hub === undefined) return;
  const left = await ordersOnHub(
    hub,
    clusters.map(({ id }) => id),
  );
  narrator.check('the hub holds no ClusterOrder of them any more', left.length === 0);
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

/** Returns how many events the log holds. */
const stopService = async (stage: Stage): Promise<number> => {
  const { narrator } = stage;
  let events = 0;
  for await (const _ of stage.admin().lines('GET', '/api/ledger/v1/events?limit=100000')) events += 1;
  const code = await stage.service().stop('SIGTERM');
  narrator.check('the service stopped cleanly on SIGTERM', code === 0, `exit ${code}`);
  return events;
};

/** Prints timeline entries as they come, until the cluster is as wanted. */
const follow = async (
  stage: Stage,
  id: string,
  wanted: (cluster: Cluster, types: ReadonlySet<string>) => boolean,
): Promise<Cluster> => {
  const deadline = performance.now() + stage.patienceMs;
  const types = new Set<string>();
  for (;;) {
    const cluster = await read(stage, id);
    await showNews(stage, id, types);
    if (cluster !== undefined && wanted(cluster, types)) return cluster;
    if (performance.now() > deadline)
      throw new ClaimFailed(
        `cluster ${id} is ${cluster?.status?.state ?? 'gone'} after ${stage.patienceMs / 1000} s`,
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
