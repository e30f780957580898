import { ipv4Of, ipv6Of, parseCidr, writtenShort } from '../cidr.ts';

/**
 * Ranges of addresses and the addresses in them, as numbers: an IPv6 range is never enumerated. Network and
 * broadcast address of an IPv4 range are not given out (osac-api-run.md §2 External IP pools), but for ranges
 * of one or two addresses, which have none (RFC 3021). All of an IPv6 range is.
 */
export type Family = 'ipv4' | 'ipv6';
export type Range = {
  readonly family: Family;
  /** Without host bits. */
  readonly text: string;
  /** The whole range. */
  readonly from: bigint;
  readonly to: bigint;
  /** What is given out of it. */
  readonly first: bigint;
  readonly last: bigint;
};
export type Address = { readonly family: Family; readonly value: bigint };

const BITS = { ipv4: 32, ipv6: 128 } as const;

export const parseRange = (text: string): Range | undefined => {
  const cidr = parseCidr(text);
  if (cidr === undefined) return undefined;
  const [network = '', length = ''] = cidr.text.split('/');
  const from = parseAddress(network)?.value ?? 0n;
  const size = 1n << BigInt(BITS[cidr.family] - Number(length));
  const to = from + size - 1n;
  const edge = cidr.family === 'ipv4' && size > 2n ? 1n : 0n;
  return { ...cidr, from, to, first: from + edge, last: to - edge };
};

export const parseAddress = (text: string): Address | undefined => {
  const octets = ipv4Of(text);
  if (octets !== undefined) return { family: 'ipv4', value: numberOf(octets, 8n) };
  const groups = ipv6Of(text);
  return groups === undefined ? undefined : { family: 'ipv6', value: numberOf(groups, 16n) };
};

const numberOf = (units: readonly number[], width: bigint): bigint =>
  units.reduce((sum, unit) => (sum << width) + BigInt(unit), 0n);

/** IPv6 as RFC 5952 writes it. */
export const addressText = ({ family, value }: Address): string =>
  family === 'ipv4' ? unitsOf(value, 4, 8n).join('.') : writtenShort(unitsOf(value, 8, 16n));

const unitsOf = (value: bigint, count: number, width: bigint): number[] =>
  Array.from({ length: count }, (_, i) =>
    Number((value >> (width * BigInt(count - 1 - i))) & ((1n << width) - 1n)),
  );

export const sizeOf = (ranges: readonly Range[]): bigint =>
  ranges.reduce((sum, { first, last }) => sum + (last - first + 1n), 0n);

/** True when the address is one that may be given out. */
export const holds = (ranges: readonly Range[], { family, value }: Address): boolean =>
  ranges.some((range) => range.family === family && range.first <= value && value <= range.last);

/** In numeric order; what is no range is left out. */
export const parseRanges = (texts: readonly string[]): readonly Range[] =>
  texts
    .flatMap((text) => parseRange(text) ?? [])
    .sort((left, right) => (left.from < right.from ? -1 : left.from > right.from ? 1 : 0));

/** Lowest address from this number on that is not busy; undefined: all are. */
export const lowestFrom = (
  ranges: readonly Range[],
  from: bigint,
  isBusy: (text: string) => boolean,
): Address | undefined => {
  for (const { family, first, last } of ranges)
    for (let value = first > from ? first : from; value <= last; value += 1n)
      if (!isBusy(addressText({ family, value }))) return { family, value };
  return undefined;
};

const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'].flatMap(
  (text) => parseRange(text) ?? [],
);

/** Addresses of private use (RFC 1918, RFC 6598, RFC 4193) are not reached from the internet. */
export const isPrivate = ({ family, from, to }: Range): boolean =>
  PRIVATE.some((range) => range.family === family && range.from <= from && to <= range.to);
