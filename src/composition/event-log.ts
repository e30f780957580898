import { lockDataDirectory } from '../adapters/data-directory/lock.ts';
import type { FeedEnd } from '../adapters/event-store/eventstoredb/feed-line.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../adapters/event-store/sqlite/sqlite-event-store.ts';
import { StoreUnavailable, type EventStore } from '../app/log/event-store.ts';
import type { HubMarks } from '../app/hubs/hub-marks.ts';
import { OWN_CATEGORIES } from '../app/log/own-categories.ts';
import type { Logger } from '../app/ports.ts';
import { BadSetting, type Config } from '../config.ts';
import { ApiError } from '../http/errors.ts';
import type { LogReaderConfig } from './log-reader-module.ts';

/**
 * Opens the event log that the settings name, and locks the data directory until the log is closed. Throws BadSetting when a
 * named log cannot be used, and DataDirectoryInUse.
 */
export const openStore = async (
  config: Config,
  instance: string,
  logger: Logger,
): Promise<{
  store: EventStore;
  sqlite: SqliteEventStore | undefined;
  readerConfig: LogReaderConfig;
  /** What a thread that follows an EventStoreDB is given, so that the process subscribes once. */
  openFeed: ((hosts: boolean) => FeedEnd) | undefined;
  /** Events of other writers to the same log that were passed over so far. */
  foreignEvents: () => number;
}> => {
  const deadlineMs = config.storeDeadlineMs;
  if (config.eventStore === 'sqlite') {
    const sqlite = await openSqliteEventStore({ dataDir: config.dataDir, deadlineMs, logger });
    return {
      store: sqlite,
      sqlite,
      readerConfig: { kind: 'sqlite', dataDir: config.dataDir },
      openFeed: undefined,
      foreignEvents: () => 0,
    };
  }
  // Loaded here: the client and its protocol are a good part of what a start has to load, and the embedded store uses
  // neither.
  const { createEventStoreDbStore } = await import(
    '../adapters/event-store/eventstoredb/eventstoredb-event-store.ts'
  );
  const { createFeedLines } = await import('../adapters/event-store/eventstoredb/feed-line.ts');
  const lines = createFeedLines();
  const connectionString = config.eventStore;
  const options = {
    connectionString,
    instance,
    deadlineMs,
    logger,
    writes: true,
    categories: OWN_CATEGORIES,
    feed: lines.open(false),
  };
  const unlock = lockDataDirectory(config.dataDir);
  const remote = await createEventStoreDbStore(options).catch((error: unknown) => {
    unlock();
    throw noEventStore(error);
  });
  const close = async (): Promise<void> => {
    lines.close();
    await remote.close().finally(unlock);
  };
  const store = { ...remote, close };
  return {
    store,
    sqlite: undefined,
    readerConfig: { kind: 'eventstoredb', connectionString, instance, deadlineMs },
    openFeed: lines.open,
    foreignEvents: () => remote.stats().foreignEvents,
  };
};

/** The connection string is not repeated: it may hold a password. */
const noEventStore = (error: unknown): unknown => {
  if (!(error instanceof StoreUnavailable || error instanceof TypeError)) return error;
  // What was told of rights and passwords says itself what to do.
  const isRefused = error instanceof StoreUnavailable && error.reason !== 'down';
  const example = isRefused ? '' : '. Example: LEDGER_EVENT_STORE=esdb://localhost:2113?tls=false';
  return new BadSetting(`LEDGER_EVENT_STORE: the event store cannot be used: ${error.message}${example}`, {
    cause: error,
  });
};

/** What only the embedded store offers over the admin routes. */
export const embeddedStoreServices = (
  sqlite: SqliteEventStore | undefined,
  marks: Pick<HubMarks, 'beginEpoch'>,
  logger: Logger,
) =>
  sqlite === undefined
    ? {}
    : {
        storeInfo: async () => ({ pragmas: { ...(await sqlite.pragmas()) } }),
        backupStore: async (file: string) => {
          const { target, bytes } = await sqlite.backup(file).catch((error: unknown) => {
            throw notBackedUp(error);
          });
          // From here on the backup does not know the newest epoch on the hubs; without it that comes with the next one.
          await marks
            .beginEpoch()
            .catch((error: unknown) => logger.warn({ err: error }, 'no driving epoch begun after a backup'));
          return { file: target, bytes };
        },
        checkStore: async () => {
          const { events, findings } = await sqlite.fullCheck();
          return { events, findings: findings.map((finding) => Object.values(finding).join(': ')) };
        },
      };

/** A file that exists, a folder that does not, a disk without space: for the operator to put right. */
const notBackedUp = (error: unknown): unknown =>
  error instanceof StoreUnavailable
    ? error
    : new ApiError(
        'FAILED_PRECONDITION',
        `the backup was not made: ${error instanceof Error ? error.message : String(error)}`,
        { reason: 'BACKUP_FAILED', cause: error },
      );
