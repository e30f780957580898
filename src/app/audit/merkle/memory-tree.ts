import { extendRange, rootAt } from './compact-range.ts';
import type { HashAt } from './hashing.ts';

/** A whole tree in memory, for small ones: that of the tenants, and those of tests. */
export type MemoryTree = {
  readonly size: () => number;
  readonly append: (leaf: Buffer) => void;
  readonly hashAt: HashAt;
  readonly rootAt: (size: number) => Buffer;
};

export const createMemoryTree = (leaves: Iterable<Buffer> = []): MemoryTree => {
  const levels: Buffer[][] = [];
  const range = extendRange();
  const append = (leaf: Buffer): void =>
    range.append(leaf, (level, _index, hash) => (levels[level] ??= []).push(hash));
  for (const leaf of leaves) append(leaf);
  const hashAt: HashAt = (level, index) => {
    const hash = levels[level]?.[index];
    if (hash === undefined) throw new RangeError(`subtree ${index} of level ${level} is not complete yet`);
    return hash;
  };
  return { size: range.size, append, hashAt, rootAt: (size) => rootAt(size, hashAt) };
};
