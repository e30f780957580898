import type { EffectOutcome } from '../../domain/workflow.ts';
import type { Timers } from '../ports.ts';
import type { LaneStatus, ProcessRunnerSettings } from './types.ts';

/** How a slot ended: with the effect's outcome, or `unused` when there was nothing to do after all. */
export type SlotEnd = EffectOutcome | 'unused';

/** A granted slot; `release` must be called exactly once. */
export type Slot = { readonly lane: string; release(end: SlotEnd): void };

export type Lanes = {
  /** Calls `granted` when the lane has room and its breaker lets it through; possibly at once. */
  enqueue(lane: string, granted: (slot: Slot) => void): void;
  pause(lane: string): void;
  /** Ends a pause and closes the breaker. */
  resume(lane: string): void;
  blocked(lane: string): boolean;
  status(): readonly LaneStatus[];
  /** Grants nothing any more. */
  close(): void;
};

type Lane = {
  readonly name: string;
  breaker: 'closed' | 'open' | 'half-open';
  paused: boolean;
  inFlight: number;
  failures: number;
  lastReason: string | undefined;
  /** A set keeps the order of arrival and gives up its first member in constant time, however long it is. */
  readonly waiting: Set<(slot: Slot) => void>;
  cancelProbe: (() => void) | undefined;
};

/** The far side answered, so the lane works; or it is our own store that failed, which waits by itself. */
const NOT_THE_LANES_FAULT = new Set([
  'Conflict',
  'Crowded',
  'Throttled',
  'NotFound',
  'BeingDeleted',
  'StoreUnavailable',
  'StoreOutcomeUnknown',
]);
/** Every further call would fail in the same way: the credentials are refused (management-cluster.md §10.4). */
const TRIPS_AT_ONCE = new Set(['Unauthorized']);

type Verdict = 'good' | 'bad' | 'trip' | 'neutral';
const verdict = (end: SlotEnd): Verdict => {
  if (end === 'unused') return 'neutral';
  if (end.outcome === 'done' || end.outcome === 'refused') return 'good';
  if (TRIPS_AT_ONCE.has(end.reason)) return 'trip';
  return NOT_THE_LANES_FAULT.has(end.reason) ? 'good' : 'bad';
};

/**
 * Lanes keep a slow or dead hub from delaying the others: each has its own slots and its own circuit breaker. An open
 * breaker parks its lane without an event per order (design §6); after a while one effect goes through to try.
 */
export const createLanes = (options: {
  readonly settings: Pick<ProcessRunnerSettings, 'laneConcurrency' | 'breakerFailures' | 'breakerHalfOpenMs'>;
  readonly timers: Timers;
  readonly changed?: (lane: LaneStatus) => void;
}): Lanes => {
  const { settings, timers } = options;
  const lanes = new Map<string, Lane>();
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
      waiting: new Set(),
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
    for (const granted of lane.waiting) {
      if (!room(lane)) break;
      lane.waiting.delete(granted);
      lane.inFlight += 1;
      granted(slotOf(lane));
    }
    const idle = lane.inFlight === 0 && lane.waiting.size === 0;
    if (idle && lane.breaker === 'closed' && !lane.paused && lane.failures === 0) lanes.delete(lane.name);
  };

  const slotOf = (lane: Lane): Slot => {
    let released = false;
    return {
      lane: lane.name,
      release: (end) => {
        if (released) return;
        released = true;
        lane.inFlight -= 1;
        judge(lane, end);
        pump(lane);
      },
    };
  };

  const judge = (lane: Lane, end: SlotEnd): void => {
    const judged = verdict(end);
    if (judged === 'neutral') return;
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
    lane.cancelProbe = timers.after(settings.breakerHalfOpenMs, () => {
      lane.cancelProbe = undefined;
      if (closed || lane.breaker !== 'open') return;
      lane.breaker = 'half-open';
      options.changed?.(statusOf(lane));
      pump(lane);
    });
    options.changed?.(statusOf(lane));
  };

  const shut = (lane: Lane): void => {
    lane.cancelProbe?.();
    lane.cancelProbe = undefined;
    lane.breaker = 'closed';
    lane.failures = 0;
    options.changed?.(statusOf(lane));
  };

  return {
    enqueue: (name, granted) => {
      const lane = laneOf(name);
      lane.waiting.add(granted);
      pump(lane);
    },
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
    status: () => [...lanes.values()].map(statusOf),
    close: () => {
      closed = true;
      for (const lane of lanes.values()) lane.cancelProbe?.();
    },
  };
};
