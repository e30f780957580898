import type { EventStore, RecordedEvent } from '../log/event-store.ts';
import { eventsOf } from './event-source.ts';
import type { Rest } from './tenant-heads.ts';
import type { AuditLeaf } from './tree.ts';

/** Where events of a type are found without reading the whole log. */
export type FindLeaves = (query: {
  readonly tenants: 'all';
  readonly types: readonly string[];
  readonly after?: number;
  readonly limit: number;
}) => { readonly leaves: readonly AuditLeaf[]; readonly next: number | undefined };

/**
 * Sees every event of a few rare types once, in log order. Few people give audit grants or ask for erasures, so what is
 * made of their events fits in memory and needs no table.
 */
export type Followed = {
  /** Resolves when everything has been seen that the read model knew of when it was called. */
  catchUp(signal?: AbortSignal): Promise<void>;
};

const PAGE = 200;

export const followEvents = ({
  store,
  find,
  types,
  rest,
  see,
}: {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly find: FindLeaves;
  readonly types: readonly string[];
  readonly rest: Rest;
  readonly see: (event: RecordedEvent) => void;
}): Followed => {
  let after: number | undefined;
  let last: Promise<void> = Promise.resolve();

  const round = async (signal: AbortSignal | undefined): Promise<void> => {
    for (;;) {
      const { leaves, next } = find({
        tenants: 'all',
        types,
        limit: PAGE,
        ...(after === undefined ? {} : { after }),
      });
      for (const event of await eventsOf(store, leaves, signal)) if (event !== undefined) see(event);
      after = next ?? leaves.at(-1)?.index ?? after;
      if (next === undefined) return;
      await rest();
    }
  };

  return {
    catchUp: (signal) => {
      // One after the other, so that no event is seen twice; the failure of one is not that of the next.
      last = last.catch(() => undefined).then(() => round(signal));
      return last;
    },
  };
};
