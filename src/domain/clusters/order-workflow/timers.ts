import { durationMs } from '../../iso-duration.ts';
import { defined, own } from '../../json-tools.ts';
import { doubled, later, type Backoff } from '../../process/effects.ts';
import type { Problem } from '../../process/run.ts';
import { waitingWords } from '../room-words.ts';
import { siteOf, waitOf } from './site-run.ts';
import { isCertainlyUnsent, orderOf, type Memo, type OrderRun } from './run.ts';

/** Placing again is tried at growing intervals; a hub's news wakes it at once and makes no interval longer. */
export const PLACEMENT_RETRY = 'placement-retry';
const RETRY: Backoff = { firstMs: 30_000, maxMs: 10 * 60_000 };

export const retryDueAt = ({ waiting, waitedOut = 0 }: Memo): string | undefined =>
  waiting === undefined ? undefined : later(waiting, doubled(RETRY, waitedOut));

/**
 * An order with a deadline that waits for its first place: when it has passed the order fails, and nothing happens
 * until
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
 * A step that was told to wait asks again: when it was told to, or at growing intervals. What is short may take long, and
 * its pool wakes the order; what is on its way takes seconds.
 */
export const SITE_RETRY = 'site-retry';
const SHORT: Backoff = { firstMs: 60_000, maxMs: 30 * 60_000 };
const ON_ITS_WAY: Backoff = { firstMs: 1_000, maxMs: 60_000 };
const SCARCE: readonly string[] = ['quota', 'agents', 'vlan', 'prefix'];

/** Steps that were told to wait, and have not asked since. */
const waitsOf = (run: OrderRun) =>
  Object.keys(run.since).flatMap((step) => {
    const wait = own(run.done, step) === undefined ? undefined : waitOf(run, step);
    if (wait === undefined || wait.isOver) return [];
    const { at, until, times } = wait;
    const isScarce = SCARCE.includes(step);
    const soonest = later(at, doubled(isScarce ? SHORT : ON_ITS_WAY, times - 1));
    return [{ ...wait, isScarce, dueAt: until > soonest ? until : soonest }];
  });

const siteRetryAt = (run: OrderRun): string | undefined =>
  waitsOf(run)
    .map(({ dueAt }) => dueAt)
    .toSorted()[0];

/** Which of them ask now. A time at which none is due is that of a pool's news. */
export const askingAt = (run: OrderRun, at: string): { readonly [step: string]: number } => {
  const waits = waitsOf(run);
  const due = waits.filter(({ dueAt }) => Date.parse(dueAt) <= Date.parse(at) + EARLY_MS);
  const asking = due.length > 0 ? due : waits.filter(({ isScarce }) => isScarce);
  return Object.fromEntries(asking.map(({ step, times }) => [step, times]));
};

/** Timers run on the monotonic clock: one that is due may be recorded a little before its wall-clock time. */
export const EARLY_MS = 1_000;

/**
 * An order goes to another hub by itself until its deployment has started: one that waits
 * for long to be sent asks for a place again, and stays where it is unless that hub takes nothing and another one does.
 */
export const RECONSIDER_HUB = 'reconsider-hub';
const RECONSIDER: Backoff = { firstMs: 60_000, maxMs: 10 * 60_000 };

export const timersOf = (run: OrderRun): { readonly [timerId: string]: string } => {
  const [retry, placeBy] = [retryDueAt(run.memo), placementDueAt(run)];
  const since = run.since['apply'];
  // Its nodes and networks are on the site of its hub.
  const reconsiders =
    since !== undefined && run.ending === undefined && isCertainlyUnsent(run) && siteOf(run) === undefined;
  const wait = doubled(RECONSIDER, run.memo.reconsidered ?? 0);
  return defined({
    [PLACEMENT_RETRY]: retry,
    [PLACEMENT_DEADLINE]: placeBy,
    [RECONSIDER_HUB]: reconsiders ? later(since, wait) : undefined,
    [SITE_RETRY]: siteRetryAt(run),
  });
};
