import type {
  ClusterOrderSpec,
  Condition,
  ObservedClusterOrder,
  ObservedHostedCluster,
} from '../../../app/management-cluster.ts';
import type { GivenSettings, LifeSettings } from './settings.ts';

/**
 * What is stored of one ClusterOrder: its beginning, how it is to live, and every later write with its time.
 * Everything a read shows is computed from this and the present time (life.ts).
 */
export type OrderRecord = {
  readonly uid: string;
  /** Number of the object on its hub; base of job ids and addresses. */
  readonly sequence: number;
  readonly namespace: string;
  readonly name: string;
  readonly clusterId?: string;
  readonly labels: { readonly [key: string]: string };
  readonly annotations: { readonly [key: string]: string };
  /** Hub time in milliseconds since 1970, like every `at`. */
  readonly createdAt: number;
  readonly spec: ClusterOrderSpec;
  readonly configVersion: string;
  readonly life: LifeSettings;
  /** Faults of single calls about this object. */
  readonly faults: GivenSettings;
  readonly baseDomain: string;
  readonly writes: readonly Write[];
};

export type Write = { readonly at: number } & (
  | { readonly kind: 'patch'; readonly spec: ClusterOrderSpec; readonly configVersion: string }
  | { readonly kind: 'delete' }
  | { readonly kind: 'remove-finalizer'; readonly finalizer: string }
  | { readonly kind: 'vanish'; readonly what: 'order' | 'hosted-cluster' }
);

export const OPERATOR_FINALIZER = 'osac.openshift.io/finalizer';
export const INFRASTRUCTURE_FINALIZER = 'osac.openshift.io/infrastructure';

export type Job = ObservedClusterOrder['jobs'][number];

/** The status of an order as the operator writes it: replaced as a whole, never changed in place. */
export type OrderStatus = Pick<
  ObservedClusterOrder,
  | 'phase'
  | 'conditions'
  | 'desiredConfigVersion'
  | 'jobs'
  | 'clusterReference'
  | 'nodeSets'
  | 'apiEndpoint'
  | 'ingressEndpoint'
>;

export type NodePool = { readonly resourceClass: string; desired: number; ready: number };

export type Hosted = {
  readonly createdAt: number;
  conditions: readonly Condition[];
  /** By resource class. */
  readonly pools: Map<string, NodePool>;
  available: boolean;
  complete: boolean;
};

/** Kubernetes times have whole seconds. */
export const kubernetesTime = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

/** Sets one condition; the transition time moves only when the status changes, as in Kubernetes. */
export const withCondition = (
  conditions: readonly Condition[],
  at: number,
  type: string,
  status: Condition['status'],
  reason: string,
  message = '',
): readonly Condition[] => {
  const before = conditions.find((condition) => condition.type === type);
  const lastTransitionTime =
    before?.status === status && before.lastTransitionTime !== undefined
      ? before.lastTransitionTime
      : kubernetesTime(at);
  const next: Condition = { type, status, reason, message, lastTransitionTime };
  return before === undefined
    ? [...conditions, next]
    : conditions.map((condition) => (condition === before ? next : condition));
};

export const hostedNamespace = (record: Pick<OrderRecord, 'namespace' | 'name'>): string =>
  `${record.namespace}-${record.name}`;
export const kubeconfigSecret = (name: string): string => `${name}-admin-kubeconfig`;
export const passwordSecret = (name: string): string => `${name}-kubeadmin-password`;

/** The HostedCluster as a read by name shows it (management-cluster.md §3.1). */
export const observedHosted = (record: OrderRecord, hosted: Hosted): ObservedHostedCluster => ({
  name: record.name,
  namespace: hostedNamespace(record),
  conditions: hosted.conditions,
  baseDomain: record.baseDomain,
  ...(hosted.available
    ? {
        controlPlaneEndpoint: { host: `api.${record.name}.${record.baseDomain}`, port: 6443 },
        kubeconfigSecret: kubeconfigSecret(record.name),
        passwordSecret: passwordSecret(record.name),
      }
    : {}),
  nodePools: [...hosted.pools.values()].map((pool) => ({ ...pool })),
});
