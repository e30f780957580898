import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { HASH_BYTES, type HashAt } from '../../app/audit/merkle/hashing.ts';
import { hashAtOfTiles, tileOfNode, TILE_WIDTH } from '../../app/audit/merkle/tiles.ts';
import type { ReadConnection } from '../runner/read-connection.ts';
import { MAIN_TREE } from './schema.ts';

export const TILE_STATEMENTS = {
  tile: 'SELECT hashes FROM tiles WHERE tree = ? AND level = ? AND idx = ?',
  hashes: 'SELECT hash FROM leaves WHERE idx >= ? AND idx < ? ORDER BY idx',
  lastHashes: 'SELECT hash, tenant_idx AS at FROM leaves WHERE tenant = ? ORDER BY idx DESC LIMIT ?',
} as const;

export type ReadTile = (tree: number, level: number, index: number) => Uint8Array | undefined;

/** Hashes of a tile, as many as there are; undefined when there are none. */
export const openTiles = (prepare: (sql: string) => StatementSync): ReadTile => {
  const stored: ReadTile = (tree, level, index) =>
    prepare(TILE_STATEMENTS.tile).get(tree, level, index)?.['hashes'] as Uint8Array | undefined;
  return (tree, level, index) => {
    const tile = stored(tree, level, index);
    if (tile !== undefined || level > 0) return tile;
    const hashes =
      tree === MAIN_TREE
        ? prepare(TILE_STATEMENTS.hashes).all(index * TILE_WIDTH, (index + 1) * TILE_WIDTH)
        : edgeOfTenant(prepare(TILE_STATEMENTS.lastHashes).all(tree, TILE_WIDTH) as EdgeRow[], index);
    // It may have been filled between the two looks.
    if (hashes.length === 0) return stored(tree, level, index);
    return Buffer.concat(hashes.map((row) => row['hash'] as Uint8Array));
  };
};

/** Prepares each statement once. */
export const preparing = (db: DatabaseSync): ((sql: string) => StatementSync) => {
  const prepared = new Map<string, StatementSync>();
  return (sql) => {
    const known = prepared.get(sql) ?? db.prepare(sql);
    prepared.set(sql, known);
    return known;
  };
};

type EdgeRow = { readonly hash: Uint8Array; readonly at: number };

/** Of a tenant's newest leaves those of tile `index`, oldest first; none when its first one is not among them. */
const edgeOfTenant = (newest: readonly EdgeRow[], index: number): EdgeRow[] => {
  const first = index * TILE_WIDTH;
  const own = newest.filter(({ at }) => at >= first && at < first + TILE_WIDTH).toReversed();
  return own[0]?.at === first ? own : [];
};

/**
 * Hashes of one tree, which only grows: the tile that was read last answers again as long as it holds what is asked
 * for. A proof and a root ask for several hashes of the same tile, one after the other.
 */
export const hashesOfTree = (
  readTile: (level: number, index: number) => Uint8Array | undefined,
  { source }: Pick<ReadConnection, 'source'>,
): HashAt => {
  let last: { of: unknown; level: number; index: number; tile: Uint8Array | undefined } | undefined;
  return (level, index) => {
    const place = tileOfNode(level, index);
    const bytes = (place.first + place.count) * HASH_BYTES;
    const holds =
      last?.of === source() &&
      last.level === place.level &&
      last.index === place.index &&
      (last.tile?.length ?? 0) >= bytes;
    const found = holds ? last?.tile : readTile(place.level, place.index);
    last = { of: source(), level: place.level, index: place.index, tile: found };
    return hashAtOfTiles(() => found)(level, index);
  };
};
