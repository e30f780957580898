import type { DatabaseSync } from 'node:sqlite';

/** How many rows there are of each key, in a table of these columns and `total`; what comes to nothing is not kept. */
export type Sums = {
  readonly add: (key: readonly string[], by: number) => void;
  readonly flush: () => void;
  readonly reset: () => void;
};

export const openSums = (db: DatabaseSync, table: string, columns: readonly string[]): Sums => {
  const key = columns.join(', ');
  const places = columns.map(() => '?').join(', ');
  const addToTotal = db.prepare(
    `INSERT INTO ${table} VALUES (${places}, ?) ON CONFLICT (${key}) DO UPDATE SET total = total + excluded.total`,
  );
  const dropEmpty = db.prepare(
    `DELETE FROM ${table} WHERE ${columns.map((column) => `${column} = ?`).join(' AND ')} AND total = 0`,
  );
  /** By the key's JSON text, since any part of it may hold any character. */
  const sums = new Map<string, number>();
  return {
    add: (of, by) => {
      const text = JSON.stringify(of);
      sums.set(text, (sums.get(text) ?? 0) + by);
    },
    flush: () => {
      for (const [text, by] of sums) {
        if (by === 0) continue;
        const of = JSON.parse(text) as string[];
        addToTotal.run(...of, by);
        if (by < 0) dropEmpty.run(...of);
      }
      sums.clear();
    },
    reset: () => sums.clear(),
  };
};
