import { LRUCache } from 'lru-cache';
import type { EventStore, Position } from '../log/event-store.ts';

/** Events that are read in place of streams at most. */
const MOST = 128;

/**
 * Tells that streams have not moved on since they were read, without reading each of them again: it reads
 * what came to the log since, once for all who ask at the same time. For a log with other writers.
 */
export const createLogTail = (store: Pick<EventStore, 'readAll' | 'end'>) => {
  // Counted by size: `max` would take the room for all of them at once.
  const watched = new LRUCache<string, { newest: number; isRead: boolean }>({
    maxSize: 10_000,
    sizeCalculation: () => 1,
  });
  /** Every event behind this position is still to be read. */
  let at: Position | undefined;
  let reading: Promise<void> | undefined;

  const readOn = async (): Promise<void> => {
    let events = 0;
    if (at !== undefined)
      for await (const { stream, revision, position } of store.readAll({ after: at, limit: MOST })) {
        const entry = watched.get(stream);
        if (entry !== undefined && entry.newest < revision) entry.newest = revision;
        at = position;
        events += 1;
      }
    if (at !== undefined && events < MOST) return;
    // From the end that reads show, not from what was appended: a node that was the leader may be behind it.
    const end = await store.end();
    watched.clear();
    at = end;
  };
  const hasReached = (position: Position): boolean => at !== undefined && at >= position;

  return {
    /** To be called before a stream is read; the result, after the read, with the revision that was found. */
    watch: (stream: string): ((revision: number) => void) => {
      const entry = watched.get(stream) ?? { newest: -1, isRead: false };
      watched.set(stream, entry);
      return (revision) => {
        entry.newest = Math.max(entry.newest, revision);
        entry.isRead = true;
      };
    },
    /** Newest revision of a watched stream in the log, at least up to `asOf`; Infinity: it has to be read. */
    newest: async (stream: string, asOf: Position): Promise<number> => {
      // What began earlier may have missed it.
      if (!hasReached(asOf)) await reading;
      if (!hasReached(asOf)) {
        // Whoever then reads the stream meets the same trouble, and tells it.
        const settle = (): void => (reading = undefined);
        await (reading ??= readOn().then(settle, settle));
      }
      const entry = hasReached(asOf) ? watched.get(stream) : undefined;
      return entry?.isRead === true ? entry.newest : Infinity;
    },
  };
};
