import { byKind, type FakeOrders } from '../hubs/fake-orders.ts';
import { createMemoryMark } from '../hubs/memory-mark.ts';
import {
  type HubController,
  HubError,
  type ManagementCluster,
} from '../../../src/app/hubs/management-cluster.ts';
import {
  CLUSTER_ORDER_UUID_LABEL,
  clusterNamespace,
  type ClusterOrderManifest,
  type ClusterOrderStatus,
  type ObservedClusterOrder,
  type ObservedHostedCluster,
} from '../../../src/domain/clusters/hub-objects.ts';
import type { HubObjectEvent, ObjectPlace } from '../../../src/domain/hubs/hub-object.ts';
import { configVersion } from '../../../src/domain/clusters/observation.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { HubOrder } from '../hubs/hub-journal.ts';
import type { Agenda } from './agenda.ts';
import { BEGINNING } from './incarnation.ts';
import type { RealHubPlan } from './plan.ts';

/**
 * A hub with a Kubernetes API in memory: it holds orders and HostedClusters, and where it has an operator that keeps
 * its
 * hands off the automation (`management-state: manual`), that operator's part. Who builds and
 * tears down is in playbooks.ts. It knows nothing of the service's log.
 */
export type RealHub = {
  readonly cluster: ManagementCluster;
  /** Every order that ever was there. */
  orders(): readonly HubOrder[];
  /** For playbooks: an order that is there, changed in place; call `touch` afterwards. */
  find(name: string): HeldOrder | undefined;
  touch(order: HeldOrder): void;
  readonly hosted: Map<string, HeldCluster>;
  /** Nothing is made in a namespace that is going or gone. */
  takesObjects(order: { readonly name: string; readonly uid: string }): boolean;
};

export type HeldOrder = {
  shown: ObservedClusterOrder;
  readonly place: ObjectPlace;
  readonly record: HubOrder & { goneAt: number | undefined; deletionAt: number | undefined };
};
export type HeldCluster = {
  available: boolean;
  deleting: boolean;
  readonly pools: Map<string, { desired: number; ready: number }>;
};

const FINALIZER = 'osac.openshift.io/finalizer';
const REACTION_MS = 80;
/** The namespace controller's own delay (OSAC's operator). */
const NAMESPACE_MS = 1_500;

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

export const createRealHub = (id: string, plan: RealHubPlan, agenda: Agenda): RealHub => {
  const owner = `hub ${id}`;
  const held = new Map<string, HeldOrder>();
  const history: HeldOrder['record'][] = [];
  const hosted = new Map<string, HeldCluster>();
  /** Where we are the controller: namespaces, and when the ones that were asked to go will be gone. */
  const namespaces = new Map<string, number | undefined>();
  const watchers = new Set<(event: HubObjectEvent<ObservedClusterOrder>) => void>();
  /** Uids of orders whose namespace was asked to go. */
  const closed = new Set<string>();
  let version = 0;

  const time = (): string => new Date(BEGINNING + Math.floor(agenda.now())).toISOString();
  const tell = (event: HubObjectEvent<ObservedClusterOrder>): void => {
    for (const watcher of watchers) watcher(event);
  };
  const later = (ms: number, run: () => void): void => void agenda.after(owner, ms, run);

  const change = (order: HeldOrder, more: Partial<Writable<ObservedClusterOrder>>): void => {
    version += 1;
    order.shown = { ...order.shown, ...more, resourceVersion: String(version) };
    if (held.get(order.place.name) !== order) return;
    if (order.shown.deletionTimestamp === undefined || order.shown.finalizers.length > 0) {
      return tell({ type: 'applied', object: order.shown });
    }
    held.delete(order.place.name);
    order.record.goneAt = agenda.now();
    tell({ type: 'deleted', object: order.shown });
  };

  /** The operator's part, where there is one: takes the order up, and lets it go when its HostedCluster is gone. */
  const operate = (order: HeldOrder): void => {
    if (plan.controller !== 'operator' || held.get(order.place.name) !== order) return;
    const { shown } = order;
    if (shown.deletionTimestamp === undefined) {
      change(order, {
        finalizers: [...new Set([...shown.finalizers, FINALIZER])],
        phase: 'Progressing',
        desiredConfigVersion: configVersion(shown.spec),
        clusterReference: { namespace: clusterNamespace(order.place), hostedClusterName: '' },
      });
    } else if (hosted.has(order.place.name)) later(REACTION_MS * 5, () => operate(order));
    else if (shown.finalizers.includes(FINALIZER)) {
      closed.add(shown.uid);
      later(NAMESPACE_MS, () => {
        change(order, { finalizers: order.shown.finalizers.filter((each) => each !== FINALIZER) });
      });
    }
  };

  const mustFind = ({ name }: ObjectPlace): HeldOrder => {
    const order = held.get(name);
    if (order === undefined) throw new HubError('not-found', `there is no ${name}`);
    return order;
  };

  const create = (manifest: ClusterOrderManifest, effectId: string): ObservedClusterOrder => {
    const { name, namespace, labels, annotations, spec } = manifest;
    const there = held.get(name);
    if (there !== undefined)
      throw new HubError('already-exists', `${name} is there`, { object: there.shown });
    version += 1;
    const uid = `${id}-${version}`;
    const clusterId = labels[CLUSTER_ORDER_UUID_LABEL];
    const shown: ObservedClusterOrder = {
      name,
      namespace,
      uid,
      ...(clusterId === undefined ? {} : { id: clusterId }),
      resourceVersion: String(version),
      generation: 1,
      creationTimestamp: time(),
      finalizers: [],
      annotations,
      spec,
      conditions: [],
      jobs: [],
    };
    const record = {
      uid,
      namespace,
      name,
      clusterId,
      effectId,
      createdAt: agenda.now(),
      deletionAt: undefined,
      goneAt: undefined,
    };
    const order: HeldOrder = { shown, place: { namespace, name }, record };
    held.set(name, order);
    history.push(record);
    tell({ type: 'applied', object: shown });
    later(REACTION_MS, () => operate(order));
    return shown;
  };

  const controller: HubController = {
    prepare: async (_kind, place) => {
      const order = mustFind(place);
      if (order.shown.deletionTimestamp !== undefined) throw new HubError('conflict', 'being deleted');
      const created: string[] = [];
      if (!order.shown.finalizers.includes(FINALIZER)) {
        created.push('finalizer');
        change(order, { finalizers: [...order.shown.finalizers, FINALIZER] });
      }
      if (!namespaces.has(place.name)) {
        created.push(`Namespace ${clusterNamespace(place)}`);
        namespaces.set(place.name, undefined);
      }
      return { created };
    },
    writeStatus: async (_kind, place, status) => {
      const { phase, conditions, desiredConfigVersion } = status as ClusterOrderStatus;
      change(mustFind(place), { phase, conditions, desiredConfigVersion });
    },
    release: async (_kind, place) => {
      const order = held.get(place.name);
      if (hosted.has(place.name)) return { released: false, waitingFor: [`HostedCluster ${place.name}`] };
      if (namespaces.has(place.name)) {
        const goneAt = namespaces.get(place.name) ?? agenda.now() + NAMESPACE_MS;
        namespaces.set(place.name, goneAt);
        if (order !== undefined) closed.add(order.shown.uid);
        if (goneAt > agenda.now()) return { released: false, waitingFor: ['its namespace'] };
        namespaces.delete(place.name);
      }
      if (order !== undefined) {
        change(order, { finalizers: order.shown.finalizers.filter((each) => each !== FINALIZER) });
      }
      return { released: true, waitingFor: [] };
    },
  };

  const shownHosted = ({ name, namespace }: ObjectPlace, cluster: HeldCluster): ObservedHostedCluster => {
    const status = cluster.available ? ('True' as const) : ('False' as const);
    return {
      name,
      namespace,
      ...(cluster.deleting ? { deletionTimestamp: time() } : {}),
      conditions: [
        { type: 'Available', status },
        { type: 'Degraded', status: 'False' },
        { type: 'ClusterVersionSucceeding', status },
      ],
      controlPlaneEndpoint: { host: `api.${name}.example`, port: 6443 },
      baseDomain: 'example',
      nodePools: [...cluster.pools].map(([resourceClass, counts]) => ({ resourceClass, ...counts })),
    };
  };

  async function* watch(
    namespace: string,
    signal: AbortSignal,
  ): AsyncGenerator<HubObjectEvent<ObservedClusterOrder>> {
    const queue: HubObjectEvent<ObservedClusterOrder>[] = [...held.values()].map(({ shown }) => ({
      type: 'applied',
      object: shown,
    }));
    queue.push({ type: 'synced', names: [...held.keys()], resourceVersion: String(version) });
    let wake = Promise.withResolvers<void>();
    const watcher = (event: HubObjectEvent<ObservedClusterOrder>): void => {
      queue.push(event);
      wake.resolve();
    };
    watchers.add(watcher);
    signal.addEventListener('abort', () => wake.resolve(), { once: true });
    try {
      while (!signal.aborted) {
        const next = queue.shift();
        if (next !== undefined) yield next;
        else {
          await wake.promise;
          wake = Promise.withResolvers();
        }
      }
    } finally {
      watchers.delete(watcher);
    }
  }

  const { readMark, writeMark } = createMemoryMark();
  const orders: FakeOrders = {
    createClusterOrder: async (manifest, { effectId }) => create(manifest, effectId),
    patchClusterOrder: async (place, spec) => {
      const order = mustFind(place);
      change(order, { spec: { ...order.shown.spec, ...spec }, generation: order.shown.generation + 1 });
      later(REACTION_MS, () => operate(order));
      return order.shown;
    },
    deleteClusterOrder: async ({ name, uid }) => {
      const order = held.get(name);
      if (order === undefined) return false;
      if (uid !== undefined && uid !== order.shown.uid)
        throw new HubError('conflict', `order ${name} has another uid`);
      if (order.shown.deletionTimestamp === undefined) {
        order.record.deletionAt = agenda.now();
        change(order, { deletionTimestamp: time() });
        later(REACTION_MS, () => operate(order));
      }
      return true;
    },
    getClusterOrder: async ({ name }) => held.get(name)?.shown,
    findClusterOrders: async (_namespace, clusterId) =>
      [...held.values()].map(({ shown }) => shown).filter((shown) => shown.id === clusterId),
    getHostedCluster: async (place) => {
      const there = hosted.get(place.name);
      return there === undefined ? undefined : shownHosted(place, there);
    },
    readClusterOrder: async ({ name, namespace }) => {
      const order = held.get(name);
      return order === undefined ? undefined : wholeObject(namespace, order.shown);
    },
    watchClusterOrders: watch,
  };
  const cluster: ManagementCluster = {
    hubId: id,
    readMark,
    writeMark,
    simulated: false,
    ...(byKind(orders) as Required<ReturnType<typeof byKind>>),
    readSecret: async () => undefined,
    check: async () => ({ problems: [], version: 'v1.36.0', clockSkewMs: 0 }),
    inventory: async () => undefined,
    ensureTenantNamespace: async () => ({ created: false }),
    removeTenantNamespace: async () => ({ existed: false }),
    ...(plan.controller === 'ledger' ? { controller } : {}),
    close: async () => undefined,
  };

  return {
    cluster,
    orders: () => history,
    find: (name) => held.get(name),
    touch: (order) => {
      change(order, {});
      if (order.shown.deletionTimestamp !== undefined) later(REACTION_MS, () => operate(order));
    },
    hosted,
    takesObjects: ({ name, uid }) => held.get(name)?.shown.uid === uid && !closed.has(uid),
  };
};

const wholeObject = (namespace: string, shown: ObservedClusterOrder): JsonObject =>
  JSON.parse(
    JSON.stringify({
      metadata: {
        name: shown.name,
        namespace,
        uid: shown.uid,
        labels: shown.id === undefined ? {} : { [CLUSTER_ORDER_UUID_LABEL]: shown.id },
      },
      spec: shown.spec,
    }),
  ) as JsonObject;
