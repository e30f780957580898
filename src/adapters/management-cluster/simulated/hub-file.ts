import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { ObjectPlace } from '../../../domain/hubs/hub-object.ts';
import type { ObjectRecord } from './record.ts';

/**
 * The file of one simulated hub. README.md describes its tables: tests and demos read `calls` and `objects` with
 * readers of their own, so the columns are a contract.
 */
const SCHEMA = `
CREATE TABLE hub (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE objects (
  sequence    INTEGER PRIMARY KEY,
  kind        TEXT NOT NULL,
  uid         TEXT NOT NULL UNIQUE,
  namespace   TEXT NOT NULL,
  name        TEXT NOT NULL,
  object_id   TEXT,
  effect_id   TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  deletion_at INTEGER,
  gone_at     INTEGER,
  changed     INTEGER NOT NULL,
  record      TEXT NOT NULL
) STRICT;
CREATE INDEX objects_by_name ON objects (name, kind, namespace, sequence);
CREATE INDEX objects_by_id ON objects (object_id, kind, sequence);
CREATE UNIQUE INDEX objects_by_change ON objects (changed);
CREATE TABLE calls (
  number      INTEGER PRIMARY KEY,
  at          TEXT NOT NULL,
  effect_id   TEXT NOT NULL,
  operation   TEXT NOT NULL,
  kind        TEXT NOT NULL,
  namespace   TEXT NOT NULL,
  object      TEXT NOT NULL,
  result      TEXT NOT NULL,
  answer      TEXT NOT NULL CHECK (answer IN ('given', 'slow', 'lost', 'none')),
  duration_ms REAL NOT NULL,
  instance    TEXT NOT NULL
) STRICT;
CREATE TABLE call_counts (
  object     TEXT PRIMARY KEY,
  first_at   INTEGER NOT NULL,
  calls      INTEGER NOT NULL,
  writes     INTEGER NOT NULL
) STRICT;
`;
const SCHEMA_VERSION = 2;
const BUSY_TIMEOUT_MS = 5000;

export type CallRow = {
  readonly at: number;
  readonly effectId: string;
  readonly operation: string;
  readonly kind: string;
  readonly namespace: string;
  readonly object: string;
  readonly result: string;
  readonly answer: 'given' | 'slow' | 'lost' | 'none';
  readonly durationMs: number;
  readonly instance: string;
};
export type Counts = { readonly firstAt: number; readonly calls: number; readonly writes: number };

export type Attempt<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown };

export type HubFile = ReturnType<typeof openHubFile>;

/** Opens or creates the file. Throws when it cannot, or when the file has another form. */
export const openHubFile = (file: string) => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    prepareSchema(db, file);
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
      const row = sql('SELECT value FROM hub WHERE key = ?').get(key);
      return row === undefined ? undefined : String(row['value']);
    });
  const setValue = (key: string, value: string): void => {
    held.delete(key);
    sql('INSERT INTO hub VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value').run(
      key,
      value,
    );
  };
  const lastChange = (): number =>
    hold('last change', () =>
      Number(sql('SELECT coalesce(max(changed), 0) AS last FROM objects').get()?.['last']),
    );
  const nextChange = (): number => {
    const next = lastChange() + 1;
    held.delete('last change');
    return next;
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
    transaction,
    /** Several in one transaction: one flush to the disk for all that waited. Throws when nothing was done. */
    transactions: <T>(runs: readonly (() => T)[], durable: boolean): Attempt<T>[] =>
      transaction(() => runs.map(attempt), durable),
    getValue,
    setValue,
    nextSequence: (): number =>
      Number(sql('SELECT coalesce(max(sequence), 0) + 1 AS next FROM objects').get()?.['next']),
    insertObject: (record: ObjectRecord, effectId: string): void => {
      sql(
        `INSERT INTO objects (sequence, kind, uid, namespace, name, object_id, effect_id, created_at, changed, record)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ).run(
        record.sequence,
        record.kind,
        record.uid,
        record.namespace,
        record.name,
        record.id ?? null,
        effectId,
        record.createdAt,
        nextChange(),
        JSON.stringify(record),
      );
    },
    updateObject: (record: ObjectRecord): void => {
      const deletion = record.writes.find((write) => write.kind === 'delete');
      sql('UPDATE objects SET record = ?, changed = ?, deletion_at = ? WHERE sequence = ?').run(
        JSON.stringify(record),
        nextChange(),
        deletion?.at ?? null,
        record.sequence,
      );
    },
    /** Notes what a read showed; later ones need not look at this object any more. */
    markGone: (sequence: number, goneAt: number): void => {
      sql('UPDATE objects SET gone_at = ? WHERE sequence = ?').run(goneAt, sequence);
    },
    /** The newest object of that name that is not known to be gone. */
    objectByName: (kind: string, namespace: string, name: string): string | undefined =>
      textsOf(
        sql(
          `SELECT record FROM objects WHERE name = ? AND kind = ? AND namespace = ? AND gone_at IS NULL
           ORDER BY sequence DESC LIMIT 1`,
        ).all(name, kind, namespace),
      )[0],
    /** What identifies the newest object of that name and its last write, without reading it. */
    writeOf: (
      kind: string,
      { namespace, name }: ObjectPlace,
    ): { readonly sequence: number; readonly changed: number } | undefined =>
      sql(
        `SELECT sequence, changed FROM objects WHERE name = ? AND kind = ? AND namespace = ? AND gone_at IS NULL
         ORDER BY sequence DESC LIMIT 1`,
      ).get(name, kind, namespace) as { sequence: number; changed: number } | undefined,
    objectsByName: (kind: string, name: string): string[] =>
      textsOf(
        sql(
          'SELECT record FROM objects WHERE name = ? AND kind = ? AND gone_at IS NULL ORDER BY sequence',
        ).all(name, kind),
      ),
    objectsById: (kind: string, id: string): string[] =>
      textsOf(
        sql(
          'SELECT record FROM objects WHERE object_id = ? AND kind = ? AND gone_at IS NULL ORDER BY sequence',
        ).all(id, kind),
      ),
    /** Those that are not known to be gone, in the order of creation. */
    objectsOfKind: (kind: string): ObjectRecord[] =>
      textsOf(
        sql('SELECT record FROM objects WHERE kind = ? AND gone_at IS NULL ORDER BY sequence').all(kind),
      ).map((text) => JSON.parse(text) as ObjectRecord),
    /** Number of the last write to an object; 0 before the first. */
    lastChange,
    /** Objects written after change `after`, oldest change first; those known to be gone only when asked for. */
    objectsChangedAfter: (
      after: number,
      withGone: boolean,
      limit: number,
    ): { readonly record: ObjectRecord; readonly changed: number }[] =>
      sql(
        `SELECT record, changed FROM objects WHERE changed > ? AND (gone_at IS NULL OR ?) ORDER BY changed LIMIT ?`,
      )
        .all(after, withGone ? 1 : 0, limit)
        .map((row) => ({
          record: JSON.parse(String(row['record'])) as ObjectRecord,
          changed: Number(row['changed']),
        })),
    /** Time of the last call; 0 before the first. */
    lastCallAt: (): number =>
      hold('last call', () => {
        const row = sql('SELECT at FROM calls ORDER BY number DESC LIMIT 1').get();
        return row === undefined ? 0 : Date.parse(String(row['at']));
      }),
    addCall: (row: CallRow): void => {
      held.set('last call', row.at);
      sql(
        `INSERT INTO calls (at, effect_id, operation, kind, namespace, object, result, answer, duration_ms, instance)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ).run(
        new Date(row.at).toISOString(),
        row.effectId,
        row.operation,
        row.kind,
        row.namespace,
        row.object,
        row.result,
        row.answer,
        row.durationMs,
        row.instance,
      );
    },
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
/** Not parsed yet: who knows an object by its text needs no other form of it. */
const textsOf = (rows: readonly Record<string, unknown>[]): string[] =>
  rows.map((row) => String(row['record']));

const prepareSchema = (db: DatabaseSync, file: string): void => {
  db.exec('PRAGMA journal_mode = WAL');
  db.exec('PRAGMA synchronous = FULL');
  db.exec('BEGIN IMMEDIATE');
  try {
    const version = Number(db.prepare('PRAGMA user_version').get()?.['user_version']);
    if (version !== 0 && version !== SCHEMA_VERSION)
      throw new Error(`${file} has another form (schema ${version}, not ${SCHEMA_VERSION}); remove it`);
    if (version === 0) db.exec(`${SCHEMA} PRAGMA user_version = ${SCHEMA_VERSION};`);
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
};
