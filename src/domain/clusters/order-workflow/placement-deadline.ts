import { durationMs } from '../../iso-duration.ts';
import { isUnresolved, later } from '../../process/effects.ts';
import { waitingWords } from '../room-words.ts';
import type { OpenRun, Problem } from './run.ts';

/**
 * An order with a deadline that waits for its first place: when it has passed the order fails, and nothing happens until
 * somebody retries it, which gives it the same time again, or deletes it. A cluster that waits to grow runs, and never
 * fails by it.
 */
export const PLACEMENT_DEADLINE = 'placement-deadline';
export const PLACEMENT_TIMED_OUT = 'PlacementTimedOut';

/** Only of an order that had to wait: most get a place at once, and need no timer. */
export const placementDueAt = (run: OpenRun): string | undefined => {
  const { placementDeadline, placementOverdue, hub, waiting, shownWaiting } = run;
  const since = run.activeSince['place'];
  const ms = placementDeadline === undefined ? undefined : durationMs(placementDeadline);
  const waits = since !== undefined && hub === undefined && (waiting ?? shownWaiting) !== undefined;
  return ms === undefined || !waits || placementOverdue === true ? undefined : later(since, ms);
};

/** What it fails with, once no attempt that began before can still get it a place. */
export const placementFailure = (run: OpenRun, at: string): Problem | undefined => {
  if (run.placementOverdue === undefined || run.deletion !== undefined || run.halted !== undefined)
    return undefined;
  if (run.hub !== undefined || isUnresolved(run.effects['place'])) return undefined;
  const { zone, waiting, shownWaiting } = run;
  const waited = (waiting ?? shownWaiting)?.message ?? waitingWords(run.spec.nodeSets, { zone });
  const told = `no place was found within ${run.placementDeadline ?? ''}: ${waited.replace(/^waiting/, 'waited')}`;
  return { at, reason: PLACEMENT_TIMED_OUT, message: told, permanent: true, told };
};
