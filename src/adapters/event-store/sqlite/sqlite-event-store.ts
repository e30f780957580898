import { StoreUnavailable, type EventStore } from '../../../app/log/event-store.ts';
import { makeDirectory } from '../../../app/deployment/make-directory.ts';
import type { Logger } from '../../../app/ports.ts';
import { lockDataDirectory } from '../../data-directory/lock.ts';
import { checkAppend, checkMaxCount } from '../shared/checks.ts';
import { createGrowth, type Growth } from '../shared/paged-subscription.ts';
import type { BackupResult } from './backup.ts';
import type { StoreCheck } from './check-store.ts';
import type { WriterFaults } from './faults.ts';
import { logFile } from './files.ts';
import { createLogReader, type EventLogReader } from './log-reader.ts';
import { openLogForReading } from './schema.ts';
import { backupOnThread, checkOnThread } from './threads.ts';
import { startWriterClient } from './writer-client.ts';
import type { WriterPragmas } from './writer-protocol.ts';

export type SqliteEventStoreOptions = {
  /** Folder of the log; created when it is missing. */
  readonly dataDir: string;
  /** Milliseconds until an append that the writer has not answered counts as unknown. Default 10,000. */
  readonly deadlineMs?: number;
  /** Milliseconds a connection waits for a lock on the file. Default 5,000. */
  readonly busyMs?: number;
  /** Milliseconds after which a writer that does not answer a batch is replaced. Default 30,000. */
  readonly stuckMs?: number;
  readonly logger?: Logger;
  /** Tests only: faults of the writer thread. */
  readonly faults?: WriterFaults;
};

export type SqliteEventStore = EventStore & {
  /** Copies the log to one new file while it is written to. Throws when `target` exists. */
  readonly backup: (target: string) => Promise<BackupResult>;
  /** The whole check of this log, on a thread of its own. */
  readonly fullCheck: () => Promise<StoreCheck>;
  /** Settings in force on the live writing connection. */
  readonly pragmas: () => Promise<WriterPragmas>;
};

/** Newest events that a start checks: what a crash may have left is among them, and a start takes as long on any log. */
const CHECKED_AT_START = 20_000;

/** A net for subscriptions, should the writer die between its COMMIT and its answer. */
const POLL_MS = 1000;

/**
 * Opens the embedded event log of a data directory as its only writer. Throws DataDirectoryInUse, StoreDamaged
 * and StoreTooNew. Power loss is covered by `synchronous=FULL`: an append is answered after its COMMIT was synced.
 */
export const openSqliteEventStore = async (options: SqliteEventStoreOptions): Promise<SqliteEventStore> => {
  const { dataDir } = options;
  await makeDirectory(dataDir);
  const unlock = lockDataDirectory(dataDir);
  try {
    return await openLocked(options, unlock);
  } catch (error) {
    unlock();
    throw error;
  }
};

const openReader = async (file: string, busyMs: number, growth: Growth): Promise<EventLogReader> =>
  createLogReader(openLogForReading(file, busyMs), file, growth);

const openLocked = async (
  options: SqliteEventStoreOptions,
  unlock: () => void,
): Promise<SqliteEventStore> => {
  const file = logFile(options.dataDir);
  const busyMs = options.busyMs ?? 5000;
  const growth = createGrowth({ pollMs: POLL_MS });
  const writer = await startWriterClient({
    writer: { file, busyMs, checkNewest: CHECKED_AT_START, faults: options.faults?.memory },
    deadlineMs: options.deadlineMs ?? 10_000,
    stuckMs: options.stuckMs ?? 30_000,
    logger: options.logger,
    onGrowth: growth.grew,
  });
  const reader = await openReader(file, busyMs, growth).catch(async (error: unknown) => {
    await writer.close();
    throw error;
  });
  let closing: Promise<void> | undefined;

  const refuseWhenClosed = (): void => {
    if (closing !== undefined) throw new StoreUnavailable('the event log is closed', 'closed');
  };
  const close = async (): Promise<void> => {
    try {
      await reader.close();
      await writer.close();
    } finally {
      unlock();
    }
  };

  return {
    ...reader,
    kind: 'sqlite',
    singleWriter: true,
    // The writer's own promise is handed out: `AppendOptions.after` knows it again.
    append: (stream, expected, events, appendOptions) => {
      try {
        refuseWhenClosed();
        appendOptions?.signal?.throwIfAborted();
        checkAppend(stream, expected, events);
      } catch (error) {
        return Promise.reject(error as Error);
      }
      return writer.append(stream, expected, events, appendOptions);
    },
    setMaxCount: async (stream, maxCount) => {
      refuseWhenClosed();
      checkMaxCount(stream, maxCount);
      await writer.request({ kind: 'set-max-count', stream, maxCount });
    },
    ping: async (signal) => {
      refuseWhenClosed();
      signal?.throwIfAborted();
      await writer.request({ kind: 'ping' }, signal);
    },
    pragmas: async () => {
      refuseWhenClosed();
      return (await writer.request({ kind: 'pragmas' })) as WriterPragmas;
    },
    backup: async (target) => {
      refuseWhenClosed();
      return await backupOnThread(file, target);
    },
    fullCheck: () => checkOnThread(options.dataDir),
    close: async () => {
      closing ??= close();
      await closing;
    },
  };
};
