import { randomInt } from 'node:crypto';
import type { EventStore } from '../log/event-store.ts';
import type { Clock } from '../ports.ts';
import { assertUnchanged, ChangedEvent, eventsOf } from './event-source.ts';
import type { Rest } from './tenant-heads.ts';
import type { AuditLeaf, AuditTree } from './tree.ts';

/**
 * Goes round all leaves, some at each look, whether the log still holds the events that they were made of. The tree is kept
 * apart from the log: without this a running service would sign over, and serve, what somebody has changed beneath it.
 */
export type LeafSample = {
  /**
   * Looks at the next of the first `size` leaves. Throws ChangedEvent, also at every later look until it is right again.
   */
  look(size: number, signal: AbortSignal): Promise<void>;
  /**
   * Looks at the leaves [from, size), the newest of them where they are very many: what no signature tells about. Throws
   * ChangedEvent.
   */
  tail(from: number, size: number, signal: AbortSignal): Promise<void>;
  /** The next look begins with this leaf: somebody has found it wrong. */
  suspect(index: number): void;
};

/** Leaves of one look at least: at one every 10 seconds more than a million a day. */
const LEAST = 128;
/** As many more as there is time for, in milliseconds; where many are needed to get round in a day, as many as these. */
const LOOK_MS = 20;
const LOOKS_OF_A_DAY = 8_640;
/** Leaves of one look at most: of so many that a day is not enough. */
const MOST = 2_000;
/** Leaves of a tail: twice as many as are left unsigned while somebody signs. */
const MOST_TAIL = 2_000;
/** Leaves whose events are read together. */
const PAGE = 16;
/** Milliseconds without letting others have the thread; one event adds at most its own 1 MiB. */
const SLICE_MS = 5;

export const createLeafSample = ({
  store,
  tree,
  clock,
  rest,
  startAt = (size) => randomInt(size),
  mostTail = MOST_TAIL,
}: {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly tree: AuditTree;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly rest: Rest;
  /** Where the first round begins. Default: by chance, so that restarts do not look at the same leaves again and again. */
  readonly startAt?: (size: number) => number;
  readonly mostTail?: number;
}): LeafSample => {
  /** A place that was wrong: the round would come to it again only after a while. */
  let suspect: number | undefined;
  let next: number | undefined;
  let since = 0;

  const breathe = async (): Promise<void> => {
    if (clock.monotonicMs() - since < SLICE_MS) return;
    await rest();
    since = clock.monotonicMs();
  };
  const compare = async (leaves: readonly AuditLeaf[], signal: AbortSignal): Promise<void> => {
    const events = await eventsOf(store, leaves, signal);
    for (const [at, leaf] of leaves.entries()) {
      await breathe();
      try {
        assertUnchanged(leaf, events[at], tree.hashAt(0, leaf.index));
      } catch (error) {
        if (error instanceof ChangedEvent) suspect = leaf.index;
        throw error;
      }
    }
  };

  return {
    suspect: (index) => {
      suspect ??= index;
    },
    tail: async (from, size, signal) => {
      since = clock.monotonicMs();
      for (let place = Math.max(from, size - mostTail); place < size; ) {
        const leaves = tree.leaves(place, Math.min(PAGE, size - place));
        await breathe();
        await compare(leaves, signal);
        place += leaves.length;
        if (leaves.length === 0) return;
      }
    },
    look: async (size, signal) => {
      if (size === 0) return;
      const started = clock.monotonicMs();
      since = started;
      if (suspect !== undefined) {
        await compare(suspect < size ? tree.leaves(suspect, 1) : [], signal);
        suspect = undefined;
      }
      const wanted = Math.min(size, MOST, Math.max(LEAST, Math.ceil(size / LOOKS_OF_A_DAY)));
      for (let looked = 0; looked < size; ) {
        if (looked >= wanted && (looked >= MOST || clock.monotonicMs() - started >= LOOK_MS)) return;
        next = next === undefined ? startAt(size) : next < size ? next : 0;
        const leaves = tree.leaves(next, Math.min(PAGE, size - next, size - looked));
        await breathe();
        await compare(leaves, signal);
        looked += leaves.length;
        next += leaves.length;
        // A tree that is made anew: there is nothing to be compared for a moment.
        if (leaves.length === 0) return;
      }
    },
  };
};
