import { namespaceOf } from '../../domain/hubs/hub-facts.ts';
import { ownedObjects } from '../../domain/hub-objects.ts';
import type { HubObject, OwnedObject } from '../../domain/hubs/hub-object.ts';
import type { HubRegistry, RegisteredHub } from './hub-registry.ts';
import { createHubReader, type HubReader, type HubReaderOptions } from './hub-reader.ts';
import type { ManagementCluster } from './management-cluster.ts';
import type { Clock, Timers } from '../ports.ts';
import { aborted, pause } from '../process-runner/pause.ts';

/** How one hub's watch is doing, for health and metrics. */
export type HubWatchStatus = {
  readonly hub: string;
  readonly namespace: string;
  /** Kind of the objects that it follows. */
  readonly kind: string;
  /** True once everything that the hub holds was listed, until the watch breaks. */
  readonly synced: boolean;
  /** Objects with a label of ours that the hub shows. */
  readonly orders: number;
  /** Those of them that nobody here ever ordered. */
  readonly unknown: number;
  readonly observations: number;
  /** Those of what is over, found and asked to go. */
  readonly orphans: number;
  readonly failures: number;
  readonly lastError?: string;
  /** ISO time of it; it stays when the watch is well again. */
  readonly lastErrorAt?: string;
};

export type HubObserver = {
  /** Watches every registered hub that has an adapter; returns when `signal` was aborted. */
  run(signal: AbortSignal): Promise<void>;
  status(): readonly HubWatchStatus[];
  /** Objects of ours that a hub shows now, in all its namespaces; not those of kinds with a lane of their own. */
  ordersOn(hub: string): number;
};

export type HubObserverOptions = Pick<
  HubReaderOptions,
  'observe' | 'isOver' | 'isUnknown' | 'looks' | 'logger' | 'concurrency'
> & {
  readonly registry: HubRegistry;
  /** Kinds that are known. Default: all declared ones. */
  readonly objects?: readonly HubObject[];
  readonly clock: Clock;
  readonly timers: Timers;
  /** Milliseconds before a broken watch is opened again; doubles up to `backoffMaxMs`. Default 1,000 and 60,000. */
  readonly backoffMs?: number;
  readonly backoffMaxMs?: number;
};

type Watch = {
  readonly hub: RegisteredHub;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  readonly reader: HubReader;
  status: { -readonly [Key in keyof Omit<HubWatchStatus, 'unknown'>]: HubWatchStatus[Key] };
};

/**
 * Watches what we write on the hubs and tells each run what its hub shows (OSAC's operator). The stock
 * rights allow no watch of HostedClusters, so that a change of an order is completed by reading its HostedCluster
 * by name; what changes there alone is found by the workflow's timed reads.
 */
export const createHubObserver = (options: HubObserverOptions): HubObserver => {
  const { registry, logger } = options;
  const kinds = ownedObjects(options.objects).filter(({ unwatched }) => unwatched !== true);
  const apart = new Set(kinds.filter(({ ownLane }) => ownLane === true).map(({ kind }) => kind));
  const watches = new Set<Watch>();

  const start = (
    hub: RegisteredHub,
    cluster: ManagementCluster,
    kind: OwnedObject,
    namespace: string,
    signal: AbortSignal,
  ): void => {
    const stop = new AbortController();
    const counts = { orders: 0, observations: 0, orphans: 0, failures: 0 };
    const status = { hub: hub.facts.id, namespace, kind: kind.kind, synced: false, ...counts };
    const until = AbortSignal.any([signal, stop.signal]);
    const { observe, isOver, isUnknown } = options;
    const runOf = (id: string): string => kind.runOf?.(hub.facts.id, id) ?? id;
    const where = { hub, cluster, kind, namespace, status, signal: until };
    const watch: Omit<HubWatch, 'reader'> = {
      ...options,
      ...where,
      observe: (word, id, observation) => observe(word, runOf(id), observation),
      ...(isOver && { isOver: (word: string, id: string) => isOver(word, runOf(id)) }),
      ...(isUnknown && { isUnknown: (word: string, id: string) => isUnknown(word, runOf(id)) }),
    };
    const reader = createHubReader(watch);
    const ended = watchHub({ ...watch, reader });
    logger.info(
      { hub: hub.facts.id, namespace, kind: kind.kind, simulated: cluster.simulated },
      'watching hub',
    );
    watches.add({ hub, stop, ended, reader, status });
  };

  const changed = (id: string, hub: RegisteredHub | undefined, signal: AbortSignal): void => {
    const wanted = new Set(hub?.adapter === undefined ? [] : namespacesOf(hub, registry.tenantsOn(id)));
    const kept = new Set<string>();
    for (const watch of watches) {
      if (watch.status.hub !== id) continue;
      const { namespace } = watch.status;
      if (wanted.has(namespace) && watch.hub.adapter === hub?.adapter) {
        kept.add(namespace);
        continue;
      }
      watch.stop.abort();
      watches.delete(watch);
    }
    if (hub?.adapter === undefined || signal.aborted) return;
    for (const namespace of wanted)
      if (!kept.has(namespace))
        for (const kind of kinds)
          if (namespace === hub.facts.namespace || kind.rights.some(({ within }) => within !== 'hub'))
            start(hub, hub.adapter, kind, namespace, signal);
  };

  return {
    run: async (signal) => {
      if (signal.aborted) return;
      const unsubscribe = registry.onChange((id, hub) => changed(id, hub, signal));
      await aborted(signal);
      unsubscribe();
      const ending = [...watches].map((watch) => watch.ended);
      watches.clear();
      await Promise.all(ending);
    },
    status: () => [...watches].map(({ status, reader }) => ({ ...status, unknown: reader.unknown() })),
    ordersOn: (hub) => {
      let orders = 0;
      for (const { status } of watches)
        if (status.hub === hub && !apart.has(status.kind)) orders += status.orders;
      return orders;
    },
  };
};

/** Where orders of any tenant may be on this hub: a tenant's own namespace is watched once the tenant has a place. */
const namespacesOf = ({ facts }: RegisteredHub, tenants: readonly string[]): ReadonlySet<string> =>
  new Set([
    facts.namespace,
    ...Object.values(facts.namespaces),
    ...(facts.tenantNamespaces ? tenants.map((tenant) => namespaceOf(facts, tenant)) : []),
  ]);

type HubWatch = HubObserverOptions & HubReaderOptions & Pick<Watch, 'reader' | 'status'>;

/** Follows one hub for ever; never rejects. */
const watchHub = async (watch: HubWatch): Promise<void> => {
  const { hub, cluster, reader, status, signal, timers, logger } = watch;
  const { backoffMs = 1_000, backoffMaxMs = 60_000 } = watch;
  for (let failures = 0; !signal.aborted; ) {
    try {
      for await (const event of cluster.watch(watch.kind, watch.namespace, signal)) {
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
      status.lastErrorAt = watch.clock.now();
      // A right that nobody needs there may be missing for ever.
      const fields = { err: error, hub: hub.facts.id, namespace: status.namespace, kind: status.kind };
      logger[failures === 0 ? 'warn' : 'debug'](fields, 'watch of a hub broke; opening it again');
    }
    status.synced = false;
    if (signal.aborted) break;
    status.failures += 1;
    await pause(timers, Math.min(backoffMaxMs, backoffMs * 2 ** failures), signal);
    failures += 1;
  }
  await reader.idle();
};
