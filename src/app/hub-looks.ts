import { configVersion } from '../domain/clusters/observation.ts';
import type { ClusterObservation, ObservedHosted } from '../domain/clusters/observed.ts';
import {
  cannotBeShown,
  clusterNamespace,
  type CallOptions,
  type ManagementCluster,
  type ObservedClusterOrder,
  type ObservedHostedCluster,
  type OrderPlace,
} from './management-cluster.ts';
import { nextTurn } from './process-runner/slices.ts';
import { createStreamQueue } from './stream-queue.ts';

/**
 * Looks at one cluster on one hub, one after the other, whoever makes them: the watch of the hub and timed reads look side
 * by side, of two at once the earlier one may be answered last, and of a HostedCluster that alone has changed nobody could
 * tell which answer is older.
 */
export type ClusterLooks = {
  /** When no look at this cluster is under way. Whoever waits for it tells of what was seen before the next one begins. */
  inTurn<T>(of: Pick<OrderRef, 'hub' | 'clusterId'>, look: () => Promise<T>): Promise<T>;
};

export const createClusterLooks = (): ClusterLooks => {
  const queue = createStreamQueue();
  return {
    inTurn: <T>({ hub, clusterId }: Pick<OrderRef, 'hub' | 'clusterId'>, look: () => Promise<T>) => {
      const looked = Promise.withResolvers<T>();
      void queue.run(`${hub}/${clusterId}`, async () => {
        await look().then(looked.resolve, looked.reject);
        await nextTurn();
      });
      return looked.promise;
    },
  };
};

/** Where a ClusterOrder is. */
export type OrderRef = OrderPlace & { readonly hub: string; readonly clusterId: string };

/**
 * By our name, then by label (management-cluster.md §10.2): ours is what carries our label, and nothing else. What has
 * our name without it belongs to somebody else, and ours is not there.
 */
export const findOrder = async (
  cluster: ManagementCluster,
  ref: OrderRef,
  options: CallOptions,
): Promise<ObservedClusterOrder | undefined> => (await lookFor(cluster, ref, options)).order;

/** `taken`: ours is not there, and its name belongs to something else. */
export const lookFor = async (
  cluster: ManagementCluster,
  { namespace, name, clusterId }: OrderRef,
  options: CallOptions,
): Promise<{ readonly order: ObservedClusterOrder | undefined; readonly taken: boolean }> => {
  const named = await cluster.getClusterOrder({ namespace, name }, options);
  if (named?.clusterId === clusterId) return { order: named, taken: false };
  const [order] = await findLabelled(cluster, { namespace, clusterId }, options);
  return { order, taken: named !== undefined };
};

/** All with our label, whatever their names. */
export const findLabelled = async (
  cluster: ManagementCluster,
  { namespace, clusterId }: Pick<OrderRef, 'namespace' | 'clusterId'>,
  options: CallOptions,
): Promise<readonly ObservedClusterOrder[]> =>
  (await cluster.findClusterOrders(namespace, clusterId, options)).filter(
    (order) => order.clusterId === clusterId,
  );

/** A look at one cluster of ours: its order, or what is left where its order no longer is. */
export const observationAt = async (
  cluster: ManagementCluster,
  place: OrderRef,
  options: CallOptions,
): Promise<ClusterObservation> => {
  const { order, taken } = await lookFor(cluster, place, options);
  if (order !== undefined) return observationOf(cluster, place.namespace, order, options);
  // What stands under the name of somebody else's order is theirs.
  if (taken) return { order: null };
  const hostedCluster = await hostedAt(cluster, clusterNamespace(place), place.name, options);
  return { order: null, ...(hostedCluster === undefined || hostedCluster === null ? {} : { hostedCluster }) };
};

/**
 * An order with what is around it, as the workflow judges it. The pull secret stays here; its hash goes along.
 * `namespace` is the order's own.
 */
export const observationOf = async (
  cluster: ManagementCluster,
  namespace: string,
  order: ObservedClusterOrder,
  options: CallOptions,
): Promise<ClusterObservation> => {
  const { pullSecret: _secret, ...spec } = order.spec;
  const hostedCluster = await hostedOf(cluster, namespace, order, options);
  return {
    order: {
      uid: order.uid,
      resourceVersion: order.resourceVersion,
      ...(order.deletionTimestamp === undefined ? {} : { deletionTimestamp: order.deletionTimestamp }),
      finalizers: order.finalizers,
      spec,
      ...(order.phase === undefined ? {} : { phase: order.phase }),
      conditions: order.conditions,
      ...(order.desiredConfigVersion === undefined
        ? {}
        : { desiredConfigVersion: order.desiredConfigVersion }),
      jobs: order.jobs,
      ...(order.nodeSets === undefined ? {} : { nodeSets: order.nodeSets }),
      ...(order.observedNodes === undefined ? {} : { observedNodes: order.observedNodes }),
      ...(order.apiEndpoint === undefined ? {} : { apiEndpoint: order.apiEndpoint }),
      ...(order.ingressEndpoint === undefined ? {} : { ingressEndpoint: order.ingressEndpoint }),
    },
    specVersion: configVersion(order.spec),
    ...(hostedCluster === undefined ? {} : { hostedCluster }),
  };
};

/**
 * Where the order says that it is; otherwise where it is by convention: an operator that is short of hosts never says
 * it, and where we are the controller nobody does (operator-run.md §2 g, management-cluster.md §3.1).
 */
const hostedOf = (
  cluster: ManagementCluster,
  namespace: string,
  { name, clusterReference }: ObservedClusterOrder,
  options: CallOptions,
): Promise<ObservedHosted | null | undefined> =>
  hostedAt(
    cluster,
    clusterReference?.namespace || clusterNamespace({ namespace, name }),
    clusterReference?.hostedClusterName || name,
    options,
  );

/** null: there is none; undefined: the hub cannot show it, for want of the kind or of the right (design.md §6). */
const hostedAt = async (
  cluster: ManagementCluster,
  namespace: string,
  name: string,
  options: CallOptions,
): Promise<ObservedHosted | null | undefined> => {
  try {
    const hosted = await cluster.getHostedCluster({ namespace, name }, options);
    return hosted === undefined ? null : shownHosted(hosted);
  } catch (error) {
    if (cannotBeShown(error)) return undefined;
    throw error;
  }
};

const shownHosted = (hosted: ObservedHostedCluster): ObservedHosted => ({
  name: hosted.name,
  ...(hosted.uid === undefined ? {} : { uid: hosted.uid }),
  ...(hosted.resourceVersion === undefined ? {} : { resourceVersion: hosted.resourceVersion }),
  ...(hosted.deletionTimestamp === undefined ? {} : { deletionTimestamp: hosted.deletionTimestamp }),
  conditions: hosted.conditions,
  ...(hosted.controlPlaneEndpoint === undefined ? {} : { controlPlaneEndpoint: hosted.controlPlaneEndpoint }),
  ...(hosted.baseDomain === undefined ? {} : { baseDomain: hosted.baseDomain }),
  ...(hosted.nodePools === undefined ? {} : { nodePools: hosted.nodePools }),
});
