import { randomInt } from 'node:crypto';
import type { EventStore } from '../event-store.ts';
import type { Clock } from '../ports.ts';
import { assertUnchanged, ChangedEvent, eventsOf } from './event-source.ts';
import type { Rest } from './tenant-heads.ts';
import type { AuditTree } from './tree.ts';

/**
 * Looks at a few leaves whether the log still holds the events that they were made of. The tree is kept apart from the
 * log: without this a running service would sign over, and serve, what somebody has changed beneath it.
 */
export type LeafSample = {
  /** Looks at some of the first `size` leaves. Throws ChangedEvent, also at every later look until it is right again. */
  look(size: number, signal: AbortSignal): Promise<void>;
};

/** Leaves of one look: some milliseconds. */
const LEAVES = 32;
/** Milliseconds without letting others have the thread; one event adds at most its own 1 MiB. */
const SLICE_MS = 5;

export const createLeafSample = ({
  store,
  tree,
  clock,
  rest,
}: {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly tree: AuditTree;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly rest: Rest;
}): LeafSample => {
  /** A place that was wrong: by chance it would hardly be looked at again. */
  let suspect: number | undefined;

  return {
    look: async (size, signal) => {
      let since = clock.monotonicMs();
      const breathe = async (): Promise<void> => {
        if (clock.monotonicMs() - since < SLICE_MS) return;
        await rest();
        since = clock.monotonicMs();
      };
      const places = suspect === undefined || suspect >= size ? [] : [suspect];
      for (const place of [...places, ...placesBelow(size)]) {
        const leaf = tree.leaf(place);
        if (leaf === undefined) continue;
        const [event] = await eventsOf(store, [leaf], signal);
        await breathe();
        try {
          assertUnchanged(leaf, event, tree.hashAt(0, place));
        } catch (error) {
          if (error instanceof ChangedEvent) suspect = place;
          throw error;
        }
        if (place === suspect) suspect = undefined;
        await breathe();
      }
    },
  };
};

/** All of a few; otherwise as many as a look has, by chance: nobody can tell which ones. */
const placesBelow = (size: number): readonly number[] =>
  size <= LEAVES
    ? Array.from({ length: size }, (_, place) => place)
    : Array.from({ length: LEAVES }, () => randomInt(size));
