import {
  CLUSTER_ORDER_UUID_LABEL,
  HubError,
  type CallOptions,
  type ClusterOrderManifest,
  type ClusterOrderSpec,
  type ManagementCluster,
  type OrderPlace,
} from '../../../app/management-cluster.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { apiVersion, CLUSTER_ORDERS, type Api } from './api.ts';
import { observedClusterOrder } from './observed.ts';
import { checkManifest, checkPatch, isLabelValue } from './order-rules.ts';

/**
 * The object of an order (management-cluster.md §1.1): no status, no finalizers, and of labels and annotations only
 * our own.
 */
export const clusterOrderObject = ({ name, namespace, labels, annotations, spec }: ClusterOrderManifest) =>
  ({
    apiVersion: apiVersion(CLUSTER_ORDERS),
    kind: 'ClusterOrder',
    metadata: { name, namespace, labels: { ...labels }, annotations: { ...annotations } },
    spec: specObject(spec),
  }) satisfies JsonObject;

/** Our fields of the spec and no others; what is not given is left out, so that a patch leaves it alone. */
export const specObject = (spec: Partial<ClusterOrderSpec>): JsonObject => ({
  ...(spec.templateID === undefined ? {} : { templateID: spec.templateID }),
  ...(spec.templateParameters === undefined ? {} : { templateParameters: spec.templateParameters }),
  ...(spec.nodeRequests === undefined
    ? {}
    : {
        nodeRequests: spec.nodeRequests.map(({ resourceClass, numberOfNodes }) => ({
          resourceClass,
          numberOfNodes,
        })),
      }),
  ...(spec.pullSecret === undefined ? {} : { pullSecret: spec.pullSecret }),
  ...(spec.sshPublicKey === undefined ? {} : { sshPublicKey: spec.sshPublicKey }),
  ...(spec.releaseImage === undefined ? {} : { releaseImage: spec.releaseImage }),
  ...(spec.network === undefined ? {} : { network: { ...spec.network } }),
});

export type OrderOperations = Pick<
  ManagementCluster,
  | 'createClusterOrder'
  | 'patchClusterOrder'
  | 'deleteClusterOrder'
  | 'getClusterOrder'
  | 'findClusterOrders'
  | 'readClusterOrder'
>;

export const orderOperations = (api: Api): OrderOperations => {
  const get: OrderOperations['getClusterOrder'] = async (place, by) => {
    const object = await api.get(CLUSTER_ORDERS, at(place), by);
    return object === undefined ? undefined : observedClusterOrder(object);
  };

  /** Whose the name is decides what its caller does; a name that has just gone is free at the next try. */
  const taken = async (place: OrderPlace, error: HubError, by: CallOptions): Promise<HubError> => {
    const order = await get(place, by);
    const more = { facts: error.facts, cause: error };
    return order === undefined
      ? new HubError('conflict', `order ${place.name} has just gone; its name is free again`, more)
      : new HubError('already-exists', error.message, { ...more, order });
  };

  return {
    createClusterOrder: async (manifest, by) => {
      checkManifest(manifest);
      try {
        const secrets = [manifest.spec.pullSecret];
        return observedClusterOrder(
          await api.create(CLUSTER_ORDERS, clusterOrderObject(manifest), by, secrets),
        );
      } catch (error) {
        if (error instanceof HubError && error.kind === 'already-exists')
          throw await taken(manifest, error, by);
        throw error;
      }
    },
    patchClusterOrder: async (place, spec, by) => {
      checkPatch(place.name, spec);
      const patch = { spec: specObject(spec) };
      return observedClusterOrder(
        await api.mergePatch(CLUSTER_ORDERS, at(place), patch, by, [spec.pullSecret]),
      );
    },
    deleteClusterOrder: (place, by) => api.remove(CLUSTER_ORDERS, at(place), by, place.uid),
    getClusterOrder: get,
    findClusterOrders: async (namespace, clusterId, by) => {
      // No object can carry another value, and a selector with it would be refused.
      if (clusterId === '' || !isLabelValue(clusterId)) return [];
      const labelSelector = `${CLUSTER_ORDER_UUID_LABEL}=${clusterId}`;
      const found: JsonObject[] = [];
      for await (const page of api.list(CLUSTER_ORDERS, { namespace, labelSelector }, by)) {
        if (page.first) found.length = 0;
        found.push(...page.items);
      }
      return found.map(observedClusterOrder);
    },
    readClusterOrder: async (place, by) => {
      const object = await api.get(CLUSTER_ORDERS, at(place), by);
      return object === undefined ? undefined : wholeObject(object);
    },
  };
};

/** As the operator hands it to Ansible, without the bookkeeping of who wrote which field. */
const wholeObject = (object: JsonObject): JsonObject => {
  const metadata = object['metadata'];
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return object;
  const { managedFields: _managed, ...kept } = metadata as JsonObject;
  return { ...object, metadata: kept };
};

const at = ({ namespace, name }: OrderPlace): OrderPlace => ({ namespace, name });
