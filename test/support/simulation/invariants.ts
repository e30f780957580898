import { completeMetadata, type EventMetadata } from '../../../src/app/log/metadata.ts';
import type { Appended, EventToAppend } from '../../../src/app/log/event-store.ts';
import { evolveCluster } from '../../../src/domain/clusters/cluster.ts';
import {
  initialCluster,
  isLiveCluster,
  type ClusterState,
  type ClusterEvent,
} from '../../../src/domain/clusters/state.ts';
import type { CapacityClaim, HubCapacityEvent } from '../../../src/domain/hubs/capacity-events.ts';
import {
  claimOf,
  hubCapacityDecider,
  nodeLimit,
  type HubCapacityState,
} from '../../../src/domain/hubs/capacity.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { type NameEvent, nameDecider, type NameState } from '../../../src/domain/naming/name.ts';
import { parseStreamName } from '../../../src/domain/stream-name.ts';
import type { HubOrder } from '../hubs/hub-journal.ts';
import type { HubWitness } from './caller.ts';
import type { Life } from './life.ts';
import { createNetworkInvariants } from './network-invariants.ts';

/** Something that must never be. Its message says what, and where in the log. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

export type StoredEvent = {
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly data: JsonObject;
  readonly commandId: string;
};

/** The log as the world sees it: folded while it grows, independent of every incarnation. */
export type Ledger = {
  /** Checks and folds what was stored just now. */
  stored(stream: string, events: readonly EventToAppend[], appended: Appended): void;
  readonly witness: HubWitness;
  cluster(id: string): ClusterState;
  clusterIds(): readonly string[];
  capacities(): ReadonlyMap<string, HubCapacityState>;
  names(): ReadonlyMap<string, NameState>;
  /** Events that a command stored in a stream. */
  ofCommand(stream: string, commandId: string): readonly StoredEvent[];
  events(stream: string): readonly StoredEvent[];
  streams(category: string): readonly string[];
  length(): number;
};

export type LedgerOptions = {
  /** Every ClusterOrder that ever was on a hub, read from the hub's own file. */
  readonly ordersOn: (hub: string) => readonly HubOrder[];
  readonly hubs: () => readonly string[];
  readonly fail: (violation: Violation) => void;
};

export const createLedger = ({ ordersOn, hubs, fail }: LedgerOptions): Ledger => {
  const streams = new Map<string, StoredEvent[]>();
  const categories = new Map<string, readonly string[]>();
  const ids = new Set<string>();
  const started = new Set<string>();
  const startedEffects = new Set<string>();
  const capacities = new Map<string, HubCapacityState>();
  const clusters = new Map<string, ClusterState>();
  const names = new Map<string, NameState>();
  /** By effect id: a write was sent and nobody knows what became of it, or it was looked for since. */
  const looked = new Set<string>();
  const uncertain = new Map<string, 'unknown' | 'looked'>();
  let length = 0;

  const violated = (what: string): void => fail(new Violation(what));
  const networks = createNetworkInvariants(violated);

  const onHub = (clusterId: string): { hub: string; order: HubOrder } | undefined => {
    for (const hub of hubs()) {
      const order = ordersOn(hub).find((each) => each.clusterId === clusterId && each.goneAt === undefined);
      if (order !== undefined) return { hub, order };
    }
    return undefined;
  };

  const mustBeGone = (clusterId: string, event: StoredEvent): void => {
    const there = onHub(clusterId);
    if (there === undefined) return;
    violated(
      `${event.type} (${event.stream}@${event.revision}) while ${there.order.name} of cluster ${clusterId} is on ${there.hub}`,
    );
  };

  const seeCapacity = (hub: string, event: StoredEvent): void => {
    const before = capacities.get(hub) ?? hubCapacityDecider.initialState();
    const after = hubCapacityDecider.evolve(before, event as unknown as HubCapacityEvent);
    capacities.set(hub, after);
    const holder = objectAt(event.data, 'holder');
    const clusterId = stringAt(holder, 'id');
    if (stringAt(holder, 'kind') !== 'cluster') return;
    if (event.type === 'HubCapacityReleased') {
      // What it has twice is given back where it is not: on its own hub it goes on to hold its place.
      const home = onHub(clusterId)?.hub ?? hub;
      const atHome = claimOf(capacities.get(home) ?? hubCapacityDecider.initialState(), {
        kind: 'cluster',
        id: clusterId,
      });
      return home !== hub && atHome !== undefined ? undefined : mustBeGone(clusterId, event);
    }
    const held = claimOf(before, { kind: 'cluster', id: clusterId }) ?? { controlPlanes: 0, nodes: {} };
    const wanted = claimOf(after, { kind: 'cluster', id: clusterId }) ?? held;
    for (const what of overrun(after, held, wanted)) {
      violated(`${event.stream}@${event.revision}: ${clusterId} takes ${what} beyond the limit of ${hub}`);
    }
  };

  /** A name belongs to one live cluster of its tenant. */
  const mustBeFree = (id: string, event: StoredEvent): void => {
    const { name, tenant } = event.data as { name: string; tenant: string };
    for (const [other, state] of clusters) {
      if (other === id || !isLiveCluster(state) || state.name !== name || state.tenant !== tenant) continue;
      violated(`clusters ${other} and ${id} of ${tenant} are both called ${name}`);
    }
  };

  const see = (event: StoredEvent): void => {
    const { category, id } = parseStreamName(event.stream);
    networks.see(event);
    if (event.type === 'EffectStarted') {
      const data = event.data as { effectId: string; attempt: number };
      const effect = `${event.stream}/${data.effectId}`;
      const attempt = `${effect}#${data.attempt}`;
      if (started.has(attempt)) violated(`a second EffectStarted of ${attempt}`);
      started.add(attempt);
      startedEffects.add(effect);
    }
    if (category === 'hubCapacity') seeCapacity(id, event);
    if (category === 'name') {
      const before = names.get(id) ?? nameDecider.initialState();
      names.set(id, nameDecider.evolve(before, event as unknown as NameEvent));
    }
    if (category !== 'cluster') return;
    if (
      event.type === 'ClusterOrdered' &&
      streams.get(event.stream)?.some(({ type }) => type === event.type)
    ) {
      violated(`${event.stream} was ordered twice`);
    }
    if (event.type === 'ClusterOrdered') mustBeFree(id, event);
    if (event.type === 'ClusterDeleted') mustBeGone(id, event);
    const before = clusters.get(id) ?? initialCluster();
    clusters.set(id, evolveCluster(before, event as unknown as ClusterEvent));
  };

  const onceOnly = (stream: string, first: StoredEvent, known: readonly StoredEvent[]): void => {
    if (first.commandId === '' || stream.startsWith('sys-')) return;
    const earlier = known.findLast(({ commandId }) => commandId === first.commandId);
    if (earlier !== undefined) {
      violated(
        `command ${first.commandId} was carried out twice on ${stream}: @${earlier.revision} ${earlier.type} and @${first.revision} ${first.type}`,
      );
    }
  };

  const ofCommand: Ledger['ofCommand'] = (stream, commandId) =>
    (streams.get(stream) ?? []).filter((event) => event.commandId === commandId);

  return {
    stored: (stream, events, appended) => {
      const known = streams.get(stream) ?? [];
      if (!streams.has(stream)) {
        const { category } = parseStreamName(stream);
        categories.set(category, [...(categories.get(category) ?? []), stream]);
      }
      streams.set(stream, known);
      const firstRevision = appended.revision - events.length + 1;
      length += events.length;
      events.forEach(({ id, type, data, metadata }, i) => {
        if (ids.has(id)) violated(`event id ${id} (${type}) is in the log twice`);
        ids.add(id);
        const said = JSON.parse(data) as JsonObject;
        const about: Partial<EventMetadata> = completeMetadata(JSON.parse(metadata) as JsonObject, said);
        const missing = missingIn(about, stream);
        if (missing.length > 0)
          violated(`${type} in ${stream} does not say as it should in its metadata: ${missing.join(', ')}`);
        const { commandId } = about;
        const event: StoredEvent = {
          stream,
          revision: firstRevision + i,
          type,
          data: said,
          commandId: commandId ?? '',
        };
        if (i === 0) onceOnly(stream, event, known);
        see(event);
        known.push(event);
      });
    },
    witness: {
      sent: (_life: Life, hub, operation, effectId) => {
        // What the observer clears away belongs to no run.
        if (!effectId.startsWith('clusterOrder-')) return;
        const isWrite = /^(create|patch|delete|post|launch) /.test(operation);
        if (!isWrite) {
          // What converges may be repeated; fetching what is to be sent is no look.
          if (/^(read|prepare|write status|release|cancel) /.test(operation)) return;
          looked.add(effectId);
          if (uncertain.has(effectId)) uncertain.set(effectId, 'looked');
          return;
        }
        if (!startedEffects.has(effectId))
          violated(`${operation} on ${hub} before EffectStarted of ${effectId}`);
        // `.1` and so on: what was taken is posted again because nothing is to be seen of it.
        if (operation.startsWith('post ') && /\.[1-9]\d*$/.test(effectId) && !looked.has(effectId)) {
          violated(`${operation} on ${hub} repeats a webhook (${effectId}) without a look`);
        }
        if (uncertain.get(effectId) === 'unknown') {
          violated(`${operation} on ${hub} repeats ${effectId}, whose outcome is not known, without a look`);
        }
        uncertain.set(effectId, 'unknown');
      },
      settled: (effectId) => {
        if (uncertain.get(effectId) === 'unknown') uncertain.delete(effectId);
      },
    },
    cluster: (id) => clusters.get(id) ?? initialCluster(),
    clusterIds: () => [...clusters.keys()],
    capacities: () => capacities,
    names: () => names,
    ofCommand,
    events: (stream) => streams.get(stream) ?? [],
    streams: (category) => categories.get(category) ?? [],
    length: () => length,
  };
};

const TENANTS_READ: ReadonlySet<string> = new Set(['cluster']);
const categoryOf = (stream: string): string => parseStreamName(stream).category;

/** What every event says of itself, whatever wrote it. */
const missingIn = (metadata: Partial<EventMetadata>, stream: string): readonly string[] => {
  const { actor, hub, schemaVersion = 0 } = metadata;
  const texts = ['command', 'commandId', 'correlationId', 'causationId', 'occurredAt', 'instance'] as const;
  return [
    ...texts.filter((name) => (metadata[name] ?? '') === ''),
    ...(typeof metadata.tenant === 'string' && typeof metadata.project === 'string'
      ? []
      : ['tenant, project']),
    ...((actor?.subjectId ?? '') === '' ? ['actor.subjectId'] : []),
    ...((actor?.via ?? '') === '' ? ['actor.via'] : []),
    ...(schemaVersion >= 1 ? [] : ['schemaVersion']),
    // What tenants may read names no hub, in its metadata either: it would be kept back, and so not be provable.
    ...(hub !== undefined && TENANTS_READ.has(categoryOf(stream)) ? ['nothing of a hub'] : []),
  ];
};

/** What a claim that grew now takes beyond the limits; lowering a limit evicts nobody. */
const overrun = (
  { limits, used }: HubCapacityState,
  held: CapacityClaim,
  wanted: CapacityClaim,
): readonly string[] => {
  const over: string[] = [];
  const check = (what: string, limit: number | undefined, all: number, before: number, now: number): void => {
    if (limit !== undefined && now > before && all > limit) over.push(`${all} of ${limit} ${what}`);
  };
  check('control planes', limits.controlPlanes, used.controlPlanes, held.controlPlanes, wanted.controlPlanes);
  for (const [type, now] of Object.entries(wanted.nodes)) {
    check(`${type} nodes`, nodeLimit(limits, type), used.nodes[type] ?? 0, held.nodes[type] ?? 0, now);
  }
  return over;
};
