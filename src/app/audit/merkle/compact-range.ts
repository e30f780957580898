import { assertSize, emptyRoot, isHash, nodeHash, type HashAt } from './hashing.ts';

/** A complete subtree: 2^level leaves, number `index` of its level. */
export type Subtree = { readonly level: number; readonly index: number };

/** Sizes go beyond 32 bits, so that no bit operators are used in this file. */
const isOdd = (value: number): boolean => value % 2 === 1;

/** The complete subtrees that cover the first `size` leaves, left to right; at most 53. */
export const compactRange = (size: number): Subtree[] => subtreesOf(0, size);

/**
 * The complete subtrees that cover [from, to), left to right. `from` must be a multiple of the smallest power of two
 * that is not below `to - from`, as the right halves of RFC 6962 trees are.
 */
const subtreesOf = (from: number, to: number): Subtree[] => {
  assertSize(from, 'start');
  assertSize(to, 'size');
  const found: Subtree[] = [];
  for (let level = 0, rest = to - from, end = to; rest > 0; level += 1, rest = Math.floor(rest / 2)) {
    if (!isOdd(rest)) continue;
    const width = 2 ** level;
    found.push({ level, index: end / width - 1 });
    end -= width;
  }
  return found.reverse();
};

/** Root over the hashes of a compact range of `size` leaves. Throws RangeError when there are not as many as needed. */
export const rootOfRange = (hashes: readonly Buffer[], size: number): Buffer => {
  const wanted = compactRange(size).length;
  if (hashes.length !== wanted || !hashes.every(isHash))
    throw new RangeError(`a compact range of ${size} leaves has ${wanted} hashes, not ${hashes.length}`);
  return folded(hashes);
};

const folded = (hashes: readonly Buffer[]): Buffer =>
  hashes.length === 0 ? emptyRoot() : hashes.reduceRight((right, left) => nodeHash(left, right));

/** The hashes of the compact range of the first `size` leaves. */
export const rangeHashes = (size: number, hashAt: HashAt): Buffer[] =>
  compactRange(size).map(({ level, index }) => hashAt(level, index));

/** Root over the first `size` leaves. */
export const rootAt = (size: number, hashAt: HashAt): Buffer => folded(rangeHashes(size, hashAt));

/** Root of the subtree over [from, to); see `subtreesOf` for what `from` may be. */
export const rootBetween = (from: number, to: number, hashAt: HashAt): Buffer =>
  folded(subtreesOf(from, to).map(({ level, index }) => hashAt(level, index)));

/** Called for each subtree that a new leaf completes, the leaf itself (level 0) first. */
export type OnSubtree = (level: number, index: number, hash: Buffer) => void;

/** A tree that only grows: O(log size) memory, whatever its size. */
export type GrowingRange = {
  readonly size: () => number;
  /** Adds the next leaf by its hash. */
  readonly append: (leaf: Buffer, onSubtree?: OnSubtree) => void;
  readonly root: () => Buffer;
  /** The compact range at the present size, left to right. */
  readonly hashes: () => Buffer[];
};

/**
 * Grows a tree leaf by leaf, from nothing or from the compact range of what is there already.
 * Throws RangeError when the hashes are not as many as a range of this size has.
 */
export const extendRange = (
  start: { readonly size: number; readonly hashes: readonly Buffer[] } = { size: 0, hashes: [] },
): GrowingRange => {
  rootOfRange(start.hashes, start.size);
  const hashes = [...start.hashes];
  let size = start.size;
  return {
    size: () => size,
    append: (leaf, onSubtree) => {
      if (!isHash(leaf)) throw new TypeError('a leaf is appended by its hash');
      let hash = leaf;
      let index = size;
      onSubtree?.(0, index, hash);
      for (let level = 0; isOdd(index); level += 1) {
        hash = nodeHash(hashes.pop() as Buffer, hash);
        index = (index - 1) / 2;
        onSubtree?.(level + 1, index, hash);
      }
      hashes.push(hash);
      size += 1;
    },
    root: () => folded(hashes),
    hashes: () => [...hashes],
  };
};

/** Root over leaves given by their hashes. */
export const rootOf = (leaves: Iterable<Buffer>): Buffer => {
  const range = extendRange();
  for (const leaf of leaves) range.append(leaf);
  return range.root();
};
