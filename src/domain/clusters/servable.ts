import { reject, type Rejection } from '../decider.ts';
import type { CapacityClaim, CapacityLimits } from '../hubs/capacity-events.ts';
import { limitsWithHosts, nodeLimit } from '../hubs/capacity.ts';
import type { HubHealth } from '../hubs/health.ts';
import { namespaceOf, type HubFacts, namespaceFits } from '../hubs/hub-facts.ts';
import { isReal, type Candidate } from '../hubs/placement.ts';
import { own } from '../json-tools.ts';
import { orderName } from './cluster-order-manifest.ts';
import type { DesiredCluster } from './observed.ts';
import type { NodeSet } from './state.ts';

/** The claim of a cluster: one hosted control plane and its nodes by host type. */
export const claimOfCluster = (nodeSets: DesiredCluster['nodeSets']): CapacityClaim => {
  const nodes = new Map<string, number>();
  for (const { hostType, size } of Object.values(nodeSets)) {
    if (size > 0) nodes.set(hostType.id, (nodes.get(hostType.id) ?? 0) + size);
  }
  return { controlPlanes: 1, nodes: Object.fromEntries(nodes) };
};

/**
 * What can never be served is refused (docs/hubs.md, Where orders go): a zone that no hub has, and more nodes of a class
 * than any single hub could hold if nothing else were on it. What only lacks free room is taken, and waits.
 */
export type NodeSets = { readonly [name: string]: Pick<NodeSet, 'hostType' | 'size'> };

export type Wish = {
  readonly tenant: string;
  readonly template: string;
  /** Absent: any hub. */
  readonly hub?: string;
  /** Absent: any zone. */
  readonly zone?: string;
  readonly nodeSets: NodeSets;
};

/** A registered hub as it stands, whatever is on it now. `limits`: of the hub when it is empty. */
export type StandingHub = Pick<Candidate, 'hub' | 'deleting' | 'adapter' | 'health' | 'limits'>;

export type StandingHubs = {
  readonly hubs: readonly StandingHub[];
  /** Simulated hubs take nothing here. */
  readonly refusesSimulated?: boolean;
};

/** The limits of an empty hub: every host of a class that it shows, also those that others hold now. */
export const limitsWhenEmpty = (declared: CapacityLimits, hosts: HubHealth['hosts']): CapacityLimits => {
  if (hosts === undefined) return limitsWithHosts(declared, undefined);
  const counts = Object.entries(hosts.counts).map(
    ([type, { free, ours, foreign }]) => [type, { free: free + foreign, ours }] as const,
  );
  return limitsWithHosts(declared, Object.fromEntries(counts));
};

/** Undefined: some hub could take it, now or later, or nothing is known of what could. */
export const neverServed = (wish: Wish, standing: StandingHubs): Rejection | undefined => {
  const hubs = takingOrders(standing).filter(({ hub }) => wish.hub === undefined || hub.id === wish.hub);
  const inZone = hubs.filter(({ hub }) => wish.zone === undefined || hub.zone === wish.zone);
  if (hubs.length > 0 && inZone.length === 0)
    return wish.hub === undefined ? unknownZone(wish.zone ?? '') : otherZone(wish.zone ?? '');
  const eligible = inZone.filter(({ hub }) => offers(hub, wish));
  const isPossible = eligible.some((hub) => tooMany(wish.nodeSets, hub.limits).length === 0);
  return eligible.length === 0 || isPossible ? undefined : tooLarge(wish, eligible);
};

/** The zone alone: of a change of it. */
export const neverThere = (zone: string, standing: StandingHubs): Rejection | undefined => {
  const hubs = takingOrders(standing);
  return hubs.length === 0 || hubs.some(({ hub }) => hub.zone === zone) ? undefined : unknownZone(zone);
};

/**
 * A change of a cluster that is on a hub, which it cannot leave. Only a class that grows is looked at: whatever became of
 * the hub's capacity, a change can be taken back. `free`: nodes of a class that are left there now.
 */
export const neverGrown = (
  before: NodeSets,
  after: NodeSets,
  { limits, free }: { readonly limits: CapacityLimits; readonly free: (hostType: string) => number },
): Rejection | undefined => {
  const had = claimOfCluster(before).nodes;
  const { controlPlanes: _held, ...ofNodes } = limits;
  const [first] = tooMany(after, ofNodes).filter(({ id, wanted }) => wanted > (own(had, id) ?? 0));
  if (first === undefined) return undefined;
  const left = Math.min(first.most, Math.max(0, free(first.id)));
  return refuseSize(after, first, `this cluster can have at most ${first.most}, ${left} more are free now`, {
    free: left,
  });
};

/** True when the change asks for more of some class than before. */
export const grows = (before: NodeSets, after: NodeSets): boolean => {
  const had = claimOfCluster(before).nodes;
  return Object.entries(claimOfCluster(after).nodes).some(([id, wanted]) => wanted > (own(had, id) ?? 0));
};

/** As the scheduler sees them, but for what may pass: closed, unreachable and unwell hubs may take orders again. */
export const takingOrders = ({ hubs, refusesSimulated = false }: StandingHubs): readonly StandingHub[] => {
  const passesSimulated = refusesSimulated || hubs.some(isReal);
  return hubs.filter(({ hub, deleting }) => !deleting && !(hub.simulated && passesSimulated));
};

const offers = (hub: HubFacts, { tenant, template }: Wish): boolean =>
  (hub.templates.length === 0 || hub.templates.includes(template)) &&
  namespaceFits(namespaceOf(hub, tenant), ANY_ORDER);

/** Names of orders have one length. */
const ANY_ORDER = orderName('');

type Excess = { readonly id: string; readonly wanted: number; readonly most: number };

const CONTROL_PLANES = '';

const tooMany = (nodeSets: NodeSets, limits: CapacityLimits): readonly Excess[] => {
  const { controlPlanes, nodes } = claimOfCluster(nodeSets);
  const most = limits.controlPlanes ?? controlPlanes;
  return [
    ...(most < controlPlanes ? [{ id: CONTROL_PLANES, wanted: controlPlanes, most }] : []),
    ...Object.entries(nodes).flatMap(([id, wanted]) => {
      const limit = nodeLimit(limits, id) ?? wanted;
      return limit < wanted ? [{ id, wanted, most: limit }] : [];
    }),
  ];
};

const unknownZone = (zone: string): Rejection =>
  reject(
    'failed-precondition',
    'NO_SUCH_ZONE',
    `annotation 'fulfillment-ledger/zone': unknown zone '${zone}': name another one, or leave the annotation out`,
    { field: 'metadata.annotations', facts: { zone } },
  );

/** The wish names a hub: of what it uses, not of the caller. */
const otherZone = (zone: string): Rejection =>
  reject(
    'failed-precondition',
    'OUT_OF_ZONE',
    `annotation 'fulfillment-ledger/zone': the subnet or the external IPs of the cluster are not in zone '${zone}': name another one`,
    { field: 'metadata.annotations', facts: { zone } },
  );

const impossible = (message: string, more?: Pick<Rejection, 'field' | 'facts'>): Rejection =>
  reject('failed-precondition', 'CAPACITY_IMPOSSIBLE', message, more);

const tooLarge = (wish: Wish, eligible: readonly StandingHub[]): Rejection => {
  const where = wish.zone === undefined ? '' : ` in zone '${wish.zone}'`;
  const everywhere = eligible.map(({ limits }) => tooMany(wish.nodeSets, limits));
  const [first, ...others] = everywhere;
  const excess = (first ?? []).find(({ id }) => others.every((found) => found.some((one) => one.id === id)));
  if (excess === undefined)
    return impossible(
      `the node sets of this cluster can never be had together${where}: ask for fewer nodes`,
      { field: 'spec.node_sets' },
    );
  const found = everywhere.flatMap((all) => all.filter(({ id }) => id === excess.id));
  const most = Math.max(...found.map((one) => one.most));
  if (excess.id === CONTROL_PLANES)
    return impossible(`no cluster can be had${where}, whatever its size: ask your provider`);
  return refuseSize(wish.nodeSets, { ...excess, most }, `one cluster can have at most ${most}${where}`);
};

const refuseSize = (
  nodeSets: NodeSets,
  { id, wanted, most }: Excess,
  possible: string,
  more: { readonly free?: number } = {},
): Rejection => {
  const sets = Object.entries(nodeSets).filter(([, { hostType, size }]) => hostType.id === id && size > 0);
  const [first] = sets;
  const words = first?.[1].hostType.name ?? id;
  const named = sets.map(([each]) => `'${each}'`).join(', ');
  return impossible(
    `node set${sets.length > 1 ? 's' : ''} ${named}: ${wanted} ${words} can never be had: ${possible}`,
    {
      field: `spec.node_sets.${first?.[0] ?? ''}.size`,
      facts: { host_type: words, wanted, possible: most, ...more },
    },
  );
};
