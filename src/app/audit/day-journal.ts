import { LRUCache } from 'lru-cache';
import { streamName } from '../../domain/stream-name.ts';
import {
  OutcomeUnknown,
  WrongExpectedRevision,
  type EventStore,
  type EventToAppend,
  type ExpectedRevision,
  type Position,
} from '../log/event-store.ts';
import { createStreamQueue } from '../commands/stream-queue.ts';

/**
 * Streams `<category>-<tenant>.<day>` into which every instance writes what happened, one entry after the other: a stream
 * of a day stays short enough to be read. Nothing is decided here, so that only the order of the writers has to be settled.
 */
export type DayJournal = {
  /**
   * Appends the entries of one append together, in their order; returns where they are.
   * Throws StoreUnavailable, and OutcomeUnknown when the store does not say after several tries.
   */
  append(stream: string, entries: readonly EventToAppend[]): Promise<Position>;
};

const MAX_TRIES = 20;
const MAX_UNKNOWN = 3;

/** The stream of a tenant's day; `at` is the ISO time of the entry. The service's own are under `_`. */
export const dayStream = (category: string, tenant: string, at: string): string =>
  streamName(category, `${tenant === '' ? '_' : tenant}.${at.slice(0, 10)}`);

export const createDayJournal = (store: EventStore): DayJournal => {
  const known = new LRUCache<string, { readonly revision: ExpectedRevision }>({ max: 1_000 });
  const queue = createStreamQueue();

  /** What an earlier try of ours, whose answer was lost, left behind `from`. */
  const find = async (stream: string, from: ExpectedRevision, id: string): Promise<Position | undefined> => {
    const first = from === 'no_stream' ? 0 : from + 1;
    for await (const event of store.readStream(stream, { from: first }))
      if (event.id === id) return event.position;
    return undefined;
  };

  const write = async (stream: string, entries: readonly EventToAppend[]): Promise<Position> => {
    let unsettled: ExpectedRevision | undefined;
    let unknown = 0;
    for (let tries = 0; ; tries += 1) {
      const revision = known.get(stream)?.revision ?? (await store.currentRevision(stream));
      if (unsettled !== undefined && unsettled !== revision) {
        const stored = await find(stream, unsettled, entries.at(-1)?.id ?? '');
        if (stored !== undefined) return stored;
        unsettled = undefined;
      }
      try {
        const appended = await store.append(stream, revision, entries);
        known.set(stream, { revision: appended.revision });
        return appended.position;
      } catch (error) {
        known.delete(stream);
        if (error instanceof WrongExpectedRevision && tries < MAX_TRIES) continue;
        if (!(error instanceof OutcomeUnknown) || unknown >= MAX_UNKNOWN) throw error;
        unknown += 1;
        unsettled ??= revision;
      }
    }
  };

  return {
    append: (stream, entries) => queue.run(stream, () => write(stream, entries)),
  };
};
