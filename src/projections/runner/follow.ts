import { reachedBy, type Position, type RecordedEvent } from '../../app/event-store.ts';
import type { LogReader } from '../log-reader.ts';
import type { JsonValue } from '../../domain/json.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { View } from '../view.ts';
import type { Applier } from './applier.ts';

/** What a view has applied, reported after each COMMIT. */
export type Progress = {
  readonly position: Position | undefined;
  readonly recordedAt: string | undefined;
  /** Applied since the file was created. */
  readonly events: number;
  /** All that the log held when its end was reached has been applied. */
  readonly caughtUp: boolean;
  /** Where this run is to stop, if it is. */
  readonly target?: Position;
  /** Size and duration of the last batch. */
  readonly batchEvents: number;
  readonly batchMs: number;
  /** Categories of the streams in the last batch: rows of others are as they were. Absent: any may have changed. */
  readonly categories?: readonly string[];
};

export type FollowOptions = {
  readonly view: View;
  readonly reader: LogReader;
  readonly applier: Applier;
  readonly signal: AbortSignal;
  /** Stop when everything up to here, and nothing behind it, has been applied. Default: never. */
  readonly until?: Position;
  readonly onProgress: (progress: Progress) => void;
  /**
   * When a batch is committed. `event-loop`: what is urgent with what arrives in one turn of the loop, since somebody
   * may be waiting for it; the rest, and everything before the view has caught up, a little later in a bigger batch.
   * `microtask` is for the simulation, where nothing may depend on real time.
   */
  readonly pace: 'event-loop' | 'microtask';
};

/** The copy has applied more than the log holds: the log was replaced, and the copy is not of it. */
export class AheadOfLog extends Error {
  static readonly NAME = 'AheadOfLog';
  override readonly name = AheadOfLog.NAME;
  constructor(view: string, position: Position, last: Position | undefined) {
    super(`view ${view} has applied position ${position}, but the log ends at ${last ?? 'its beginning'}`);
  }
}

/** Most events of one transaction. More makes catch-up hardly faster and each commit longer. */
const BATCH = 4096;
/** Nor more text than this, by `weightOf`: 4,096 of the largest events would be gigabytes. */
const BATCH_WEIGHT = 16 * 1024 * 1024;
/** While catching up, a batch that is not full is committed after this many milliseconds. */
const CATCH_UP_MS = 25;
/** So long waits what nobody waits for (`View.isUrgent`), and a checkpoint without an event. */
const GATHER_MS = 15;

export type Follower = {
  readonly caughtUp: () => boolean;
  /** Resolves when `until` was reached or the signal came; rejects with what stopped it. */
  readonly done: Promise<void>;
  /** Runs `work` while nothing is applied. */
  readonly exclusive: <Result>(work: () => Promise<Result>) => Promise<Result>;
};

/** One loop: subscription, batch, transaction, report. The position moves only with its transaction. */
export const follow = (options: FollowOptions): Follower => {
  const { view, reader, applier, signal, until, onProgress, pace } = options;
  const stop = new AbortController();
  const anySignal = AbortSignal.any([signal, stop.signal]);
  let buffer: RecordedEvent[] = [];
  let weight = 0;
  let position = applier.checkpoint().position;
  let caughtUp = false;
  let reported = false;
  let held = 0;
  let resume = (): void => {};
  let cancelSchedule: (() => void) | undefined;
  let failure: { readonly error: unknown } | undefined;

  const flush = (): void => {
    cancelSchedule?.();
    cancelSchedule = undefined;
    if (held > 0 || failure !== undefined || signal.aborted) return;
    const started = performance.now();
    const batch = buffer;
    if (position !== undefined && position !== applier.checkpoint().position) {
      buffer = [];
      weight = 0;
      applier.apply(batch, position);
    } else if (reported) return;
    reported = true;
    onProgress({
      ...applier.checkpoint(),
      caughtUp,
      ...(until !== undefined && { target: until }),
      batchEvents: batch.length,
      batchMs: performance.now() - started,
      categories: [...new Set(batch.map(({ stream }) => parseStreamName(stream).category))],
    });
  };
  // A view without urgent events has waited for them in its subscription already, unless it is to wait for longer.
  const isUrgent = view.isUrgent === undefined || view.isUrgent === false ? () => true : view.isUrgent;
  const urgentMs = view.isUrgent === false ? (view.gatherMs ?? 0) : 0;
  let dueSoon = false;
  const flushLater = (urgent: boolean): void => {
    if (held > 0 || (cancelSchedule !== undefined && (dueSoon || !urgent))) return;
    cancelSchedule?.();
    dueSoon = urgent;
    const delay = !caughtUp ? Math.max(CATCH_UP_MS, urgentMs) : urgent ? urgentMs : GATHER_MS;
    cancelSchedule = schedule(pace, delay, () => {
      try {
        flush();
      } catch (error) {
        failure = { error };
        stop.abort();
      }
    });
  };

  const run = async (): Promise<void> => {
    const after = applier.checkpoint().position;
    if (after !== undefined) {
      const last = await reader.lastPosition(anySignal);
      if (last === undefined || after > last) throw new AheadOfLog(view.name, after, last);
    }
    const subscription = reader.subscribe({
      ...(after !== undefined && { after }),
      ...(view.filter !== undefined && { filter: view.filter }),
      ...(view.isUrgent === false && { patienceMs: GATHER_MS }),
      signal: anySignal,
    });
    try {
      if (until !== undefined && after !== undefined && after >= until) return;
      let items = 0;
      for await (const item of subscription) {
        const at = reachedBy(item);
        const past = until !== undefined && (item.kind === 'caught-up' || (at !== undefined && at >= until));
        if (item.kind === 'event' && (until === undefined || item.event.position <= until)) {
          buffer.push(item.event);
          weight += weightOf(item.event.data);
        }
        if (past) {
          position = until;
          break;
        }
        if (at !== undefined && (position === undefined || at > position)) position = at;
        items += 1;
        if (item.kind === 'caught-up') {
          caughtUp = true;
          reported = false;
          flush();
        } else if (items % BATCH === 0 || weight >= BATCH_WEIGHT) {
          while (held > 0) await new Promise<void>((resolve) => (resume = resolve));
          flush();
        } else flushLater(item.kind === 'event' && isUrgent(item.event));
        if (failure !== undefined) break;
      }
      if (failure !== undefined) throw failure.error;
      while (held > 0) await new Promise<void>((resolve) => (resume = resolve));
      if (until !== undefined) flush();
    } finally {
      cancelSchedule?.();
      stop.abort();
    }
  };

  return {
    caughtUp: () => caughtUp,
    done: run(),
    exclusive: async (work) => {
      held += 1;
      try {
        return await work();
      } finally {
        held -= 1;
        if (held === 0) {
          resume();
          flushLater(true);
        }
      }
    },
  };
};

/** Roughly the bytes that a value takes in memory: its texts, and something for each node down to a sane depth. */
const weightOf = (value: JsonValue, depth = 0): number => {
  if (typeof value === 'string') return 16 + value.length;
  if (typeof value !== 'object' || value === null || depth === DEEPEST) return 16;
  let sum = 16;
  for (const part of Object.values(value)) sum += weightOf(part, depth + 1);
  return sum;
};

/** No event of ours is nested so deep; one that somebody else wrote must not exhaust the stack. */
const DEEPEST = 100;

const schedule = (pace: FollowOptions['pace'], ms: number, run: () => void): (() => void) => {
  if (pace === 'microtask') {
    let cancelled = false;
    queueMicrotask(() => {
      if (!cancelled) run();
    });
    return () => {
      cancelled = true;
    };
  }
  if (ms === 0) {
    const handle = setImmediate(run);
    return () => clearImmediate(handle);
  }
  const handle = setTimeout(run, ms);
  return () => clearTimeout(handle);
};
