import { invalid, type Decider, type Rejection } from '../decider.ts';
import { firstNot, withoutAddress, type Gaps } from '../ranges.ts';
import type { VlanPoolEvent } from './event-types.ts';
import { poolDecider, type Definition, type PoolCommand, type PoolState, type StockRules } from './pool.ts';
import { nameRejection, quarantineRejection } from './pool-fields.ts';

/**
 * VLANs of a fabric. First those that nobody ever had, lowest first; then the one that was released longest ago, once its
 * quarantine is over: switches may have kept the VLAN of its former holder until then.
 */
export const VLAN_POOL_CATEGORY = 'vlanPool';

export type VlanDefinition = Definition & { readonly fabric: string };
export type VlanItem = { readonly vlanId: number };
type Rest = readonly [until: string, vlanId: number];
export type VlanStock = {
  /** Ids that nobody had yet, as texts that sort. */
  readonly fresh: Gaps;
  /** Released ones by the end of their quarantine. */
  readonly released: readonly Rest[];
};
export type VlanPoolState = PoolState<VlanDefinition, VlanItem, VlanStock>;
export type VlanPoolCommand = PoolCommand<VlanDefinition, object>;

/** 0 is the priority tag, 1 the default VLAN of most switches, 4095 reserved (IEEE 802.1Q). */
const FIRST_ID = 2;
const LAST_ID = 4_094;
const MOST_RANGES = 64;

type Ids = readonly [first: number, last: number];

/** `100-199` or `150`; undefined for what is no range. */
export const parseIds = (text: string): Ids | undefined => {
  const [, first = '', last = first] = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(text) ?? [];
  return first === '' || Number(last) < Number(first) ? undefined : [Number(first), Number(last)];
};

export const idText = (id: number): string => id.toString(16).padStart(3, '0');
const idsOf = (texts: readonly string[]): readonly Ids[] =>
  texts.flatMap((text) => {
    const ids = parseIds(text);
    return ids === undefined ? [] : [ids];
  });
const isIn = (id: number, all: readonly Ids[]): boolean =>
  all.some(([first, last]) => first <= id && id <= last);

/** Every id that the pool hands out. */
export const vlanIdsOf = ({
  ranges,
  reserved,
}: Pick<Definition, 'ranges' | 'reserved'>): readonly number[] => {
  const kept = idsOf(reserved);
  return idsOf(ranges)
    .toSorted(([left], [right]) => left - right)
    .flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i))
    .filter((id) => !isIn(id, kept));
};

const idsRejection = (texts: readonly string[], field: string): Rejection | undefined => {
  const wrong = (message: string): Rejection =>
    invalid('INVALID_VLAN_RANGE', field, `field '${field}' ${message}`);
  if (texts.length > MOST_RANGES) return wrong(`may hold at most ${MOST_RANGES} ranges`);
  const seen: Ids[] = [];
  for (const text of texts) {
    const ids = parseIds(text);
    if (ids === undefined)
      return wrong(`must hold ranges such as 100-199 or single ids (got '${text.slice(0, 64)}')`);
    const [first, last] = ids;
    if (first < FIRST_ID || last > LAST_ID)
      return wrong(
        `must stay within ${FIRST_ID}-${LAST_ID}: 0 and 4095 are reserved, 1 is the default VLAN (got '${text}')`,
      );
    if (seen.some(([from, to]) => first <= to && from <= last))
      return wrong(`holds ids twice: '${text}' overlaps another of its ranges`);
    seen.push(ids);
  }
  return undefined;
};

const withRest = (rests: readonly Rest[], rest: Rest): readonly Rest[] =>
  rests.toSpliced(
    firstNot(rests, ([until]) => until <= rest[0]),
    0,
    rest,
  );

/** Before every time there is: it may be given out at once, behind those that were released before. */
const AT_ONCE = '0000';

export const vlanRules: StockRules<VlanDefinition, object, VlanItem, VlanStock> = {
  word: 'Vlan',
  definitionRejection: ({ fabric, zone }) => nameRejection('fabric', fabric) ?? nameRejection('zone', zone),
  sizeRejection: (size) =>
    (size.ranges.length === 0
      ? invalid('RANGES_REQUIRED', 'ranges', "field 'ranges' must hold a range, such as 100-199")
      : undefined) ??
    idsRejection(size.ranges, 'ranges') ??
    idsRejection(size.reserved, 'reserved') ??
    quarantineRejection(size),
  requestRejection: () => undefined,
  sizeShortage: () => undefined,
  stockOf: (size, held, resting) => {
    const released = resting.flatMap(([until, item]): readonly Rest[] =>
      vlanRules.fits(size, item) ? [[until, item.vlanId]] : [],
    );
    const had = new Set([...held.map(({ vlanId }) => vlanId), ...released.map(([, id]) => id)]);
    const fresh = vlanIdsOf(size).filter((id) => !had.has(id));
    return { fresh: gapsOf(fresh), released };
  },
  restingOf: ({ released }) => released.map(([until, vlanId]) => [until, { vlanId }]),
  pick: ({ fresh, released }, _request, at) => {
    const [first] = fresh[0] ?? [];
    if (first !== undefined) return { vlanId: Number.parseInt(first, 16) };
    const [until, vlanId] = released[0] ?? [];
    if (until === undefined || vlanId === undefined) return { wanted: ['vlan'] };
    return until <= at ? { vlanId } : { wanted: ['vlan'], until };
  },
  refutes: () => true,
  taken: ({ fresh, released }, { vlanId }) => {
    const left = withoutAddress(fresh, idText(vlanId));
    return left === fresh
      ? { fresh, released: released.filter(([, id]) => id !== vlanId) }
      : { fresh: left, released };
  },
  released: ({ fresh, released }, { vlanId }, until = AT_ONCE) => ({
    fresh,
    released: withRest(released, [until, vlanId]),
  }),
  fits: ({ ranges, reserved }, { vlanId }) => isIn(vlanId, idsOf(ranges)) && !isIn(vlanId, idsOf(reserved)),
  itemOf: (data) => ({ vlanId: (data as VlanItem).vlanId }),
  textOf: ({ vlanId }) => `VLAN ${vlanId}`,
};

/** Sorted ids as gaps. */
const gapsOf = (ids: readonly number[]): Gaps => {
  const gaps: [number, number][] = [];
  for (const id of ids) {
    const gap = gaps.at(-1);
    if (gap !== undefined && gap[1] === id - 1) gap[1] = id;
    else gaps.push([id, id]);
  }
  return gaps.map(([first, last]) => [idText(first), idText(last)]);
};

export const vlanPoolDecider: Decider<VlanPoolState, VlanPoolCommand, VlanPoolEvent> = poolDecider(vlanRules);
