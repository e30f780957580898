import type { Checkpoint } from '../merkle/checkpoint.ts';
import { extendRange, rootAt } from '../merkle/compact-range.ts';
import { HASH_BYTES, leafHash } from '../merkle/hashing.ts';
import { decodeEntries, hashAtOfTiles, TILE_WIDTH, tilePath, tilesOf } from '../merkle/tiles.ts';
import { collectFindings, type Finding } from './findings.ts';

/** Bytes of a tile or entry bundle by its path (C2SP tlog-tiles); undefined when there is none. */
export type ReadTile = (path: string) => Uint8Array | undefined;

/**
 * Whether tiles, and the entries beside them, are those of a checkpoint: the root over them, every tile below the
 * hash that stands for it in the tile above, and every entry below its hash.
 */
export const verifyTiles = (
  checkpoint: Pick<Checkpoint, 'size' | 'root'>,
  read: ReadTile,
): { readonly ok: boolean; readonly findings: readonly Finding[]; readonly count: number } => {
  const findings = collectFindings();
  const tiles = new Map<string, Uint8Array>();
  for (const { level, index, width } of tilesOf(checkpoint.size)) {
    const path = tilePath({ level, index, width });
    const bytes = read(path);
    const place = [
      index * TILE_WIDTH ** (level + 1),
      Math.min(checkpoint.size, (index + 1) * TILE_WIDTH ** (level + 1)),
    ] as const;
    if (bytes?.length === width * HASH_BYTES) tiles.set(`${level}/${index}`, bytes);
    else
      findings.add({
        code: bytes === undefined ? 'missing-file' : 'malformed',
        file: path,
        place,
        message:
          bytes === undefined
            ? 'this tile is missing'
            : `this tile has ${bytes.length} bytes, not ${width * HASH_BYTES}`,
      });
  }
  const tileAt = (level: number, index: number) => tiles.get(`${level}/${index}`);
  checkParents(checkpoint.size, tileAt, findings.add);
  checkEntries(checkpoint.size, read, tileAt, findings.add);
  if (findings.count() === 0 && !rootAt(checkpoint.size, hashAtOfTiles(tileAt)).equals(checkpoint.root))
    findings.add({
      code: 'root',
      place: [0, checkpoint.size],
      message: 'the tiles do not lead to the root that was signed',
    });
  return { ok: findings.count() === 0, findings: findings.list(), count: findings.count() };
};

type TileAt = (level: number, index: number) => Uint8Array | undefined;

const hashesIn = (tile: Uint8Array): Buffer[] =>
  Array.from({ length: tile.length / HASH_BYTES }, (_, at) =>
    Buffer.from(tile.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES)),
  );

/** Every full tile has the root that stands for it in the tile above. */
const checkParents = (size: number, tileAt: TileAt, add: (finding: Finding) => void): void => {
  for (const { level, index, width } of tilesOf(size)) {
    const [tile, parent] = [tileAt(level, index), tileAt(level + 1, Math.floor(index / TILE_WIDTH))];
    if (width < TILE_WIDTH || tile === undefined || parent === undefined) continue;
    const grown = extendRange();
    for (const hash of hashesIn(tile)) grown.append(hash);
    const stated = hashesIn(parent)[index % TILE_WIDTH];
    if (stated === undefined || grown.root().equals(stated)) continue;
    const span = TILE_WIDTH ** (level + 1);
    add({
      code: 'leaves',
      file: tilePath({ level, index, width }),
      place: [index * span, (index + 1) * span],
      message: 'this tile, or the hash for it in the tile above, was changed',
    });
  }
};

const checkEntries = (
  size: number,
  read: ReadTile,
  tileAt: TileAt,
  add: (finding: Finding) => void,
): void => {
  for (let index = 0; index * TILE_WIDTH < size; index += 1) {
    const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH);
    const file = tilePath({ level: 'entries', index, width });
    const [bytes, tile] = [read(file), tileAt(0, index)];
    const first = index * TILE_WIDTH;
    if (bytes === undefined) {
      add({
        code: 'missing-file',
        file,
        place: [first, first + width],
        message: 'these entries are missing',
      });
      continue;
    }
    const entries = decodeEntries(Buffer.from(bytes));
    if (entries === undefined || entries.length !== width)
      add({
        code: 'malformed',
        file,
        place: [first, first + width],
        message: `these are not ${width} entries`,
      });
    if (tile === undefined) continue;
    for (const [at, hash] of hashesIn(tile).entries()) {
      const entry = entries?.[at];
      if (entry !== undefined && !leafHash(entry).equals(hash))
        add({
          code: 'changed-event',
          file,
          place: first + at,
          message: 'the entry has not the hash that the tile has for it',
        });
    }
  }
};
