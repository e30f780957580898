import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Events of the embedded log, and the bytes of their texts. */
export const logOf = (dataDir: string) => {
  const db = new DatabaseSync(join(dataDir, 'events.db'), { readOnly: true, timeout: 5_000 });
  const row = db
    .prepare(
      `SELECT COUNT(*) AS events, SUM(LENGTH(data)) AS data,
              SUM(LENGTH(metadata)) + (SELECT SUM(LENGTH(text)) FROM contexts) AS metadata FROM events`,
    )
    .get();
  db.close();
  return row as { readonly events: number; readonly data: number; readonly metadata: number };
};
