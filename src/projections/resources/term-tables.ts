import type { DatabaseSync } from 'node:sqlite';
import type { Term } from './terms.ts';

/** Where the terms of a live document stand. */
export type TermOwner = { readonly kind: string; readonly tenant: string; readonly created: string };
export type OwnedTerms = TermOwner & { readonly terms: readonly Term[] };

/** Writes `terms` and, gathered until `flush`, how many documents have each of them. */
export type TermTables = {
  /** Undefined: there is no live document (any more). */
  readonly replace: (before: OwnedTerms | undefined, after: OwnedTerms | undefined) => void;
  readonly flush: () => void;
  readonly reset: () => void;
};

export const openTermTables = (db: DatabaseSync): TermTables => {
  const add = db.prepare('INSERT OR REPLACE INTO terms VALUES (?, ?, ?, ?, ?)');
  const drop = db.prepare('DELETE FROM terms WHERE kind = ? AND field = ? AND value = ? AND created = ?');
  const addToCount = db.prepare(
    `INSERT INTO term_counts VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (kind, field, value, tenant) DO UPDATE SET total = total + excluded.total`,
  );
  const dropEmptyCount = db.prepare(
    'DELETE FROM term_counts WHERE kind = ? AND field = ? AND value = ? AND tenant = ? AND total = 0',
  );
  const addToTotal = db.prepare(
    `INSERT INTO term_totals VALUES (?, ?, ?, ?)
     ON CONFLICT (kind, field, value) DO UPDATE SET total = total + excluded.total`,
  );
  const dropEmptyTotal = db.prepare(
    'DELETE FROM term_totals WHERE kind = ? AND field = ? AND value = ? AND total = 0',
  );
  /** By the key's JSON text, since any part of it may hold any character. */
  const counts = new Map<string, number>();
  const totals = new Map<string, number>();

  const count = ({ kind, tenant }: TermOwner, [field, value]: Term, by: 1 | -1): void => {
    increase(counts, JSON.stringify([kind, field, value, tenant]), by);
    increase(totals, JSON.stringify([kind, field, value]), by);
  };
  return {
    replace: (before, after) => {
      const sameOwner = before?.tenant === after?.tenant && before?.created === after?.created;
      for (const term of before?.terms ?? []) {
        if (before === undefined || (sameOwner && holds(after?.terms, term))) continue;
        drop.run(before.kind, term[0], term[1], before.created);
        count(before, term, -1);
      }
      for (const term of after?.terms ?? []) {
        if (after === undefined || (sameOwner && holds(before?.terms, term))) continue;
        add.run(after.kind, term[0], term[1], after.created, after.tenant);
        count(after, term, 1);
      }
    },
    flush: () => {
      for (const [key, by] of counts) {
        if (by === 0) continue;
        const [kind, field, value, tenant] = JSON.parse(key) as [string, string, string, string];
        addToCount.run(kind, field, value, tenant, by);
        if (by < 0) dropEmptyCount.run(kind, field, value, tenant);
      }
      for (const [key, by] of totals) {
        if (by === 0) continue;
        const [kind, field, value] = JSON.parse(key) as [string, string, string];
        addToTotal.run(kind, field, value, by);
        if (by < 0) dropEmptyTotal.run(kind, field, value);
      }
      counts.clear();
      totals.clear();
    },
    reset: () => {
      counts.clear();
      totals.clear();
    },
  };
};

const increase = (sums: Map<string, number>, key: string, by: number): void => {
  sums.set(key, (sums.get(key) ?? 0) + by);
};
const holds = (terms: readonly Term[] | undefined, [field, value]: Term): boolean =>
  terms?.some((other) => other[0] === field && other[1] === value) ?? false;
