import { rmSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { deserialize, serialize } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import type { Snapshot } from '../../app/commands/snapshot-store.ts';

/** The thread behind `openSqliteSnapshots`: the only one that touches the file. */
export type SnapshotWorkerData = { readonly file: string; readonly storeId: string };
export type SnapshotRequest =
  | { readonly kind: 'load'; readonly call: number; readonly stream: string }
  | { readonly kind: 'save'; readonly snapshot: Snapshot }
  | { readonly kind: 'close' };
export type SnapshotAnswer =
  | { readonly kind: 'loaded'; readonly call: number; readonly snapshot: Snapshot | undefined }
  /** So many saves are done, successfully or not. */
  | { readonly kind: 'saved'; readonly count: number }
  | { readonly kind: 'failed'; readonly problem: string };

const SCHEMA_VERSION = 1;

/** Losing the file costs only time, so nothing waits for the disk. */
const openFile = (file: string): DatabaseSync => {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF');
  const version = db.prepare('PRAGMA user_version').get()?.['user_version'];
  if (version !== SCHEMA_VERSION) {
    db.exec(`
      DROP TABLE IF EXISTS snapshots;
      CREATE TABLE snapshots (
        store_id TEXT NOT NULL,
        stream TEXT NOT NULL,
        revision INTEGER NOT NULL,
        event_id TEXT NOT NULL,
        state_version INTEGER NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (store_id, stream)
      ) STRICT;
      PRAGMA user_version = ${SCHEMA_VERSION};
    `);
  }
  return db;
};

const openOrReplace = (file: string): DatabaseSync => {
  try {
    return openFile(file);
  } catch {
    for (const part of ['', '-wal', '-shm']) rmSync(file + part, { force: true });
    return openFile(file);
  }
};

const serve = (port: NonNullable<typeof parentPort>, { file, storeId }: SnapshotWorkerData): void => {
  const db = openOrReplace(file);
  const select = db.prepare('SELECT * FROM snapshots WHERE store_id = ? AND stream = ?');
  const upsert = db.prepare(`
    INSERT INTO snapshots (store_id, stream, revision, event_id, state_version, content)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (store_id, stream) DO UPDATE SET revision = excluded.revision, event_id = excluded.event_id,
      state_version = excluded.state_version, content = excluded.content`);
  const answer = (message: SnapshotAnswer): void => port.postMessage(message);
  let waiting: Snapshot[] = [];

  const writeAll = (): void => {
    const batch = waiting;
    waiting = [];
    if (batch.length === 0) return;
    try {
      db.exec('BEGIN');
      for (const snapshot of batch) write(upsert, storeId, snapshot);
      db.exec('COMMIT');
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      answer({ kind: 'failed', problem: String(error) });
    }
    answer({ kind: 'saved', count: batch.length });
  };

  port.on('message', (request: SnapshotRequest) => {
    if (request.kind === 'save') {
      // Whatever arrived meanwhile is written in one transaction.
      if (waiting.length === 0) setImmediate(writeAll);
      waiting.push(request.snapshot);
      return;
    }
    writeAll();
    if (request.kind === 'close') {
      db.close();
      port.close();
      return;
    }
    let snapshot: Snapshot | undefined;
    try {
      snapshot = read(select, storeId, request.stream);
    } catch (error) {
      answer({ kind: 'failed', problem: String(error) });
    }
    answer({ kind: 'loaded', call: request.call, snapshot });
  });
};

const write = (upsert: StatementSync, storeId: string, snapshot: Snapshot): void => {
  const { stream, revision, eventId, stateVersion, content } = snapshot;
  upsert.run(storeId, stream, revision, eventId, stateVersion, serialize(content));
};

const read = (select: StatementSync, storeId: string, stream: string): Snapshot | undefined => {
  const row = select.get(storeId, stream);
  if (row === undefined) return undefined;
  return {
    stream,
    revision: Number(row['revision']),
    eventId: String(row['event_id']),
    stateVersion: Number(row['state_version']),
    content: deserialize(row['content'] as Uint8Array),
  };
};

if (parentPort !== null) serve(parentPort, workerData as SnapshotWorkerData);
