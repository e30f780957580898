import type { FeedEnd } from '../adapters/event-store/eventstoredb/feed-line.ts';
import { openSqliteLogReader } from '../adapters/event-store/sqlite/open-log-reader.ts';
import type { EventStore } from '../app/log/event-store.ts';
import type { Logger } from '../app/ports.ts';
import type { LogReader } from '../projections/log-reader.ts';

/** How a worker thread reads the log; plain JSON, for it crosses a thread. */
export type LogReaderConfig =
  | { readonly kind: 'sqlite'; readonly dataDir: string }
  | {
      readonly kind: 'eventstoredb';
      readonly connectionString: string;
      readonly instance: string;
      /** Milliseconds: LEDGER_STORE_DEADLINE_MS. */
      readonly deadlineMs: number;
    };

/** Entry of the projection workers' reader module: projections know no adapters. */
export const openLogReader = async (
  config: LogReaderConfig,
  logger?: Logger,
  feed?: FeedEnd,
): Promise<LogReader & Pick<EventStore, 'readAll'>> => {
  if (config.kind === 'sqlite') return openSqliteLogReader({ ...config, shared: true });
  // Loaded here, so that the threads of the embedded store start without the client and its protocol.
  const { createEventStoreDbStore } = await import(
    '../adapters/event-store/eventstoredb/eventstoredb-event-store.ts'
  );
  const { openThreadStore } = await import('../adapters/event-store/eventstoredb/thread-store.ts');
  const { OWN_CATEGORIES } = await import('../app/log/own-categories.ts');
  const options = { ...config, categories: OWN_CATEGORIES };
  return feed?.hosts === true && logger !== undefined
    ? openThreadStore({ ...options, feed, logger })
    : createEventStoreDbStore({ ...options, ...(logger && { logger }), ...(feed && { feed }) });
};
