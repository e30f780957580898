import { CLUSTER_ORDER } from '../../../../src/domain/clusters/hub-objects.ts';
import { configVersion } from '../../../../src/domain/clusters/observation.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { isObject, listAt, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import type { KubeAnswer, KubeClient } from '../../../../test/support/kube-apiserver/client.ts';
import { inParallel, ORDERS } from './rig.ts';

const HYPERSHIFT = '/apis/hypershift.openshift.io/v1beta1';
const AT_ONCE = 16;

/** An order on a hub, as its player needs it. */
export type PlayedOrder = {
  readonly clusterId: string;
  readonly name: string;
  readonly namespace: string;
  readonly size: number;
  readonly resourceClass: string;
  readonly version: string;
};

/** What an operator does, as far as it is seen: nothing but the writes of statuses, as fast as they go. */
export const createPlayer = (kube: KubeClient) => {
  const written = (answer: KubeAnswer): void => {
    if (answer.code >= 300 && answer.code !== 409)
      throw new Error(`the hub answered ${answer.code}: ${answer.text}`);
  };

  const orders = async (namespace: string): Promise<PlayedOrder[]> => {
    const { body } = await kube.get(`${ORDERS}/namespaces/${namespace}/clusterorders`);
    return listAt(body, 'items').filter(isObject).map(playedOrder);
  };

  const setStatus = async ({ namespace, name }: PlayedOrder, status: JsonObject): Promise<void> =>
    written(await kube.merge(`${ORDERS}/namespaces/${namespace}/clusterorders/${name}/status`, { status }));

  const hostedCluster = async ({ namespace, name }: PlayedOrder): Promise<void> => {
    const collection = `${HYPERSHIFT}/namespaces/${namespace}/hostedclusters`;
    written(
      await kube.post(collection, {
        apiVersion: 'hypershift.openshift.io/v1beta1',
        kind: 'HostedCluster',
        metadata: { name },
        spec: { dns: { baseDomain: 'hub.example' } },
      }),
    );
    const conditions = [
      condition('Available', 'True'),
      condition('Degraded', 'False'),
      condition('ClusterVersionSucceeding', 'True'),
    ];
    const controlPlaneEndpoint = { host: `api.${name}.hub.example`, port: 6443 };
    written(
      await kube.merge(`${collection}/${name}/status`, { status: { conditions, controlPlaneEndpoint } }),
    );
  };

  return {
    orders,
    /** Taken up, nothing more. */
    accept: (all: readonly PlayedOrder[]): Promise<void> =>
      inParallel(all, AT_ONCE, (order) => setStatus(order, { phase: 'Progressing' })),
    /** All is there, as the operator shows it in the end. */
    makeReady: (all: readonly PlayedOrder[]): Promise<void> =>
      inParallel(all, AT_ONCE, async (order) => {
        await hostedCluster(order);
        await setStatus(order, { ...readyStatus(order), ...nodes(order, order.size) });
      }),
    /** So many nodes of an order are ready. */
    setNodes: (order: PlayedOrder, ready: number): Promise<void> => setStatus(order, nodes(order, ready)),
    /** Orders that nobody ordered here, with a cluster's label each: they are watched and fed to no run. */
    seed: (namespace: string, from: number, to: number): Promise<void> =>
      inParallel(Array.from({ length: to - from }), AT_ONCE, async (_, index) => {
        const order = strangeOrder(namespace, from + index);
        written(await kube.post(`${ORDERS}/namespaces/${namespace}/clusterorders`, order));
      }),
  };
};

export type Player = ReturnType<typeof createPlayer>;

const playedOrder = (object: JsonObject): PlayedOrder => {
  const { spec, id: clusterId = '' } = CLUSTER_ORDER.shown(object);
  const metadata = objectAt(object, 'metadata');
  const [request] = spec.nodeRequests;
  return {
    clusterId,
    name: stringAt(metadata, 'name'),
    namespace: stringAt(metadata, 'namespace'),
    size: request?.numberOfNodes ?? 0,
    resourceClass: request?.resourceClass ?? '',
    version: configVersion(spec),
  };
};

const condition = (type: string, status: string): JsonObject => ({
  type,
  status,
  reason: 'AsExpected',
  message: '',
  lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
});

const nodes = ({ resourceClass }: PlayedOrder, ready: number): JsonObject => ({
  nodeRequests: [{ resourceClass, numberOfNodes: ready }],
});

const readyStatus = ({ name, namespace, version }: PlayedOrder): JsonObject => ({
  phase: 'Ready',
  desiredConfigVersion: version,
  conditions: ['Accepted', 'ControlPlaneCreated', 'ClusterAvailable'].map((type) => condition(type, 'True')),
  clusterReference: {
    namespace,
    hostedClusterName: name,
    serviceAccountName: 'osac',
    roleBindingName: 'osac',
  },
  provisioningJobs: [
    {
      jobID: `job-${version}`,
      type: 'provision',
      state: 'Succeeded',
      timestamp: new Date().toISOString(),
      configVersion: version,
    },
  ],
});

/** As large as orders are: a pull secret makes most of it. */
const PULL_SECRET = JSON.stringify({ auths: { 'registry.example': { auth: 'x'.repeat(2_000) } } });

const strangeOrder = (namespace: string, n: number): JsonObject => ({
  apiVersion: 'osac.openshift.io/v1alpha1',
  kind: 'ClusterOrder',
  metadata: {
    name: `order-${n}`,
    namespace,
    labels: {
      'osac.openshift.io/clusterorder-uuid': `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`,
    },
  },
  spec: {
    templateID: 'osac.templates.ocp_small',
    templateParameters: '{}',
    nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 3 }],
    pullSecret: PULL_SECRET,
  },
});
