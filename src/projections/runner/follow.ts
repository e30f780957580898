import { reachedBy, type Position } from '../../app/log/event-store.ts';
import { resumeAfter, unproved } from '../../app/log/resume-point.ts';
import type { LogReader } from '../log-reader.ts';
import type { JsonValue } from '../../domain/json.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { View } from '../view.ts';
import { Undone, type Applier, type LoggedEvent } from './applier.ts';

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
  /**
   * Events are applied soon after they were read, in transactions of many batches: what was parsed dies young, and each row
   * is written once. Ends with Undone at an event that cannot be applied. Default: false.
   */
  readonly longTransactions?: boolean;
};

/** Most events of one transaction. More makes catch-up hardly faster and each commit longer. */
const BATCH = 4096;
/** Nor more text than this, by `weightOf`: 4,096 of the largest events would be gigabytes. */
const BATCH_WEIGHT = 16 * 1024 * 1024;
/** The same of long transactions; `SOON`: so many events are applied together within one. */
const LONG_BATCH = 8_192;
const SOON = 512;
/**
 * While catching up, a batch that is not full is committed after this many milliseconds; later in a copy that is built up to
 * an end, which nobody reads.
 */
const CATCH_UP_MS = 25;
const BUILD_MS = 5_000;
/**
 * Applying pauses after this many milliseconds once the view has caught up, and the thread reads on, for other views too: some
 * servers drop a live subscriber that does not read (EventStoreDB 23.10). Before that they wait for it. The transaction ends
 * with it, unless nothing in the view is urgent.
 */
const SLICE_MS = 5;
/** So long waits what nobody waits for (`View.isUrgent`), and a checkpoint without an event. */
const GATHER_MS = 15;

export type Follower = {
  readonly caughtUp: () => boolean;
  /** Resolves when `until` was reached or the signal came; rejects with what stopped it. */
  readonly done: Promise<void>;
  /** Runs `work` while nothing is applied. */
  readonly exclusive: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** Somebody waits for this position: what gathers does so no longer than others do. */
  readonly hurry: (position: Position) => void;
};

/** One loop: subscription, batch, transaction, report. The position moves only with its transaction. */
export const follow = (options: FollowOptions): Follower => {
  const { view, reader, applier, signal, until, onProgress, pace, longTransactions = false } = options;
  const stop = new AbortController();
  const anySignal = AbortSignal.any([signal, stop.signal]);
  let buffer: LoggedEvent[] = [];
  let weight = 0;
  let position = applier.checkpoint().position;
  /** What was applied in the transaction that is open, if one is. */
  let open: { readonly events: number; readonly weight: number; readonly ms: number } | undefined;
  /** The same of a live view: they come again if one of them cannot be applied. */
  let uncommitted: readonly LoggedEvent[] = [];
  let uncommittedMs = 0;
  /** The end of the log was reached; `drained`: and all that had come by then was applied. */
  let caughtUp = false;
  let drained = false;
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
    let batch: readonly LoggedEvent[] = buffer;
    const isOpen = open !== undefined || uncommitted.length > 0;
    if (position !== undefined && (isOpen || position !== applier.checkpoint().position)) {
      const committed = applyBatch(position);
      if (committed === undefined) {
        uncommittedMs += performance.now() - started;
        flushWithin(0);
        return;
      }
      batch = committed;
    } else if (reported) return;
    reported = true;
    drained ||= caughtUp && buffer.length === 0;
    onProgress({
      ...applier.checkpoint(),
      caughtUp: drained,
      ...(until !== undefined && { target: until }),
      batchEvents: (open?.events ?? 0) + batch.length,
      batchMs: (open?.ms ?? uncommittedMs) + performance.now() - started,
      ...(open === undefined && { categories: [...new Set(batch.map(({ stream }) => categoryOf(stream)))] }),
    });
    open = undefined;
    uncommittedMs = 0;
    if (buffer.length > 0) flushWithin(0);
  };
  /** Applies what was read and commits it, or a part of it; undefined: more is to come before that. */
  const applyBatch = (to: Position): readonly LoggedEvent[] | undefined => {
    const isLive = caughtUp && pace === 'event-loop';
    try {
      if (isLive && view.isUrgent === false) {
        const batch = take(applier.applyOn(buffer, to, SLICE_MS));
        uncommitted = [...uncommitted, ...batch];
        if (buffer.length > 0 && uncommitted.length < BATCH) return undefined;
        applier.apply([], applier.checkpoint().position ?? to);
      } else return take(applier.apply(buffer, to, isLive ? SLICE_MS : undefined));
    } catch (error) {
      if (!(error instanceof Undone) || longTransactions) throw error;
      uncommitted = [...uncommitted, ...take(buffer.length)];
      applier.apply(uncommitted, to);
    }
    const committed = uncommitted;
    uncommitted = [];
    return committed;
  };
  /** Takes so many events out of the buffer. */
  const take = (count: number): readonly LoggedEvent[] => {
    const taken = buffer.slice(0, count);
    buffer = buffer.slice(count);
    weight = buffer.length === 0 ? 0 : weight - sumOf(taken);
    return taken;
  };
  /** Applies what was read in a transaction that stays open. */
  const applyOn = (): void => {
    if (position === undefined) return;
    const started = performance.now();
    applier.applyOn(buffer, position);
    const { events, weight: before, ms } = open ?? { events: 0, weight: 0, ms: 0 };
    open = {
      events: events + buffer.length,
      weight: before + weight,
      ms: ms + performance.now() - started,
    };
    buffer = [];
    weight = 0;
  };
  // A view without urgent events has waited for them in its subscription already, unless it is to wait for longer.
  const isUrgent = view.isUrgent === undefined || view.isUrgent === false ? () => true : view.isUrgent;
  const { gatherMs = GATHER_MS } = view;
  const urgentMs = view.isUrgent === false ? (view.gatherMs ?? 0) : 0;
  const catchUpMs = until === undefined ? CATCH_UP_MS : BUILD_MS;
  /** Somebody waits for it. */
  let wanted: Position | undefined;
  /** After how many milliseconds what is read is committed, seen from when that was decided. */
  let dueMs = 0;
  const flushLater = (urgent: boolean): void => {
    const { position: committed = '' } = applier.checkpoint();
    const isWanted = wanted !== undefined && wanted > committed && wanted <= (position ?? '');
    const ms = urgent ? urgentMs : gatherMs;
    flushWithin(caughtUp ? (isWanted ? Math.min(ms, GATHER_MS) : ms) : Math.max(catchUpMs, urgentMs));
  };
  const flushWithin = (ms: number): void => {
    if (held > 0 || (cancelSchedule !== undefined && dueMs <= ms)) return;
    cancelSchedule?.();
    dueMs = ms;
    cancelSchedule = schedule(pace, ms, () => {
      try {
        flush();
      } catch (error) {
        failure = { error };
        stop.abort();
      }
    });
  };
  const isFull = (): boolean => buffer.length >= BATCH || weight >= BATCH_WEIGHT;
  const isLong = (): boolean =>
    (open?.events ?? 0) + buffer.length >= LONG_BATCH || (open?.weight ?? 0) + weight >= BATCH_WEIGHT;

  const run = async (): Promise<void> => {
    const after = await resumeAfter(reader, applier.checkpoint().anchor, anySignal);
    applier.rewind();
    position = after;
    const subscription = reader.subscribe({
      ...(after !== undefined && { after }),
      ...(view.filter !== undefined && { filter: view.filter }),
      ...(view.isUrgent === false && { patienceMs: GATHER_MS }),
      signal: anySignal,
      name: view.name,
    });
    try {
      if (until !== undefined && after !== undefined && after >= until) return;
      let items = 0;
      for await (const item of subscription) {
        const at = reachedBy(item);
        const past = until !== undefined && (item.kind === 'caught-up' || (at !== undefined && at >= until));
        if ('event' in item && (until === undefined || item.event.position <= until)) {
          buffer.push(item.event);
          weight += weightOf(item.event);
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
        } else if (longTransactions && !isLong()) {
          if (buffer.length >= SOON || items % BATCH === 0) applyOn();
          flushLater(false);
        } else if (longTransactions || isFull() || items % BATCH === 0) {
          while (held > 0) await new Promise<void>((resolve) => (resume = resolve));
          flush();
          while (isFull() && failure === undefined && !anySignal.aborted)
            await new Promise((resolve) => setImmediate(resolve));
        } else flushLater(item.kind === 'event' && isUrgent(item.event));
        if (failure !== undefined) break;
      }
      if (failure !== undefined) throw failure.error;
      while (held > 0) await new Promise<void>((resolve) => (resume = resolve));
      if (until !== undefined) flush();
    } catch (error) {
      throw unproved(error);
    } finally {
      cancelSchedule?.();
      stop.abort();
    }
  };

  return {
    caughtUp: () => caughtUp,
    done: run(),
    exclusive: async (work) => {
      while (uncommitted.length > 0 && failure === undefined && !anySignal.aborted)
        await new Promise((resolve) => setImmediate(resolve));
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
    hurry: (to) => {
      wanted = to;
      if (cancelSchedule !== undefined) flushLater(false);
    },
  };
};

const categoryOf = (stream: string): string => parseStreamName(stream).category;

const weightOf = (event: LoggedEvent): number => ('data' in event ? weightOfValue(event.data) : 0);
const sumOf = (events: readonly LoggedEvent[]): number =>
  events.reduce((sum, event) => sum + weightOf(event), 0);

/** Roughly the bytes that a value takes in memory: its texts, and something for each node down to a sane depth. */
const weightOfValue = (value: JsonValue, depth = 0): number => {
  if (typeof value === 'string') return 16 + value.length;
  if (typeof value !== 'object' || value === null || depth === DEEPEST) return 16;
  let sum = 16;
  for (const part of Object.values(value)) sum += weightOfValue(part, depth + 1);
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
