import { own } from '../json-tools.ts';

/** How much of each dimension: `clusters`, `nodes/<host type id>`. */
export type Amounts = { readonly [dimension: string]: number };

/** What quotas limit. */
export const DIMENSIONS = [
  'clusters',
  'vlans',
  'subnets',
  'addresses',
  'vcpu',
  'memory_gib',
  'machines',
  'orders',
] as const;
/** Those that are limited for each class, as `nodes/<class>`. */
export const CLASSED = ['nodes', 'storage_gib', 'gpus'] as const;
export type Classed = (typeof CLASSED)[number];

/** Orders that are not carried out yet, of whatever kind. */
export const ORDERS = 'orders';

/** Undefined: no dimension has this name. */
export const dimensionOf = (
  name: string,
): { readonly dimension: string; readonly className?: string } | undefined => {
  const slash = name.indexOf('/');
  if (slash === -1) return DIMENSIONS.some((each) => each === name) ? { dimension: name } : undefined;
  const [dimension, className] = [name.slice(0, slash), name.slice(slash + 1)];
  return className !== '' && CLASSED.some((each) => each === dimension)
    ? { dimension, className }
    : undefined;
};

export const amountOf = (amounts: Amounts, dimension: string): number => own(amounts, dimension) ?? 0;

/** Without zeros, so that equal amounts look the same. */
export const summed = (left: Amounts, right: Amounts, sign: 1 | -1 = 1): Amounts => {
  const sums = new Map(Object.entries(left));
  for (const [dimension, amount] of Object.entries(right)) {
    const sum = (sums.get(dimension) ?? 0) + sign * amount;
    if (sum === 0) sums.delete(dimension);
    else sums.set(dimension, sum);
  }
  return Object.fromEntries(sums);
};

/** The larger amount of each dimension. */
export const covering = (left: Amounts, right: Amounts): Amounts => {
  const most = new Map(Object.entries(left));
  for (const [dimension, amount] of Object.entries(right))
    if (amount > (most.get(dimension) ?? 0)) most.set(dimension, amount);
  return Object.fromEntries(most);
};

/** More of some dimension than before. */
export const grows = (before: Amounts, after: Amounts): boolean =>
  Object.entries(after).some(([dimension, amount]) => amount > amountOf(before, dimension));
