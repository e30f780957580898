import type { Clock } from '../ports.ts';

/**
 * Keeps work that waits only on memory from holding the thread, which also answers HTTP: such work never leaves the
 * microtask queue by itself.
 */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Beside it in one turn come requests, answers of the log and of hubs, and a page of the log. */
const SLICE_MS = 2;
/** So many at least: on a crowded machine the time may be up before the thread has had any of it. */
const SLICE_STEPS = 4;

/**
 * Runs steps of one kind of work; after some milliseconds of them the next turn is waited for. Only the steps' own time
 * counts, so that what others do in the same turn does not slow this work down.
 */
export const createSlices = (clock: Clock): ((step: () => void) => Promise<void> | undefined) => {
  let used = 0;
  let steps = 0;
  return (step) => {
    const before = clock.monotonicMs();
    step();
    used += clock.monotonicMs() - before;
    steps += 1;
    if (used < SLICE_MS || steps < SLICE_STEPS) return undefined;
    used = 0;
    steps = 0;
    return nextTurn();
  };
};
