import type { DatabaseSync } from 'node:sqlite';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { ReadStream } from '../view.ts';
import {
  emptyFold,
  foldEvent,
  isLive,
  privateDocument,
  viewOf,
  type Decode,
  type DocumentKind,
} from './fold.ts';

import { termsOf } from './terms.ts';

/** Streams that are folded again, spread over the table. */
const SAMPLES = 50;

/** Checks a freshly built file against the log: sums against rows, sampled streams against their fold. */
export const verifyResources = async (
  db: DatabaseSync,
  kinds: readonly DocumentKind[],
  codec: Decode,
  readStream: ReadStream,
): Promise<readonly string[]> => {
  const problems = [...checkSums(db), ...checkTermSums(db)];
  for (const { stream, revision, terms } of sampleStreams(db)) {
    const { category, id } = parseStreamName(stream);
    const kind = kinds.find((candidate) => candidate.kind === category);
    if (kind === undefined) {
      problems.push(`${stream}: no kind is called ${category}`);
      continue;
    }
    let folded = emptyFold(kind);
    for await (const event of readStream(stream)) {
      if (event.revision > revision) break;
      folded = foldEvent(folded, kind, codec, event);
    }
    const view = viewOf(kind, folded.state);
    const expected = isLive(view)
      ? JSON.stringify(privateDocument(view.document, folded.counted.version))
      : undefined;
    const stored = db
      .prepare('SELECT private_json FROM resources WHERE kind = ? AND id = ?')
      .get(category, id)?.['private_json'];
    if (isLive(view) && JSON.stringify(termsOf(kind, view)) !== terms)
      problems.push(`${stream}@${revision}: the stored terms are not those of its document`);
    if (stored !== expected)
      problems.push(`${stream}@${revision}: the stored document is not what its events give`);
  }
  return problems;
};

const checkSums = (db: DatabaseSync): string[] =>
  db
    .prepare(
      `SELECT kind, tenant, sum(counted) AS counted, sum(present) AS present FROM (
         SELECT kind, 'tenant ' || tenant AS tenant, total AS counted, 0 AS present FROM counts
         UNION ALL SELECT kind, 'tenant ' || tenant, 0, count(*) FROM resources GROUP BY kind, tenant
         UNION ALL SELECT kind, 'all tenants', total, 0 FROM totals
         UNION ALL SELECT kind, 'all tenants', 0, count(*) FROM resources GROUP BY kind
       ) GROUP BY kind, tenant HAVING sum(counted) <> sum(present)`,
    )
    .all()
    .map((row) => row as unknown as { kind: string; tenant: string; counted: number; present: number })
    .map(
      ({ kind, tenant, counted, present }) => `${kind} of ${tenant}: counted ${counted}, present ${present}`,
    );

/** Counts of indexed values against the values themselves, of each tenant and of all. */
const checkTermSums = (db: DatabaseSync): string[] =>
  db
    .prepare(
      `SELECT kind, field, value, owner, sum(counted) AS counted, sum(present) AS present FROM (
         SELECT kind, field, value, 'tenant ' || tenant AS owner, total AS counted, 0 AS present FROM term_counts
         UNION ALL SELECT kind, field, value, 'tenant ' || tenant, 0, count(*) FROM terms GROUP BY kind, field, value, tenant
         UNION ALL SELECT kind, field, value, 'all tenants', total, 0 FROM term_totals
         UNION ALL SELECT kind, field, value, 'all tenants', 0, count(*) FROM terms GROUP BY kind, field, value
       ) GROUP BY kind, field, value, owner HAVING sum(counted) <> sum(present)`,
    )
    .all()
    .map((row) => {
      const { kind, field, owner, counted, present } = row as unknown as TermSum;
      return `${kind} with a value of ${field} of ${owner}: counted ${counted}, present ${present}`;
    });

type TermSum = {
  readonly kind: string;
  readonly field: string;
  readonly owner: string;
  readonly counted: number;
  readonly present: number;
};

const sampleStreams = (db: DatabaseSync): { stream: string; revision: number; terms: string }[] => {
  const total = db.prepare('SELECT count(*) AS total FROM states').get()?.['total'] as number;
  const step = Math.max(1, Math.ceil(total / SAMPLES));
  return db
    .prepare('SELECT stream, revision, terms FROM states WHERE rowid % ? = 0 ORDER BY rowid')
    .all(step) as unknown as { stream: string; revision: number; terms: string }[];
};
