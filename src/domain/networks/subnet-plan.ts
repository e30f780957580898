import { bucketsIn, entriesOf, entryOf, isEmpty, partsOf, withEntry } from '../buckets.ts';
import type { Buckets, Parts } from '../buckets.ts';
import { reject, type Decision, type DomainEvent, type Rejection } from '../decider.ts';
import { creationUnderWay } from '../exclusive-use.ts';
import { holderKey, type Holder } from '../holder.ts';
import { defined, own } from '../json-tools.ts';
import { firstNot, parseRange, type Range } from '../ranges.ts';
import { count, list, mayBe, text, type EventOf } from '../schemas.ts';
import { z } from 'zod';
import { FAMILY_WORDS, fieldOf, isInside, type Family } from './ranges-of-spec.ts';

/**
 * Which subnet has which part of a virtual network: kept in the network's own stream, so that no two overlap
 * whatever happens at the same time. A subnet claims its ranges before its first event and gives them back once its
 * absence was observed.
 */
const holder = z.strictObject({ kind: text, id: text });
export const PLAN_EVENTS = {
  /** `by`: the command that is to make the holder; absent: its workflow, of one that exists. */
  SubnetRangesClaimed: { holder, generation: count, ranges: list, by: mayBe },
  SubnetRangesReleased: { holder, generation: count },
};
export type PlanEvent = EventOf<typeof PLAN_EVENTS>;
export type PlanCommand =
  /** `by`: see `ResourceKind.lends`. */
  | {
      readonly type: 'ClaimRanges';
      readonly at: string;
      readonly holder: Holder;
      readonly ranges: readonly string[];
      readonly by?: string;
    }
  | {
      readonly type: 'ReleaseRanges';
      readonly at: string;
      readonly holder: Holder;
      readonly generation: number;
    };

type Claimed = {
  readonly holder: Holder;
  readonly generation: number;
  readonly ranges: readonly string[];
  readonly by?: string;
};
/** In the order of addresses. */
type Taken = readonly Pick<Range, 'from' | 'to' | 'text'>[];
export type SubnetPlan = {
  readonly generation: number;
  readonly claims: Buckets<Claimed>;
  readonly taken: Readonly<Record<Family, Taken>>;
};

export const emptyPlan = (): SubnetPlan => ({ generation: 0, claims: {}, taken: { ipv4: [], ipv6: [] } });
export const claimOf = (plan: SubnetPlan, holder: Holder): Claimed | undefined =>
  entryOf(plan.claims, holderKey(holder));
export const claimsOf = (plan: SubnetPlan): readonly Claimed[] =>
  entriesOf(plan.claims).map(([, claim]) => claim);
export const isPlanEvent = (event: DomainEvent): event is PlanEvent =>
  own(PLAN_EVENTS, event.type) !== undefined;

/** `within`: the ranges of the network. */
export const decidePlan = (
  plan: SubnetPlan,
  command: PlanCommand,
  within: readonly Range[],
): Decision<PlanEvent> => {
  const { at, holder } = command;
  const former = claimOf(plan, holder);
  if (command.type === 'ReleaseRanges')
    return former === undefined || former.generation !== command.generation
      ? []
      : [{ type: 'SubnetRangesReleased', data: { at, holder, generation: former.generation } }];
  const { ranges, by } = command;
  if (former !== undefined && by === undefined) return [];
  if (former !== undefined && former.by !== by) return creationUnderWay(holder);
  const others = former === undefined ? plan : without(plan, former);
  for (const wanted of ranges.flatMap((each) => parseRange(each) ?? [])) {
    const wrong = outsideRejection(wanted, within) ?? overlapRejection(wanted, others);
    if (wrong !== undefined) return wrong;
  }
  const generation = plan.generation + 1;
  return [{ type: 'SubnetRangesClaimed', data: { at, holder, generation, ranges, ...defined({ by }) } }];
};

export const evolvePlan = (plan: SubnetPlan, { type, data }: PlanEvent): SubnetPlan => {
  const key = holderKey(data.holder);
  const former = entryOf(plan.claims, key);
  const left = former === undefined ? plan : without(plan, former);
  if (type === 'SubnetRangesReleased') return { ...left, claims: withEntry(left.claims, key, undefined) };
  const { at: _at, ...claim } = data;
  const { generation, ranges } = claim;
  return { generation, claims: withEntry(plan.claims, key, claim), taken: withTaken(left.taken, ranges) };
};

const withTaken = (before: SubnetPlan['taken'], ranges: readonly string[]): SubnetPlan['taken'] => {
  const taken = { ...before };
  for (const range of ranges.flatMap((each) => parseRange(each) ?? [])) {
    const { from, to, text: written, family } = range;
    taken[family] = taken[family].toSpliced(placeOf(taken[family], range), 0, { from, to, text: written });
  }
  return taken;
};

export const isUnclaimed = ({ claims }: SubnetPlan): boolean => isEmpty(claims);
/** What is taken follows from the claims. */
export const partsOfPlan = ({ claims }: SubnetPlan): Parts => partsOf({ claims });
export const withoutParts = ({ generation }: SubnetPlan): SubnetPlan => ({ ...emptyPlan(), generation });
export const planFrom = ({ generation }: SubnetPlan, parts: Parts): SubnetPlan => {
  const claims = bucketsIn<Claimed>(parts, 'claims');
  const all = entriesOf(claims).flatMap(([, { ranges }]) => ranges.flatMap((each) => parseRange(each) ?? []));
  const taken = { ipv4: [], ipv6: [] } as Record<Family, Pick<Range, 'from' | 'to' | 'text'>[]>;
  for (const { from, to, text: written, family } of all.toSorted((left, right) =>
    left.from < right.from ? -1 : 1,
  ))
    taken[family].push({ from, to, text: written });
  return { generation, claims, taken };
};

/** Of the first that does not end before the range begins. */
const placeOf = (taken: Taken, { from }: Pick<Range, 'from'>): number =>
  firstNot(taken, ({ to }) => to < from);

const without = (plan: SubnetPlan, { ranges }: Claimed): SubnetPlan => {
  const others = (taken: Taken): Taken => taken.filter((one) => !ranges.includes(one.text));
  return { ...plan, taken: { ipv4: others(plan.taken.ipv4), ipv6: others(plan.taken.ipv6) } };
};

const outsideRejection = (wanted: Range, within: readonly Range[]): Rejection | undefined => {
  const field = `spec.${fieldOf(wanted.family)}`;
  const parent = within.find(({ family }) => family === wanted.family);
  if (parent !== undefined && isInside(wanted, parent)) return undefined;
  const why =
    parent === undefined
      ? `the virtual network has no ${FAMILY_WORDS[wanted.family]} range`
      : `it must lie inside '${parent.text}', the range of the virtual network`;
  return reject('invalid', 'OUTSIDE_NETWORK', `field '${field}': '${wanted.text}' cannot be used, ${why}`, {
    field,
  });
};

const overlapRejection = (wanted: Range, { taken }: SubnetPlan): Rejection | undefined => {
  const field = `spec.${fieldOf(wanted.family)}`;
  const next = taken[wanted.family][placeOf(taken[wanted.family], wanted)];
  return next === undefined || next.from > wanted.to
    ? undefined
    : reject(
        'already-exists',
        'SUBNETS_OVERLAP',
        `field '${field}': '${wanted.text}' overlaps '${next.text}' of another subnet of the virtual network`,
        { field },
      );
};
