import type { Clock, Timers } from '../../../src/app/ports.ts';

/** Time that passes only when a test says so. */
export const createVirtualTime = (start = Date.parse('2026-11-21T12:00:00.000Z')) => {
  let elapsed = 0;
  let wallOffset = 0;
  let timers: { at: number; run: () => void }[] = [];
  const clock: Clock = {
    now: () => new Date(start + wallOffset + elapsed).toISOString(),
    monotonicMs: () => elapsed,
  };
  const ports: Timers = {
    after: (ms, run) => {
      const timer = { at: elapsed + Math.max(0, ms), run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  };
  /** Lets everything that is ready run: an immediate comes after all microtasks. */
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 3; round += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    clock,
    timers: ports,
    settle,
    /** Moves the wall clock, not the monotonic one. */
    jumpWall: (ms: number): void => {
      wallOffset += ms;
    },
    advance: async (ms: number): Promise<void> => {
      const until = elapsed + ms;
      await settle();
      for (;;) {
        const due = timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0];
        if (due === undefined) break;
        timers = timers.filter((other) => other !== due);
        elapsed = Math.max(elapsed, due.at);
        due.run();
        await settle();
      }
      elapsed = until;
      await settle();
    },
  };
};
