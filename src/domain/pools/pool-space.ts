import { reject, type Decider, type Decision, type Rejection } from '../decider.ts';
import { own, sameJson } from '../json-tools.ts';
import { parseRange } from '../ranges.ts';
import type { PoolSpaceEvent } from './event-types.ts';
import { idText, parseIds } from './vlan-pool.ts';

/**
 * Which pool has which ranges of a fabric or of a VRF: two pools of one never overlap. A pool reserves its ranges here
 * before its own stream says them, on condition that this stream is then still at the same revision. What came of it is
 * read there and settled here, by whoever needs to know: a crash in between leaves nothing that has to be waited for.
 */
export const POOL_SPACE_CATEGORY = 'poolSpace';

type Pending = { readonly base: number; readonly ranges: readonly string[] };
type Claim = {
  readonly settledAt: number;
  readonly settled: readonly string[];
  readonly pending: readonly Pending[];
};
export type PoolSpaceState = { readonly claims: { readonly [pool: string]: Claim } };

export type PoolSpaceCommand =
  | {
      readonly type: 'ReservePoolSpace';
      readonly at: string;
      readonly pool: string;
      /** Revision of the pool's stream; -1: it is empty. */
      readonly base: number;
      readonly ranges: readonly string[];
    }
  | {
      readonly type: 'SettlePoolSpace';
      readonly at: string;
      readonly pool: string;
      readonly revision: number;
      readonly ranges: readonly string[];
    };

const NONE: Claim = { settledAt: -1, settled: [], pending: [] };
const claimOf = ({ claims }: PoolSpaceState, pool: string): Claim => own(claims, pool) ?? NONE;

export const poolSpaceDecider: Decider<PoolSpaceState, PoolSpaceCommand, PoolSpaceEvent> = {
  initialState: () => ({ claims: {} }),
  evolve: (state, event) => {
    const { pool, ranges } = event.data;
    const claim = claimOf(state, pool);
    const withClaim = (changed: Claim): PoolSpaceState => ({ claims: { ...state.claims, [pool]: changed } });
    switch (event.type) {
      case 'PoolSpaceReserved':
        return withClaim({ ...claim, pending: [...claim.pending, { base: event.data.base, ranges }] });
      case 'PoolSpaceSettled':
        return withClaim(settledTo(claim, event.data.revision, ranges));
      default:
        return state;
    }
  },
  decide: (state, command): Decision<PoolSpaceEvent> => {
    const { at, pool, ranges } = command;
    const claim = claimOf(state, pool);
    if (command.type === 'SettlePoolSpace') {
      const { revision } = command;
      if (revision < claim.settledAt) return [];
      const after = settledTo(claim, revision, ranges);
      const isKnown = sameJson(after.settled, claim.settled) && sameJson(after.pending, claim.pending);
      return isKnown ? [] : [{ type: 'PoolSpaceSettled', data: { at, pool, revision, ranges } }];
    }
    const { base } = command;
    if (claim.pending.some((each) => each.base === base && sameJson(each.ranges, ranges))) return [];
    return (
      overlapRejection(state, pool, ranges) ?? [
        { type: 'PoolSpaceReserved', data: { at, pool, base, ranges } },
      ]
    );
  },
};

const settledTo = (claim: Claim, revision: number, ranges: readonly string[]): Claim => ({
  settledAt: revision,
  settled: ranges,
  // Those of an earlier revision can no longer be appended.
  pending: claim.pending.filter(({ base }) => base >= revision),
});

const overlapRejection = (
  { claims }: PoolSpaceState,
  pool: string,
  ranges: readonly string[],
): Rejection | undefined => {
  for (const [other, { settled, pending }] of Object.entries(claims)) {
    if (other === pool) continue;
    for (const taken of [...settled, ...pending.flatMap((each) => each.ranges)]) {
      const range = ranges.find((one) => overlap(one, taken));
      if (range !== undefined)
        return reject(
          'already-exists',
          'POOLS_OVERLAP',
          `field 'ranges': '${range}' overlaps '${taken}' of pool '${other}': choose another range, or retire that pool`,
          { field: 'ranges', facts: { pool: other } },
        );
    }
  }
  return undefined;
};

/** First and last of a range as texts: those of one length sort as their numbers do. */
const spanOf = (text: string): readonly [string, string] | undefined => {
  const ids = parseIds(text);
  if (ids !== undefined) return [idText(ids[0]), idText(ids[1])];
  const range = parseRange(text);
  return range === undefined ? undefined : [range.from, range.to];
};

const overlap = (left: string, right: string): boolean => {
  const [one, other] = [spanOf(left), spanOf(right)];
  if (one === undefined || other === undefined || one[0].length !== other[0].length) return false;
  return one[0] <= other[1] && other[0] <= one[1];
};
