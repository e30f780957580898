import { hash } from 'node:crypto';
import type { HubObjectEvent, OwnedObject, OwnedShown } from '../../domain/hubs/hub-object.ts';
import type { JsonObject } from '../../domain/json.ts';
import { absence, observationOf, type ObjectLooks } from './hub-looks.ts';
import type { RegisteredHub } from './hub-registry.ts';
import { HubError, type CallOptions, type ManagementCluster } from './management-cluster.ts';
import type { Logger, Timers } from '../ports.ts';

/** Changed orders of one hub that may wait to be read before its watch is held back. */
const MAX_WAITING = 500;
const CALL_DEADLINE_MS = 10_000;
/** Milliseconds between two looks at one order: what builds it writes many times a second, and only the newest counts. */
const REST_MS = 500;

type Known = { readonly id: string; digest: string };

/** Names with the label of one cluster. Two of them are one too many: only one is its order. */
type Bearers = { readonly names: Set<string>; wereMany: boolean };

export type HubReaderOptions = {
  readonly kind: OwnedObject;
  readonly hub: RegisteredHub;
  readonly namespace: string;
  readonly cluster: ManagementCluster;
  /** Counted up here. */
  readonly status: { orders: number; observations: number; orphans: number };
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly timers: Timers;
  /** The turns of whoever looks at a cluster, the workflow's own reads included. */
  readonly looks: ObjectLooks;
  /** Feeds the run of an id. False: it was not taken in, and is fed again when the object shows up again. */
  readonly observe: (kind: string, id: string, observation: JsonObject) => boolean;
  /**
   * True when nothing of this cluster may be on a hub any more. A write that arrives after its order was given up and
   * its absence confirmed leaves such an orphan; it is deleted.
   */
  readonly isOver?: (kind: string, id: string) => boolean;
  /**
   * True when nobody here ever ordered this cluster: another service writes to the same namespace, or our log came
   * back from
   * a backup that is older than the order. It is left alone and counted.
   */
  readonly isUnknown?: (kind: string, id: string) => boolean;
  /** HostedClusters of one hub that may be read at once. Default 16: 200 changes a second at up to 80 ms a read. */
  readonly concurrency?: number;
};

export type HubReader = {
  take(event: HubObjectEvent): Promise<void>;
  /** How many orders are there that nobody here ordered, as of now: one that was adopted shows no change on its hub. */
  unknown(): number;
  /** Resolves when nothing is being read any more. */
  idle(): Promise<void>;
};

/** Completes changed orders and feeds what differs from what was fed last. Of one order only the newest is read. */
export const createHubReader = (watch: HubReaderOptions): HubReader => {
  const { kind, cluster, hub, status, signal, logger, timers, looks, observe, concurrency = 16 } = watch;
  /** By name on the hub; what it holds of ours. */
  const known = new Map<string, Known>();
  const bearers = new Map<string, Bearers>();
  const strangers = new Set<Known>();
  /** Undefined: it is read anew. */
  const waiting = new Map<string, OwnedShown | undefined>();
  /** Names being read: of one order a second read must not overtake the first. */
  const reading = new Set<string>();
  /** Names that were read just now; each ends its rest. */
  const resting = new Map<string, () => void>();
  let changed = Promise.withResolvers<void>();

  const feed = (entry: Known, shown: JsonObject): void => {
    const observation = { ...shown, hub: hub.facts.id };
    const digest = hash('sha256', JSON.stringify(observation), 'base64');
    if (digest === entry.digest) return;
    if (observe(kind.kind, entry.id, observation)) entry.digest = digest;
    status.observations += 1;
  };

  const callOptions = (what: string, name: string): CallOptions => ({
    effectId: `${what}/${hub.facts.id}/${name}`,
    deadlineMs: CALL_DEADLINE_MS,
    signal,
  });

  /** The order that counts: the one that bears our name, otherwise always the same one. */
  const bearerOf = (id: string): string | undefined => {
    const names = bearers.get(id)?.names;
    if (names === undefined) return undefined;
    const ours = kind.nameOf(id);
    return names.has(ours) ? ours : [...names].toSorted()[0];
  };

  const othersOf = (name: string, id: string): { duplicates?: string[] } => {
    const { names, wereMany } = bearers.get(id) ?? { names: new Set<string>(), wereMany: false };
    return wereMany ? { duplicates: [...names].filter((other) => other !== name).toSorted() } : {};
  };

  const remember = (name: string, id: string): void => {
    forget(name);
    known.set(name, { id, digest: '' });
    const before = bearers.get(id) ?? { names: new Set<string>(), wereMany: false };
    before.names.add(name);
    if (before.names.size > 1) {
      before.wereMany = true;
      logger.warn({ hub: hub.facts.id, id, orders: [...before.names] }, 'two orders of one cluster on a hub');
      lookAgain(id);
    }
    bearers.set(id, before);
    status.orders = known.size;
  };

  const forget = (name: string): void => {
    const entry = known.get(name);
    if (entry === undefined) return;
    known.delete(name);
    status.orders = known.size;
    strangers.delete(entry);
    const left = bearers.get(entry.id);
    left?.names.delete(name);
    if (left?.names.size === 0) bearers.delete(entry.id);
    else lookAgain(entry.id);
  };

  const lookAgain = (id: string): void => {
    const bearer = bearerOf(id);
    if (bearer !== undefined && !waiting.has(bearer)) waiting.set(bearer, undefined);
  };

  const look = async (name: string, seen: OwnedShown | undefined, entry: Known): Promise<void> => {
    try {
      const place = { namespace: watch.namespace, name };
      const isNews = seen !== undefined && !looks.isOvertaken({ hub: hub.facts.id, id: entry.id }, seen);
      const order = isNews ? seen : await cluster.get(kind, place, callOptions('observer', name));
      if (order === undefined) return;
      if (watch.isOver?.(kind.kind, entry.id) === true) return await removeOrphan(order, entry);
      if (bearerOf(entry.id) !== name) return;
      if (watch.isUnknown?.(kind.kind, entry.id) === true) return countUnknown(order, entry);
      strangers.delete(entry);
      const observation = await observationOf(cluster, kind, place, order, callOptions('observer', name));
      if (known.get(name) !== entry || signal.aborted) return;
      feed(entry, { ...observation, ...othersOf(name, entry.id) } as unknown as JsonObject);
    } catch (error) {
      // The next change or the workflow's own timed read shows it.
      if (!(error instanceof HubError) && !signal.aborted) throw error;
      logger.debug({ err: error, hub: hub.facts.id, order: name }, 'changed order unreadable');
    }
  };

  const countUnknown = ({ name }: OwnedShown, entry: Known): void => {
    if (strangers.has(entry) || known.get(name) !== entry) return;
    strangers.add(entry);
    logger.debug({ hub: hub.facts.id, order: name, id: entry.id }, 'unknown order on a hub');
  };

  const removeOrphan = async (order: OwnedShown, { id }: Known): Promise<void> => {
    if (order.deletionTimestamp !== undefined) return;
    status.orphans += 1;
    logger.warn({ hub: hub.facts.id, order: order.name, id }, 'deleting an orphaned order on a hub');
    const ref = { namespace: watch.namespace, name: order.name, uid: order.uid };
    await cluster.delete(kind, ref, callOptions('orphan', order.name));
  };

  /** Never rejects. */
  const inTurn = async ({ id }: Known, work: () => Promise<void>): Promise<void> => {
    try {
      await looks.inTurn({ hub: hub.facts.id, id }, work);
    } catch (error) {
      logger.error({ err: error, hub: hub.facts.id }, 'hub observation failed');
    }
  };

  const rest = (name: string): void => {
    const cancel = timers.after(REST_MS, () => {
      resting.delete(name);
      if (waiting.has(name)) pump();
    });
    resting.set(name, cancel);
  };

  const pump = (): void => {
    for (const [name, order] of waiting) {
      if (reading.size >= concurrency) return;
      if (reading.has(name) || resting.has(name)) continue;
      waiting.delete(name);
      const entry = known.get(name);
      if (entry === undefined) continue;
      reading.add(name);
      void inTurn(entry, () => look(name, order, entry)).then(() => {
        reading.delete(name);
        rest(name);
        changed.resolve();
        changed = Promise.withResolvers();
        pump();
      });
    }
  };

  const gone = (name: string): void => {
    waiting.delete(name);
    const entry = known.get(name);
    if (entry === undefined) return;
    forget(name);
    // Another one of the same cluster is looked at instead.
    if (bearers.has(entry.id)) return pump();
    // What was read of it before is told first.
    void inTurn(entry, async () => {
      if (!signal.aborted) feed(entry, absence(kind) as JsonObject);
    });
  };

  return {
    take: async (event) => {
      if (event.type === 'synced') {
        const names = new Set(event.names);
        for (const name of known.keys()) if (!names.has(name)) gone(name);
        return;
      }
      const { object: order } = event;
      if (event.type === 'deleted') return gone(order.name);
      if (order.id === undefined) return;
      if (known.get(order.name)?.id !== order.id) remember(order.name, order.id);
      waiting.set(order.name, order);
      pump();
      while (waiting.size > MAX_WAITING && !signal.aborted) await changed.promise;
    },
    unknown: () => [...strangers].filter(({ id }) => watch.isUnknown?.(kind.kind, id) === true).length,
    idle: async () => {
      waiting.clear();
      while (reading.size > 0) await changed.promise;
      for (const cancel of resting.values()) cancel();
    },
  };
};
