import type { DatabaseSync } from 'node:sqlite';
import { createContexts } from './contexts.ts';
import { isDamage, messageOf, StoreDamaged } from './errors.ts';
import { contextFinding, EVENT_COLUMNS, rowFinding, type EventRow } from './rows.ts';
import { lastNumber, pragma } from './schema.ts';

/** Files up to this size are checked whole by SQLite itself: it takes well under a second. */
const WHOLE_UP_TO_BYTES = 64 * 1024 * 1024;

/**
 * The bounded check before a log is used: a small file whole, of any file the `newest` events, each against its checksum.
 * Throws StoreDamaged. What it does not reach is checked by every read, and as a whole by `checkSqliteStore`.
 */
export const checkAtStart = (db: DatabaseSync, file: string, newest: number): void => {
  try {
    if (pragma(db, 'page_count') * pragma(db, 'page_size') <= WHOLE_UP_TO_BYTES) {
      const found = db.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check'];
      if (found !== 'ok') throw new StoreDamaged(file, String(found).split('\n', 1)[0] ?? 'unknown');
    }
    checkNewest(db, file, newest);
  } catch (error) {
    if (isDamage(error)) throw new StoreDamaged(file, messageOf(error), { cause: error });
    throw error;
  }
};

const checkNewest = (db: DatabaseSync, file: string, newest: number): void => {
  const look = db.prepare(
    `SELECT ${EVENT_COLUMNS} FROM events e LEFT JOIN streams s ON s.id = e.stream WHERE e.position > ?`,
  );
  look.setReturnArrays(true);
  const contexts = createContexts(db);
  for (const row of look.iterate(lastNumber(db) - newest)) {
    const eventRow = row as unknown as EventRow;
    const finding = rowFinding(eventRow) ?? contextFinding(eventRow, contexts);
    if (finding !== undefined) throw new StoreDamaged(file, finding);
  }
};
