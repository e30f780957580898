import {
  createEventStoreDbStore,
  type EventStoreDbOptions,
} from '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import type { FeedEnd } from '../../../src/adapters/event-store/eventstoredb/feed-line.ts';
import { openThreadStore } from '../../../src/adapters/event-store/eventstoredb/thread-store.ts';
import type { Logger } from '../../../src/app/ports.ts';

/** Reader module of projection workers in specs: a log on the protocol peer, streams of specs included. */
export const openLogReader = (config: EventStoreDbOptions, logger: Logger, feed?: FeedEnd) =>
  feed?.hosts === true
    ? openThreadStore({ ...config, logger, feed })
    : createEventStoreDbStore({ ...config, logger, ...(feed && { feed }) });
