import { compactRange, extendRange } from '../../../src/app/audit/merkle/compact-range.ts';
import { isHash } from '../../../src/app/audit/merkle/hashing.ts';

export type RangeProof = {
  /** Size of the tree before the first of `leaves`. */
  readonly from: number;
  /** Compact range at `from`. */
  readonly hashes: readonly Buffer[];
  /** Hashes of all leaves from `from` on, in their order. */
  readonly leaves: Iterable<Buffer>;
  /** Root behind the last of them. */
  readonly root: Buffer;
};

/** Whether these are all the leaves between two sizes of the tree: none missing, none added, none moved. */
export const verifyRange = ({ from, hashes, leaves, root }: RangeProof): boolean => {
  if (!Number.isSafeInteger(from) || from < 0 || !hashes.every(isHash)) return false;
  if (hashes.length !== compactRange(from).length) return false;
  const range = extendRange({ size: from, hashes });
  for (const leaf of leaves) {
    if (!isHash(leaf)) return false;
    range.append(leaf);
  }
  return range.root().equals(root);
};
