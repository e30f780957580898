import type { Clock } from '../../app/ports.ts';

/**
 * Time of a simulated system as one instance has it: it has a clock of its own that does not jump. It starts at the wall
 * clock and goes on with the monotonic one; what the system's file has already seen is never undercut.
 */
export const createFarTime = (clock: Clock) => {
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
