import { ipv4Of, ipv6Of, parseCidr, writtenShort } from './cidr.ts';

/**
 * Ranges of addresses and the addresses in them, as numbers: an IPv6 range is never enumerated. Network and
 * broadcast address of an IPv4 range are not given out (OSAC), but for ranges
 * of one or two addresses, which have none (RFC 3021). All of an IPv6 range is.
 */
export type Range = {
  readonly family: 'ipv4' | 'ipv6';
  /** Without host bits. */
  readonly text: string;
  /** The whole range. */
  readonly from: Address;
  readonly to: Address;
  /** What is given out of it. */
  readonly first: Address;
  readonly last: Address;
};
/** All its bits in hexadecimal: such texts sort as their numbers do, which those of people do not. */
export type Address = string;

export const parseRange = (text: string): Range | undefined => {
  const cidr = parseCidr(text);
  if (cidr === undefined) return undefined;
  const [network = '', length = ''] = cidr.text.split('/');
  const from = parseAddress(network) ?? '';
  const size = 1n << BigInt(from.length * 4 - Number(length));
  const to = moved(from, size - 1n);
  const edge = cidr.family === 'ipv4' && size > 2n ? 1n : 0n;
  return { ...cidr, from, to, first: moved(from, edge), last: moved(to, -edge) };
};

export const parseAddress = (text: string): Address | undefined => {
  const octets = ipv4Of(text);
  return octets === undefined ? hexOf(ipv6Of(text), 4) : hexOf(octets, 2);
};

const hexOf = (units: readonly number[] | undefined, width: number): Address | undefined =>
  units?.map((unit) => unit.toString(16).padStart(width, '0')).join('');

/** IPv6 as RFC 5952 writes it. */
export const addressText = (address: Address): string => {
  const isShort = address.length === 8;
  const units = address.match(isShort ? /../g : /..../g)?.map((unit) => Number.parseInt(unit, 16)) ?? [];
  return isShort ? units.join('.') : writtenShort(units);
};

const numberOf = (address: Address): bigint => BigInt(`0x${address}`);

/** The address so many behind it. */
export const moved = (address: Address, by: bigint): Address =>
  (numberOf(address) + by).toString(16).padStart(address.length, '0');

export const sizeOf = (ranges: readonly Range[]): bigint =>
  ranges.reduce((sum, { first, last }) => sum + numberOf(last) - numberOf(first) + 1n, 0n);

/** True when the address is one that may be given out. */
export const holds = (ranges: readonly Range[], address: Address): boolean =>
  ranges.some(({ first, last }) => isWithin(address, first, last));

export const isWithin = (address: Address, first: Address, last: Address): boolean =>
  address.length === first.length && first <= address && address <= last;

/** In numeric order; what is no range is left out. */
export const parseRanges = (texts: readonly string[]): readonly Range[] =>
  texts
    .flatMap((text) => parseRange(text) ?? [])
    .sort((left, right) => (left.from < right.from ? -1 : left.from > right.from ? 1 : 0));

/** Free addresses, from the first to the last of each gap, in order: no search walks over what is given. Plain JSON. */
export type Gaps = readonly (readonly [first: Address, last: Address])[];

export const gapsOf = (ranges: readonly Range[]): Gaps => ranges.map(({ first, last }) => [first, last]);

/** Number of the first entry that is not before; the entries are sorted. */
export const firstNot = <Entry>(entries: readonly Entry[], isBefore: (entry: Entry) => boolean): number => {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const entry = entries[middle];
    if (entry !== undefined && isBefore(entry)) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** Without an address; the same gaps where it is in none. */
export const withoutAddress = (gaps: Gaps, address: Address): Gaps => {
  const at = firstNot(gaps, ([, last]) => last < address);
  const [first, last] = gaps[at] ?? [];
  if (first === undefined || last === undefined || address < first) return gaps;
  const below: Gaps = first < address ? [[first, moved(address, -1n)]] : [];
  const above: Gaps = address < last ? [[moved(address, 1n), last]] : [];
  return gaps.toSpliced(at, 1, ...below, ...above);
};

/** With an address that is in none of them. */
export const withAddress = (gaps: Gaps, address: Address): Gaps =>
  gaps.toSpliced(
    firstNot(gaps, ([, last]) => last < address),
    0,
    [address, address],
  );

const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'].flatMap(
  (text) => parseRange(text) ?? [],
);

/** Addresses of private use (RFC 1918, RFC 6598, RFC 4193) are not reached from the internet. */
export const isPrivate = ({ from, to }: Range): boolean =>
  PRIVATE.some((range) => isWithin(from, range.from, range.to) && to <= range.to);
