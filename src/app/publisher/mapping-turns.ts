import type { Clock } from '../ports.ts';
import { nextTurn } from '../process-runner/slices.ts';

/** Milliseconds of one turn that mapping may take, all topics together. */
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
