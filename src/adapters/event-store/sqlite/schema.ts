import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { isStrangeFile, messageOf, StoreDamaged, StoreTooNew } from './errors.ts';
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
    const version = verify(db, file, migrations, check);
    const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode'];
    if (mode !== 'wal') throw new Error(`${file} cannot be written ahead (journal mode ${String(mode)})`);
    db.exec('PRAGMA synchronous = FULL');
    db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    migrate(db, file, version, migrations);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
};

/** Opens the log for reading only, in any thread. */
export const openLogForReading = (file: string, busyMs = 5000): DatabaseSync => {
  const db = new DatabaseSync(file, { readOnly: true, timeout: busyMs });
  try {
    const version = verify(db, file, MIGRATIONS);
    if (version < MIGRATIONS.length)
      throw new Error(`the event log ${file} has not been created or migrated yet`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
};

/** The schema version of a file that may be used, 0 for a new one. Throws StoreDamaged and StoreTooNew. */
const verify = (
  db: DatabaseSync,
  file: string,
  migrations: readonly string[],
  check?: (db: DatabaseSync) => void,
): number => {
  try {
    const version = pragma(db, 'user_version');
    if (version > migrations.length) throw new StoreTooNew(file, version, migrations.length);
    if (version > 0) {
      expectOurFile(db, file, migrations);
      check?.(db);
    } else if (tableCount(db) > 0) {
      throw new StoreDamaged(file, 'it has tables but no schema version');
    }
    return version;
  } catch (error) {
    if (isStrangeFile(error)) throw new StoreDamaged(file, messageOf(error), { cause: error });
    throw error;
  }
};

/** The id that the log got when it was created. Throws StoreDamaged. */
export const readStoreId = (db: DatabaseSync, file: string): string => {
  const row = db.prepare('SELECT value, checksum FROM meta WHERE key = ?').get(STORE_ID);
  const id = row?.['value'];
  if (typeof id !== 'string' || row?.['checksum'] !== metaChecksum(STORE_ID, id))
    throw new StoreDamaged(file, 'its store id is not what it was created with');
  return id;
};

const STORE_ID = 'store_id';

const metaChecksum = (key: string, value: string): number => crc32(`${key}=${value}`);

/** Number of the last event, 0 for an empty log; prepared once, for those who ask again and again. */
export const prepareLastNumber = (db: DatabaseSync): (() => number) => {
  const statement = db.prepare('SELECT coalesce(max(position), 0) AS last FROM events');
  return () => Number(statement.get()?.['last']);
};

/** The same, once. */
export const lastNumber = (db: DatabaseSync): number => prepareLastNumber(db)();

export const pragma = (db: DatabaseSync, name: string): number => {
  const row = db.prepare(`PRAGMA ${name}`).get();
  return Number(Object.values(row ?? {})[0]);
};

/** The file is one of ours, its schema what the migrations made, its id intact. Throws StoreDamaged. */
const expectOurFile = (db: DatabaseSync, file: string, migrations: readonly string[]): void => {
  if (pragma(db, 'application_id') !== APPLICATION_ID)
    throw new StoreDamaged(file, 'it is not an event log of this software');
  const version = pragma(db, 'user_version');
  const model = new DatabaseSync(':memory:');
  try {
    for (const sql of migrations.slice(0, version)) model.exec(sql);
    if (schemaOf(db) !== schemaOf(model))
      throw new StoreDamaged(file, `its schema is not that of version ${version}`);
  } finally {
    model.close();
  }
  readStoreId(db, file);
};

const schemaOf = (db: DatabaseSync): string =>
  JSON.stringify(db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name').all());

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
        const id = randomUUID();
        const add = db.prepare('INSERT INTO meta (key, value, checksum) VALUES (?, ?, ?)');
        add.run(STORE_ID, id, metaChecksum(STORE_ID, id));
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
