import { addressText, moved } from '../ranges.ts';
import { bitsOf, sizeOfBlock, type Block } from './prefix-blocks.ts';

/** Anycast ids at the end of an IPv6 subnet (RFC 2526). */
const ANYCAST = 128n;

/**
 * What hosts of a prefix may have. IPv4: not network and broadcast, but for /31 (RFC 3021) and /32. IPv6: not the
 * subnet-router anycast address (RFC 4291) and the anycast ids of RFC 2526, but for /127 (RFC 6164), /128 and those too
 * small to have such ids. The first of them is the gateway, where there are two at least.
 */
export const hostsOf = (
  block: Block,
): { readonly first: string; readonly last: string; readonly gateway?: string; readonly usable: bigint } => {
  const [from, to] = block;
  const size = sizeOfBlock(block);
  const isV4 = bitsOf(block) === 32;
  const isLink = size <= 2n;
  const below = isLink ? 0n : 1n;
  const above = isLink ? 0n : isV4 ? 1n : size > 2n * ANYCAST ? ANYCAST : 0n;
  const hosts = size - below - above;
  const first = addressText(moved(from, below));
  return {
    first,
    last: addressText(moved(to, -above)),
    ...(hosts > 1n ? { gateway: first } : {}),
    usable: hosts > 1n ? hosts - 1n : hosts,
  };
};
