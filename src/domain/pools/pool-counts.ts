import { heldIn, type Pool } from './pool.ts';
import { blocksOf, familyOf, FAMILY_NAMES, sizeOfBlock, type Block } from './prefix-blocks.ts';
import type { PrefixDefinition, PrefixItem, PrefixStock } from './prefix-pool.ts';
import type { VlanDefinition, VlanItem, VlanStock } from './vlan-pool.ts';
import { vlanIdsOf } from './vlan-pool.ts';

/** Of VLANs, or of the addresses of one family. */
export type PoolCounts = {
  readonly family?: 'v4' | 'v6';
  readonly size: bigint;
  readonly free: bigint;
  readonly used: bigint;
  readonly quarantined: bigint;
};

/** Less than 5 % of a pool can be given out now. */
export const isUnderPressure = ({ size, free }: Pick<PoolCounts, 'size' | 'free'>): boolean =>
  free * 20n < size;

export const vlanCounts = (
  pool: Pool<VlanDefinition, VlanItem, VlanStock>,
  at: string,
): readonly PoolCounts[] => {
  const size = BigInt(vlanIdsOf(pool.definition).length);
  const used = BigInt(pool.count);
  const quarantined = BigInt(pool.stock.released.filter(([until]) => until > at).length);
  return [{ size, used, quarantined, free: size - used - quarantined }];
};

const sum = (blocks: readonly Block[]): bigint =>
  blocks.reduce((total, block) => total + sizeOfBlock(block), 0n);

export const prefixCounts = (
  pool: Pool<PrefixDefinition, PrefixItem, PrefixStock>,
  at: string,
): readonly PoolCounts[] => {
  const ranges = blocksOf(pool.definition.ranges);
  const held = heldIn(pool).flatMap(({ allocation }) => blocksOf(allocation.prefixes));
  return FAMILY_NAMES.filter((family) => ranges.some((range) => familyOf(range) === family)).map((family) => {
    const { free, released } = pool.stock[family];
    const used = sum(held.filter((block) => familyOf(block) === family));
    const quarantined = sum(released.filter(([until]) => until > at).map(([, block]) => block));
    const rested = sum(released.filter(([until]) => until <= at).map(([, block]) => block));
    const left = sum(free) + rested;
    return { family, size: left + used + quarantined, free: left, used, quarantined };
  });
};
