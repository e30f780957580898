import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Counts } from './faults.ts';

const BUSY_TIMEOUT_MS = 5000;

export type Attempt<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown };

/** What faults are decided by: calls counted by what they are about, or of the whole system. */
const COUNTS = `
CREATE TABLE call_counts (
  object     TEXT PRIMARY KEY,
  first_at   INTEGER NOT NULL,
  calls      INTEGER NOT NULL,
  writes     INTEGER NOT NULL
) STRICT;
`;

/**
 * The file of one simulated system: SQLite that is on the disk before anybody hears of it, and that several instances use
 * at once. `schema` holds a table `calls` with the columns `number` and `at`, and the table `values` with key and value.
 * Throws when the file cannot be opened, or has another form.
 */
export const openSimulationFile = (
  file: string,
  form: { readonly schema: string; readonly version: number; readonly values: string },
) => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    prepareSchema(db, file, form);
  } catch (error) {
    db.close();
    throw error;
  }
  const statements = new Map<string, StatementSync>();
  const sql = (text: string): StatementSync => {
    const known = statements.get(text);
    if (known !== undefined) return known;
    const prepared = db.prepare(text);
    statements.set(text, prepared);
    return prepared;
  };

  /** What is asked for with each call, as long as nobody writes to it; other connections' writes change the version. */
  const held = new Map<string, unknown>();
  let heldVersion: unknown;
  const hold = <T>(what: string, read: () => T): T => {
    const version = sql('PRAGMA data_version').get()?.['data_version'];
    if (version !== heldVersion) held.clear();
    heldVersion = version;
    if (!held.has(what)) held.set(what, read());
    return held.get(what) as T;
  };

  const getValue = (key: string): string | undefined =>
    hold(key, () => {
      const row = sql(`SELECT value FROM ${form.values} WHERE key = ?`).get(key);
      return row === undefined ? undefined : String(row['value']);
    });
  const setValue = (key: string, value: string): void => {
    held.delete(key);
    sql(
      `INSERT INTO ${form.values} VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
    ).run(key, value);
  };
  let synchronous = 'FULL';
  /**
   * Everything inside is one transaction; other instances wait. A `durable` one survives a power loss, any other the end
   * of the process: enough for the journal entry of a call that changed nothing.
   */
  const transaction = <T>(run: () => T, durable = true): T => {
    const wanted = durable ? 'FULL' : 'NORMAL';
    if (wanted !== synchronous) db.exec(`PRAGMA synchronous = ${wanted}`);
    synchronous = wanted;
    db.exec('BEGIN IMMEDIATE');
    try {
      const result = run();
      db.exec('COMMIT');
      return result;
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      held.clear();
      throw error;
    }
  };

  /** One of several in a transaction: what fails leaves nothing behind and does not disturb its neighbours. */
  const attempt = <T>(run: () => T): Attempt<T> => {
    db.exec('SAVEPOINT one');
    try {
      const value = run();
      db.exec('RELEASE one');
      return { ok: true, value };
    } catch (error) {
      // SQLite ends the whole transaction by itself when the disk is full.
      if (!db.isTransaction) throw error;
      db.exec('ROLLBACK TO one');
      held.clear();
      db.exec('RELEASE one');
      return { ok: false, error };
    }
  };

  return {
    sql,
    hold,
    /** What `hold` keeps, changed by a write of ours; undefined: it is read again. */
    keep: (what: string, value?: unknown): void => {
      if (value === undefined) held.delete(what);
      else held.set(what, value);
    },
    transaction,
    /** Several in one transaction: one flush to the disk for all that waited. Throws when nothing was done. */
    transactions: <T>(runs: readonly (() => T)[], durable: boolean): Attempt<T>[] =>
      transaction(() => runs.map(attempt), durable),
    getValue,
    setValue,
    /** Time of the last call; 0 before the first. */
    lastCallAt: (): number =>
      hold('last call', () => {
        const row = sql('SELECT at FROM calls ORDER BY number DESC LIMIT 1').get();
        return row === undefined ? 0 : Date.parse(String(row['at']));
      }),
    /** Counts one call about an object (or '*', the whole hub) and returns the counts with it. */
    count: (object: string, at: number, isWrite: boolean): Counts => {
      const row = sql(
        `INSERT INTO call_counts VALUES (?, ?, 1, ?)
         ON CONFLICT (object) DO UPDATE SET calls = calls + 1, writes = writes + excluded.writes
         RETURNING first_at, calls, writes`,
      ).get(object, at, isWrite ? 1 : 0);
      return countsIn(row ?? {});
    },
    /** Undefined before the first call. */
    counts: (object: string): Counts | undefined => {
      const row = sql('SELECT first_at, calls, writes FROM call_counts WHERE object = ?').get(object);
      return row === undefined ? undefined : countsIn(row);
    },
    /** Starts counting anew from `at`. */
    resetCounts: (object: string, at: number): void => {
      sql(
        `INSERT INTO call_counts VALUES (?, ?, 0, 0)
         ON CONFLICT (object) DO UPDATE SET calls = 0, writes = 0, first_at = excluded.first_at`,
      ).run(object, at);
    },
    /** Of a durable transaction: 2 = FULL. */
    synchronous: (): number =>
      transaction(() => Number(db.prepare('PRAGMA synchronous').get()?.['synchronous'])),
    close: (): void => db.close(),
  };
};

const countsIn = (row: Record<string, unknown>): Counts => ({
  firstAt: Number(row['first_at']),
  calls: Number(row['calls']),
  writes: Number(row['writes']),
});

const prepareSchema = (
  db: DatabaseSync,
  file: string,
  form: { readonly schema: string; readonly version: number },
): void => {
  db.exec('PRAGMA journal_mode = WAL');
  db.exec('PRAGMA synchronous = FULL');
  db.exec('BEGIN IMMEDIATE');
  try {
    const version = Number(db.prepare('PRAGMA user_version').get()?.['user_version']);
    if (version !== 0 && version !== form.version)
      throw new Error(`${file} has another form (schema ${version}, not ${form.version}); remove it`);
    if (version === 0) db.exec(`${form.schema}${COUNTS} PRAGMA user_version = ${form.version};`);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
};
