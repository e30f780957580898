import type { DatabaseSync } from 'node:sqlite';

/** Milliseconds that the write-ahead log waits for readers before it is tried again after the next commit. */
const PATIENCE_MS = 100;

/** What of erased text could stay in the file of a view beside its rows. */
export type Pages = {
  /** Within a transaction: what is removed or replaced from now on leaves no text in free pages. */
  readonly overwrite: () => void;
  /**
   * After a commit: moves the write-ahead log into the file and empties it, when something was erased since. While
   * somebody reads what was before, it cannot be emptied: then it is tried again after the next commit.
   */
  readonly committed: () => void;
};

export const openPages = (db: DatabaseSync): Pages => {
  // A crash may have come between an erasure and the emptying behind it.
  let holdsErased = true;
  return {
    overwrite: () => {
      db.exec('PRAGMA secure_delete = ON');
      holdsErased = true;
    },
    committed: () => {
      if (holdsErased) holdsErased = !emptied(db);
    },
  };
};

/** True when the write-ahead log is empty, or there is none. */
const emptied = (db: DatabaseSync): boolean => {
  const before = Number(db.prepare('PRAGMA busy_timeout').get()?.['timeout'] ?? 0);
  try {
    db.exec(`PRAGMA busy_timeout = ${PATIENCE_MS}`);
    return db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0;
  } catch {
    return false;
  } finally {
    db.exec(`PRAGMA busy_timeout = ${before}`);
  }
};
