/** Small deterministic hashes: for derived names, placement ties and jitter. Not for anything that must resist attack. */
const UTF8 = new TextEncoder();

const FNV32_OFFSET = 0x811c9dc5;
const FNV32_PRIME = 0x01000193;
const MASK64 = 0xffffffffffffffffn;
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** FNV-1a, 32 bits, of the UTF-8 bytes. */
export const fnv1a32 = (text: string): number => {
  let hash = FNV32_OFFSET;
  for (const byte of UTF8.encode(text)) hash = Math.imul(hash ^ byte, FNV32_PRIME) >>> 0;
  return hash;
};

/**
 * FNV-1a, 64 bits, of the UTF-8 bytes. The prime is 2^40 + 0x1b3. In two halves of 32 bits, the lower one multiplied in
 * two of 16, so that everything stays an integer of 32 bits: BigInt is sixty times slower, a floating-point product six.
 */
export const fnv1a64 = (text: string): bigint => {
  let high = 0xcbf29ce4;
  let low = 0x84222325;
  for (const byte of UTF8.encode(text)) {
    low ^= byte;
    const lower = (low & 0xffff) * 0x1b3;
    const upper = (low >>> 16) * 0x1b3 + (lower >>> 16);
    high = (Math.imul(high, 0x1b3) + (low << 8) + (upper >>> 16)) | 0;
    low = (upper << 16) | (lower & 0xffff);
  }
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
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
