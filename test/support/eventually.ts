import { setTimeout as pause } from 'node:timers/promises';

/**
 * Looks until a condition holds, and goes on as soon as it does: for states that no position tells about. Rejects after
 * `ms` milliseconds, naming what was waited for; a function as `what` can say what was seen last. Between two looks
 * are at first two milliseconds, then more, up to `atMostMs`: looking takes processor time from what is waited for.
 */
export const eventually = async (
  what: string | (() => string),
  holds: () => boolean | Promise<boolean>,
  ms = 45_000,
  atMostMs = 20,
): Promise<void> => {
  const end = performance.now() + ms;
  for (let wait = 2; !(await holds()); wait = Math.min(atMostMs, wait * 1.6)) {
    if (performance.now() > end)
      throw new Error(`not within ${ms} ms: ${typeof what === 'string' ? what : what()}`);
    await pause(wait);
  }
};
