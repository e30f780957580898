import type { EffectOutcome } from '../../domain/workflow.ts';
import type { Timers } from '../ports.ts';
import { createCallCounts, type CallCounts } from './call-counts.ts';
import { createFairQueue, type FairQueue, type Priority } from './fair-queue.ts';
import { createTokenBucket, type Pacing, type TokenBucket } from './token-bucket.ts';
import type { LaneStatus, ProcessRunnerSettings } from './types.ts';

/** How a slot ended: with the effect's outcome, or `unused` when there was nothing to do after all. */
export type SlotEnd = EffectOutcome | 'unused';

/** A granted slot; `release` must be called exactly once. */
export type Slot = { readonly lane: string; release(end: SlotEnd): void };

export type Lanes = {
  /**
   * Calls `granted` when the lane has room, its pace allows it and its breaker lets it through; possibly at once.
   * `by`: whose effect it is and what kind of one; tenants take turns, deletions go first.
   */
  enqueue(lane: string, granted: (slot: Slot) => void, by?: Asker): void;
  pause(lane: string): void;
  /** Ends a pause and closes the breaker. */
  resume(lane: string): void;
  /** Something says that the far side works again: an open breaker lets one effect through to try, at once. */
  probe(lane: string): void;
  blocked(lane: string): boolean;
  /** Calls of the last hour; undefined when there were none. */
  calls(lane: string): ReturnType<CallCounts['of']>;
  status(): readonly LaneStatus[];
  /** Grants nothing any more. */
  close(): void;
};

export type Asker = { readonly tenant: string; readonly priority: Priority };
const NOBODY: Asker = { tenant: '', priority: 'work' };

type Lane = {
  readonly name: string;
  breaker: 'closed' | 'open' | 'half-open';
  paused: boolean;
  inFlight: number;
  failures: number;
  lastReason: string | undefined;
  readonly waiting: FairQueue<(slot: Slot) => void>;
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
/** Every further call would fail in the same way: credentials are refused (management-cluster.md §10.4), or lead elsewhere. */
const TRIPS_AT_ONCE = new Set(['Unauthorized', 'AutomationUnauthorized', 'DifferentCluster']);

type Verdict = 'good' | 'bad' | 'trip' | 'neutral';
const verdict = (end: SlotEnd): Verdict => {
  if (end === 'unused') return 'neutral';
  if (end.outcome === 'done' || end.outcome === 'refused') return 'good';
  if (TRIPS_AT_ONCE.has(end.reason)) return 'trip';
  return NOT_THE_LANES_FAULT.has(end.reason) ? 'good' : 'bad';
};

/**
 * Lanes keep a slow or dead hub from delaying the others: each has its own slots and its own circuit breaker. An open
 * breaker parks its lane without an event per order (design §6); after a while one effect goes through to try. A lane may
 * be paced, so that a hub is not flooded; what waits is let through tenant by tenant.
 */
export const createLanes = (options: {
  readonly settings: Pick<ProcessRunnerSettings, 'laneConcurrency' | 'breakerFailures' | 'breakerHalfOpenMs'>;
  readonly timers: Timers;
  readonly changed?: (lane: LaneStatus) => void;
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
      inFlight: 0,
      failures: 0,
      lastReason: undefined,
      waiting: createFairQueue(),
      bucket: undefined,
      pacing: undefined,
      cancelPace: undefined,
      cancelProbe: undefined,
    };
    lanes.set(name, lane);
    return lane;
  };

  const statusOf = (lane: Lane): LaneStatus => ({
    lane: lane.name,
    breaker: lane.breaker,
    paused: lane.paused,
    inFlight: lane.inFlight,
    waiting: lane.waiting.size,
    consecutiveFailures: lane.failures,
    ...(lane.lastReason === undefined ? {} : { lastReason: lane.lastReason }),
  });

  const room = (lane: Lane): boolean => {
    if (closed || lane.paused || lane.breaker === 'open') return false;
    return lane.inFlight < (lane.breaker === 'half-open' ? 1 : settings.laneConcurrency);
  };

  const pump = (lane: Lane): void => {
    while (lane.waiting.size > 0 && room(lane) && paced(lane)) {
      lane.inFlight += 1;
      lane.waiting.take()?.(slotOf(lane));
    }
    // One that may not burst again yet is kept, or its pace would be forgotten; who lists lanes does not see it.
    if (isIdle(lane) && lane.bucket?.isFull() !== false) forget(lane);
  };

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
    lane.failures === 0;

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

  const slotOf = (lane: Lane): Slot => {
    let released = false;
    return {
      lane: lane.name,
      release: (end) => {
        if (released) return;
        released = true;
        lane.inFlight -= 1;
        if (end === 'unused') lane.bucket?.giveBack();
        judge(lane, end);
        pump(lane);
      },
    };
  };

  const judge = (lane: Lane, end: SlotEnd): void => {
    const judged = verdict(end);
    if (judged === 'neutral') return;
    counts.note(lane.name, judged === 'good');
    if (judged === 'good') {
      lane.failures = 0;
      lane.lastReason = undefined;
      if (lane.breaker !== 'closed') shut(lane);
      return;
    }
    lane.failures += 1;
    lane.lastReason = end === 'unused' || end.outcome === 'done' ? undefined : end.reason;
    if (lane.breaker === 'half-open' || judged === 'trip' || lane.failures >= settings.breakerFailures) {
      open(lane);
    }
  };

  const open = (lane: Lane): void => {
    if (lane.breaker === 'open') return;
    lane.breaker = 'open';
    lane.cancelProbe?.();
    lane.cancelProbe = timers.after(settings.breakerHalfOpenMs, () => tryOne(lane));
    options.changed?.(statusOf(lane));
  };

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
    lane.failures = 0;
    options.changed?.(statusOf(lane));
  };

  return {
    enqueue: (name, granted, by = NOBODY) => {
      const lane = laneOf(name);
      lane.waiting.add(granted, by);
      pump(lane);
    },
    probe: (name) => {
      const lane = lanes.get(name);
      if (lane !== undefined) tryOne(lane);
    },
    calls: (name) => counts.of(name),
    pause: (name) => {
      const lane = laneOf(name);
      lane.paused = true;
      options.changed?.(statusOf(lane));
    },
    resume: (name) => {
      const lane = laneOf(name);
      lane.paused = false;
      shut(lane);
      pump(lane);
    },
    blocked: (name) => {
      const lane = lanes.get(name);
      return lane !== undefined && (lane.paused || lane.breaker === 'open');
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
