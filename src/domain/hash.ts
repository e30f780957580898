/** Small deterministic hashes: for derived names, placement ties and jitter. Not for anything that must resist attack. */
const FNV32_OFFSET = 0x811c9dc5;
const FNV32_PRIME = 0x01000193;
const MASK64 = 0xffffffffffffffffn;
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** FNV-1a, 32 bits, of the UTF-8 bytes. */
export const fnv1a32 = (text: string): number => {
  let hash = FNV32_OFFSET;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, FNV32_PRIME) >>> 0;
  return hash;
};

/**
 * FNV-1a, 64 bits, of the UTF-8 bytes. In two halves of 32 bits, because BigInt is ten times slower; the prime is
 * 2^40 + 0x1b3, so that every product stays below 2^53.
 */
export const fnv1a64 = (text: string): bigint => {
  let high = 0xcbf29ce4;
  let low = 0x84222325;
  for (const byte of new TextEncoder().encode(text)) {
    low = (low ^ byte) >>> 0;
    const product = low * 0x1b3;
    high = (high * 0x1b3 + Math.floor(product / 2 ** 32) + low * 2 ** 8) % 2 ** 32;
    low = product % 2 ** 32;
  }
  return (BigInt(high) << 32n) | BigInt(low);
};

export const hex64 = (value: bigint): string => value.toString(16).padStart(16, '0');

/** 13 lower-case base32 digits: a 64-bit value without loss, fit for a DNS label. */
export const base32 = (value: bigint): string => {
  let text = '';
  for (let rest = value, digit = 0; digit < 13; digit += 1, rest >>= 5n) {
    text = (BASE32[Number(rest & 31n)] ?? '') + text;
  }
  return text;
};

/** A number in [0, 1) that depends on the text only; every bit of the text counts. */
export const unitInterval = (text: string): number => Number(mix(fnv1a64(text)) >> 11n) / 2 ** 53;

/** Finaliser of MurmurHash3: FNV alone leaves the high bits of similar texts alike. */
export const mix = (value: bigint): bigint => {
  let hash = value;
  hash = ((hash ^ (hash >> 33n)) * 0xff51afd7ed558ccdn) & MASK64;
  hash = ((hash ^ (hash >> 33n)) * 0xc4ceb9fe1a85ec53n) & MASK64;
  return hash ^ (hash >> 33n);
};
