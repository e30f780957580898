import { rootAt, rootOf } from '../merkle/compact-range.ts';
import { HASH_BYTES } from '../merkle/hashing.ts';
import {
  decodeEntries,
  hashAtOfTiles,
  leavesOf,
  parseTilePath,
  TILE_WIDTH,
  tilePath,
  tileWidthAt,
  type TileAddress,
} from '../merkle/tiles.ts';
import type { Finding } from './findings.ts';

/**
 * Bytes of a tile or entry bundle by its path (C2SP tlog-tiles); undefined when there is none. `fits` says whether bytes are
 * the ones that were signed, so that whoever has two copies gives the right one; absent while that is not known.
 */
export type ReadTile = (
  path: string,
  fits?: (bytes: Uint8Array) => boolean,
) => Promise<Uint8Array | undefined> | Uint8Array | undefined;

/** As many hashes of a tile that is kept as its path says; it may have more by now. */
export const hashTiles =
  (tile: (level: number, index: number) => Uint8Array | undefined) =>
  (path: string): Uint8Array | undefined => {
    const address = parseTilePath(path);
    if (address === undefined || address.level === 'entries') return undefined;
    return tile(address.level, address.index)?.subarray(0, address.width * HASH_BYTES);
  };

const hashesIn = (tile: Uint8Array): Buffer[] =>
  Array.from({ length: Math.floor(tile.length / HASH_BYTES) }, (_, at) =>
    Buffer.from(tile.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES)),
  );

export type HashTile = TileAddress & { readonly level: number };

/** A tile, with as many hashes as it has at this size of the tree. */
export const addressAt = (level: number, index: number, size: number): HashTile => ({
  level,
  index,
  width: tileWidthAt(level, index, size),
});

/** The partial tiles of a tree, one of each level at most: they alone make its root. */
export const edgeOf = (size: number): HashTile[] => {
  const edge: HashTile[] = [];
  for (let level = 0, rest = size; rest > 0; level += 1, rest = Math.floor(rest / TILE_WIDTH))
    if (rest % TILE_WIDTH > 0) edge.push(addressAt(level, Math.floor(rest / TILE_WIDTH), size));
  return edge;
};

/** The root that partial tiles make, by their level; undefined when one is missing. */
export const rootOfEdge = (
  size: number,
  tiles: ReadonlyMap<number, readonly Buffer[]>,
): Buffer | undefined => {
  if (!edgeOf(size).every(({ level, width }) => tiles.get(level)?.length === width)) return undefined;
  const bytes = new Map([...tiles].map(([level, hashes]) => [level, Buffer.concat(hashes)]));
  return rootAt(
    size,
    hashAtOfTiles((level) => bytes.get(level)),
  );
};

const placesOf = (tile: TileAddress): readonly [number, number] => {
  const { from, to } = leavesOf(tile);
  return [from, to];
};

/**
 * Hashes of one tile. A partial tile that is gone may have been replaced by the full one, which begins with it.
 *
 * @param expected the hash that the tile above, or the root, has for a full tile; undefined: it is not known.
 * @param tell called when there is no tile that could be looked at.
 */
export const readHashes = async (
  read: ReadTile,
  address: HashTile,
  expected: Buffer | undefined,
  tell: (finding: Finding) => void,
): Promise<Buffer[] | undefined> => {
  const wanted = address.width * HASH_BYTES;
  const fits = (bytes: Uint8Array): boolean =>
    bytes.length === wanted && expected !== undefined && rootOf(hashesIn(bytes)).equals(expected);
  const file = tilePath(address);
  const bytes =
    (await read(file, expected === undefined ? undefined : fits)) ??
    (await fullOne(read, address))?.subarray(0, wanted);
  if (bytes?.length === wanted) return hashesIn(bytes);
  tell({
    code: bytes === undefined ? 'missing-file' : 'malformed',
    file,
    place: placesOf(address),
    message:
      bytes === undefined ? 'this tile is missing' : `this tile has ${bytes.length} bytes, not ${wanted}`,
  });
  return undefined;
};

/** Entries of a bundle; see `readHashes`. `fits`: whether they are what their tile says, as far as that is known. */
export const readEntries = async (
  read: ReadTile,
  address: TileAddress,
  fits: ((entries: readonly Buffer[]) => boolean) | undefined,
  tell: (finding: Finding) => void,
): Promise<readonly Buffer[] | undefined> => {
  const { width } = address;
  const file = tilePath(address);
  const bytes = await read(file, fits && ((found) => fits(decodedEntries(found) ?? [])));
  const entries = decodedEntries(bytes ?? (await fullOne(read, address)));
  if (bytes === undefined ? entries !== undefined && entries.length >= width : entries?.length === width)
    return entries?.slice(0, width);
  const missing = bytes === undefined && entries === undefined;
  tell({
    code: missing ? 'missing-file' : 'malformed',
    file,
    place: placesOf(address),
    message: missing ? 'these entries are missing' : `these are not ${width} entries`,
  });
  return entries?.slice(0, width);
};

const decodedEntries = (bytes: Uint8Array | undefined): Buffer[] | undefined =>
  bytes === undefined ? undefined : decodeEntries(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));

const fullOne = async (read: ReadTile, address: TileAddress): Promise<Uint8Array | undefined> =>
  address.width === TILE_WIDTH ? undefined : await read(tilePath({ ...address, width: TILE_WIDTH }));

/** `orAbove`: it cannot be told whether it is the tile, or what the one above says of it. */
export const changedTile = (tile: HashTile, orAbove = false): Finding => ({
  code: 'leaves',
  file: tilePath(tile),
  place: placesOf(tile),
  message: orAbove
    ? 'this tile, or the hash for it in the tile above, was changed'
    : 'this tile is not the one that was signed',
});
