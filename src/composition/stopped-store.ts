import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createLogReader } from '../adapters/event-store/sqlite/log-reader.ts';
import { logFile } from '../adapters/event-store/sqlite/files.ts';
import { writerOf } from '../adapters/data-directory/lock.ts';
import { openLogForReading } from '../adapters/event-store/sqlite/schema.ts';
import { createGrowth } from '../adapters/event-store/shared/paged-subscription.ts';
import { verifyStore, type StoreReport } from '../app/audit/bundle/verify-store.ts';
import type { ServedTrees } from '../app/audit/bundle/served-trees.ts';
import type { KeptTree } from '../app/audit/bundle/store-naming.ts';
import type { HashAt } from '../app/audit/merkle/hashing.ts';
import type { Trust } from '../app/audit/merkle/key-chain.ts';
import type { StoreToCheck } from '../cli/connection.ts';
import { CliFailure, EXIT } from '../cli/exit.ts';
import { openAuditReader } from '../projections/audit/audit-reader.ts';

/**
 * Compares the events of a stopped embedded store, or of a backup, with all heads that were signed over them. Throws CliFailure
 * where there is no store, or a service writes to it.
 */
export const verifyStoppedStore = async (which: StoreToCheck, trust?: Trust): Promise<StoreReport> => {
  const file = logIn(which);
  if ('file' in which && !looksLikeStore(file))
    throw new CliFailure(
      EXIT.usage,
      `${file} is neither an embedded store nor a backup of one; check an export without --store`,
    );
  assertStopped(file);
  const log = createLogReader(openLogForReading(file), file, createGrowth());
  const tree = 'dataDir' in which ? treeBeside(which.dataDir) : undefined;
  try {
    const report = await verifyStore(log, {
      ...(trust === undefined ? {} : { trust }),
      ...(tree === undefined ? {} : { kept: tree.kept, served: tree.served }),
    });
    return 'dataDir' in which && tree === undefined
      ? { ...report, remarks: [...report.remarks, NO_TREE] }
      : report;
  } finally {
    tree?.close();
    await log.close();
  }
};

/** Throws CliFailure where there is no file. */
export const logIn = (which: StoreToCheck): string => {
  const file = 'file' in which ? which.file : logFile(which.dataDir);
  if (existsSync(file)) return file;
  throw new CliFailure(
    EXIT.usage,
    `no event log at ${file}: give the data directory of an embedded store, or a backup of one`,
  );
};

const NO_TREE =
  'no tree of this release that can be read lies beside the log: what the service serves of it was not looked at';

const SQLITE = 'SQLite format 3\0';

/** What is no SQLite file at all was given by mistake; what is damaged within shows when it is read. */
const looksLikeStore = (path: string): boolean => {
  const head = Buffer.alloc(SQLITE.length);
  const file = openSync(path, 'r');
  try {
    readSync(file, head, 0, head.length, 0);
  } finally {
    closeSync(file);
  }
  return head.toString('latin1') === SQLITE;
};

/** Beside a running service heads, events and tree would be read at different times. */
const assertStopped = (file: string): void => {
  const dataDir = dirname(file);
  // A backup may lie in the data directory, under another name.
  const writer = file === logFile(dataDir) ? writerOf(dataDir) : undefined;
  if (writer === undefined) return;
  throw new CliFailure(
    EXIT.usage,
    `the store in ${dataDir} is in use by ${writer.pid === undefined ? 'a running service' : `process ${writer.pid}`}: stop that ` +
      'service first, or check a backup of it (ledgerctl store backup <file>, then audit verify --store <file>)',
  );
};

/**
 * The tree that the service kept beside the log: with it a wrong event is named, for which nothing is believed of it that does
 * not lead to a signed root. When the log is right, it is checked itself: the service serves tiles and proofs from it.
 */
const treeBeside = (
  dataDir: string,
): { readonly kept: KeptTree; readonly served: ServedTrees; readonly close: () => void } | undefined => {
  try {
    const { reader, close } = auditReaderBeside(dataDir);
    const recordAt = (index: number) => {
      try {
        return reader.leaf(index)?.record;
      } catch {
        return undefined;
      }
    };
    return { kept: { hashAt: asRangeError(reader.hashAt), recordAt }, served: reader, close };
  } catch {
    return undefined;
  }
};

/** Throws where no tree that can be read lies beside the log. */
export const auditReaderBeside = (dataDir: string): ReturnType<typeof openAuditReader> => {
  const folder = join(dataDir, 'read-models');
  const name = basename(readFileSync(join(folder, 'audit.current'), 'utf8').trim());
  return openAuditReader(join(folder, name));
};

/** A file that is damaged, or of another version, is a tree that does not reach. */
const asRangeError =
  (hashAt: HashAt): HashAt =>
  (level, index) => {
    try {
      return hashAt(level, index);
    } catch (error) {
      throw new RangeError('the tree beside the log cannot be read', { cause: error });
    }
  };
