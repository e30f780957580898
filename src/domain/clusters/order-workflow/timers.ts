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
 * A step that was told to wait asks again: when it was told to, or at growing intervals. Nodes are handed out by their
 * pool, which wakes the order; VLANs and prefixes may come with any news of a pool.
 */
export const SITE_RETRY = 'site-retry';
export const POOL_RETRY = 'pool-retry';
export const AGENTS_RETRY = 'agents-retry';
const SHORT: Backoff = { firstMs: 60_000, maxMs: 30 * 60_000 };
const ON_ITS_WAY: Backoff = { firstMs: 1_000, maxMs: 60_000 };

const timerOf = (run: OrderRun, step: string): string => {
  if (step === 'agents') return `${AGENTS_RETRY}:${run.id}`;
  return step === 'vlan' || step === 'prefix' ? POOL_RETRY : SITE_RETRY;
};

/** Steps that were told to wait, and have not asked since. */
const waitsOf = (run: OrderRun) =>
  Object.keys(run.since).flatMap((step) => {
    const wait = own(run.done, step) === undefined ? undefined : waitOf(run, step);
    if (wait === undefined || wait.isOver) return [];
    const timerId = timerOf(run, step);
    const { at, until, times } = wait;
    const soonest = later(at, doubled(timerId === SITE_RETRY ? ON_ITS_WAY : SHORT, times - 1));
    return [{ ...wait, timerId, dueAt: until > soonest ? until : soonest }];
  });

const retriesOf = (run: OrderRun): { readonly [timerId: string]: string } => {
  const due: { [timerId: string]: string } = {};
  for (const { timerId, dueAt } of waitsOf(run)) {
    if (dueAt < (due[timerId] ?? '~')) due[timerId] = dueAt;
  }
  return due;
};

/** Which of them ask now: how many answers each had. */
export const askingAt = (run: OrderRun, fired: string): { readonly [step: string]: number } =>
  Object.fromEntries(
    waitsOf(run)
      .filter(({ timerId }) => timerId === fired)
      .map(({ step, times }) => [step, times]),
  );

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
    ...retriesOf(run),
    [PLACEMENT_RETRY]: retry,
    [PLACEMENT_DEADLINE]: placeBy,
    [RECONSIDER_HUB]: reconsiders ? later(since, wait) : undefined,
  });
};
