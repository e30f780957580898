import type {
  ClusterOrderSpec,
  ObservedClusterOrder,
  ObservedHostedCluster,
} from '../../../../../domain/clusters/hub-objects.ts';
import type { Condition } from '../../../../../domain/hubs/hub-codecs.ts';
import type { ObjectRecord } from '../../record.ts';
import type { StoredObject } from '../../stored-object.ts';

export type OrderRecord = ObjectRecord<ClusterOrderSpec>;

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

export type OrderObject = StoredObject<ClusterOrderSpec, OrderStatus>;

export type NodePool = { readonly resourceClass: string; desired: number; ready: number };

export type Hosted = {
  readonly createdAt: number;
  conditions: readonly Condition[];
  /** By resource class. */
  readonly pools: Map<string, NodePool>;
  available: boolean;
  complete: boolean;
};

export const hostedNamespace = (record: Pick<OrderRecord, 'namespace' | 'name'>): string =>
  `${record.namespace}-${record.name}`;
export const kubeconfigSecret = (name: string): string => `${name}-admin-kubeconfig`;
export const passwordSecret = (name: string): string => `${name}-kubeadmin-password`;

/** The HostedCluster as a read by name shows it (OSAC's operator). */
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
