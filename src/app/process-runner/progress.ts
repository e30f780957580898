import type { Position } from '../log/event-store.ts';
import type { Anchor } from '../log/resume-point.ts';

/**
 * Up to where the log was taken in. Inputs of different runs are handled at the same time and end in any order; the
 * checkpoint is the last position before the oldest one that is not settled.
 */
export type Progress = {
  /** Seen and needing nothing more. `anchor`: of the event at that position. */
  passed(position: Position, anchor?: Anchor): void;
  /** Seen and to be handled; the returned function settles it. One event may have several readers. */
  begun(position: Position, anchor?: Anchor): () => void;
  /** Everything up to here is taken in; undefined: nothing yet. */
  checkpoint(): Position | undefined;
  /** The last event up to there: what to resume after; undefined: the beginning. */
  anchor(): Anchor | undefined;
  /** Inputs that are not settled. */
  open(): number;
};

type Mark = { readonly position: Position | undefined; readonly anchor: Anchor | undefined };

export const createProgress = (start: Anchor | undefined): Progress => {
  let seen: Mark = { position: start?.position, anchor: start };
  let beforeSeen = seen;
  const see = (position: Position, anchor = seen.anchor): void => {
    if (position === seen.position) return;
    beforeSeen = seen;
    seen = { position, anchor };
  };
  /** Unsettled position → what was seen before it; in log order, since they are begun in log order. */
  const open = new Map<Position, { readonly before: Mark; readers: number }>();
  const checkpoint = (): Mark => {
    for (const { before } of open.values()) return before;
    return seen;
  };
  return {
    passed: see,
    begun: (position, anchor) => {
      see(position, anchor);
      // A first reader may have settled it already; it still counts from before this input.
      const entry = open.get(position) ?? { before: beforeSeen, readers: 0 };
      entry.readers += 1;
      open.set(position, entry);
      let settled = false;
      return () => {
        if (settled) return;
        settled = true;
        entry.readers -= 1;
        if (entry.readers === 0) open.delete(position);
      };
    },
    checkpoint: () => checkpoint().position,
    anchor: () => checkpoint().anchor,
    open: () => open.size,
  };
};
