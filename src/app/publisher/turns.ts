import type { Clock } from '../ports.ts';
import { nextTurn } from '../process-runner/slices.ts';

/** Milliseconds of one turn that mapping may take, all topics together (design §5, Threads). */
const SLICE_MS = 2;

/**
 * Keeps the mapping of many topics from holding the thread, which also answers HTTP: whoever has mapped an event asks,
 * and waits for what comes back. Undefined: go on.
 */
export const createTurns = (clock: Pick<Clock, 'monotonicMs'>): (() => Promise<void> | undefined) => {
  let began = clock.monotonicMs();
  let next: Promise<void> | undefined;
  return () => {
    if (next === undefined && clock.monotonicMs() - began < SLICE_MS) return undefined;
    next ??= nextTurn().then(() => {
      next = undefined;
      began = clock.monotonicMs();
    });
    return next;
  };
};

/** Topics that look into the log at once while they are behind: each look holds the thread for some milliseconds. */
const LOOKS = 2;

/** Lets a bounded number of pieces of work run at once, in the order of asking. */
export type Gate = <Result>(work: () => Promise<Result>) => Promise<Result>;

export const createGate = (most = LOOKS): Gate => {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
};
