import type { JsonObject } from '../../../src/domain/json.ts';
import { isObject, listAt, numberAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { playedConfigVersion } from '../kube-controllers/config-version.ts';
import { kubeClient, type KubeAccess } from '../kube-apiserver/client.ts';

const FINALIZER = 'osac.openshift.io/finalizer';
const LABEL = 'osac.openshift.io/clusterorder';
const LOOK_MS = 10;
/** What is being deleted can be seen so for a while. */
const TEARDOWN_MS = 300;
const ORDERS = '/apis/osac.openshift.io/v1alpha1/namespaces';
const HYPERSHIFT = '/apis/hypershift.openshift.io/v1beta1/namespaces';

/**
 * Plays operator, Ansible and HyperShift on a hub in some hundred milliseconds, over its API like the real ones:
 * enough for what every adapter must see (orders become ready, are scaled, and go). Returns how to stop it.
 */
export const startQuickOperator = (access: KubeAccess, namespace: string): (() => Promise<void>) => {
  const kube = kubeClient(access);
  let stopped = false;
  const deletions = new Map<string, number>();
  const orders = `${ORDERS}/${namespace}/clusterorders`;
  const patchStatus = (name: string, status: JsonObject) =>
    kube.merge(`${orders}/${name}/status`, { status });

  const accept = async (name: string): Promise<void> => {
    const own = `${namespace}-${name}`;
    await kube.post('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: own, labels: { [LABEL]: name } },
    });
    await kube.merge(`${orders}/${name}`, { metadata: { finalizers: [FINALIZER] } });
  };

  const build = async (name: string, version: string, nodes: JsonObject[]): Promise<void> => {
    const own = `${namespace}-${name}`;
    const secret = (kind: string, key: string, text: string) =>
      kube.post(`/api/v1/namespaces/${own}/secrets`, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `${name}-${kind}` },
        data: { [key]: Buffer.from(text).toString('base64') },
      });
    await secret('admin-kubeconfig', 'kubeconfig', 'apiVersion: v1\nkind: Config\n');
    await secret('kubeadmin-password', 'password', 'four-words-and-more');
    const metadata = { name, labels: { [LABEL]: name } };
    const spec = { dns: { baseDomain: 'hub.example' } };
    const hosted = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedCluster', metadata, spec };
    await kube.post(`${HYPERSHIFT}/${own}/hostedclusters`, hosted);
    const at = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const condition = (type: string, status: string): JsonObject => ({
      type,
      status,
      reason: 'AsExpected',
      message: '',
      lastTransitionTime: at,
    });
    await kube.merge(`${HYPERSHIFT}/${own}/hostedclusters/${name}/status`, {
      status: {
        conditions: [
          condition('Available', 'True'),
          condition('Degraded', 'False'),
          condition('ClusterVersionSucceeding', 'True'),
        ],
        controlPlaneEndpoint: { host: `api.${name}.hub.example`, port: 6443 },
        kubeconfig: { name: `${name}-admin-kubeconfig` },
        kubeadminPassword: { name: `${name}-kubeadmin-password` },
      },
    });
    for (const node of nodes) await pool(name, own, node);
    await patchStatus(name, {
      phase: 'Ready',
      desiredConfigVersion: version,
      conditions: [condition('Accepted', 'True'), condition('ClusterAvailable', 'True')],
      clusterReference: {
        namespace: own,
        hostedClusterName: name,
        serviceAccountName: 'osac',
        roleBindingName: 'osac',
      },
      provisioningJobs: [
        {
          jobID: `job-${version}`,
          type: 'provision',
          state: 'Succeeded',
          timestamp: at,
          configVersion: version,
        },
      ],
    });
  };

  const pool = async (name: string, own: string, node: JsonObject): Promise<void> => {
    const resourceClass = stringAt(node, 'resourceClass');
    const replicas = numberAt(node, 'numberOfNodes');
    const poolName = `nodepool-${name}-${resourceClass}`;
    const labels = { [LABEL]: name, 'osac.openshift.io/resource_class': resourceClass };
    await kube.post(`${HYPERSHIFT}/${own}/nodepools`, {
      apiVersion: 'hypershift.openshift.io/v1beta1',
      kind: 'NodePool',
      metadata: { name: poolName, labels },
      spec: { clusterName: name, replicas },
    });
    await kube.merge(`${HYPERSHIFT}/${own}/nodepools/${poolName}`, { spec: { replicas } });
    await kube.merge(`${HYPERSHIFT}/${own}/nodepools/${poolName}/status`, { status: { replicas } });
  };

  const tearDown = async (name: string, uid: string): Promise<void> => {
    const since = deletions.get(uid) ?? performance.now();
    deletions.set(uid, since);
    if (performance.now() - since < TEARDOWN_MS) return;
    await kube.delete(`/api/v1/namespaces/${namespace}-${name}`);
    const left = await kube.get(`/api/v1/namespaces/${namespace}-${name}`);
    if (left.code === 404) await kube.merge(`${orders}/${name}`, { metadata: { finalizers: [] } });
  };

  const look = async (): Promise<void> => {
    const { body } = await kube.get(orders);
    for (const order of listAt(body, 'items').filter(isObject)) {
      const metadata = objectAt(order, 'metadata');
      const name = stringAt(metadata, 'name');
      const version = playedConfigVersion(objectAt(order, 'spec'));
      const accepted = listAt(metadata, 'finalizers').includes(FINALIZER);
      if (stringAt(metadata, 'deletionTimestamp') !== '') await tearDown(name, stringAt(metadata, 'uid'));
      else if (!accepted) await accept(name);
      else if (stringAt(objectAt(order, 'status'), 'phase') === '')
        await patchStatus(name, { phase: 'Progressing' });
      else if (stringAt(objectAt(order, 'status'), 'desiredConfigVersion') !== version)
        await build(name, version, listAt(objectAt(order, 'spec'), 'nodeRequests').filter(isObject));
    }
  };

  const run = async (): Promise<void> => {
    while (!stopped) {
      // The hub may be away: that is what some tests are about.
      await look().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  };
  const running = run();
  return async () => {
    stopped = true;
    await running;
    kube.close();
  };
};
