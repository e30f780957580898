import { DatabaseSync } from 'node:sqlite';
import type { Position } from '../../app/log/event-store.ts';
import type { Anchor } from '../../app/log/resume-point.ts';
import type { View } from '../view.ts';

/** Of the runner's own tables: a file of another form is built again. */
const FORM = 2;

/** The runner's own tables in every file: what the file is, how far it is, and what is parked. Not in the digest. */
const RUNNER_SCHEMA = `
  CREATE TABLE _view (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL, version INTEGER NOT NULL, settings TEXT NOT NULL, store TEXT NOT NULL,
    form INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE _checkpoint (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    position TEXT, recorded_at TEXT, events INTEGER NOT NULL, anchor_position TEXT, anchor_id TEXT
  ) STRICT;
  CREATE TABLE _parked (
    stream TEXT PRIMARY KEY, position TEXT NOT NULL, revision INTEGER NOT NULL, error TEXT NOT NULL
  ) STRICT;
`;

export type Checkpoint = {
  /** Everything up to here is in the tables; undefined: nothing yet. */
  readonly position: Position | undefined;
  /** Recorded time of the last applied event. */
  readonly recordedAt: string | undefined;
  /** How many events were applied since the file was created. */
  readonly events: number;
  /** The last event up to here that proves which log it was; undefined: none yet. */
  readonly anchor: Anchor | undefined;
};

export type ParkedStream = {
  readonly stream: string;
  readonly position: Position;
  /** The poison event; it and all later ones of its stream are missing in the tables. */
  readonly revision: number;
  readonly error: string;
};

export const MEMORY = ':memory:';

/** Documents are one or two KB: pages of this size hold a few rows each, and a live commit stays small. */
const PAGE_SIZE = 8192;

const PRAGMAS = {
  // A read model can be rebuilt: it survives a crash of the process, and after a loss of power it is an older
  // but whole one that catches up.
  shared: 'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -6000',
  // Nobody reads a copy that is being built, and one that is not finished is thrown away: no log, no syncing.
  // MEMORY, since a poison event must still be rolled back.
  building: 'PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA cache_size = -64000',
} as const;

/**
 * Opens (or creates) the file of a view for writing; `fitsView` says beforehand whether it is one of this view,
 * version, settings and store. `storeId` is the log it is folded from. `building`: fast, for a file that nobody
 * else opens and that is synced as a whole before anybody relies on it.
 */
export const openViewFile = (
  path: string,
  view: View,
  storeId: string,
  use: keyof typeof PRAGMAS = 'shared',
): DatabaseSync => {
  const db = new DatabaseSync(path, { timeout: 5000 });
  try {
    db.exec(`PRAGMA page_size = ${PAGE_SIZE}`);
    db.exec(PRAGMAS[use]);
    if (db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = '_view'`).get() === undefined) {
      create(db, view, storeId);
      if (use === 'building') for (const index of view.indexesForReads ?? []) db.exec(`DROP INDEX ${index}`);
    }
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
};

/** Makes the indexes that a file does without while it is built. */
export const addIndexesForReads = (db: DatabaseSync, { schema, indexesForReads = [] }: View): void => {
  const whole = new DatabaseSync(MEMORY);
  whole.exec(schema);
  const sqlOf = `SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ?`;
  for (const index of indexesForReads)
    if (db.prepare(sqlOf).get(index) === undefined) db.exec(String(whole.prepare(sqlOf).get(index)?.['sql']));
  whole.close();
};

const create = (db: DatabaseSync, view: View, storeId: string): void => {
  db.exec('BEGIN IMMEDIATE');
  db.exec(RUNNER_SCHEMA);
  db.exec(view.schema);
  db.prepare('INSERT INTO _view VALUES (1, ?, ?, ?, ?, ?)').run(
    view.name,
    view.version,
    view.settings ?? '',
    storeId,
    FORM,
  );
  db.exec('INSERT INTO _checkpoint VALUES (1, NULL, NULL, 0, NULL, NULL)');
  db.exec('COMMIT');
};

/** True when the file exists, can be read and was built by this version of the view from this log. */
export const fitsView = (path: string, view: View, storeId: string): boolean => {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
    const row = db.prepare('SELECT name, version, settings, store, form FROM _view').get();
    return (
      row?.['name'] === view.name &&
      row['version'] === view.version &&
      row['settings'] === (view.settings ?? '') &&
      row['store'] === storeId &&
      row['form'] === FORM
    );
  } catch {
    return false; // absent, not a database, torn: it is disposable, so it is built again
  } finally {
    db?.close();
  }
};

export const readCheckpoint = (db: DatabaseSync): Checkpoint => {
  const row = db
    .prepare('SELECT position, recorded_at, events, anchor_position, anchor_id FROM _checkpoint')
    .get();
  const anchor = row?.['anchor_position'] as string | null | undefined;
  return {
    position: (row?.['position'] as string | null | undefined) ?? undefined,
    recordedAt: (row?.['recorded_at'] as string | null | undefined) ?? undefined,
    events: (row?.['events'] as number | undefined) ?? 0,
    anchor:
      anchor === null || anchor === undefined
        ? undefined
        : { position: anchor, id: String(row?.['anchor_id']) },
  };
};

export const readParked = (db: DatabaseSync): readonly ParkedStream[] =>
  db
    .prepare('SELECT stream, position, revision, error FROM _parked ORDER BY position')
    .all()
    .map((row) => ({ ...row }) as unknown as ParkedStream);

/** A connection that shows the file as it is now, whatever is written meanwhile. Close it soon: it holds the WAL. */
export const openSnapshot = (path: string): DatabaseSync => {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  db.exec('BEGIN');
  readCheckpoint(db); // the first read fixes what the transaction sees
  return db;
};
