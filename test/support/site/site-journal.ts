import { DatabaseSync } from 'node:sqlite';

/** Readers of a simulated site's file that share nothing with the site. */
export type SiteCallRow = {
  readonly number: number;
  readonly at: string;
  readonly effectId: string;
  readonly operation: string;
  readonly object: string;
  readonly owner: string;
  readonly result: string;
  readonly answer: string;
  readonly instance: string;
};

export type SiteItemRow = {
  readonly sort: string;
  readonly name: string;
  readonly owner: string;
  readonly generation: number;
  readonly effectId: string;
  readonly goneAt: number | null;
};

const rowsOf = <Row>(file: string, sql: string): readonly Row[] => {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  try {
    return db.prepare(sql).all() as unknown as Row[];
  } finally {
    db.close();
  }
};

export const readSiteCalls = (file: string): readonly SiteCallRow[] =>
  rowsOf(
    file,
    `SELECT number, at, effect_id AS effectId, operation, object, owner, result, answer, instance
     FROM calls ORDER BY number`,
  );

/** Everything that carries a mark and was not taken away. */
export const readSiteItems = (file: string): readonly SiteItemRow[] =>
  rowsOf(
    file,
    `SELECT sort, name, owner, generation, effect_id AS effectId, gone_at AS goneAt
     FROM items WHERE gone_at IS NULL ORDER BY sequence`,
  );

/** What the site refused because it would have done harm: two owners of one thing, or something in use taken away. */
export const siteConflicts = (file: string): readonly SiteCallRow[] =>
  readSiteCalls(file).filter(({ result }) => result.startsWith('conflict'));
