import { entriesOf, entryOf, withEntry, type Buckets } from '../buckets.ts';
import { reject, type Decider, type Decision, type Rejection } from '../decider.ts';
import type { EventType } from '../event-type.ts';
import { creationUnderWay, userText } from '../exclusive-use.ts';
import { holderKey, type Holder } from '../holder.ts';
import { defined, listAt, stringAt } from '../json-tools.ts';
import { parseRanges, type Range } from '../ranges.ts';
import type { Lender } from '../resource.ts';
import { count, list, mayBe, text, typesOf, type EventData, type EventOf } from '../schemas.ts';
import { z } from 'zod';

/**
 * Which external IP pool has which range, in one stream for all pools: no two give out the same address. Only pools that
 * name different hubs may overlap, for a hub's pools serve what is on that hub.
 */
const holder = z.strictObject({ kind: text, id: text });
const CLAIMED = {
  holder,
  generation: count,
  ranges: list,
  /** The only hub that it may be on. */
  hub: mayBe,
  /** The command that is to make the holder; absent: its workflow, of one that exists. */
  by: mayBe,
};
const SPACE_EVENTS = { PoolRangesClaimed: CLAIMED, PoolRangesReleased: { holder, generation: count } };
export type AddressSpaceEvent = EventOf<typeof SPACE_EVENTS>;
type Claimed = Omit<EventData<typeof CLAIMED>, 'at'>;
export type AddressSpaceCommand =
  | ({ readonly type: 'ClaimPoolRanges' } & Omit<EventData<typeof CLAIMED>, 'generation'>)
  | {
      readonly type: 'ReleasePoolRanges';
      readonly at: string;
      readonly holder: Holder;
      readonly generation: number;
    };

export type AddressSpaceState = {
  readonly generation: number;
  readonly claims: Buckets<Claimed & { readonly parsed: readonly Range[] }>;
};

export const addressSpaceTypes: readonly EventType[] = typesOf(
  { context: 'networks', audience: 'provider' },
  SPACE_EVENTS,
);

export const addressSpaceDecider: Decider<AddressSpaceState, AddressSpaceCommand, AddressSpaceEvent> = {
  initialState: () => ({ generation: 0, claims: {} }),
  evolve: (state, event) => {
    switch (event.type) {
      case 'PoolRangesClaimed': {
        const { at: _at, ...claim } = event.data;
        const entry = { ...claim, parsed: parseRanges(claim.ranges) };
        return {
          generation: claim.generation,
          claims: withEntry(state.claims, holderKey(claim.holder), entry),
        };
      }
      case 'PoolRangesReleased':
        return { ...state, claims: withEntry(state.claims, holderKey(event.data.holder), undefined) };
      default:
        return state;
    }
  },
  decide: (state, command): Decision<AddressSpaceEvent> => {
    const former = entryOf(state.claims, holderKey(command.holder));
    const { at, holder: pool } = command;
    if (command.type === 'ReleasePoolRanges')
      return former?.generation === command.generation
        ? [{ type: 'PoolRangesReleased', data: { at, holder: pool, generation: former.generation } }]
        : [];
    const { type: _type, ...claim } = command;
    if (former !== undefined && claim.by === undefined) return [];
    if (former !== undefined && former.by !== claim.by) return creationUnderWay(pool);
    const generation = state.generation + 1;
    return overlapRejection(state, claim) ?? [{ type: 'PoolRangesClaimed', data: { ...claim, generation } }];
  },
};

const overlapRejection = (
  { claims }: AddressSpaceState,
  { holder: pool, ranges, hub }: Pick<Claimed, 'holder' | 'ranges' | 'hub'>,
): Rejection | undefined => {
  const wanted = parseRanges(ranges);
  for (const [key, other] of entriesOf(claims)) {
    const isApart = hub !== undefined && other.hub !== undefined && hub !== other.hub;
    if (isApart || key === holderKey(pool)) continue;
    for (const range of wanted) {
      const taken = other.parsed.find((one) => overlap(one, range));
      if (taken === undefined) continue;
      const field = 'spec.cidrs';
      const message =
        `field '${field}': '${range.text}' overlaps '${taken.text}' of ${userText(other.holder)}: choose ` +
        'another range, or name a different hub for each pool';
      return reject('already-exists', 'POOLS_OVERLAP', message, { field });
    }
  }
  return undefined;
};

/** Addresses of one length sort as their texts do. */
const overlap = (left: Range, right: Range): boolean =>
  left.family === right.family && left.from <= right.to && right.from <= left.to;

/** All pools take their ranges from it. */
export const addressSpace: Lender<AddressSpaceState, AddressSpaceCommand, AddressSpaceEvent> & {
  readonly onlyId: string;
} = {
  kind: 'addressSpace',
  onlyId: 'external',
  decider: addressSpaceDecider,
  stateVersion: 1,
  view: () => ({ exists: false }),
  lends: {
    claim: (at, pool, wanted, by) => {
      const ranges = listAt(wanted, 'ranges').filter((each) => typeof each === 'string');
      const hub = stringAt(wanted, 'hub') || undefined;
      return { type: 'ClaimPoolRanges', at, holder: pool, ranges, ...defined({ hub, by }) };
    },
    release: (at, pool, generation) => ({ type: 'ReleasePoolRanges', at, holder: pool, generation }),
    held: ({ claims }) => entriesOf(claims).map(([, claim]) => claim),
    heldBy: ({ claims }, pool) => entryOf(claims, holderKey(pool))?.generation,
  },
};
