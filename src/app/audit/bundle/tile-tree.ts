import type { Checkpoint } from '../merkle/checkpoint.ts';
import { compactRange, rootAt, rootOf } from '../merkle/compact-range.ts';
import { hashAtOfTiles, TILE_WIDTH, tileOfNode, tileWidthAt } from '../merkle/tiles.ts';
import type { Finding } from './findings.ts';
import { addressAt, changedTile, edgeOf, readHashes, rootOfEdge, type ReadTile } from './tile-reading.ts';

/** A signed tree as it is read from tiles: nothing comes out of it that does not lead to its root. */
export type TileTree = {
  /** Hashes of a tile; undefined when it is missing or not the one that was signed. */
  readonly tile: (level: number, index: number) => Promise<readonly Buffer[] | undefined>;
  /** Root that the tree had at an earlier size; undefined when tiles that show it are missing or wrong. */
  readonly rootAt: (size: number) => Promise<Buffer | undefined>;
};

/** Tiles that are read as they are needed, from the top. `tell` is called for those that are missing or wrong. */
export const openTileTree = (
  { size, root }: Pick<Checkpoint, 'size' | 'root'>,
  read: ReadTile,
  tell: (finding: Finding) => void,
): TileTree => {
  let partial: Promise<ReadonlyMap<number, readonly Buffer[]> | undefined> | undefined;
  const readEdge = async (): Promise<ReadonlyMap<number, readonly Buffer[]> | undefined> => {
    const tiles = new Map<number, readonly Buffer[]>();
    for (const tile of edgeOf(size)) {
      const hashes = await readHashes(read, tile, undefined, tell);
      if (hashes === undefined) return undefined;
      tiles.set(tile.level, hashes);
    }
    if (rootOfEdge(size, tiles)?.equals(root) === true) return tiles;
    tell({ code: 'root', place: [0, size], message: 'the tiles do not lead to the root that was signed' });
    return undefined;
  };
  const edge = (): typeof partial => (partial ??= readEdge());

  const tile: TileTree['tile'] = async (level, index) => {
    const address = addressAt(level, index, size);
    if (address.width < TILE_WIDTH) return address.width === 0 ? undefined : (await edge())?.get(level);
    const above = await tile(level + 1, Math.floor(index / TILE_WIDTH));
    const expected = above?.[index % TILE_WIDTH];
    if (expected === undefined) return undefined;
    const hashes = await readHashes(read, address, expected, tell);
    if (hashes === undefined || rootOf(hashes).equals(expected)) return hashes;
    tell(changedTile(address));
    return undefined;
  };

  return {
    tile,
    rootAt: async (earlier) => {
      const tiles = new Map<string, Buffer>();
      for (const { level, index } of compactRange(earlier)) {
        const place = tileOfNode(level, index);
        const key = `${place.level}/${place.index}`;
        if (tiles.has(key)) continue;
        const hashes = await tile(place.level, place.index);
        if (hashes === undefined) return undefined;
        tiles.set(key, Buffer.concat(hashes));
      }
      return rootAt(
        earlier,
        hashAtOfTiles((level, index) => tiles.get(`${level}/${index}`)),
      );
    },
  };
};

/**
 * The first leaf of which two trees differ below the size of the smaller one; undefined when they do not, or when that
 * cannot be told. One tile of each level is read.
 */
export const firstDifference = async (
  one: Pick<TileTree, 'tile'>,
  other: Pick<TileTree, 'tile'>,
  size: number,
): Promise<number | undefined> => {
  let level = 0;
  while (size >= TILE_WIDTH ** (level + 1)) level += 1;
  for (let index = 0; level >= 0; level -= 1) {
    const width = tileWidthAt(level, index, size);
    const [left, right] = [await one.tile(level, index), await other.tile(level, index)];
    if (left === undefined || right === undefined) return undefined;
    let at = 0;
    while (at < width && left[at]?.equals(right[at] ?? Buffer.alloc(0)) === true) at += 1;
    if (level === 0) return at < width ? index * TILE_WIDTH + at : undefined;
    index = index * TILE_WIDTH + at;
  }
  return undefined;
};
