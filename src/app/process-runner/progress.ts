import type { Position } from '../event-store.ts';

/**
 * Up to where the log was taken in. Inputs of different runs are handled at the same time and end in any order; the
 * checkpoint is the last position before the oldest one that is not settled.
 */
export type Progress = {
  /** Seen and needing nothing more. */
  passed(position: Position): void;
  /** Seen and to be handled; the returned function settles it. One input may have several readers. */
  begun(position: Position): () => void;
  /** Safe to resume after; undefined: from the beginning. */
  checkpoint(): Position | undefined;
  /** Inputs that are not settled. */
  open(): number;
};

export const createProgress = (start: Position | undefined): Progress => {
  let seen = start;
  let beforeSeen = start;
  const see = (position: Position): void => {
    if (position === seen) return;
    beforeSeen = seen;
    seen = position;
  };
  /** Unsettled position → the position before it; in log order, since they are begun in log order. */
  const open = new Map<Position, { readonly before: Position | undefined; readers: number }>();
  const checkpoint = (): Position | undefined => {
    for (const { before } of open.values()) return before;
    return seen;
  };
  return {
    passed: see,
    begun: (position) => {
      see(position);
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
    checkpoint,
    open: () => open.size,
  };
};
