import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { Timers } from '../../../src/app/ports.ts';
import { createObjectLooks } from '../../../src/app/hubs/hub-looks.ts';
import { createHubObserver } from '../../../src/app/hubs/hub-observer.ts';
import {
  HubError,
  type ManagementCluster,
  type ManagementClusters,
} from '../../../src/app/hubs/management-cluster.ts';
import {
  CLUSTER_ORDER,
  type ClusterOrderManifest,
  type ObservedClusterOrder,
} from '../../../src/domain/clusters/hub-objects.ts';
import type { HubObjectEvent } from '../../../src/domain/hubs/hub-object.ts';
import type { ClusterObservation } from '../../../src/domain/clusters/observed.ts';
import type { FakeOrders } from '../../support/hubs/fake-orders.ts';
import { fakeCluster, hubFixture } from '../../support/hubs/hub-fixture.ts';
import { silentLogger } from '../../support/loggers.ts';

export const manifest = (
  clusterId: string,
  annotations: { [key: string]: string } = {},
): ClusterOrderManifest => ({
  name: `order-${clusterId}`,
  namespace: 'orders',
  labels: { 'osac.openshift.io/clusterorder-uuid': clusterId },
  annotations,
  spec: {
    templateID: 'small',
    templateParameters: '{}',
    nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 1 }],
    releaseImage: 'quay.io/release:4.17',
  },
});
export const order = (clusterId: string, more: Partial<ObservedClusterOrder> = {}): ObservedClusterOrder => ({
  name: `order-${clusterId}`,
  uid: `uid-${clusterId}`,
  namespace: 'orders',
  id: clusterId,
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: '2026-01-01T00:00:00Z',
  finalizers: [],
  annotations: {},
  spec: manifest(clusterId).spec,
  conditions: [],
  jobs: [],
  ...more,
});
export const call = (): { effectId: string; deadlineMs: number; signal: AbortSignal } => ({
  effectId: 'test',
  deadlineMs: 1_000,
  signal: new AbortController().signal,
});

/** A watch whose events the test writes; each list of events is one connection, after which it breaks. */
export const scripted = (...connections: HubObjectEvent<ObservedClusterOrder>[][]) => {
  let opened = 0;
  const watch = async function* (
    _namespace: string,
    signal: AbortSignal,
  ): AsyncGenerator<HubObjectEvent<ObservedClusterOrder>> {
    const events = connections[opened] ?? [];
    opened += 1;
    if (opened > connections.length) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      return;
    }
    yield* events;
    throw new HubError('unavailable', 'the watch broke');
  };
  return { watch, opened: () => opened };
};

type Question = (clusterId: string) => boolean;
const never: Question = () => false;

/** What specs of the observer start from: to be called in their `describe`. */
export const observingStage = () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  const observing = (
    clusters: ManagementClusters,
    isOver: Question = never,
    isUnknown: Question = never,
    timers: Timers = systemTimers(),
  ) => {
    const fixture = hubFixture(clusters);
    const fed: { clusterId: string; observation: ClusterObservation }[] = [];
    const observer = createHubObserver({
      objects: [CLUSTER_ORDER],
      registry: fixture.registry,
      looks: createObjectLooks(),
      observe: (_kind, clusterId, observation) => {
        fed.push({ clusterId, observation: observation as unknown as ClusterObservation });
        return true;
      },
      isOver: (_kind, id) => isOver(id),
      isUnknown: (_kind, id) => isUnknown(id),
      clock: systemClock(),
      timers,
      logger: silentLogger,
      backoffMs: 5,
      backoffMaxMs: 20,
    });
    const stop = new AbortController();
    const ended = observer.run(stop.signal);
    closing.push(() => fixture.stop());
    const end = async (): Promise<void> => {
      stop.abort();
      await ended;
    };
    closing.push(end);
    return { ...fixture, observer, fed, end };
  };
  const onFake = (
    fake: Partial<ManagementCluster & FakeOrders>,
    isOver?: Question,
    isUnknown?: Question,
    timers?: Timers,
  ) =>
    observing(
      { of: ({ id }) => fakeCluster(id, { getHostedCluster: async () => undefined, ...fake }) },
      isOver,
      isUnknown,
      timers,
    );
  return { closing, observing, onFake };
};
