import { claimOfCluster } from '../../../src/domain/clusters/servable.ts';
import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import { isLiveCluster, isStoredCluster } from '../../../src/domain/clusters/state.ts';
import { claimOf, shortages, type HubCapacityState } from '../../../src/domain/hubs/capacity.ts';
import type { CapacityClaim } from '../../../src/domain/hubs/capacity-events.ts';
import { textOf } from '../../../src/domain/json-tools.ts';
import { Violation } from './invariants.ts';
import { NAMESPACE } from './workload.ts';
import type { World } from './world.ts';

/** What still has to happen before everything has come to its end; empty when nothing has. */
export const unsettled = (world: World): readonly string[] => {
  const { ledger } = world;
  const left: string[] = [];
  for (const id of ledger.clusterIds()) {
    const why = unsettledCluster(world, id);
    if (why !== undefined) left.push(`cluster ${id}: ${why}`);
  }
  for (const [nameId, state] of ledger.names()) {
    if (state.status !== 'held' || state.kind !== 'cluster') continue;
    if (!isLiveCluster(ledger.cluster(state.holder)))
      left.push(`name ${nameId} is held by ${state.holder}, which is not there`);
  }
  return left;
};

const holdings = (world: World, clusterId: string): [string, CapacityClaim][] =>
  [...world.ledger.capacities()].flatMap(([hub, state]): [string, CapacityClaim][] => {
    const claim = claimOf(state, { kind: 'cluster', id: clusterId });
    return claim === undefined ? [] : [[hub, claim]];
  });

const unsettledCluster = (world: World, id: string): string | undefined => {
  const { ledger } = world;
  const state = ledger.cluster(id);
  if (!isStoredCluster(state)) return undefined;
  const held = holdings(world, id);
  const run = ledger.events(`clusterOrder-${id}`);
  if (state.status === 'deleted') {
    const has = (type: string, kind: string): boolean =>
      run.some((event) => event.type === type && textOf(event.data['effectId']).startsWith(kind));
    if (has('EffectStarted', 'place:') && !has('EffectSucceeded', 'release:'))
      return `deleted, but its run goes on after ${run.at(-1)?.type}`;
    return held.length > 0 ? `deleted, but holds capacity on ${held[0]?.[0]}` : undefined;
  }
  if (run.length === 0) return 'its run has not begun';
  if (state.deletionRequestedAt !== undefined) return `is being deleted since ${state.deletionRequestedAt}`;
  if (state.status === 'dispatched' && state.lost !== undefined) return `lost its ${state.lost}`;
  if (state.failure !== undefined) return `failed: ${state.failure.reason} ${state.failure.message}`;
  const claim = claimOfCluster(state.nodeSets);
  if (state.status === 'dispatched' && state.waiting !== undefined) {
    const own = roomOn(world, state.hub.id);
    return own !== undefined && fits(own, claim, claimOf(own, { kind: 'cluster', id }))
      ? `waits for room to grow, which ${state.hub.id} has`
      : undefined;
  }
  if (state.waiting !== undefined) {
    const room = [...ledger.capacities().keys()].find((hub) => {
      const there = roomOn(world, hub);
      return there !== undefined && fits(there, claim, undefined);
    });
    return room === undefined ? undefined : `waits, although ${room} has room`;
  }
  if (state.status !== 'dispatched') return `is ${state.status}`;
  if (state.degraded !== undefined) return `is degraded: ${state.degraded.reason}`;
  if (state.changeFailed !== undefined) return `its change failed: ${state.changeFailed.reason}`;
  if (!state.ready || state.specPending) return `is on its way to READY (${run.at(-1)?.type})`;
  if (held.length !== 1 || held[0]?.[0] !== state.hub.id)
    return `holds capacity on ${held.map(([hub]) => hub).join(', ') || 'no hub'}`;
  return shortOf(claim, held[0][1]) ? 'what it holds is not what it uses' : undefined;
};

/** With the limits of the hub's present document, which its capacity stream may hear of only at the next placement. */
const roomOn = (world: World, hub: string): HubCapacityState | undefined => {
  const known = world.ledger.capacities().get(hub);
  const limits = world.living()[0]?.system.hubs.get(hub)?.limits;
  return known === undefined ? undefined : { ...known, limits: limits ?? known.limits };
};

const fits = (hub: HubCapacityState, claim: CapacityClaim, held: CapacityClaim | undefined): boolean =>
  hub.declared && shortages(hub, claim, held).length === 0;

const shortOf = (wanted: CapacityClaim, held: CapacityClaim): boolean =>
  wanted.controlPlanes !== held.controlPlanes ||
  [...new Set([...Object.keys(wanted.nodes), ...Object.keys(held.nodes)])].some(
    (type) => (wanted.nodes[type] ?? 0) !== (held.nodes[type] ?? 0),
  );

/** What is on a hub although no live order explains it; asking the hub lets it notice what is gone. */
export const strays = async (world: World): Promise<readonly string[]> => {
  const found: string[] = [];
  for (const [hub, adapter] of world.hubs) {
    for (const { name, namespace, uid, clusterId = '', goneAt } of world.ordersOn(hub)) {
      if (goneAt !== undefined || isExplained(world, hub, clusterId)) continue;
      const there = await adapter.get(CLUSTER_ORDER, { namespace, name }, asker());
      if (there?.uid === uid) found.push(`${name} on ${hub} belongs to no live order (cluster ${clusterId})`);
    }
  }
  return found;
};

const isExplained = (world: World, hub: string, clusterId: string): boolean => {
  const state = world.ledger.cluster(clusterId);
  return isLiveCluster(state) && state.status === 'dispatched' && state.hub.id === hub;
};

const asker = () => ({ effectId: 'check', deadlineMs: 1_000, signal: new AbortController().signal });

/** What must be true on the hubs once everything is settled: read from the hubs' own files. */
export const checkHubs = async (world: World): Promise<void> => {
  for (const [hub, adapter] of world.hubs) {
    const present = new Map<string, number>();
    for (const order of world.ordersOn(hub)) {
      const { name, namespace, clusterId = '' } = order;
      if (order.goneAt !== undefined) continue;
      const there = await adapter.get(CLUSTER_ORDER, { namespace, name }, asker());
      if (there === undefined || there.uid !== order.uid) continue;
      present.set(clusterId, (present.get(clusterId) ?? 0) + 1);
      const state = world.ledger.cluster(clusterId);
      if (!isLiveCluster(state)) continue;
      const nodes = there.spec.nodeRequests.reduce((sum, { numberOfNodes }) => sum + numberOfNodes, 0);
      const wanted = Object.values(state.nodeSets).reduce((sum, { size }) => sum + size, 0);
      // A cluster that waits for room to grow keeps what it has; one without nodes keeps the hub's wording.
      if (nodes !== wanted && state.waiting === undefined && wanted > 0) {
        world.fail(new Violation(`${name} on ${hub} has ${nodes} nodes, ${wanted} were ordered`));
      }
    }
    for (const [clusterId, count] of present) {
      if (count > 1) world.fail(new Violation(`cluster ${clusterId} has ${count} objects on ${hub}`));
    }
    checkHistory(world, hub);
  }
  for (const id of world.ledger.clusterIds()) {
    const state = world.ledger.cluster(id);
    if (!isLiveCluster(state) || state.status !== 'dispatched' || !state.ready) continue;
    const orders = world.ordersOn(state.hub.id);
    if (
      !orders.some(
        ({ clusterId, goneAt, namespace }) =>
          clusterId === id && goneAt === undefined && namespace === NAMESPACE,
      )
    ) {
      world.fail(new Violation(`cluster ${id} is READY, but not on ${state.hub.id}`));
    }
  }
};

/** No cluster ever had two objects at one time, whatever became of them. */
const checkHistory = (world: World, hub: string): void => {
  const owned = Map.groupBy(world.ordersOn(hub), ({ clusterId }) => clusterId ?? '');
  for (const [clusterId, orders] of owned) {
    for (const [i, former] of orders.slice(0, -1).entries()) {
      const next = orders[i + 1];
      if (next === undefined || (former.goneAt !== undefined && former.goneAt <= next.createdAt)) continue;
      world.fail(
        new Violation(`cluster ${clusterId} had a second object on ${hub}: ${former.name} and ${next.name}`),
      );
    }
  }
};
