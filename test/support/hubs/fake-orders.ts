import type { CallOptions, ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import {
  HOSTED_CLUSTER,
  type ClusterOrderManifest,
  type ClusterOrderSpec,
  type ObservedClusterOrder,
  type ObservedHostedCluster,
} from '../../../src/domain/clusters/hub-objects.ts';
import type { HubObjectEvent, ObjectPlace } from '../../../src/domain/hubs/hub-object.ts';
import type { JsonObject } from '../../../src/domain/json.ts';

/** The port as a test writes it that knows ClusterOrders and HostedClusters only. */
export type FakeOrders = {
  createClusterOrder(manifest: ClusterOrderManifest, by: CallOptions): Promise<ObservedClusterOrder>;
  patchClusterOrder(
    ref: ObjectPlace,
    spec: Partial<ClusterOrderSpec>,
    by: CallOptions,
  ): Promise<ObservedClusterOrder>;
  deleteClusterOrder(ref: ObjectPlace & { uid?: string }, by: CallOptions): Promise<boolean>;
  getClusterOrder(ref: ObjectPlace, by: CallOptions): Promise<ObservedClusterOrder | undefined>;
  readClusterOrder(ref: ObjectPlace, by: CallOptions): Promise<JsonObject | undefined>;
  findClusterOrders(namespace: string, id: string, by: CallOptions): Promise<readonly ObservedClusterOrder[]>;
  getHostedCluster(ref: ObjectPlace, by: CallOptions): Promise<ObservedHostedCluster | undefined>;
  watchClusterOrders(
    namespace: string,
    signal: AbortSignal,
  ): AsyncIterable<HubObjectEvent<ObservedClusterOrder>>;
};

type Kinded = Pick<ManagementCluster, 'create' | 'patch' | 'delete' | 'get' | 'read' | 'find' | 'watch'>;
type ByKind = (kind: { readonly kind: string }, ...args: never[]) => unknown;

/** Asked for a HostedCluster it gives one, for anything else a ClusterOrder. */
export const byKind = (orders: Partial<FakeOrders>): Partial<Kinded> => {
  const of = <Name extends keyof FakeOrders>(name: Name): ByKind | undefined => {
    const run = orders[name];
    return run === undefined
      ? undefined
      : (_kind, ...args) => (run as unknown as (...all: unknown[]) => unknown)(...args);
  };
  const hosted = of('getHostedCluster');
  const order = of('getClusterOrder');
  const get: ByKind | undefined =
    hosted === undefined && order === undefined
      ? undefined
      : (kind, ...args) => {
          const run = kind.kind === HOSTED_CLUSTER.kind ? hosted : order;
          if (run === undefined) throw new Error(`unexpected call: get ${kind.kind}`);
          return run(kind, ...args);
        };
  const all = {
    create: of('createClusterOrder'),
    patch: of('patchClusterOrder'),
    delete: of('deleteClusterOrder'),
    get,
    read: of('readClusterOrder'),
    find: of('findClusterOrders'),
    watch: of('watchClusterOrders'),
  };
  return Object.fromEntries(Object.entries(all).filter(([, run]) => run !== undefined)) as Partial<Kinded>;
};
