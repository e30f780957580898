import type { Clock } from '../ports.ts';

/**
 * Keeps long runs of work from holding the thread, which also answers HTTP (design §5, Threads: at most 20 ms). What
 * waits only on memory never leaves the microtask queue by itself.
 */
export type Slices = {
  /** True when this turn of the event loop has worked long enough; `next` runs in the next one then. */
  isOver(next: () => void): boolean;
  /** Resolves at once, or in the next turn when this one has worked long enough. */
  breathe(): Promise<void> | undefined;
};

const SLICE_MS = 8;

export const createSlices = (clock: Clock): Slices => {
  let since: number | undefined;
  const used = (): number => {
    if (since === undefined) {
      since = clock.monotonicMs();
      setImmediate(() => {
        since = undefined;
      });
      return 0;
    }
    return clock.monotonicMs() - since;
  };
  return {
    isOver: (next) => {
      if (used() < SLICE_MS) return false;
      setImmediate(next);
      return true;
    },
    breathe: () => (used() < SLICE_MS ? undefined : new Promise((resolve) => setImmediate(resolve))),
  };
};
