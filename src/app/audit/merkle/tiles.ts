import { extendRange } from './compact-range.ts';
import { assertSize, HASH_BYTES, type HashAt } from './hashing.ts';

/** C2SP tlog-tiles: trees as files of 256 hashes each. Paths, the way from tiles to hashes, and entry bundles. */
export const TILE_HEIGHT = 8;
export const TILE_WIDTH = 2 ** TILE_HEIGHT;
const MOST_LEVELS = 63;

export type TileAddress = {
  /** Tiles of level L hold hashes of subtrees of 256^L leaves; `entries` holds the leaves themselves. */
  readonly level: number | 'entries';
  readonly index: number;
  /** Hashes (or entries) in it: 256, or fewer at the right edge. */
  readonly width: number;
};

/** `tile/<L>/<N>[.p/<W>]` or `tile/entries/<N>[.p/<W>]`. Throws RangeError for what is no tile. */
export const tilePath = ({ level, index, width }: TileAddress): string => {
  assertSize(index, 'tile');
  if (level !== 'entries' && !(Number.isInteger(level) && level >= 0 && level <= MOST_LEVELS))
    throw new RangeError(`unknown level of tiles: ${level}`);
  if (!Number.isInteger(width) || width < 1 || width > TILE_WIDTH)
    throw new RangeError(`a tile has 1 to ${TILE_WIDTH} hashes, not ${width}`);
  const groups = String(index)
    .padStart(Math.ceil(String(index).length / 3) * 3, '0')
    .match(/\d{3}/g) as string[];
  const path = groups.map((group, at) => (at === groups.length - 1 ? group : `x${group}`)).join('/');
  return `tile/${level}/${path}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
};

const PATH = /^tile\/(entries|0|[1-9]\d?)\/((?:x\d{3}\/){0,5})(\d{3})(?:\.p\/([1-9]\d{0,2}))?$/;

/** Undefined for every text that `tilePath` does not write. */
export const parseTilePath = (path: string): TileAddress | undefined => {
  const [, level = '', groups = '', last = '', width = String(TILE_WIDTH)] = PATH.exec(path) ?? [];
  if (level === '') return undefined;
  const address: TileAddress = {
    level: level === 'entries' ? level : Number(level),
    index: Number(groups.replaceAll(/[x/]/g, '') + last),
    width: Number(width),
  };
  if (address.level !== 'entries' && address.level > MOST_LEVELS) return undefined;
  if (address.width > TILE_WIDTH || !Number.isSafeInteger(address.index)) return undefined;
  // `x000/005` and `.p/256` are other spellings of a path that there is already.
  return tilePath(address) === path ? address : undefined;
};

/** Hashes that a tile of this level and index has in a tree of `size` leaves: 0 to 256. */
export const tileWidthAt = (level: number, index: number, size: number): number =>
  Math.min(TILE_WIDTH, Math.max(0, Math.floor(size / TILE_WIDTH ** level) - index * TILE_WIDTH));

/** The leaves that a tile or bundle is over: [from, to). */
export const leavesOf = ({
  level,
  index,
  width,
}: TileAddress): { readonly from: number; readonly to: number } => {
  const each = level === 'entries' ? 1 : TILE_WIDTH ** level;
  const from = index * TILE_WIDTH * each;
  return { from, to: from + width * each };
};

/** The tile of which a node is made, and which of its hashes. */
export const tileOfNode = (
  level: number,
  index: number,
): { readonly level: number; readonly index: number; readonly first: number; readonly count: number } => {
  const count = 2 ** (level % TILE_HEIGHT);
  const first = index * count;
  return {
    level: Math.floor(level / TILE_HEIGHT),
    index: Math.floor(first / TILE_WIDTH),
    first: first % TILE_WIDTH,
    count,
  };
};

/** Hashes of a tree that is kept as tiles. `readTile` returns the bytes of a tile, at least as many as there are. */
export const hashAtOfTiles =
  (readTile: (level: number, index: number) => Uint8Array | undefined): HashAt =>
  (level, index) => {
    const place = tileOfNode(level, index);
    const tile = readTile(place.level, place.index);
    if (tile === undefined || tile.length < (place.first + place.count) * HASH_BYTES)
      throw new RangeError(
        `tile ${place.level}/${place.index} does not hold hash ${place.first + place.count - 1}`,
      );
    const range = extendRange();
    for (let at = place.first; at < place.first + place.count; at += 1)
      range.append(Buffer.from(tile.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES)));
    return range.root();
  };

const MOST_ENTRY_BYTES = 0xffff;
/** Bytes of an entry bundle at most. */
export const MOST_BUNDLE_BYTES = TILE_WIDTH * (2 + MOST_ENTRY_BYTES);

/** Entries of an entry bundle, each behind its length (16 bits, big endian). Throws RangeError for a longer one. */
export const encodeEntries = (entries: Iterable<Uint8Array>): Buffer => {
  const parts: Uint8Array[] = [];
  for (const entry of entries) {
    if (entry.length > MOST_ENTRY_BYTES)
      throw new RangeError(`an entry has at most ${MOST_ENTRY_BYTES} bytes`);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(entry.length);
    parts.push(length, entry);
  }
  return Buffer.concat(parts);
};

/** Inverse of `encodeEntries`; undefined when the last entry is cut off, or there are more than a bundle holds. */
export const decodeEntries = (bytes: Buffer): Buffer[] | undefined => {
  const entries: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (at + 2 > bytes.length || entries.length === TILE_WIDTH) return undefined;
    const end = at + 2 + bytes.readUInt16BE(at);
    if (end > bytes.length) return undefined;
    entries.push(bytes.subarray(at + 2, end));
    at = end;
  }
  return entries;
};
