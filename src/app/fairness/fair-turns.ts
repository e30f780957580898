import { createRounds } from './fair-queue.ts';
import { createSlicer, type SlicerOptions } from './slicer.ts';

/**
 * Who computes next on the HTTP thread. All requests that have arrived would otherwise be carried out in one
 * go, in the order of their arrival: a tenant that sends hundreds of long lists would hold the thread for as
 * long as they take, and everybody else with it. Here requests run at once until a turn of the thread has
 * been used for some milliseconds; the following ones wait for the next turn, one of each key after the
 * other.
 */
export type FairTurns = {
  /** Undefined: go on at once. Otherwise resolves when it is this key's turn. */
  enter(key: string): Promise<void> | undefined;
  readonly waiting: number;
};

export type FairTurnsOptions = {
  readonly monotonicMs: () => number;
  /** Milliseconds of a turn after which nothing more is begun in it. */
  readonly sliceMs?: number | undefined;
} & Pick<SlicerOptions, 'nextTurn'>;

/** With one more request of the longest kind a turn stays below 20 ms: nothing may hold the thread longer. */
export const TURN_SLICE_MS = 4;

export const createFairTurns = ({
  monotonicMs,
  sliceMs = TURN_SLICE_MS,
  nextTurn,
}: FairTurnsOptions): FairTurns => {
  const waiting = createRounds<() => void>();
  const slicer = createSlicer({
    take: waiting.take,
    nowMs: monotonicMs,
    sliceMs,
    keepsTurn: true,
    nextTurn,
  });
  return {
    enter: (key) => {
      if (waiting.size === 0 && slicer.passes()) return undefined;
      return new Promise((resolve) => waiting.add(key, () => resolve()));
    },
    get waiting() {
      return waiting.size;
    },
  };
};
