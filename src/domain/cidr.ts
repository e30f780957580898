/** A range of addresses in its one spelling: no host bits, IPv6 as RFC 5952 writes it. */
export type Cidr = { readonly family: 'ipv4' | 'ipv6'; readonly text: string };

/** `10.1.2.3/16` → `10.1.0.0/16`, `FD00:0::1/48` → `fd00::/48`; undefined for what is no range. */
export const parseCidr = (text: string): Cidr | undefined => {
  const [, address = '', length = ''] = /^([\d.a-f:]{2,45})\/(0|[1-9]\d{0,2})$/i.exec(text) ?? [];
  const bits = Number(length);
  const octets = ipv4Of(address);
  if (octets !== undefined && bits <= 32)
    return { family: 'ipv4', text: `${masked(octets, 8, bits).join('.')}/${bits}` };
  const groups = octets === undefined ? ipv6Of(address) : undefined;
  if (groups === undefined || bits > 128) return undefined;
  return { family: 'ipv6', text: `${writtenShort(masked(groups, 16, bits))}/${bits}` };
};

export const ipv4Of = (text: string): readonly number[] | undefined => {
  const octets = text.split('.');
  const fits =
    octets.length === 4 && octets.every((octet) => /^(?:0|[1-9]\d{0,2})$/.test(octet) && Number(octet) < 256);
  return fits ? octets.map(Number) : undefined;
};

const GROUPS = 8;

/** Eight groups of 16 bits; `::` stands for one zero group or more, the last two may be written as an IPv4 address. */
export const ipv6Of = (text: string): readonly number[] | undefined => {
  const [left = '', right, ...more] = text.split('::');
  if (more.length > 0) return undefined;
  const before = groupsOf(left, right === undefined);
  const behind = right === undefined ? [] : groupsOf(right, true);
  if (before === undefined || behind === undefined) return undefined;
  const missing = GROUPS - before.length - behind.length;
  if (right === undefined ? missing !== 0 : missing < 1) return undefined;
  return [...before, ...Array.from({ length: missing }, () => 0), ...behind];
};

const groupsOf = (text: string, last: boolean): readonly number[] | undefined => {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [i, part] of parts.entries()) {
    const octets = last && i === parts.length - 1 ? ipv4Of(part) : undefined;
    if (octets !== undefined) {
      const [a = 0, b = 0, c = 0, d = 0] = octets;
      groups.push(a * 256 + b, c * 256 + d);
    } else if (/^[\da-f]{1,4}$/i.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
};

/** Cuts what is behind the first `bits` bits of units of `width` bits. */
const masked = (units: readonly number[], width: number, bits: number): number[] =>
  units.map((unit, i) => {
    const cut = Math.min(width, Math.max(0, width * (i + 1) - bits));
    return Math.floor(unit / 2 ** cut) * 2 ** cut;
  });

/** Lower case, and `::` for the first of the longest runs of two zero groups or more. */
export const writtenShort = (groups: readonly number[]): string => {
  let longest = { from: 0, length: 1 };
  for (let from = 0; from < groups.length; from += 1) {
    let length = 0;
    while (groups[from + length] === 0) length += 1;
    if (length > longest.length) longest = { from, length };
  }
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(':');
  if (longest.length < 2) return hex(groups);
  return `${hex(groups.slice(0, longest.from))}::${hex(groups.slice(longest.from + longest.length))}`;
};
