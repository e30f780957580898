import type { MessagePort } from 'node:worker_threads';
import type { EventStore } from '../app/log/event-store.ts';
import type { Logger } from '../app/ports.ts';

/**
 * What a projection needs of the event log. Every event store is one; a worker thread opens its own through a module
 * named by URL, since projections know no adapters.
 */
export type LogReader = Pick<
  EventStore,
  'storeId' | 'readStream' | 'subscribe' | 'lastPosition' | 'end' | 'idAt' | 'close'
>;

/** How a thread reads the log together with others of its process; only the reader module knows what is said on it. */
export type ThreadFeed = { readonly port: MessagePort; readonly hosts: boolean };

/**
 * Export `openLogReader` of a reader module. The configuration is plain JSON, for it crosses a thread; the logger is the
 * service's, with the name of the view.
 */
export type OpenLogReader<Config = unknown> = (
  config: Config,
  logger: Logger,
  feed?: ThreadFeed,
) => Promise<LogReader> | LogReader;
