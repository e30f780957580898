import { hash } from 'node:crypto';
import type { JsonObject } from '../domain/json.ts';
import type { HubRegistry, RegisteredHub } from './hub-registry.ts';
import {
  HubError,
  type CallOptions,
  type ClusterOrderWatchEvent,
  type ManagementCluster,
  type ObservedClusterOrder,
} from './management-cluster.ts';
import { observationOf } from './management-cluster-effects.ts';
import type { Clock, Logger, Timers } from './ports.ts';
import { pause } from './process-runner/pause.ts';

/** How one hub's watch is doing, for health and metrics. */
export type HubWatchStatus = {
  readonly hub: string;
  readonly namespace: string;
  /** True once everything that the hub holds was listed, until the watch breaks. */
  readonly synced: boolean;
  /** Orders of ours that the hub shows. */
  readonly orders: number;
  readonly observations: number;
  /** Orders of clusters that are over, found and asked to go. */
  readonly orphans: number;
  readonly failures: number;
  readonly lastError?: string;
};

export type HubObserver = {
  /** Watches every registered hub that has an adapter; returns when `signal` was aborted. */
  run(signal: AbortSignal): Promise<void>;
  status(): readonly HubWatchStatus[];
};

export type HubObserverOptions = {
  readonly registry: HubRegistry;
  /** Feeds the run of a cluster. False: it was not taken in, and is fed again when the order shows up again. */
  readonly observe: (clusterId: string, observation: JsonObject) => boolean;
  /**
   * True when nothing of this cluster may be on a hub any more. A write that arrives after its order was given up and
   * its absence confirmed leaves such an orphan; it is deleted (fleet-and-networks.md §2.3, rule 4).
   */
  readonly isOver?: (clusterId: string) => boolean;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  /** HostedClusters of one hub that may be read at once. Default 4. */
  readonly concurrency?: number;
  /** Milliseconds before a broken watch is opened again; doubles up to `backoffMaxMs`. Default 1,000 and 60,000. */
  readonly backoffMs?: number;
  readonly backoffMaxMs?: number;
};

/** Changed orders of one hub that may wait to be read before its watch is held back. */
const MAX_WAITING = 500;
const CALL_DEADLINE_MS = 10_000;

type Watch = {
  readonly hub: RegisteredHub;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  status: { -readonly [Key in keyof HubWatchStatus]: HubWatchStatus[Key] };
};

/**
 * Watches ClusterOrders on the hubs and tells each run what its hub shows (management-cluster.md §10.8). The stock
 * rights allow no watch of HostedClusters, so that each change of an order is completed by reading its HostedCluster
 * by name; what changes there alone is found by the workflow's timed reads.
 */
export const createHubObserver = (options: HubObserverOptions): HubObserver => {
  const { registry, logger } = options;
  const watches = new Set<Watch>();

  const start = (
    hub: RegisteredHub,
    cluster: ManagementCluster,
    namespace: string,
    signal: AbortSignal,
  ): void => {
    const stop = new AbortController();
    const counts = { orders: 0, observations: 0, orphans: 0, failures: 0 };
    const status = { hub: hub.facts.id, namespace, synced: false, ...counts };
    const until = AbortSignal.any([signal, stop.signal]);
    const ended = watchHub({ ...options, hub, cluster, namespace, status, signal: until });
    logger.info({ hub: hub.facts.id, namespace, simulated: cluster.simulated }, 'watching hub');
    watches.add({ hub, stop, ended, status });
  };

  const changed = (id: string, hub: RegisteredHub | undefined, signal: AbortSignal): void => {
    const wanted = new Set(hub?.adapter === undefined ? [] : namespacesOf(hub));
    for (const watch of watches) {
      if (watch.status.hub !== id) continue;
      const { namespace } = watch.status;
      if (wanted.has(namespace) && watch.hub.adapter === hub?.adapter) {
        wanted.delete(namespace);
        continue;
      }
      watch.stop.abort();
      watches.delete(watch);
    }
    if (hub?.adapter === undefined || signal.aborted) return;
    for (const namespace of wanted) start(hub, hub.adapter, namespace, signal);
  };

  return {
    run: async (signal) => {
      const stopped = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => stopped.resolve(), { once: true });
      if (signal.aborted) return;
      const unsubscribe = registry.onChange((id, hub) => changed(id, hub, signal));
      await stopped.promise;
      unsubscribe();
      const ending = [...watches].map((watch) => watch.ended);
      watches.clear();
      await Promise.all(ending);
    },
    status: () => [...watches].map(({ status }) => ({ ...status })),
  };
};

/** Where orders of any tenant may be on this hub. */
const namespacesOf = ({ facts }: RegisteredHub): readonly string[] => [
  facts.namespace,
  ...Object.values(facts.namespaces),
];

type HubWatch = HubObserverOptions & {
  readonly hub: RegisteredHub;
  readonly namespace: string;
  readonly cluster: ManagementCluster;
  readonly status: Watch['status'];
  readonly signal: AbortSignal;
};

/** Follows one hub for ever; never rejects. */
const watchHub = async (watch: HubWatch): Promise<void> => {
  const { hub, cluster, status, signal, timers, logger, backoffMs = 1_000, backoffMaxMs = 60_000 } = watch;
  const reader = createReader(watch);
  for (let failures = 0; !signal.aborted; ) {
    try {
      for await (const event of cluster.watchClusterOrders(watch.namespace, signal)) {
        if (signal.aborted) break;
        await reader.take(event);
        if (event.type === 'synced') {
          failures = 0;
          status.synced = true;
        }
      }
    } catch (error) {
      if (signal.aborted) break;
      status.lastError = error instanceof Error ? error.message : String(error);
      logger.warn({ err: error, hub: hub.facts.id }, 'watch of a hub broke; opening it again');
    }
    status.synced = false;
    if (signal.aborted) break;
    status.failures += 1;
    await pause(timers, Math.min(backoffMaxMs, backoffMs * 2 ** failures), signal);
    failures += 1;
  }
  await reader.idle();
};

type Known = { readonly clusterId: string; digest: string };

/** Completes changed orders and feeds what differs from what was fed last. Of one order only the newest is read. */
const createReader = (watch: HubWatch) => {
  const { cluster, hub, status, signal, logger, observe, concurrency = 4 } = watch;
  /** By name on the hub; what it holds of ours. */
  const known = new Map<string, Known>();
  const waiting = new Map<string, ObservedClusterOrder>();
  /** Names being read: of one order a second read must not overtake the first. */
  const reading = new Set<string>();
  let changed = Promise.withResolvers<void>();

  const feed = (name: string, entry: Known, observation: JsonObject): void => {
    const digest = hash('sha256', JSON.stringify(observation), 'base64');
    if (digest === entry.digest) return;
    if (observe(entry.clusterId, observation)) entry.digest = digest;
    if (observation['order'] === null) known.delete(name);
    status.orders = known.size;
    status.observations += 1;
  };

  const callOptions = (what: string, { name }: ObservedClusterOrder): CallOptions => ({
    effectId: `${what}/${hub.facts.id}/${name}`,
    deadlineMs: CALL_DEADLINE_MS,
    signal,
  });

  const look = async (order: ObservedClusterOrder, entry: Known): Promise<void> => {
    try {
      if (watch.isOver?.(entry.clusterId) === true) return await removeOrphan(order, entry);
      const observation = await observationOf(cluster, order, callOptions('observer', order));
      if (known.get(order.name) === entry && !signal.aborted) {
        feed(order.name, entry, observation as unknown as JsonObject);
      }
    } catch (error) {
      // The next change or the workflow's own timed read shows it.
      if (!(error instanceof HubError) && !signal.aborted) throw error;
      logger.debug({ err: error, hub: hub.facts.id, order: order.name }, 'a changed order could not be read');
    }
  };

  const removeOrphan = async (order: ObservedClusterOrder, { clusterId }: Known): Promise<void> => {
    if (order.deletionTimestamp !== undefined) return;
    status.orphans += 1;
    logger.warn({ hub: hub.facts.id, order: order.name, cluster: clusterId }, 'deleting an orphan on a hub');
    const ref = { namespace: watch.namespace, name: order.name };
    await cluster.deleteClusterOrder(ref, callOptions('orphan', order));
  };

  const pump = (): void => {
    for (const [name, order] of waiting) {
      if (reading.size >= concurrency) return;
      if (reading.has(name)) continue;
      waiting.delete(name);
      const entry = known.get(name);
      if (entry === undefined) continue;
      reading.add(name);
      look(order, entry)
        .catch((error: unknown) => logger.error({ err: error, hub: hub.facts.id }, 'observing a hub failed'))
        .finally(() => {
          reading.delete(name);
          changed.resolve();
          changed = Promise.withResolvers();
          pump();
        })
        .catch(() => undefined);
    }
  };

  const gone = (name: string): void => {
    waiting.delete(name);
    const entry = known.get(name);
    if (entry !== undefined) feed(name, entry, { order: null });
  };

  return {
    take: async (event: ClusterOrderWatchEvent): Promise<void> => {
      if (event.type === 'synced') {
        const names = new Set(event.names);
        for (const name of known.keys()) if (!names.has(name)) gone(name);
        return;
      }
      const { order } = event;
      if (event.type === 'deleted') return gone(order.name);
      if (order.clusterId === undefined) return;
      const before = known.get(order.name);
      if (before?.clusterId !== order.clusterId) {
        known.set(order.name, { clusterId: order.clusterId, digest: '' });
        status.orders = known.size;
      }
      waiting.set(order.name, order);
      pump();
      while (waiting.size > MAX_WAITING && !signal.aborted) await changed.promise;
    },
    idle: async (): Promise<void> => {
      waiting.clear();
      while (reading.size > 0) await changed.promise;
    },
  };
};
