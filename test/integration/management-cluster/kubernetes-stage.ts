import type { CallOptions, ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import {
  CLUSTER_ORDER,
  CLUSTER_ORDER_UUID_LABEL,
  type ClusterOrderManifest,
  type ObservedClusterOrder,
} from '../../../src/domain/clusters/hub-objects.ts';
import type { HubObjectEvent } from '../../../src/domain/hubs/hub-object.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { hubAccessOf, kubernetesHub, rbacOf } from '../../support/hubs/kubernetes-hub.ts';
import { untilHolds } from './contract-kit.ts';

export const NS = 'osac-hub';
export const PULL_SECRET = '{"auths":{"r":{"auth":"canary-pull-secret"}}}';

export const by = (more: Partial<CallOptions> = {}): CallOptions => ({
  effectId: 'run-1/apply/1',
  deadlineMs: 60_000,
  signal: new AbortController().signal,
  ...more,
});
export const manifestOf = (name: string, clusterId = `id-of-${name}`): ClusterOrderManifest => ({
  name,
  namespace: NS,
  labels: { [CLUSTER_ORDER_UUID_LABEL]: clusterId },
  annotations: {},
  spec: {
    templateID: 'osac.templates.ocp_small',
    templateParameters: '{}',
    nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 2 }],
    pullSecret: PULL_SECRET,
    releaseImage: 'registry.example/ocp/release:4.22.0',
  },
});
export const placeOf = (name: string) => ({ namespace: NS, name });
export const isApplied = (name: string) => (event: HubObjectEvent<ObservedClusterOrder>) =>
  event.type === 'applied' && event.object.name === name;

/** A stand-in API server of its own for each test of a suite, with the stock rights; everything opened is closed. */
export const kubernetesStage = () => {
  let server: KubeApiServer;
  const closers: (() => Promise<void>)[] = [];
  beforeEach(async () => {
    server = await startKubeApiServer({ namespaces: [NS], objects: rbacOf('hub-access', NS) });
  });
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
    await server.close();
  });
  const tokenOf = (): string => server.tokenFor(hubAccessOf(NS));
  const open = (options: Partial<Parameters<typeof kubernetesHub>[0]> = {}) => {
    const fixture = kubernetesHub({
      kubeconfigs: { '1': server.kubeconfig({ token: tokenOf() }) },
      namespace: NS,
      watch: { backoffMs: 10, backoffMaxMs: 100 },
      ...options,
    });
    closers.push(() => fixture.clusters.close());
    return fixture;
  };
  const follow = (cluster: ManagementCluster) => {
    const abort = new AbortController();
    const seen: HubObjectEvent<ObservedClusterOrder>[] = [];
    const ended = (async () => {
      for await (const event of cluster.watch(CLUSTER_ORDER, NS, abort.signal)) seen.push(event);
    })();
    closers.push(async () => {
      abort.abort();
      await ended;
    });
    const until = (holds: (event: HubObjectEvent<ObservedClusterOrder>) => boolean) =>
      untilHolds(
        () => Promise.resolve(seen.find(holds)),
        (event) => event !== undefined,
        15_000,
      );
    return { seen, until };
  };
  const audited = (part: string) => server.audit().filter(({ user }) => user.includes(part));
  return {
    get server(): KubeApiServer {
      return server;
    },
    closers,
    tokenOf,
    open,
    follow,
    audited,
  };
};
