import type { Position } from '../event-store.ts';

/**
 * Up to where the log was taken in. Inputs of different runs are handled at the same time and end in any order; the
 * checkpoint is the last position before the oldest one that is not settled.
 */
export type Progress = {
  /** Seen and needing nothing more. */
  passed(position: Position): void;
  /** Seen and to be handled; the returned function settles it. */
  begun(position: Position): () => void;
  /** Safe to resume after; undefined: from the beginning. */
  checkpoint(): Position | undefined;
  /** Inputs that are not settled. */
  open(): number;
};

export const createProgress = (start: Position | undefined): Progress => {
  let seen = start;
  /** Unsettled position → the position before it; in log order, since they are begun in log order. */
  const open = new Map<Position, Position | undefined>();
  const checkpoint = (): Position | undefined => {
    for (const before of open.values()) return before;
    return seen;
  };
  return {
    passed: (position) => {
      seen = position;
    },
    begun: (position) => {
      open.set(position, seen);
      seen = position;
      return () => open.delete(position);
    },
    checkpoint,
    open: () => open.size,
  };
};
