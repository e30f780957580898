import type { DatabaseSync } from 'node:sqlite';

/** Numbers for texts that repeat; the first one gets 1, the next new one 2, in the order of the log. */
export type Names = {
  readonly idOf: (text: string) => number;
  /** Forgets what is remembered: the transaction was rolled back. */
  readonly reset: () => void;
};

/** Texts that are remembered at most; streams of orders that are over drop out. */
const MOST_REMEMBERED = 20_000;

export const openNames = (db: DatabaseSync): Names => {
  const find = db.prepare('SELECT id FROM names WHERE text = ?');
  const add = db.prepare('INSERT OR IGNORE INTO names VALUES (?, ?)');
  const last = db.prepare('SELECT max(id) AS id FROM names');
  const known = new Map<string, number>();
  let lastId: number | undefined;

  const lookUp = (text: string): number => {
    lastId ??= Number(last.get()?.['id'] ?? 0);
    // What is not remembered is mostly new: looking for it first would cost as much again.
    if (add.run(lastId + 1, text).changes === 0) return Number(find.get(text)?.['id']);
    lastId += 1;
    return lastId;
  };
  return {
    idOf: (text) => {
      const remembered = known.get(text);
      if (remembered !== undefined) return remembered;
      if (known.size >= MOST_REMEMBERED) known.clear();
      const id = lookUp(text);
      known.set(text, id);
      return id;
    },
    reset: () => {
      known.clear();
      lastId = undefined;
    },
  };
};
