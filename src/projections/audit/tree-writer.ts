import type { DatabaseSync } from 'node:sqlite';
import { extendRange, type GrowingRange } from '../../app/audit/merkle/compact-range.ts';
import { HASH_BYTES } from '../../app/audit/merkle/hashing.ts';
import { TILE_HEIGHT, TILE_WIDTH } from '../../app/audit/merkle/tiles.ts';
import { openTiles, preparing } from './tiles.ts';

/** Trees that grow at their right edge: what is new lies in memory until `flush`. */
export type TreeWriter = {
  /** Adds a leaf by its hash and returns its number. `tenant`: whose tree it is; undefined for the main one. */
  readonly append: (tree: number, tenant: string | undefined, leaf: Buffer) => number;
  readonly size: (tree: number) => number;
  readonly flush: () => void;
  readonly reset: () => void;
};

/** The tile at the right edge of one level, and those of the level that were filled since the last flush. */
type Edge = { index: number; count: number; bytes: Buffer; full: { index: number; bytes: Buffer }[] };

type OpenTree = {
  readonly tenant: string | null;
  readonly range: GrowingRange;
  readonly edges: Map<number, Edge>;
  changed: boolean;
};

/** Trees whose right edge stays in memory between transactions: at most some 8 KB each. */
const MOST_OPEN = 500;
const FIRST_BYTES = 8 * HASH_BYTES;
const TILE_BYTES = TILE_WIDTH * HASH_BYTES;

export const openTreeWriter = (db: DatabaseSync): TreeWriter => {
  const readTree = db.prepare('SELECT size, range FROM trees WHERE tree = ?');
  const readTile = openTiles(preparing(db));
  const writeTree = db.prepare(
    `INSERT INTO trees VALUES (?, ?, ?, ?)
     ON CONFLICT (tree) DO UPDATE SET size = excluded.size, range = excluded.range`,
  );
  const writeTile = db.prepare(
    `INSERT INTO tiles VALUES (?, ?, ?, ?)
     ON CONFLICT (tree, level, idx) DO UPDATE SET hashes = excluded.hashes`,
  );
  const trees = new Map<number, OpenTree>();

  const open = (tree: number, tenant: string | undefined): OpenTree => {
    const row = readTree.get(tree) as { size: number; range: Uint8Array } | undefined;
    const start = row === undefined ? undefined : { size: row.size, hashes: hashesOf(row.range) };
    const opened = { tenant: tenant ?? null, range: extendRange(start), edges: new Map(), changed: false };
    trees.set(tree, opened);
    return opened;
  };
  const openEdge = (tree: number, level: number, index: number, count: number): Edge => {
    const bytes = Buffer.allocUnsafe(Math.max(FIRST_BYTES, count * HASH_BYTES));
    if (count > 0) bytes.set((readTile(tree, level, index) as Uint8Array).subarray(0, count * HASH_BYTES));
    return { index, count, bytes, full: [] };
  };
  const put = (tree: number, { edges }: OpenTree, level: number, index: number, hash: Buffer): void => {
    const at = index % TILE_WIDTH;
    let edge = edges.get(level);
    if (edge === undefined) {
      edge = openEdge(tree, level, (index - at) / TILE_WIDTH, at);
      edges.set(level, edge);
    }
    if (edge.count * HASH_BYTES === edge.bytes.length) {
      const larger = Buffer.allocUnsafe(Math.min(TILE_BYTES, 2 * edge.bytes.length));
      edge.bytes.copy(larger);
      edge.bytes = larger;
    }
    hash.copy(edge.bytes, edge.count * HASH_BYTES);
    edge.count += 1;
    if (edge.count < TILE_WIDTH) return;
    edge.full.push({ index: edge.index, bytes: edge.bytes });
    edge.index += 1;
    edge.count = 0;
    edge.bytes = Buffer.allocUnsafe(FIRST_BYTES);
  };
  const write = (tree: number, { tenant, range, edges }: OpenTree): void => {
    for (const [level, edge] of edges) {
      for (const { index, bytes } of edge.full) writeTile.run(tree, level, index, bytes);
      edge.full = [];
      if (level > 0 && edge.count > 0)
        writeTile.run(tree, level, edge.index, edge.bytes.subarray(0, edge.count * HASH_BYTES));
    }
    writeTree.run(tree, tenant, range.size(), Buffer.concat(range.hashes()));
  };

  return {
    append: (tree, tenant, leaf) => {
      const opened = trees.get(tree) ?? open(tree, tenant);
      const index = opened.range.size();
      opened.changed = true;
      opened.range.append(leaf, (level, at, hash) => {
        if (level % TILE_HEIGHT === 0) put(tree, opened, level / TILE_HEIGHT, at, hash);
      });
      return index;
    },
    size: (tree) => trees.get(tree)?.range.size() ?? Number(readTree.get(tree)?.['size'] ?? 0),
    flush: () => {
      const unchanged: number[] = [];
      for (const [tree, opened] of trees) {
        if (opened.changed) {
          write(tree, opened);
          opened.changed = false;
        } else unchanged.push(tree);
      }
      // Those of this transaction are likely to grow again.
      for (const tree of unchanged.slice(0, Math.max(0, trees.size - MOST_OPEN))) trees.delete(tree);
      if (trees.size > MOST_OPEN) trees.clear();
    },
    reset: () => trees.clear(),
  };
};

/** The hashes of a stored range, left to right. */
export const hashesOf = (range: Uint8Array): Buffer[] =>
  Array.from({ length: range.length / HASH_BYTES }, (_, at) =>
    Buffer.from(range.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES)),
  );
