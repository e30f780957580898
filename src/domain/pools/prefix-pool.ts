import { invalid, reject, type Decider, type Rejection } from '../decider.ts';
import { rangeRejection } from '../networks/ranges-of-spec.ts';
import { firstNot, parseRange } from '../ranges.ts';
import type { PrefixPoolEvent } from './event-types.ts';
import { nameRejection, quarantineRejection } from './pool-fields.ts';
import {
  poolDecider,
  type Definition,
  type PoolCommand,
  type PoolState,
  type Short,
  type StockRules,
} from './pool.ts';
import {
  areDisjoint,
  bestFit,
  blockOf,
  blocksOf,
  blockText,
  cutOut,
  FAMILY_NAMES,
  familyOf,
  isWithinBlock,
  withBlock,
  withoutBlock,
  type Block,
  type Family,
} from './prefix-blocks.ts';
import { hostsOf } from './prefix-hosts.ts';

/**
 * Prefixes of a VRF, of one family or both: an order that asks for both gets both, or none. Best fit: the smallest free
 * block that is large enough, of several the lowest. What was released rests, and is given out again when nothing else
 * fits, also together with what is free next to it.
 */
export const PREFIX_POOL_CATEGORY = 'prefixPool';

export type PrefixDefinition = Definition & { readonly vrf: string };
export type PrefixItem = { readonly prefixes: readonly string[]; readonly gateways: readonly string[] };
/** Length of the wanted prefix of a family; absent: none. */
export type PrefixRequest = { readonly v4?: number; readonly v6?: number };

type Rest = readonly [until: string, block: Block];
type FamilyStock = { readonly free: readonly Block[]; readonly released: readonly Rest[] };
export type PrefixStock = { readonly [Each in Family]: FamilyStock };
export type PrefixPoolState = PoolState<PrefixDefinition, PrefixItem, PrefixStock>;
export type PrefixPoolCommand = PoolCommand<PrefixDefinition, PrefixRequest>;

export const FAMILIES = { v4: { bits: 32, words: 'IPv4' }, v6: { bits: 128, words: 'IPv6' } } as const;
const MOST_RANGES = 64;

const ofFamily = (blocks: readonly Block[], family: Family): readonly Block[] =>
  blocks.filter((block) => familyOf(block) === family);

/** Without host bits (RFC 4632), IPv6 as RFC 5952 writes it; what is no range stays for the decider to refuse. */
export const plainCidrs = (texts: readonly string[]): readonly string[] =>
  texts.map((text) => parseRange(text)?.text ?? text);

const cidrsRejection = (texts: readonly string[], field: string): Rejection | undefined => {
  const wrong = (message: string): Rejection => invalid('INVALID_CIDR', field, `field '${field}' ${message}`);
  if (texts.length > MOST_RANGES) return wrong(`may hold at most ${MOST_RANGES} ranges`);
  const seen: Block[] = [];
  for (const text of texts) {
    const range = parseRange(text);
    const malformed = rangeRejection(text, text.includes(':') ? 'ipv6' : 'ipv4', field);
    if (range === undefined || malformed !== undefined) return malformed;
    if (range.text !== text)
      return wrong(`must hold CIDRs without host bits: '${range.text}' (got '${text}')`);
    const block = blockOf(range);
    if (seen.some((other) => !areDisjoint(block, other)))
      return wrong(`holds addresses twice: '${text}' overlaps another of its ranges`);
    seen.push(block);
  }
  return undefined;
};

/** Ranges side by side hold what is larger than each of them. */
const joined = (ranges: readonly string[]): readonly Block[] =>
  blocksOf(ranges).reduce<readonly Block[]>(withBlock, []);

const freeOf = (size: Pick<Definition, 'ranges' | 'reserved'>, taken: readonly Block[]): readonly Block[] => {
  return [...blocksOf(size.reserved), ...taken].reduce(withoutBlock, joined(size.ranges));
};

const withRest = (rests: readonly Rest[], rest: Rest): readonly Rest[] =>
  rests.toSpliced(
    firstNot(rests, ([until]) => until <= rest[0]),
    0,
    rest,
  );

/** What nobody had yet before what rested; of several such of one size, the one that rested first. */
const pickBlock = ({ free, released }: FamilyStock, length: number, at: string): Block | undefined => {
  const fresh = bestFit(free, length);
  if (fresh !== undefined) return fresh;
  const rested = released.filter(([until]) => until <= at).map(([, block]) => block);
  return bestFit(rested, length) ?? bestFit(rested.reduce<readonly Block[]>(withBlock, free), length);
};

const itemOfBlocks = (blocks: readonly Block[]): PrefixItem => ({
  prefixes: blocks.map(blockText),
  gateways: blocks.flatMap((block) => hostsOf(block).gateway ?? []),
});

const inFamilies = (
  stock: PrefixStock,
  { prefixes }: Pick<PrefixItem, 'prefixes'>,
  change: (stock: FamilyStock, block: Block) => FamilyStock,
): PrefixStock =>
  blocksOf(prefixes).reduce((changed, block) => {
    const family = familyOf(block);
    return { ...changed, [family]: change(changed[family], block) };
  }, stock);

export const prefixRules: StockRules<PrefixDefinition, PrefixRequest, PrefixItem, PrefixStock> = {
  word: 'Prefix',
  definitionRejection: ({ vrf, zone }) => nameRejection('vrf', vrf) ?? nameRejection('zone', zone),
  sizeRejection: (size) =>
    (size.ranges.length === 0
      ? invalid('RANGES_REQUIRED', 'ranges', "field 'ranges' must hold a CIDR, such as 10.20.0.0/16")
      : undefined) ??
    cidrsRejection(size.ranges, 'ranges') ??
    cidrsRejection(size.reserved, 'reserved') ??
    quarantineRejection(size),
  requestRejection: (request) => {
    if (FAMILY_NAMES.every((family) => request[family] === undefined))
      return invalid(
        'LENGTH_REQUIRED',
        'lengths',
        "one of the fields 'lengths.v4' and 'lengths.v6' is required",
      );
    for (const family of FAMILY_NAMES) {
      const { bits } = FAMILIES[family];
      const length = request[family];
      const field = `lengths.${family}`;
      if (length !== undefined && !(Number.isSafeInteger(length) && length >= 1 && length <= bits))
        return invalid('INVALID_LENGTH', field, `field '${field}' must be from 1 to ${bits} (got ${length})`);
    }
    return undefined;
  },
  sizeShortage: ({ ranges }, request) => {
    const all = joined(ranges);
    for (const family of FAMILY_NAMES) {
      const length = request[family];
      if (length === undefined || ofFamily(all, family).some((range) => range[2] <= length)) continue;
      const message = `no ${FAMILIES[family].words} range of the pool holds a /${length}`;
      return reject('failed-precondition', 'NOT_IN_POOL', message, { field: `lengths.${family}` });
    }
    return undefined;
  },
  stockOf: (size, held, resting) => {
    const rests = resting
      .filter(([, item]) => prefixRules.fits(size, item))
      .flatMap(([until, { prefixes }]) => blocksOf(prefixes).map((block): Rest => [until, block]));
    const taken = [...held.flatMap(({ prefixes }) => blocksOf(prefixes)), ...rests.map(([, block]) => block)];
    const free = freeOf(size, taken);
    const stockIn = (family: Family): FamilyStock => ({
      free: ofFamily(free, family),
      released: rests.filter(([, block]) => familyOf(block) === family),
    });
    return { v4: stockIn('v4'), v6: stockIn('v6') };
  },
  restingOf: ({ v4, v6 }) =>
    [...v4.released, ...v6.released].map(([until, block]) => [
      until,
      { prefixes: [blockText(block)], gateways: [] },
    ]),
  pick: (stock, request, at): PrefixItem | Short => {
    const blocks: Block[] = [];
    const wanted: string[] = [];
    const untils: string[] = [];
    for (const family of FAMILY_NAMES) {
      const length = request[family];
      if (length === undefined) continue;
      const block = pickBlock(stock[family], length, at);
      if (block !== undefined) blocks.push(block);
      else {
        wanted.push(`${family}/${length}`);
        const next = stock[family].released.find(([until]) => until > at);
        if (next !== undefined) untils.push(next[0]);
      }
    }
    if (wanted.length === 0) return itemOfBlocks(blocks);
    const until = untils.toSorted().at(-1);
    return until === undefined ? { wanted } : { wanted, until };
  },
  refutes: ({ prefixes }, wanted) => {
    const [family, length] = wanted.split('/');
    return blocksOf(prefixes).some((block) => familyOf(block) === family && block[2] <= Number(length));
  },
  taken: (stock, item) =>
    inFamilies(stock, item, ({ free, released }, block) => ({
      free: withoutBlock(free, block),
      released: released.flatMap(([until, resting]) =>
        cutOut(resting, block).map((left): Rest => [until, left]),
      ),
    })),
  released: (stock, item, until) =>
    inFamilies(stock, item, ({ free, released }, block) =>
      until === undefined
        ? { free: withBlock(free, block), released }
        : { free, released: withRest(released, [until, block]) },
    ),
  fits: ({ ranges, reserved }, { prefixes }) => {
    const kept = blocksOf(reserved);
    const all = joined(ranges);
    return blocksOf(prefixes).every(
      (block) =>
        all.some((range) => isWithinBlock(block, range)) && kept.every((one) => areDisjoint(block, one)),
    );
  },
  itemOf: (data) => {
    const { prefixes, gateways } = data as PrefixItem;
    return { prefixes, gateways };
  },
  textOf: ({ prefixes }) => prefixes.join(' and '),
};

export const prefixPoolDecider: Decider<PrefixPoolState, PrefixPoolCommand, PrefixPoolEvent> =
  poolDecider(prefixRules);
