import {
  LogDamaged,
  type EventStore,
  type Position,
  type ReadForward,
  type RecordedEvent,
} from '../log/event-store.ts';
import { nextTurn } from '../fairness/slicer.ts';
import type { ReplayedLog } from '../publisher/replay.ts';
import { ChangedEvent } from './event-source.ts';
import { leafHashOf, leafOf } from './merkle/leaf.ts';
import type { AuditLeaf } from './tree.ts';

/** What the tree of this instance tells of one event of a stream: bounded looks, which may be made on the HTTP thread. */
export type LeafIndex = {
  /** Undefined: the tree has no leaf of it (yet). */
  standing(stream: string, revision: number): StandingLeaf | undefined;
  leaf(index: number): AuditLeaf | undefined;
};

export type StandingLeaf = {
  readonly index: number;
  readonly hash: Uint8Array;
  readonly position: Position;
  readonly tenant: string;
};

/**
 * Holds what is read of the log against the leaves that were made of it, so that no answer about the past is made of an
 * event that was changed since. What has no leaf yet passes, and everything does where there is no tree.
 */
export type LeafGuard = {
  /** Throws ChangedEvent. */
  assertUnchanged(event: RecordedEvent): void;
  /**
   * The log has no event at this revision. Throws ChangedEvent where the tree has a leaf of one at or before `position`
   * (default: anywhere): what the log had by then it has lost.
   */
  assertNone(stream: string, revision: number, position?: Position): void;
  /** Undefined: it has no leaf (yet). */
  standing: LeafIndex['standing'];
};

export const createLeafGuard = (tree: () => LeafIndex | undefined): LeafGuard => {
  const standing: LeafGuard['standing'] = (stream, revision) => tree()?.standing(stream, revision);
  const changed = (
    { index, position }: StandingLeaf,
    event: string,
    what: ConstructorParameters<typeof ChangedEvent>[1],
  ): LogDamaged => {
    const leaf = tree()?.leaf(index);
    // The tree was made anew in between.
    if (leaf === undefined) return new LogDamaged(`the event ${event} ${what}`, { event, position });
    return new ChangedEvent(leaf, what);
  };
  return {
    standing,
    assertUnchanged: (event) => {
      const { stream, revision } = event;
      const leaf = standing(stream, revision);
      if (leaf === undefined || leafHashOf(leafOf(event)).equals(leaf.hash)) return;
      throw changed(leaf, `${stream}@${revision}`, 'is not what it was when it was recorded');
    },
    assertNone: (stream, revision, position) => {
      const leaf = standing(stream, revision);
      if (leaf === undefined || (position !== undefined && leaf.position > position)) return;
      throw changed(leaf, `${stream}@${revision}`, 'is missing in the log');
    },
  };
};

/** Milliseconds that hashing has the thread at a time; one event adds at most its own 1 MiB, about 10 ms. */
const SLICE_MS = 5;

/**
 * Streams as the store holds them, each event held against its leaf before it is given. Who names a `limit` knows that there
 * are as many. Reading throws ChangedEvent for an event that was changed, or taken out.
 */
export const heldRead = (read: ReadForward, guard: LeafGuard): ReadForward =>
  async function* (stream, options) {
    const { from = 0, limit } = options;
    let next = from;
    let since = performance.now();
    for await (const event of read(stream, options)) {
      if (event.revision !== next) guard.assertNone(stream, next, event.position);
      guard.assertUnchanged(event);
      next = event.revision + 1;
      yield event;
      if (performance.now() - since < SLICE_MS) continue;
      await nextTurn();
      since = performance.now();
    }
    if (limit !== undefined && next < from + limit) guard.assertNone(stream, next);
  };

/** The log as replays read it: each event is held against its leaf before it is given. */
export const heldLog = (store: EventStore, guard: LeafGuard): ReplayedLog => ({
  storeId: store.storeId,
  lastPosition: (signal) => store.lastPosition(signal),
  readStream: heldRead((stream, options) => store.readStream(stream, options), guard),
  subscribe: async function* (options) {
    for await (const item of store.subscribe(options)) {
      if (item.kind === 'event') guard.assertUnchanged(item.event);
      // The tree has leaves of what could be read alone: one of it means that it was changed since.
      else if (item.kind === 'unreadable') guard.assertNone(item.event.stream, item.event.revision);
      yield item;
    }
  },
});
