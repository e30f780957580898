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
  const add = db.prepare('INSERT INTO names VALUES (?, ?)');
  const last = db.prepare('SELECT max(id) AS id FROM names');
  const known = new Map<string, number>();
  let lastId: number | undefined;

  const lookUp = (text: string): number => {
    const found = find.get(text)?.['id'];
    if (typeof found === 'number') return found;
    lastId ??= Number(last.get()?.['id'] ?? 0);
    lastId += 1;
    add.run(lastId, text);
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
