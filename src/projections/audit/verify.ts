import type { DatabaseSync } from 'node:sqlite';
import { findingText } from '../../app/audit/bundle/findings.ts';
import { hashTiles } from '../../app/audit/bundle/tile-reading.ts';
import { verifyTiles } from '../../app/audit/bundle/verify-tiles.ts';
import { rootOfRange } from '../../app/audit/merkle/compact-range.ts';
import { leafHashOf, leafOf } from '../../app/audit/merkle/leaf.ts';
import { hashAtOfTiles } from '../../app/audit/merkle/tiles.ts';
import type { ReadStream } from '../view.ts';
import { MAIN_TREE } from './schema.ts';
import { openTiles, preparing } from './tiles.ts';
import { hashesOf } from './tree-writer.ts';

/** Leaves that are computed again from the log, spread over the tree. */
const SAMPLES = 50;

/** Checks a freshly built file: sizes against rows, all tiles against ranges, sampled leaves against the log. */
export const verifyAudit = async (db: DatabaseSync, readStream: ReadStream): Promise<readonly string[]> => {
  const problems = [...checkSizes(db), ...(await checkTrees(db))];
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

/** Of every tree, all of its tiles lead to the root of its range. */
const checkTrees = async (db: DatabaseSync): Promise<string[]> => {
  const stored = openTiles(preparing(db));
  const problems: string[] = [];
  for (const row of db.prepare('SELECT tree, size, range FROM trees ORDER BY tree').all()) {
    const { tree, size, range } = row as { tree: number; size: number; range: Uint8Array };
    const read = hashTiles((level, index) => stored(tree, level, index));
    const root = rootOfRange(hashesOf(range), size);
    const { findings } = await verifyTiles({ size, root }, read, { entries: false });
    problems.push(...findings.map((finding) => `tree ${tree}: ${findingText(finding)}`));
  }
  return problems;
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
