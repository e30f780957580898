import type { DatabaseSync } from 'node:sqlite';
import { openSums } from './sums.ts';
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
  const tables = { byTenant: 'term_counts', ofAll: 'term_totals' };
  const sums = openSums(db, tables, ['kind', 'field', 'value']);

  const count = ({ kind, tenant }: TermOwner, [field, value]: Term, by: 1 | -1): void =>
    sums.add([kind, field, value], tenant, by);
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
    flush: sums.flush,
    reset: sums.reset,
  };
};

const holds = (terms: readonly Term[] | undefined, [field, value]: Term): boolean =>
  terms?.some((other) => other[0] === field && other[1] === value) ?? false;
