import type { MemoryTree } from '../../../src/app/audit/merkle/memory-tree.ts';
import {
  encodeEntries,
  TILE_WIDTH,
  tilePath,
  tileWidthAt,
  type TileAddress,
} from '../../../src/app/audit/merkle/tiles.ts';

/** All hash tiles of a tree of `size` leaves, level by level. */
export function* tilesOf(size: number): Generator<TileAddress & { level: number }> {
  for (let level = 0; Math.floor(size / TILE_WIDTH ** level) > 0; level += 1)
    for (let index = 0, width; (width = tileWidthAt(level, index, size)) > 0; index += 1)
      yield { level, index, width };
}

/** A tree and its entries as the files of C2SP tlog-tiles, by path. */
export const tileFiles = (tree: MemoryTree, entries: readonly Buffer[]): Map<string, Buffer> => {
  const files = new Map<string, Buffer>();
  for (const { level, index, width } of tilesOf(tree.size())) {
    const hashes = Array.from({ length: width }, (_, at) => tree.hashAt(8 * level, TILE_WIDTH * index + at));
    files.set(tilePath({ level, index, width }), Buffer.concat(hashes));
    if (level > 0) continue;
    const here = entries.slice(TILE_WIDTH * index, TILE_WIDTH * index + width);
    files.set(tilePath({ level: 'entries', index, width }), encodeEntries(here));
  }
  return files;
};
