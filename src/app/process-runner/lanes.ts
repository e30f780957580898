import type { EffectOutcome } from '../../domain/workflow.ts';
import { createFairQueue, type FairQueue, type Priority } from '../fairness/fair-queue.ts';
import { createTokenBucket, type Pacing, type TokenBucket } from '../fairness/token-bucket.ts';
import type { Timers } from '../ports.ts';
import {
  createLaneFailures,
  OF_ONE_ORDER,
  PASSING_MS,
  type Caller,
  type LaneFailures,
} from './lane-failures.ts';
import type { LanePause, LaneStatus, ProcessRunnerSettings } from './types.ts';

/** Calls of the last hour and how many of them failed, by lane: what the health score of placement is made of. */
type CallCounts = {
  note(lane: string, ok: boolean): void;
  /** Undefined: there were none. */
  of(lane: string): { readonly attempts: number; readonly failures: number } | undefined;
};

const MINUTE_MS = 60_000;
const MINUTES = 60;

type Minute = { readonly minute: number; attempts: number; failures: number };

/** Counts by the minute, so that each lane costs at most sixty small objects. `nowMs`: monotonic milliseconds. */
export const createCallCounts = (nowMs: () => number): CallCounts => {
  const lanes = new Map<string, Minute[]>();
  const minuteNow = (): number => Math.floor(nowMs() / MINUTE_MS);
  const recent = (lane: string): Minute[] => {
    const oldest = minuteNow() - MINUTES;
    const kept = (lanes.get(lane) ?? []).filter(({ minute }) => minute > oldest);
    if (kept.length === 0) lanes.delete(lane);
    else lanes.set(lane, kept);
    return kept;
  };
  return {
    note: (lane, ok) => {
      const minute = minuteNow();
      const last = lanes.get(lane)?.at(-1);
      const entry = last?.minute === minute ? last : { minute, attempts: 0, failures: 0 };
      entry.attempts += 1;
      if (!ok) entry.failures += 1;
      if (entry !== last) lanes.set(lane, [...recent(lane), entry]);
    },
    of: (lane) => {
      const minutes = recent(lane);
      if (minutes.length === 0) return undefined;
      const sum = (of: (minute: Minute) => number): number =>
        minutes.reduce((total, minute) => total + of(minute), 0);
      return { attempts: sum(({ attempts }) => attempts), failures: sum(({ failures }) => failures) };
    },
  };
};

/** How a slot ended: with the effect's outcome, or `unused` when there was nothing to do after all. */
type SlotEnd = EffectOutcome | 'unused';

/** A granted slot; `release` must be called exactly once. */
export type Slot = { readonly lane: string; release(end: SlotEnd): void };

export type Lanes = {
  /**
   * Calls `granted` when the lane has room, its pace allows it and its breaker lets it through; possibly at once.
   * `by`: whose effect it is and what kind of one; tenants take turns, deletions go first, and orders take turns at
   * trying a lane that is closed off.
   */
  enqueue(lane: string, granted: (slot: Slot) => void, by?: Asker): void;
  pause(lane: string, pause?: LanePause): void;
  /** Ends a pause and closes the breaker. */
  resume(lane: string): void;
  /**
   * Something says that the far side works again: an open breaker lets one effect through to try, at once, and what
   * rests
   * after failures is woken.
   */
  probe(lane: string): void;
  /** Nothing new should come here, nor this order, which fails here itself. */
  blocked(lane: string, order?: string): boolean;
  /** What the order still wants; failures of anything else say nothing of its lanes any more. */
  keep(order: string, wanted: readonly Wanted[]): void;
  /** How often in a row this effect failed in its lane. */
  failuresOf(lane: string, by: Caller): number;
  /** Calls of the last hour; undefined when there were none. */
  calls(lane: string): ReturnType<CallCounts['of']>;
  status(): readonly LaneStatus[];
  /** Grants nothing any more. */
  close(): void;
};

export type Wanted = { readonly lane: string; readonly operation: string };
type Asker = { readonly tenant: string; readonly priority: Priority } & Caller;
const NOBODY: Asker = { tenant: '', priority: 'work', order: '', effect: '' };

type Waiting = { readonly granted: (slot: Slot) => void; readonly by: Asker };

type Lane = {
  readonly name: string;
  breaker: 'closed' | 'open' | 'half-open';
  paused: boolean;
  pause: LanePause | undefined;
  inFlight: number;
  readonly failures: LaneFailures;
  /** What closed it off; the breaker says whether it still does. */
  openedBy: LaneStatus['openedBy'];
  /** Credentials were refused: another order would fare the same. */
  tripped: boolean;
  /** When it was closed off, or its last try failed. */
  openedAt: number;
  /** Of orders of which nothing had failed: when the last try failed, and how many did since it was closed off. */
  fresh: { at: number; failed: number };
  readonly waiting: FairQueue<Waiting>;
  /** Absent: as fast as there are slots. */
  bucket: TokenBucket | undefined;
  pacing: Pacing | undefined;
  cancelPace: (() => void) | undefined;
  cancelProbe: (() => void) | undefined;
};

/** The far side answered, so the lane works; or it is our own store that failed, which waits by itself. */
const NOT_THE_LANES_FAULT = new Set([
  'Conflict',
  'Crowded',
  'Throttled',
  'AutomationThrottled',
  'NotFound',
  'OrderMissing',
  'BeingDeleted',
  'HubDrivenElsewhere',
  'StoreUnavailable',
  'StoreOutcomeUnknown',
]);
/** Every further call would fail in the same way: credentials are refused (OSAC's operator), or lead elsewhere. */
const TRIPS_AT_ONCE = new Set(['Unauthorized', 'AutomationUnauthorized', 'DifferentCluster']);

/** Until an order that has not failed yet tries a lane that is closed off; doubles with each that fails, too. */
const FRESH_FIRST_MS = 1_000;

type Verdict = 'good' | 'bad' | 'trip' | 'neutral';
const verdict = (end: SlotEnd): Verdict => {
  if (end === 'unused') return 'neutral';
  if (end.outcome === 'done' || end.outcome === 'refused') return 'good';
  if (TRIPS_AT_ONCE.has(end.reason)) return 'trip';
  return NOT_THE_LANES_FAULT.has(end.reason) ? 'good' : 'bad';
};

/** Orders that are named of one lane. */
const MAX_SHOWN = 5;
const MAX_MESSAGE = 300;

/**
 * Lanes keep a slow or dead hub from delaying the others: each has its own slots and its own circuit breaker. An open
 * breaker parks its lane without an event per order; after a while one effect goes through to try. A lane may
 * be paced, so that a hub is not flooded; what waits is let through tenant by tenant.
 */
export const createLanes = (options: {
  readonly settings: Pick<ProcessRunnerSettings, 'laneConcurrency' | 'breakerFailures' | 'breakerHalfOpenMs'>;
  readonly timers: Timers;
  readonly changed?: (lane: LaneStatus) => void;
  /** A lane works again: what rests after failures in it may go on, one alone where only a try is wanted. */
  readonly wake?: (lane: string, howMany: 'all' | 'one') => void;
  /** Monotonic milliseconds. Default: those of this process. */
  readonly nowMs?: () => number;
  /** How fast a lane may go, asked anew each time; undefined: as fast as it can. Default: no lane is paced. */
  readonly pacingOf?: (lane: string) => Pacing | undefined;
}): Lanes => {
  const { settings, timers, nowMs = () => performance.now(), pacingOf = () => undefined } = options;
  const lanes = new Map<string, Lane>();
  const counts = createCallCounts(nowMs);
  let closed = false;

  const laneOf = (name: string): Lane => {
    const known = lanes.get(name);
    if (known !== undefined) return known;
    const lane: Lane = {
      name,
      breaker: 'closed',
      paused: false,
      pause: undefined,
      inFlight: 0,
      failures: createLaneFailures(settings.breakerFailures, nowMs),
      openedBy: undefined,
      tripped: false,
      openedAt: 0,
      fresh: { at: -Infinity, failed: 0 },
      waiting: createFairQueue(),
      bucket: undefined,
      pacing: undefined,
      cancelPace: undefined,
      cancelProbe: undefined,
    };
    lanes.set(name, lane);
    return lane;
  };

  const statusOf = (lane: Lane): LaneStatus => {
    const failing = lane.failures.failing();
    return {
      lane: lane.name,
      breaker: lane.breaker,
      paused: lane.paused,
      ...(lane.pause === undefined ? {} : { pause: lane.pause }),
      inFlight: lane.inFlight,
      waiting: lane.waiting.size,
      consecutiveFailures: lane.failures.counted(),
      failing: failing.slice(0, MAX_SHOWN),
      failingOrders: lane.failures.failingOrders(),
      ...(lane.breaker === 'closed' || lane.openedBy === undefined ? {} : { openedBy: lane.openedBy }),
      ...(failing[0] === undefined ? {} : { lastReason: failing[0].reason }),
    };
  };

  const room = (lane: Lane): boolean => {
    if (closed || lane.paused || lane.breaker === 'open') return false;
    return lane.inFlight < (lane.breaker === 'half-open' ? 1 : settings.laneConcurrency);
  };

  const pump = (lane: Lane): void => {
    while (lane.waiting.size > 0 && room(lane) && paced(lane)) {
      lane.inFlight += 1;
      const next = lane.breaker === 'half-open' ? lane.waiting.takeLowest(turnIn(lane)) : lane.waiting.take();
      next?.granted(slotOf(lane, next.by));
    }
    // One that may not burst again yet, or has just worked, is kept, or that would be forgotten; who lists lanes
    // does not
    // see it.
    const passedAt = lane.failures.passedAt() ?? -Infinity;
    const isFresh = lane.bucket?.isFull() !== false && nowMs() - passedAt > PASSING_MS;
    if (isIdle(lane) && isFresh) forget(lane);
  };

  /** Whose turn it is to try: of whom nothing failed, then whose last failure is longest ago. */
  const turnIn =
    ({ failures }: Lane) =>
    ({ by }: Waiting): number =>
      failures.lastFailureOf(by.order) ?? -Infinity;

  const forget = (lane: Lane): void => {
    stopWaiting(lane);
    lanes.delete(lane.name);
  };

  /** A timer that outlives what it was set for would come to a lane that is another one by then. */
  const stopWaiting = (lane: Lane): void => {
    lane.cancelPace?.();
    lane.cancelPace = undefined;
  };

  const isIdle = (lane: Lane): boolean =>
    lane.inFlight === 0 &&
    lane.waiting.size === 0 &&
    lane.breaker === 'closed' &&
    !lane.paused &&
    lane.failures.failingOrders() === 0;

  /** Takes what one effect costs. Not yet: comes back by itself when it may. */
  const paced = (lane: Lane): boolean => {
    const pacing = pacingOf(lane.name);
    if (pacing === undefined) lane.bucket = undefined;
    else if (lane.bucket === undefined) lane.bucket = createTokenBucket(pacing, nowMs);
    else if (pacing.burst !== lane.pacing?.burst || pacing.callsPerSecond !== lane.pacing.callsPerSecond) {
      lane.bucket.setPace(pacing);
      stopWaiting(lane);
    }
    lane.pacing = pacing;
    if (lane.bucket === undefined || lane.bucket.take()) return true;
    lane.cancelPace ??= timers.after(lane.bucket.waitMs(), () => {
      lane.cancelPace = undefined;
      pump(lane);
    });
    return false;
  };

  const slotOf = (lane: Lane, by: Asker): Slot => {
    let released = false;
    return {
      lane: lane.name,
      release: (end) => {
        if (released) return;
        released = true;
        lane.inFlight -= 1;
        if (end === 'unused') lane.bucket?.giveBack();
        judge(lane, end, by);
        pump(lane);
      },
    };
  };

  const judge = (lane: Lane, end: SlotEnd, by: Asker): void => {
    const judged = verdict(end);
    if (judged === 'neutral' || end === 'unused') return;
    counts.note(lane.name, judged === 'good');
    if (judged === 'good' || end.outcome === 'done') {
      lane.failures.passed(by);
      if (lane.breaker !== 'closed') shut(lane);
      return;
    }
    const isFresh = lane.failures.lastFailureOf(by.order) === undefined;
    const closes = lane.failures.failed(by, end.reason, end.message);
    lane.tripped = judged === 'trip';
    if (lane.breaker === 'half-open' && isFresh) lane.fresh = { at: nowMs(), failed: lane.fresh.failed + 1 };
    if (lane.breaker === 'half-open' || judged === 'trip' || closes) open(lane, by.order, end);
  };

  const open = (
    lane: Lane,
    order: string,
    { reason, message }: { reason: string; message: string },
  ): void => {
    if (lane.breaker === 'open') return;
    if (lane.breaker === 'closed') {
      lane.openedBy = { order, reason, message: message.slice(0, MAX_MESSAGE) };
      lane.fresh = { at: nowMs(), failed: 0 };
    }
    lane.breaker = 'open';
    lane.openedAt = nowMs();
    armProbe(
      lane,
      lane.waiting.some(({ by }) => lane.failures.lastFailureOf(by.order) === undefined),
    );
    options.changed?.(statusOf(lane));
  };

  /** `isFresh`: an order waits of which nothing failed. It tries nearly at once, and the others after a while. */
  const armProbe = (lane: Lane, isFresh: boolean): void => {
    const latest = lane.openedAt + settings.breakerHalfOpenMs;
    const wait = (isFresh && !lane.tripped ? Math.min(freshAt(lane), latest) : latest) - nowMs();
    lane.cancelProbe?.();
    if (wait <= 0) tryOne(lane);
    else lane.cancelProbe = timers.after(wait, () => tryOne(lane));
  };

  const freshAt = ({ fresh: { at, failed } }: Lane): number =>
    at + Math.min(settings.breakerHalfOpenMs, FRESH_FIRST_MS * 2 ** Math.min(failed, 20));

  /** What fails for few orders, or is denied to some, may succeed for the next one, which tries. */
  const takesNew = (lane: Lane): boolean =>
    (OF_ONE_ORDER.has(lane.openedBy?.reason ?? '') || !lane.failures.ofSeveral()) &&
    !lane.tripped &&
    nowMs() >= freshAt(lane);

  const tryOne = (lane: Lane): void => {
    lane.cancelProbe?.();
    lane.cancelProbe = undefined;
    if (closed || lane.breaker !== 'open') return;
    lane.breaker = 'half-open';
    options.changed?.(statusOf(lane));
    pump(lane);
  };

  const shut = (lane: Lane): void => {
    lane.cancelProbe?.();
    lane.cancelProbe = undefined;
    lane.breaker = 'closed';
    lane.tripped = false;
    options.changed?.(statusOf(lane));
    options.wake?.(lane.name, 'all');
  };

  return {
    enqueue: (name, granted, by = NOBODY) => {
      const lane = laneOf(name);
      lane.waiting.add({ granted, by }, by);
      if (lane.breaker === 'open' && lane.failures.lastFailureOf(by.order) === undefined)
        armProbe(lane, true);
      pump(lane);
    },
    probe: (name) => {
      const lane = lanes.get(name);
      if (lane !== undefined) tryOne(lane);
      if (closed || lane?.paused === true) return;
      if (lane === undefined || lane.breaker === 'closed') options.wake?.(name, 'all');
      else if (lane.waiting.size === 0 && lane.inFlight === 0) options.wake?.(name, 'one');
    },
    keep: (order, wanted) => {
      for (const lane of lanes.values()) {
        if (lane.failures.lastFailureOf(order) === undefined) continue;
        const here = wanted.filter((effect) => effect.lane === lane.name);
        lane.failures.keep(
          order,
          here.map(({ operation }) => operation),
        );
        pump(lane);
      }
    },
    failuresOf: (name, by) => lanes.get(name)?.failures.failuresOf(by) ?? 0,
    calls: (name) => counts.of(name),
    pause: (name, pause) => {
      const lane = laneOf(name);
      lane.paused = true;
      lane.pause = pause;
      options.changed?.(statusOf(lane));
    },
    resume: (name) => {
      const lane = laneOf(name);
      lane.paused = false;
      lane.pause = undefined;
      shut(lane);
      pump(lane);
    },
    blocked: (name, order = '') => {
      const lane = lanes.get(name);
      return (
        lane !== undefined &&
        (lane.paused || (lane.breaker === 'open' && (!takesNew(lane) || lane.failures.isAmong(order))))
      );
    },
    status: () => [...lanes.values()].filter((lane) => !isIdle(lane)).map(statusOf),
    close: () => {
      closed = true;
      for (const lane of lanes.values()) {
        lane.cancelProbe?.();
        lane.cancelPace?.();
      }
    },
  };
};
