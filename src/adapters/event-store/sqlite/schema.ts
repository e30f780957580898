import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { isDamage, messageOf, StoreDamaged, StoreTooNew } from './errors.ts';
import { createLog } from './migrations/0001-create-log.sql.ts';

/** Numbered SQL, oldest first; the file's `user_version` says how many were applied. Never change an entry. */
export const MIGRATIONS: readonly string[] = [createLog];

/** Marks the file as an event log of this software ("FLed"). */
export const APPLICATION_ID = 0x464c_6564;

/** WAL pages after which a COMMIT also checkpoints: 16 MB, a quarter of the stalls of the default. */
const CHECKPOINT_PAGES = 4000;

export type OpenLogOptions = {
  readonly file: string;
  /** Milliseconds to wait for a lock on the file. Default 5,000. */
  readonly busyMs?: number;
  readonly migrations?: readonly string[];
  /** Looks at an existing file before anything is written to it; throws when it must not be used. */
  readonly check?: (db: DatabaseSync) => void;
};

/**
 * Opens the log for writing: checks it, copies it aside when a migration is due, migrates it.
 * Throws StoreDamaged and StoreTooNew.
 */
export const openLogForWriting = (options: OpenLogOptions): DatabaseSync => {
  const { file, migrations = MIGRATIONS, check } = options;
  const db = new DatabaseSync(file, { timeout: options.busyMs ?? 5000 });
  try {
    // Reading the version touches the header: a file that is no database fails here.
    const version = pragma(db, 'user_version');
    if (version > migrations.length) throw new StoreTooNew(file, version, migrations.length);
    if (version > 0) {
      expectOurFile(db, file);
      check?.(db);
    } else if (pragma(db, 'page_count') > 0 && tableCount(db) > 0) {
      throw new StoreDamaged(file, 'it has tables but no schema version');
    }
    const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode'];
    if (mode !== 'wal') throw new Error(`${file} cannot be written ahead (journal mode ${String(mode)})`);
    db.exec('PRAGMA synchronous = FULL');
    db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    migrate(db, file, version, migrations);
    return db;
  } catch (error) {
    db.close();
    if (isDamage(error)) throw new StoreDamaged(file, messageOf(error), { cause: error });
    throw error;
  }
};

/** Opens the log for reading only, in any thread. */
export const openLogForReading = (file: string, busyMs = 5000): DatabaseSync => {
  const db = new DatabaseSync(file, { readOnly: true, timeout: busyMs });
  try {
    const version = pragma(db, 'user_version');
    if (version > MIGRATIONS.length) throw new StoreTooNew(file, version, MIGRATIONS.length);
    expectOurFile(db, file);
    return db;
  } catch (error) {
    db.close();
    if (isDamage(error)) throw new StoreDamaged(file, messageOf(error), { cause: error });
    throw error;
  }
};

export const readMeta = (db: DatabaseSync, key: string): string => {
  const value = db.prepare('SELECT value FROM meta WHERE key = ?').get(key)?.['value'];
  if (typeof value !== 'string') throw new Error(`the event log has no ${key}`);
  return value;
};

/** Number of the last event, 0 for an empty log. */
export const lastNumber = (db: DatabaseSync): number =>
  Number(db.prepare('SELECT coalesce(max(position), 0) AS last FROM events').get()?.['last']);

export const pragma = (db: DatabaseSync, name: string): number => {
  const row = db.prepare(`PRAGMA ${name}`).get();
  return Number(Object.values(row ?? {})[0]);
};

const expectOurFile = (db: DatabaseSync, file: string): void => {
  if (pragma(db, 'application_id') !== APPLICATION_ID)
    throw new StoreDamaged(file, 'it is not an event log of this software');
};

const tableCount = (db: DatabaseSync): number =>
  Number(db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n']);

const migrate = (db: DatabaseSync, file: string, from: number, migrations: readonly string[]): void => {
  if (from === migrations.length) return;
  if (from > 0) copyAside(db, `${file}.v${from}.backup`);
  for (const [i, sql] of migrations.entries()) {
    if (i < from) continue;
    db.exec('BEGIN IMMEDIATE');
    try {
      db.exec(sql);
      if (i === 0) {
        db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
        db.prepare("INSERT INTO meta (key, value) VALUES ('store_id', ?)").run(randomUUID());
      }
      db.exec(`PRAGMA user_version = ${i + 1}`);
      db.exec('COMMIT');
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      throw error;
    }
  }
  // From here on the schema and the store's id survive the loss of the WAL.
  db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
};

/** A copy of the state before a migration. One that a crashed attempt left behind is older or equal: replaced. */
const copyAside = (db: DatabaseSync, target: string): void => {
  rmSync(target, { force: true });
  db.prepare('VACUUM INTO ?').run(target);
};
