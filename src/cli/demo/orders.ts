import { setTimeout as pause } from 'node:timers/promises';
import { ApiError } from '../api-client.ts';
import { ClaimFailed } from './narrator.ts';
import type { DemoOptions, Stage } from './stage.ts';

export type Cluster = {
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

export const CLUSTERS = '/api/fulfillment/v1/clusters';
const READY = 'CLUSTER_STATE_READY';

export const orderAndWatch = async (stage: Stage, ordered: string[]): Promise<Cluster> => {
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

export const scale = async (stage: Stage, cluster: Cluster): Promise<void> => {
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

export const repeatOrder = async (stage: Stage, cluster: Cluster): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('Retry: the same POST again, with the same Idempotency-Key');
  const again = await order(stage, 'demo-first', 'demo-order-1');
  narrator.check('the answer is the same cluster', again.id === cluster.id);
  const { total } = await stage.tenant().get<{ total: number }>(`${CLUSTERS}?limit=0`);
  narrator.check('no second order was made', total === 1, `${total} cluster of acme`);
};

export const crashAndRecover = async (stage: Stage, ordered: string[]): Promise<Cluster> => {
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

export const read = async (stage: Stage, id: string): Promise<Cluster | undefined> => {
  try {
    return await stage.tenant().get<Cluster>(`${CLUSTERS}/${id}`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
};
