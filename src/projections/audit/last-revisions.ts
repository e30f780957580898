import type { DatabaseSync } from 'node:sqlite';

/** The last revision of each stream that leaves were made of, by the number of its name. */
export type LastRevisions = {
  /** Undefined for a stream of which no leaf was made. */
  readonly of: (stream: number) => number | undefined;
  readonly set: (stream: number, revision: number) => void;
  /** Forgets what is remembered: the transaction was rolled back. */
  readonly reset: () => void;
};

/** Streams that are remembered at most; those of orders that are over drop out. */
const MOST_REMEMBERED = 20_000;

export const openLastRevisions = (db: DatabaseSync): LastRevisions => {
  const find = db.prepare('SELECT max(revision) AS last FROM leaves WHERE stream = ?');
  const known = new Map<number, number>();
  return {
    of: (stream) => {
      const remembered = known.get(stream);
      if (remembered !== undefined) return remembered;
      const last = find.get(stream)?.['last'];
      return typeof last === 'number' ? last : undefined;
    },
    set: (stream, revision) => {
      if (known.size >= MOST_REMEMBERED) known.clear();
      known.set(stream, revision);
    },
    reset: () => known.clear(),
  };
};
