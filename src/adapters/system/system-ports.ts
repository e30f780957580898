import { v7 } from 'uuid';
import type { Clock, Ids, Timers } from '../../app/ports.ts';

/** The machine's own clock, timers and ids. */
export const systemClock = (): Clock => ({
  now: () => new Date().toISOString(),
  monotonicMs: () => performance.now(),
});

/** setTimeout counts 32 bits of milliseconds; longer waits are made of several. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export const systemTimers = (): Timers => ({
  after: (ms, run) => {
    let handle: NodeJS.Timeout;
    const arm = (rest: number): void => {
      const part = Math.min(rest, LONGEST_TIMEOUT_MS);
      handle = setTimeout(() => (rest > part ? arm(rest - part) : run()), part);
    };
    arm(Math.max(0, ms));
    return () => clearTimeout(handle);
  },
});

export const systemIds = (): Ids => ({ uuidv7: () => v7() });
