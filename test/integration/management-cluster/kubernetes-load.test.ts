import { expect } from 'chai';
import {
  createWorkerChannel,
  type HubChannel,
} from '../../../src/adapters/management-cluster/kubernetes/channel.ts';
import { CLUSTER_ORDER, CLUSTER_ORDER_UUID_LABEL } from '../../../src/domain/clusters/hub-objects.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import type { JsonObject } from '../../support/kube-apiserver/types.ts';
import { kubernetesHub, recordingLogger } from '../../support/hubs/kubernetes-hub.ts';
import { untilHolds } from './contract-kit.ts';

/** The fault suites take `LEDGER_TEST_ORDERS=10000`; the default keeps this one short. */
const ORDERS = Number(process.env['LEDGER_TEST_ORDERS'] ?? 2_000);
const CHANGES = ORDERS * 2;
/** Changes between two mishaps of the hub. */
const MISHAP_EVERY = Math.ceil(CHANGES / 12);
const PULL_SECRET = JSON.stringify({ auths: { 'registry.example': { auth: 'x'.repeat(2_000) } } });
/** Grown memory of this process: it holds the hub's objects and history as well. */
const MAX_GROWTH_BYTES = 200_000_000 + ORDERS * 40_000;
const NS = 'osac-hub';

describe(`a Kubernetes hub with ${ORDERS} orders that change while connections break`, function () {
  this.timeout(180_000);
  let server: KubeApiServer;
  let channel: HubChannel;
  before(async () => {
    server = await startKubeApiServer({ namespaces: [NS], audit: false, historyLimit: 500 });
    channel = createWorkerChannel({ logger: recordingLogger() });
  });
  after(async () => {
    await channel.close();
    await server.close();
  });

  const put = (index: number, size: number): void =>
    void server.seed({
      apiVersion: 'osac.openshift.io/v1alpha1',
      kind: 'ClusterOrder',
      metadata: {
        name: `order-${index}`,
        namespace: NS,
        labels: { [CLUSTER_ORDER_UUID_LABEL]: `id-${index}` },
      },
      spec: {
        templateID: 'osac.templates.ocp_small',
        templateParameters: '{}',
        nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: size }],
        pullSecret: PULL_SECRET,
      },
    } as JsonObject);

  it('every order is shown as the hub holds it last; versions come in order and once; memory is bounded', async () => {
    for (let index = 0; index < ORDERS; index += 1) put(index, 1);
    const before = process.memoryUsage.rss();
    const { hub } = kubernetesHub({ kubeconfigs: { '1': server.kubeconfig() }, namespace: NS, channel });
    const shown = new Map<string, { version: number; size: number }>();
    const faults: string[] = [];
    let synced = 0;
    const abort = new AbortController();
    const following = (async () => {
      for await (const event of hub.watch(CLUSTER_ORDER, NS, abort.signal)) {
        if (event.type === 'synced') {
          synced += 1;
          continue;
        }
        const { name, resourceVersion, spec } = event.object;
        const version = Number(resourceVersion);
        if ((shown.get(name)?.version ?? 0) >= version) faults.push(`${name}: ${version} again or too late`);
        if (event.type === 'deleted') shown.delete(name);
        else shown.set(name, { version, size: spec.nodeRequests[0]?.numberOfNodes ?? 0 });
      }
    })();
    await untilHolds(
      () => Promise.resolve(synced),
      (times) => times > 0,
      60_000,
    );
    expect(shown.size).to.equal(ORDERS);

    const mishaps = [
      () => server.failWatches(),
      () => server.cutConnections(),
      () => server.compact(),
      () => server.failWatches({}, 500),
    ];
    for (let change = 1; change <= CHANGES; change += 1) {
      put((change * 7_919) % ORDERS, change);
      if (change % MISHAP_EVERY === 0) mishaps[(change / MISHAP_EVERY) % mishaps.length]?.();
      if (change % 20 === 0) await new Promise(setImmediate);
    }
    const stored = new Map(
      server
        .list('clusterorders', NS)
        .map(({ metadata }) => [metadata.name, Number(metadata.resourceVersion)]),
    );
    await untilHolds(
      () =>
        Promise.resolve([...stored].filter(([name, version]) => shown.get(name)?.version !== version).length),
      (stale) => stale === 0,
      60_000,
    );
    abort.abort();
    await following;
    expect(faults).to.deep.equal([]);
    expect(process.memoryUsage.rss() - before).to.be.lessThan(MAX_GROWTH_BYTES);
  });
});
