import type { Clock } from '../../../app/ports.ts';

/**
 * Hub time of one instance: a hub has a clock of its own that does not jump. It starts at the wall clock and goes
 * on with the monotonic one; what the hub's file has already seen is never undercut.
 */
export const createHubTime = (clock: Clock) => {
  let base = Date.parse(clock.now());
  const start = clock.monotonicMs();
  const now = (): number => Math.floor(base + clock.monotonicMs() - start);
  return {
    /** Milliseconds since 1970. */
    now,
    notBefore: (seen: number): void => {
      base += Math.max(0, seen - now());
    },
  };
};
