import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isBusy } from '../event-store/sqlite/errors.ts';

/** A second process (or a second service in this one) on the same data directory. */
export class DataDirectoryInUse extends Error {
  override readonly name = 'DataDirectoryInUse';
  readonly dataDir: string;
  constructor(dataDir: string, holder: string | undefined) {
    super(
      `the data directory ${dataDir} is in use${holder === undefined ? '' : ` by process ${holder}`}: ` +
        'one process writes to it at a time. Stop that process, or give this one another LEDGER_DATA_DIR.',
    );
    this.dataDir = dataDir;
  }
}

const lockFile = (dataDir: string): string => join(dataDir, 'events.lock');
/** Process id of the last holder of the lock: only to say who it is. */
const holderFile = (dataDir: string): string => join(dataDir, 'events.holder');

/**
 * Takes the data directory for this process: an exclusive transaction on a database of its own, held until the
 * returned function is called. The operating system frees it when the process dies, however it dies.
 * The lock file must never be opened by other means in this process: closing any descriptor of a file drops the
 * POSIX locks on it. Throws DataDirectoryInUse. Beside an EventStoreDB the lock keeps read models and the process index
 * from being written by two.
 */
export const lockDataDirectory = (dataDir: string): (() => void) => {
  const db = new DatabaseSync(lockFile(dataDir), { timeout: 0 });
  try {
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    db.close();
    if (isBusy(error)) throw new DataDirectoryInUse(dataDir, holderOf(dataDir));
    throw error;
  }
  noteHolder(dataDir);
  return () => db.close();
};

/**
 * Who writes to a data directory now; undefined: nobody. Takes no lock that another process could see but for the moment of
 * the look, and works where nothing may be written.
 */
export const writerOf = (dataDir: string): { readonly pid: string | undefined } | undefined => {
  const file = lockFile(dataDir);
  if (!existsSync(file)) return undefined;
  const db = new DatabaseSync(file, { timeout: 0, readOnly: true });
  try {
    db.prepare('SELECT count(*) FROM sqlite_master').get();
    return undefined;
  } catch (error) {
    if (isBusy(error)) return { pid: holderOf(dataDir) };
    throw error;
  } finally {
    db.close();
  }
};

const noteHolder = (dataDir: string): void => {
  try {
    writeFileSync(holderFile(dataDir), `${process.pid}\n`);
  } catch {
    // Only a courtesy to whoever is refused: a full disk must not keep the log from being read.
  }
};

const holderOf = (dataDir: string): string | undefined => {
  try {
    return readFileSync(holderFile(dataDir), 'utf8').trim() || undefined;
  } catch {
    // The holder has not written it yet; the refusal does not depend on it.
    return undefined;
  }
};
