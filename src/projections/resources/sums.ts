import type { DatabaseSync } from 'node:sqlite';

/**
 * How many rows there are of each key, by tenant and of all tenants, in two tables of these columns, `tenant` (in the first
 * one) and `total`; what comes to nothing is not kept.
 */
export type Sums = {
  readonly add: (key: readonly string[], tenant: string, by: number) => void;
  readonly flush: () => void;
  readonly reset: () => void;
};

export const openSums = (
  db: DatabaseSync,
  tables: { readonly byTenant: string; readonly ofAll: string },
  columns: readonly string[],
): Sums => {
  const byTenant = openTable(db, tables.byTenant, [...columns, 'tenant']);
  const ofAll = openTable(db, tables.ofAll, columns);
  /** By the key's JSON text, since any part of it may hold any character; within it by tenant. */
  const sums = new Map<string, { readonly key: readonly string[]; readonly tenants: Map<string, number> }>();
  return {
    add: (key, tenant, by) => {
      const text = JSON.stringify(key);
      const known = sums.get(text);
      if (known === undefined) sums.set(text, { key, tenants: new Map([[tenant, by]]) });
      else known.tenants.set(tenant, (known.tenants.get(tenant) ?? 0) + by);
    },
    flush: () => {
      for (const { key, tenants } of sums.values()) {
        let all = 0;
        for (const [tenant, by] of tenants) {
          byTenant([...key, tenant], by);
          all += by;
        }
        ofAll(key, all);
      }
      sums.clear();
    },
    reset: () => sums.clear(),
  };
};

/** Adds to the total of a key. */
const openTable = (db: DatabaseSync, table: string, columns: readonly string[]) => {
  const key = columns.join(', ');
  const places = columns.map(() => '?').join(', ');
  const addToTotal = db.prepare(
    `INSERT INTO ${table} VALUES (${places}, ?) ON CONFLICT (${key}) DO UPDATE SET total = total + excluded.total`,
  );
  const dropEmpty = db.prepare(
    `DELETE FROM ${table} WHERE ${columns.map((column) => `${column} = ?`).join(' AND ')} AND total = 0`,
  );
  return (of: readonly string[], by: number): void => {
    if (by === 0) return;
    addToTotal.run(...of, by);
    if (by < 0) dropEmpty.run(...of);
  };
};
