import type { DatabaseSync } from 'node:sqlite';

/** The last revision of each stream that leaves were made of, or that the store holds itself, by the number of its name. */
export type LastRevisions = {
  /** Undefined for a stream of which no leaf was made. */
  readonly of: (stream: number) => number | undefined;
  readonly set: (stream: number, revision: number) => void;
  /** The store holds this revision itself: no leaf will be of it. */
  readonly setHole: (stream: number, revision: number) => void;
  /** Forgets what is remembered: the transaction was rolled back. */
  readonly reset: () => void;
};

/** Streams that are remembered at most; those of orders that are over drop out. */
const MOST_REMEMBERED = 20_000;

export const openLastRevisions = (db: DatabaseSync): LastRevisions => {
  const find = db.prepare(
    `SELECT max(last) AS last FROM (
       SELECT max(revision) AS last FROM leaves WHERE stream = ?1
       UNION ALL SELECT max(revision) FROM holes WHERE stream = ?1)`,
  );
  const addHole = db.prepare('INSERT OR IGNORE INTO holes VALUES (?, ?)');
  const known = new Map<number, number>();
  const set = (stream: number, revision: number): void => {
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(stream, revision);
  };
  return {
    of: (stream) => {
      const remembered = known.get(stream);
      if (remembered !== undefined) return remembered;
      const last = find.get(stream)?.['last'];
      return typeof last === 'number' ? last : undefined;
    },
    set,
    setHole: (stream, revision) => {
      addHole.run(stream, revision);
      set(stream, revision);
    },
    reset: () => known.clear(),
  };
};
