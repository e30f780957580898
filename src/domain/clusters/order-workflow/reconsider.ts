import { later } from '../../process/effects.ts';
import type { OpenRun } from './run.ts';

/**
 * An order goes to another hub by itself until its deployment has started (fleet-and-networks.md §2.9): one that waits
 * for long to be sent asks for a place again, and stays where it is unless that hub takes nothing and another one does.
 */
export const RECONSIDER_HUB = 'reconsider-hub';

const FIRST_MS = 60_000;
const MAX_MS = 10 * 60_000;

/** Nothing of it is on its hub, for certain: nothing was ever sent, or every attempt failed before it came through. */
export const isCertainlyUnsent = ({ hub, applied, answered, effects: { apply } }: OpenRun): boolean =>
  hub !== undefined &&
  applied === undefined &&
  answered['record-placed'] === undefined &&
  (apply === undefined || (apply.status === 'failed' && !apply.doubt));

/** A deletion has something to do on its hub, which may be away for good. */
export const mayBeOnHub = (run: OpenRun): boolean => run.dispatched && !isCertainlyUnsent(run);

/** Recorded timers, and the one that follows from the state: most orders are sent at once and never need it. */
export const timersOf = (run: OpenRun): { readonly [timerId: string]: string } => {
  const since = run.activeSince['apply'];
  if (since === undefined || run.deletion !== undefined || !isCertainlyUnsent(run)) return run.timers;
  const wait = Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(10, run.reconsidered ?? 0));
  return { ...run.timers, [RECONSIDER_HUB]: later(since, wait) };
};
