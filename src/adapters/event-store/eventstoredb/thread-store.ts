import type { MessagePort } from 'node:worker_threads';
import type { Logger } from '../../../app/ports.ts';
import {
  createEventStoreDbStore,
  type EventStoreDbOptions,
  type EventStoreDbStore,
} from './eventstoredb-event-store.ts';
import { expectReader, type FeedEnd } from './feed-line.ts';

type Shared = { readonly store: Promise<EventStoreDbStore>; readonly loggers: Set<Logger> };
const shared = new WeakMap<MessagePort, Shared>();

/**
 * The one store of the thread that hosts the feed, for each task of that thread: tasks come and go, and what they read
 * together goes on. It is closed with the thread's end of the feed. A task that opens it is about to read, and is waited for.
 */
export const openThreadStore = async (
  options: EventStoreDbOptions & { readonly feed: FeedEnd; readonly logger: Logger },
): Promise<EventStoreDbStore> => {
  const { port } = options.feed;
  const { store: opening, loggers } = shared.get(port) ?? begin(options);
  loggers.add(options.logger);
  const store = await opening.catch((error: unknown) => {
    shared.delete(port);
    throw error;
  });
  const arrived = expectReader(options.feed);
  return {
    ...store,
    async *subscribe(asked) {
      for await (const item of store.subscribe(asked)) {
        arrived();
        yield item;
      }
    },
    close: async () => {
      arrived();
      loggers.delete(options.logger);
    },
  };
};

const begin = (options: EventStoreDbOptions & { readonly feed: FeedEnd }): Shared => {
  const loggers = new Set<Logger>();
  const store = createEventStoreDbStore({ ...options, logger: newestOf(loggers) });
  const begun = { store, loggers };
  const { port } = options.feed;
  shared.set(port, begun);
  port.on('close', () => void store.then((open) => open.close()).catch(() => undefined));
  return begun;
};

/** Says what is said with the task that began last of those that have not ended. */
const newestOf = (loggers: ReadonlySet<Logger>, bound: object = {}): Logger => {
  const at = (level: 'debug' | 'info' | 'warn' | 'error') => (fields: object, message: string) =>
    [...loggers].at(-1)?.[level]({ ...bound, ...fields }, message);
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => newestOf(loggers, { ...bound, ...fields }),
  };
};
