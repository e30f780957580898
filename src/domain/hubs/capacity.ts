import { reject, type DataOf, type Decider, type Decision, type Rejection } from '../decider.ts';
import { fnv1a32 } from '../hash.ts';
import { holderKey, holderOf, type Holder } from '../holder.ts';
import type { JsonObject } from '../json.ts';
import { isObject, objectAt, own, sameJson } from '../json-tools.ts';
import type { CapacityClaim, CapacityLimits, HubCapacityEvent } from './capacity-events.ts';

/**
 * What a hub can still take. Reservations never exceed the limits at the time they are
 * made; lowering a limit blocks new ones and evicts nobody.
 *
 * Absent limits mean unlimited. A hub that names host types has only those: any other class counts as 0.
 */
export const HUB_CAPACITY_CATEGORY = 'hubCapacity';

type Claimed = DataOf<HubCapacityEvent, 'HubCapacityReserved'>;
export type HubCapacityCommand =
  | ({
      readonly type: 'DeclareCapacity';
      /** Revision of the hub's document that says so; a closed hub opens again only for a later one than it was closed at. */
      readonly hubRevision?: number;
    } & DataOf<HubCapacityEvent, 'HubCapacityDeclared'>)
  | ({ readonly type: 'ReserveCapacity' | 'ResizeReservation' } & Claimed)
  | ({ readonly type: 'ReleaseCapacity' } & DataOf<HubCapacityEvent, 'HubCapacityReleased'>)
  /** Before a hub is deregistered: refused while anything holds capacity, and nothing is reserved afterwards. */
  | ({ readonly type: 'CloseCapacity' } & DataOf<HubCapacityEvent, 'HubCapacityClosed'>);

export type HubCapacityState = {
  readonly limits: CapacityLimits;
  /** True once limits were declared: until then nothing is known and nothing is limited. */
  readonly declared: boolean;
  /** The revision of the hub's document at which it was closed, while it is. */
  readonly closedAt?: number;
  /** By bucket and holder: a hub carries many, and a change copies only one bucket. */
  readonly claims: { readonly [bucket: string]: { readonly [holder: string]: CapacityClaim } };
  /** Sum of all claims. */
  readonly used: CapacityClaim;
};

export const NOTHING: CapacityClaim = { controlPlanes: 0, nodes: {} };

export const hubCapacityDecider: Decider<HubCapacityState, HubCapacityCommand, HubCapacityEvent> = {
  initialState: () => ({ limits: {}, declared: false, claims: {}, used: NOTHING }),
  evolve: (state, event) => {
    switch (event.type) {
      case 'HubCapacityDeclared':
        return { ...opened(state), limits: event.data.limits, declared: true };
      case 'HubCapacityReserved':
      case 'HubCapacityResized':
        return withClaim(state, event.data.holder, event.data.claim);
      case 'HubCapacityReleased':
        return withClaim(state, event.data.holder, undefined);
      case 'HubCapacityClosed':
        return { ...state, closedAt: event.data.hubRevision };
      default:
        return state;
    }
  },
  decide: (state, command) => {
    switch (command.type) {
      case 'DeclareCapacity':
        return declare(state, command);
      case 'ReserveCapacity':
      case 'ResizeReservation':
        return claim(state, command);
      case 'ReleaseCapacity': {
        const { at, holder } = command;
        if (claimOf(state, holder) === undefined) return [];
        return [{ type: 'HubCapacityReleased', data: { at, holder } }];
      }
      case 'CloseCapacity':
        return close(state, command);
    }
  },
};

/** What somebody holds on this hub, if anything. */
export const claimOf = (state: HubCapacityState, holder: Holder): CapacityClaim | undefined =>
  claimAt(state, holderKey(holder));

const claimAt = (state: HubCapacityState, key: string): CapacityClaim | undefined =>
  own(state.claims[bucketOf(key)], key);

/** All that hold capacity on this hub. */
export const claimedBy = (state: HubCapacityState): readonly Holder[] =>
  Object.values(state.claims).flatMap((bucket) => Object.keys(bucket).map(holderOf));

/** Nothing is reserved on a hub that was closed, until this or a later revision of its document declares again. */
export const isClosedFor = ({ closedAt }: Pick<HubCapacityState, 'closedAt'>, hubRevision: number): boolean =>
  closedAt !== undefined && hubRevision <= closedAt;

/** Which parts of a claim exceed what is left; empty when it fits. A claim that shrinks always fits. */
export const shortages = (
  state: Pick<HubCapacityState, 'limits' | 'used'>,
  claim: CapacityClaim,
  held: CapacityClaim = NOTHING,
): readonly { readonly what: string; readonly wanted: number; readonly left: number }[] => {
  const found: { what: string; wanted: number; left: number }[] = [];
  const check = (what: string, limit: number | undefined, used: number, now: number, want: number): void => {
    const left = limit === undefined ? Number.POSITIVE_INFINITY : Math.max(0, limit - (used - now));
    if (want > now && want > left) found.push({ what, wanted: want, left });
  };
  const { limits, used } = state;
  check('control planes', limits.controlPlanes, used.controlPlanes, held.controlPlanes, claim.controlPlanes);
  for (const [hostType, wanted] of Object.entries(claim.nodes)) {
    const limit = nodeLimit(limits, hostType);
    check(`${hostType} nodes`, limit, own(used.nodes, hostType) ?? 0, own(held.nodes, hostType) ?? 0, wanted);
  }
  return found;
};

/** Undefined: unlimited. */
export const nodeLimit = (limits: CapacityLimits, hostType: string): number | undefined =>
  limits.nodes === undefined ? undefined : (own(limits.nodes, hostType) ?? 0);

/** Limits as a hub's document declares them (`spec.capacity`); an empty map of nodes declares nothing. */
export const capacityLimitsOf = (hubDocument: JsonObject): CapacityLimits => {
  const capacity = objectAt(objectAt(hubDocument, 'spec'), 'capacity');
  const controlPlanes = capacity['control_planes'];
  const nodes = capacity['nodes'];
  return {
    ...(typeof controlPlanes === 'number' ? { controlPlanes } : {}),
    ...(isObject(nodes) && Object.keys(nodes).length > 0
      ? { nodes: nodes as { [type: string]: number } }
      : {}),
  };
};

/**
 * Limits of a hub: what its document declares wins class by class; of other classes the hub has the hosts that it
 * shows, of which ours are already in clusters that hold capacity here. Hosts of others are no room. A hub that
 * shows none
 * at all says nothing: where hosts are made when they are ordered, there are none before (OSAC's operator).
 */
export const limitsWithHosts = (
  declared: CapacityLimits,
  hosts: { readonly [resourceClass: string]: { readonly free: number; readonly ours: number } } | undefined,
): CapacityLimits => {
  if (hosts === undefined || Object.keys(hosts).length === 0) return declared;
  const counted = Object.entries(hosts).map(([type, { free, ours }]) => [type, free + ours] as const);
  const nodes = new Map<string, number>([...counted, ...Object.entries(declared.nodes ?? {})]);
  return { ...declared, nodes: Object.fromEntries(nodes) };
};

const declare = (
  state: HubCapacityState,
  command: Extract<HubCapacityCommand, { type: 'DeclareCapacity' }>,
): Decision<HubCapacityEvent> => {
  const { at, hub, limits, hubRevision = -1 } = command;
  const numbers = [limits.controlPlanes ?? 0, ...Object.values(limits.nodes ?? {})];
  if (numbers.some((number) => !Number.isSafeInteger(number) || number < 0)) {
    return reject('invalid', 'INVALID_CAPACITY', 'capacity limits must be whole numbers from 0 on');
  }
  // Somebody who does not know yet that the hub goes must not open it again.
  if (isClosedFor(state, hubRevision)) return [];
  if (state.declared && state.closedAt === undefined && sameJson(limits, state.limits)) return [];
  return [{ type: 'HubCapacityDeclared', data: { at, hub, limits } }];
};

const claim = (
  state: HubCapacityState,
  command: Extract<HubCapacityCommand, { claim: CapacityClaim }>,
): Decision<HubCapacityEvent> => {
  const { at, holder } = command;
  const wanted = withoutZeros(command.claim);
  const numbers = [wanted.controlPlanes, ...Object.values(wanted.nodes)];
  if (numbers.some((number) => !Number.isSafeInteger(number) || number < 0)) {
    return reject('invalid', 'INVALID_CLAIM', 'claims must be whole numbers from 0 on');
  }
  const held = claimOf(state, holder);
  if (held === undefined && command.type === 'ResizeReservation') {
    return reject(
      'failed-precondition',
      'NO_RESERVATION',
      `${holder.kind} '${holder.id}' holds no capacity here`,
    );
  }
  if (held === undefined && state.closedAt !== undefined) {
    return reject('failed-precondition', 'HUB_CLOSED', 'the hub is being deregistered');
  }
  if (held !== undefined && sameJson(held, wanted)) return [];
  const short = shortages(state, wanted, held);
  if (short.length > 0) return exceeded(short);
  const type = held === undefined ? 'HubCapacityReserved' : 'HubCapacityResized';
  return [{ type, data: { at, holder, claim: wanted } }];
};

const close = (
  state: HubCapacityState,
  { at, hub, hubRevision }: Extract<HubCapacityCommand, { type: 'CloseCapacity' }>,
): Decision<HubCapacityEvent> => {
  const holders = claimedBy(state).length;
  if (holders > 0) {
    return reject('failed-precondition', 'CAPACITY_IN_USE', `${holders} orders hold capacity on this hub`);
  }
  return isClosedFor(state, hubRevision)
    ? []
    : [{ type: 'HubCapacityClosed', data: { at, hub, hubRevision } }];
};

const opened = ({ closedAt: _closed, ...state }: HubCapacityState): HubCapacityState => state;

const exceeded = (short: ReturnType<typeof shortages>): Rejection =>
  reject(
    'failed-precondition',
    'CAPACITY_EXCEEDED',
    short.map(({ what, wanted, left }) => `${wanted} ${what} wanted, ${left} left`).join('; '),
  );

const withoutZeros = (claim: CapacityClaim): CapacityClaim => ({
  controlPlanes: claim.controlPlanes,
  nodes: Object.fromEntries(Object.entries(claim.nodes).filter(([, count]) => count !== 0)),
});

const withClaim = (
  state: HubCapacityState,
  holder: Holder,
  claim: CapacityClaim | undefined,
): HubCapacityState => {
  const key = holderKey(holder);
  const bucket = bucketOf(key);
  const previous = claimAt(state, key) ?? NOTHING;
  const { [key]: _previous, ...others } = state.claims[bucket] ?? {};
  const claims = {
    ...state.claims,
    [bucket]: claim === undefined ? others : { ...others, [key]: claim },
  };
  return { ...state, claims, used: add(add(state.used, previous, -1), claim ?? NOTHING, 1) };
};

const BUCKETS = 256;
const bucketOf = (key: string): string => `b${fnv1a32(key) % BUCKETS}`;

const add = (left: CapacityClaim, right: CapacityClaim, sign: 1 | -1): CapacityClaim => {
  const nodes = new Map(Object.entries(left.nodes));
  for (const [hostType, count] of Object.entries(right.nodes)) {
    const sum = (nodes.get(hostType) ?? 0) + sign * count;
    if (sum === 0) nodes.delete(hostType);
    else nodes.set(hostType, sum);
  }
  return {
    controlPlanes: left.controlPlanes + sign * right.controlPlanes,
    nodes: Object.fromEntries(nodes),
  };
};
