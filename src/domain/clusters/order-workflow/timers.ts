import { durationMs } from '../../iso-duration.ts';
import { later } from '../../process/effects.ts';
import type { Problem } from '../../process/run.ts';
import { waitingWords } from '../room-words.ts';
import { isCertainlyUnsent, orderOf, type Memo, type OrderRun } from './run.ts';

/** Placing again is tried at growing intervals; a hub's news wakes it at once and makes no interval longer. */
export const PLACEMENT_RETRY = 'placement-retry';
const RETRY_FIRST_MS = 30_000;
const RETRY_MAX_MS = 10 * 60_000;

export const retryDueAt = ({ waiting, waitedOut = 0 }: Memo): string | undefined =>
  waiting === undefined
    ? undefined
    : later(waiting, Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** Math.min(10, waitedOut)));

/**
 * An order with a deadline that waits for its first place: when it has passed the order fails, and nothing happens until
 * somebody retries it, which gives it the same time again, or deletes it. A cluster that waits to grow runs, and never
 * fails by it.
 */
export const PLACEMENT_DEADLINE = 'placement-deadline';
const PLACEMENT_TIMED_OUT = 'PlacementTimedOut';

/** Only of an order that had to wait: most get a place at once, and need no timer. */
const placementDueAt = (run: OrderRun): string | undefined => {
  const { placementDeadline, waiting, status } = orderOf(run);
  const since = run.since['place'];
  const ms = placementDeadline === undefined ? undefined : durationMs(placementDeadline);
  const waits = status === 'accepted' && (run.memo.waiting ?? waiting) !== undefined;
  return ms === undefined || since === undefined || !waits || run.memo.placementOverdue === true
    ? undefined
    : later(since, ms);
};

/** What it fails with, once no attempt that began before can still get it a place. */
export const unplaced = (run: OrderRun): Problem | undefined => {
  const { unplaced: at } = run.memo;
  if (at === undefined || run.ending !== undefined) return undefined;
  const { zone, waiting, nodeSets, placementDeadline = '' } = orderOf(run);
  const waited = (waiting?.message ?? waitingWords(nodeSets, { zone })).replace(/^waiting/, 'waited');
  const message = `no place was found within ${placementDeadline}: ${waited}`;
  return { at, effect: 'place', reason: PLACEMENT_TIMED_OUT, message, permanent: true };
};

/**
 * An order goes to another hub by itself until its deployment has started (fleet-and-networks.md §2.9): one that waits
 * for long to be sent asks for a place again, and stays where it is unless that hub takes nothing and another one does.
 */
export const RECONSIDER_HUB = 'reconsider-hub';
const RECONSIDER_FIRST_MS = 60_000;
const RECONSIDER_MAX_MS = 10 * 60_000;

export const timersOf = (run: OrderRun): { readonly [timerId: string]: string } => {
  const [retry, placeBy] = [retryDueAt(run.memo), placementDueAt(run)];
  const since = run.since['apply'];
  const reconsiders = since !== undefined && run.ending === undefined && isCertainlyUnsent(run);
  const wait = Math.min(
    RECONSIDER_MAX_MS,
    RECONSIDER_FIRST_MS * 2 ** Math.min(10, run.memo.reconsidered ?? 0),
  );
  return {
    ...(retry === undefined ? {} : { [PLACEMENT_RETRY]: retry }),
    ...(placeBy === undefined ? {} : { [PLACEMENT_DEADLINE]: placeBy }),
    ...(reconsiders ? { [RECONSIDER_HUB]: later(since, wait) } : {}),
  };
};
