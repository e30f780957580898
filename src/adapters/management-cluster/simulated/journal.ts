import { DatabaseSync } from 'node:sqlite';

/** One call as the hub itself noted it. */
export type HubJournalEntry = {
  readonly number: number;
  readonly at: string;
  readonly effectId: string;
  readonly operation: string;
  readonly object: string;
  readonly result: string;
  readonly answer: string;
};

/** The hub's journal, oldest first, straight from its file: what the far side says, whatever our log says. */
export const readHubJournal = (file: string): HubJournalEntry[] => {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  try {
    return db
      .prepare('SELECT number, at, effect_id, operation, object, result, answer FROM calls ORDER BY number')
      .all()
      .map((row) => ({
        number: Number(row['number']),
        at: String(row['at']),
        effectId: String(row['effect_id']),
        operation: String(row['operation']),
        object: String(row['object']),
        result: String(row['result']),
        answer: String(row['answer']),
      }));
  } finally {
    db.close();
  }
};
