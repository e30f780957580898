import type { DatabaseSync } from 'node:sqlite';
import { rootAt, rootOfRange } from '../../app/audit/merkle/compact-range.ts';
import { leafHashOf, leafOf } from '../../app/audit/merkle/leaf.ts';
import { hashAtOfTiles } from '../../app/audit/merkle/tiles.ts';
import type { ReadStream } from '../view.ts';
import { MAIN_TREE } from './schema.ts';
import { openTiles, preparing } from './tiles.ts';
import { hashesOf } from './tree-writer.ts';

/** Leaves that are computed again from the log, spread over the tree. */
const SAMPLES = 50;

/** Checks a freshly built file: sizes against rows, tiles against ranges, sampled leaves against the log. */
export const verifyAudit = async (db: DatabaseSync, readStream: ReadStream): Promise<readonly string[]> => {
  const problems = [...checkSizes(db), ...checkMainTree(db)];
  const hashAt = hashAtOf(db);
  for (const { idx, stream, revision } of sampleLeaves(db)) {
    let found = false;
    for await (const event of readStream(stream)) {
      if (event.revision < revision) continue;
      found = event.revision === revision && leafHashOf(leafOf(event)).equals(hashAt(0, idx));
      break;
    }
    if (!found) problems.push(`leaf ${idx} is not that of ${stream}@${revision}`);
  }
  return problems;
};

const checkSizes = (db: DatabaseSync): string[] =>
  db
    .prepare(
      `SELECT tree, sum(kept) AS kept, sum(present) AS present FROM (
         SELECT tree, size AS kept, 0 AS present FROM trees
         UNION ALL SELECT tenant, 0, count(*) FROM leaves GROUP BY tenant
         UNION ALL SELECT ${MAIN_TREE}, 0, count(*) FROM leaves HAVING count(*) > 0
       ) GROUP BY tree HAVING sum(kept) <> sum(present)`,
    )
    .all()
    .map(
      ({ tree, kept, present }) => `tree ${Number(tree)}: size ${Number(kept)}, leaves ${Number(present)}`,
    );

const checkMainTree = (db: DatabaseSync): string[] => {
  const row = db.prepare('SELECT size, range FROM trees WHERE tree = ?').get(MAIN_TREE) as
    | { size: number; range: Uint8Array }
    | undefined;
  if (row === undefined) return [];
  const kept = rootOfRange(hashesOf(row.range), row.size);
  return rootAt(row.size, hashAtOf(db)).equals(kept) ? [] : ['the tiles do not lead to the root of the tree'];
};

const hashAtOf = (db: DatabaseSync) => {
  const tile = openTiles(preparing(db));
  return hashAtOfTiles((level, index) => tile(MAIN_TREE, level, index));
};

const sampleLeaves = (db: DatabaseSync): { idx: number; stream: string; revision: number }[] => {
  const total = Number(db.prepare('SELECT count(*) AS total FROM leaves').get()?.['total'] ?? 0);
  return db
    .prepare(
      `SELECT l.idx, n.text AS stream, l.revision FROM leaves AS l JOIN names AS n ON n.id = l.stream
       WHERE l.record IS NULL AND l.idx % ? = 0 ORDER BY l.idx`,
    )
    .all(Math.max(1, Math.ceil(total / SAMPLES))) as unknown as {
    idx: number;
    stream: string;
    revision: number;
  }[];
};
