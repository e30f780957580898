import type { Clock } from '../ports.ts';

/**
 * Wall clock against monotonic clock. Deadlines are stored as wall-clock times; while the process lives
 * they run on the monotonic clock, so that a step of the wall clock neither fires nor delays what was already set.
 */
export type SteadyClock = {
  /** Wall clock minus monotonic clock, now, in milliseconds. */
  offset(): number;
  monotonicMs(): number;
  /** Milliseconds by which the clocks parted since the last call that said so, when above the tolerance. */
  divergence(): number | undefined;
};

export const createSteadyClock = (clock: Clock, toleranceMs: number): SteadyClock => {
  const offset = (): number => Date.parse(clock.now()) - clock.monotonicMs();
  let anchor = offset();
  return {
    offset,
    monotonicMs: () => clock.monotonicMs(),
    divergence: () => {
      const current = offset();
      const delta = current - anchor;
      if (Math.abs(delta) <= toleranceMs) return undefined;
      anchor = current;
      return delta;
    },
  };
};
