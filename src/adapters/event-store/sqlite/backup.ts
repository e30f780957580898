import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import type { Position } from '../../../app/log/event-store.ts';
import { formatPosition } from '../shared/position.ts';
import { lastNumber, openLogForReading, readStoreId } from './schema.ts';

/** Pages per step: between two steps other connections get at the file. */
const STEP_PAGES = 2000;

export type BackupResult = {
  readonly target: string;
  readonly storeId: string;
  /** Position of the last event in the copy; undefined when it holds none. */
  readonly position: Position | undefined;
  readonly bytes: number;
};

/**
 * Copies the log to one file while it is written to. The copy is one moment of the log: the connection holds a
 * read transaction, so that commits meanwhile neither appear in it nor make it start over. It stands under
 * `target` only when it is complete and on disk. Throws when `target` exists or its folder does not. Blocks its thread at times.
 */
export const backupLog = async (file: string, target: string): Promise<BackupResult> => {
  if (existsSync(target)) throw new Error(`${target} exists: a backup never replaces a file`);
  assertWritable(dirname(target));
  const partial = `${target}.partial`;
  rmSync(partial, { force: true });
  const source = openLogForReading(file);
  try {
    source.exec('BEGIN');
    const last = lastNumber(source);
    await backup(source, partial, { rate: STEP_PAGES });
    source.exec('COMMIT');
    leaveWal(partial);
    sync(partial);
    renameSync(partial, target);
    sync(dirname(target));
    return {
      target,
      storeId: readStoreId(source, file),
      position: last === 0 ? undefined : formatPosition(last),
      bytes: statSync(target).size,
    };
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  } finally {
    source.close();
  }
};

/** SQLite would only say that it cannot open the file. */
const assertWritable = (folder: string): void => {
  if (!existsSync(folder)) throw new Error(`folder ${folder} not found`);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Error(`nothing can be written in ${folder}`, { cause: error });
  }
};

/** A backup is one file, readable where nothing can be written beside it. */
const leaveWal = (file: string): void => {
  const copy = new DatabaseSync(file);
  try {
    copy.exec('PRAGMA journal_mode = DELETE');
  } finally {
    copy.close();
  }
};

/** What a file or directory holds is on disk. */
export const sync = (path: string): void => {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
};
