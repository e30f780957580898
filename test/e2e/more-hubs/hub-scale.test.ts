import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { residentMb } from '../../../ops/bench/support/report.ts';
import type { ApiClient } from '../../../src/cli/api-client.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { readLog } from '../../support/service/stored-log.ts';
import {
  CLUSTERS,
  createStack,
  PRIVATE,
  until,
  type ClusterBody,
  type Stack,
} from '../../support/service/stack.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import type { KubeObject } from '../../support/kube-apiserver/types.ts';
import { MERGE } from '../../support/kube-apiserver/client.ts';
import { hubAccessOf, rbacOf } from '../../support/hubs/kubernetes-hub.ts';

/** `LEDGER_TEST_HUB_ORDERS=10000` is the size that is promised; the default keeps the suite short. */
const ORDERS = Number(process.env['LEDGER_TEST_HUB_ORDERS'] ?? 300);
/** What the hub does in a second. */
const RATE = 200;
const CHANGES = ORDERS * 3;
/** Every kind of mishap comes twice. */
const MISHAP_EVERY = Math.ceil(CHANGES / 10);
const CLIENTS = 16;
const PAGE = 100;
const PATIENCE_MS = 60_000 + ORDERS * 30;
/** Grown memory of the service while the hub changes: a part for its collector, and one for each order. */
const MAX_GROWTH_MB = 150 + ORDERS * 0.015;
/** More nodes than ever become ready, so that each count stands for one version of its order. */
const SIZE = 1_000_000;
const NS = 'osac-hub';
const ORDERS_OF_HUB = `/apis/osac.openshift.io/v1alpha1/namespaces/${NS}/clusterorders`;

describe(`a hub with ${ORDERS} orders and ${RATE} changes a second, whose watches and connections break`, function () {
  this.timeout(PATIENCE_MS * 3);
  let stack: Stack;
  let server: KubeApiServer;
  let alice: ApiClient;

  before(async () => {
    server = await startKubeApiServer({
      namespaces: [NS],
      objects: rbacOf('hub-access', NS),
      audit: false,
      historyLimit: 200,
    });
    stack = await createStack('sqlite');
    await stack.start({ LEDGER_RATE_LIMIT_TENANT: '0', LEDGER_LOG_LEVEL: 'warn' });
    alice = await stack.client({ tenant: 'acme', user: 'alice' });
    await registerHub(stack, server);
  });
  after(async () => {
    await stack.dispose();
    await server.close();
  });

  it('every document ends as the hub does; of each order no state is told twice or after a later one', async () => {
    await orderAll(alice);
    await until('all are on the hub', () => server.list('clusterorders', NS).length === ORDERS, PATIENCE_MS);
    const orders = server.list('clusterorders', NS);
    for (const order of orders) await build(server, order);
    const ready = new Map<string, number>();
    const { pid } = stack.service();
    const rest = residentMb(pid);
    let most = rest;
    const mishaps = [
      () => server.failWatches(),
      () => server.cutConnections(),
      () => server.compact(),
      () => server.failWatches({}, 500),
      () => server.expirePages(),
    ];
    const started = performance.now();
    for (let change = 1; change <= CHANGES; change += 1) {
      const early = started + (change * 1_000) / RATE - performance.now();
      if (early > 1) await pause(early);
      const order = orders[(change * 7_919) % ORDERS] as KubeObject;
      await setNodes(server, order, change);
      ready.set(clusterOf(order), change);
      if (change % MISHAP_EVERY !== 0) continue;
      mishaps[(change / MISHAP_EVERY) % mishaps.length]?.();
      most = Math.max(most, residentMb(pid));
    }

    const different = async (): Promise<number> => {
      const shown = await nodesShown(alice);
      return [...ready].filter(([id, nodes]) => shown.get(id) !== nodes).length;
    };
    await until(
      'every document shows what the hub holds',
      async () => (await different()) === 0,
      PATIENCE_MS,
    );
    most = Math.max(most, residentMb(pid));
    expect(ready.size).to.equal(ORDERS);
    expect(server.list('clusterorders', NS)).to.have.length(ORDERS);
    expect(await notRising(stack)).to.deep.equal([]);
    expect(most - rest, 'grown memory, MB').to.be.lessThan(MAX_GROWTH_MB);
  });
});

const registerHub = async (stack: Stack, server: KubeApiServer): Promise<void> => {
  const admin = await stack.client({ admin: true, user: 'root' });
  const kubeconfig = server.kubeconfig({ token: server.tokenFor(hubAccessOf(NS)) });
  await admin.send('POST', `${PRIVATE}/hubs`, {
    id: 'munich',
    spec: {
      namespace: NS,
      kubeconfig: Buffer.from(kubeconfig).toString('base64'),
      pacing: { calls_per_second: 10_000, burst: 10_000 },
    },
  });
  type Hub = { status?: { conditions?: readonly { type: string; status: string }[] } };
  await until('the hub was looked at', async () => {
    const { status } = await admin.get<Hub>(`${PRIVATE}/hubs/munich`);
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    return ready?.status === 'CONDITION_STATUS_TRUE';
  });
};

const orderAll = async (client: ApiClient): Promise<void> => {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < ORDERS) {
      next += 1;
      const spec = { template: { id: 'osac.templates.ocp_small' }, node_sets: { workers: { size: SIZE } } };
      await client.send('POST', CLUSTERS, { metadata: { name: `many-${next}` }, spec });
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, worker));
};

const clusterOf = ({ metadata }: KubeObject): string =>
  metadata.labels?.['osac.openshift.io/clusterorder-uuid'] ?? '';

const patchStatus = async (server: KubeApiServer, name: string, status: JsonObject): Promise<void> => {
  const answer = await server.call('PATCH', `${ORDERS_OF_HUB}/${name}/status`, {
    body: { status },
    type: MERGE,
  });
  expect(answer.code, answer.text).to.equal(200);
};

/** A control plane that is there, and nodes that come one by one. */
const build = async (server: KubeApiServer, { metadata: { name } }: KubeObject): Promise<void> => {
  server.seed({
    apiVersion: 'hypershift.openshift.io/v1beta1',
    kind: 'HostedCluster',
    metadata: { name, namespace: NS },
    spec: { dns: { baseDomain: 'hub.example' } },
  });
  const created = { type: 'ControlPlaneCreated', status: 'True', reason: 'AsExpected', message: '' };
  await patchStatus(server, name, {
    phase: 'Progressing',
    conditions: [{ ...created, lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z') }],
    clusterReference: {
      namespace: NS,
      hostedClusterName: name,
      serviceAccountName: 'osac',
      roleBindingName: 'osac',
    },
  });
};

const setNodes = (server: KubeApiServer, { metadata }: KubeObject, ready: number): Promise<void> =>
  patchStatus(server, metadata.name, {
    nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: ready }],
  });

/** Ready nodes by cluster, as tenants read them. */
const nodesShown = async (client: ApiClient): Promise<ReadonlyMap<string, number>> => {
  const shown = new Map<string, number>();
  for (let offset = 0; offset < ORDERS; offset += PAGE) {
    const query = `limit=${PAGE}&offset=${offset}`;
    const { items = [] } = await client.get<{ items?: readonly ClusterBody[] }>(`${CLUSTERS}?${query}`);
    for (const { id, status } of items) shown.set(id, status?.node_sets?.['workers']?.size ?? 0);
  }
  return shown;
};

/** Counts that the log tells of a cluster although it had told them, or later ones, before. */
const notRising = async (stack: Stack): Promise<readonly string[]> => {
  const last = new Map<string, number>();
  const wrong: string[] = [];
  for (const { type, stream, data } of await readLog(stack)) {
    const { ready } = data as { readonly ready?: { readonly workers?: number } };
    if (type !== 'ClusterConditionsObserved' || ready === undefined) continue;
    const nodes = ready.workers ?? 0;
    const before = last.get(stream) ?? -1;
    if (nodes <= before) wrong.push(`${stream}: ${nodes} after ${before}`);
    last.set(stream, nodes);
  }
  return wrong;
};
