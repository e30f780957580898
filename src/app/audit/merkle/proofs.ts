import { rootBetween } from './compact-range.ts';
import { assertSize, emptyRoot, isHash, nodeHash, type HashAt } from './hashing.ts';

/** Inclusion and consistency proofs of RFC 6962 §2.1; verification as in RFC 9162 §2.1.3.2 and §2.1.4.2. */

/** The largest power of two below `size` (from 2). */
const splitOf = (size: number): number => {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
};

/** Audit path of leaf `index` in the tree of `size` leaves, the lowest hash first. Throws RangeError outside of it. */
export const inclusionPath = (index: number, size: number, hashAt: HashAt): Buffer[] => {
  assertSize(index, 'index');
  assertSize(size, 'size');
  if (index >= size) throw new RangeError(`a tree of ${size} leaves has no leaf ${index}`);
  const path: Buffer[] = [];
  let [from, to] = [0, size];
  while (to - from > 1) {
    const middle = from + splitOf(to - from);
    if (index < middle) {
      path.push(rootBetween(middle, to, hashAt));
      to = middle;
    } else {
      path.push(rootBetween(from, middle, hashAt));
      from = middle;
    }
  }
  return path.reverse();
};

export type Inclusion = {
  readonly index: number;
  readonly size: number;
  readonly leafHash: Buffer;
  readonly path: readonly Buffer[];
};

const isOdd = (value: number): boolean => value % 2 === 1;
const half = (value: number): number => Math.floor(value / 2);

/** A path beside which a tree is climbed: where the node stands in its level, and where the last node does. */
const climbing = (index: number, last: number) => {
  let [node, end] = [index, last];
  return {
    atRoot: () => end === 0,
    /** The next hash of the path stands left of the node. */
    leftNext: () => isOdd(node) || node === end,
    up: (left: boolean) => {
      // A node that is the last of its level and has no right neighbour is lifted unchanged.
      if (left) while (!isOdd(node) && node !== 0) [node, end] = [half(node), half(end)];
      [node, end] = [half(node), half(end)];
    },
  };
};

/** The root that a leaf and its path lead to; undefined when index, size and path do not fit each other. */
export const rootFromInclusion = ({ index, size, leafHash, path }: Inclusion): Buffer | undefined => {
  if (!isIndex(index) || !isIndex(size) || index >= size) return undefined;
  if (!isHash(leafHash) || !path.every(isHash)) return undefined;
  const climb = climbing(index, size - 1);
  let root = leafHash;
  for (const hash of path) {
    if (climb.atRoot()) return undefined;
    const left = climb.leftNext();
    root = left ? nodeHash(hash, root) : nodeHash(root, hash);
    climb.up(left);
  }
  return climb.atRoot() ? root : undefined;
};

export const verifyInclusion = (proof: Inclusion & { readonly root: Buffer }): boolean =>
  rootFromInclusion(proof)?.equals(proof.root) ?? false;

/** Proof that the tree of `from` leaves is the beginning of the one of `to` leaves. Throws RangeError when from > to. */
export const consistencyPath = (from: number, to: number, hashAt: HashAt): Buffer[] => {
  assertSize(from, 'size');
  assertSize(to, 'size');
  if (from > to) throw new RangeError(`a tree of ${from} leaves is not the beginning of one of ${to}`);
  if (from === 0 || from === to) return [];
  const path: Buffer[] = [];
  let [start, end] = [0, to];
  while (from !== end) {
    const middle = start + splitOf(end - start);
    if (from <= middle) {
      path.push(rootBetween(middle, end, hashAt));
      end = middle;
    } else {
      path.push(rootBetween(start, middle, hashAt));
      start = middle;
    }
  }
  // The subtree that both trees share: whoever checks knows it when it is the whole of the smaller tree.
  if (start > 0) path.push(rootBetween(start, end, hashAt));
  return path.reverse();
};

export type Consistency = {
  readonly from: number;
  readonly to: number;
  readonly fromRoot: Buffer;
  readonly toRoot: Buffer;
  readonly path: readonly Buffer[];
};

/** Whether the larger tree begins with the smaller one. */
export const verifyConsistency = ({ from, to, fromRoot, toRoot, path }: Consistency): boolean => {
  if (!isIndex(from) || !isIndex(to) || from > to) return false;
  if (!isHash(fromRoot) || !isHash(toRoot) || !path.every(isHash)) return false;
  if (from === to) return path.length === 0 && fromRoot.equals(toRoot);
  if (from === 0) return path.length === 0 && fromRoot.equals(emptyRoot());
  const [first, ...rest] = isPowerOfTwo(from) ? [fromRoot, ...path] : path;
  if (first === undefined) return false;
  let [node, last] = [from - 1, to - 1];
  while (isOdd(node)) [node, last] = [half(node), half(last)];
  const climb = climbing(node, last);
  let [smaller, larger] = [first, first];
  for (const hash of rest) {
    if (climb.atRoot()) return false;
    const left = climb.leftNext();
    if (left) [smaller, larger] = [nodeHash(hash, smaller), nodeHash(hash, larger)];
    else larger = nodeHash(larger, hash);
    climb.up(left);
  }
  return climb.atRoot() && smaller.equals(fromRoot) && larger.equals(toRoot);
};

const isIndex = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

const isPowerOfTwo = (value: number): boolean => {
  let rest = value;
  while (!isOdd(rest)) rest /= 2;
  return rest === 1;
};
