/**
 * Leaves by the id of their event. Ids are random: in one index over all of them every new leaf touches a page of its own,
 * which is then written twice at its full size. So the index is by blocks of leaves, of which only the newest grows, and
 * who looks for an id looks into each block: some microseconds for each 32,768 events.
 */
const BLOCK_BITS = 15;

/** The expression of the index, for statements: SQLite uses the index for this spelling alone. */
export const ID_BLOCK = `idx >> ${BLOCK_BITS}`;

/** Blocks of a tree of so many leaves. */
export const blocksOf = (size: number): number => Math.ceil(size / 2 ** BLOCK_BITS);

/**
 * The first leaf from `from` on that `look` finds in its block; `size`: leaves of the tree.
 * `look` is given the number of the block.
 */
export const firstInBlocks = (
  from: number,
  size: number,
  look: (block: number) => number | undefined,
): number | undefined => {
  for (let block = Math.floor(from / 2 ** BLOCK_BITS); block < blocksOf(size); block += 1) {
    const found = look(block);
    if (found !== undefined) return found;
  }
  return undefined;
};
