import type { Pending } from '../../domain/workflow.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import { fromRow, isOver, newRun, pendingOf, toRow, type Run } from './run.ts';
import { fractionOf, isIndexError, type Alarm, type Revisions, type RunIndex } from './run-index.ts';
import type { SteadyClock } from './steady-clock.ts';
import type { AnyWorkflow } from './types.ts';

/**
 * Folded runs: the newest in memory, all in the index. Closed runs keep one small row, so that neither a restart nor
 * a late redelivery has to read their streams again.
 */
export type RunMemory = {
  /** A run that was never heard of is a new one. `closed`: nothing will ever be done for it again. */
  get(key: string): Run | 'closed';
  /** Revisions known of this run; undefined: it was never heard of. Cheap. */
  revisionsOf(key: string): Revisions | undefined;
  isClosed(key: string): boolean;
  /** Writes its alarms to the index, and the run itself with the next flush: a step may follow in a moment. */
  keep(run: Run, alarms: readonly Alarm[]): void;
  /** Remembers the run without writing it yet (while the log is folded at the start). */
  touch(run: Run): void;
  /** Forgets what was folded of this run, also that it was closed: it is to be folded from its streams again. */
  forget(key: string): void;
  /** Writes the runs that changed since, at most so many; false: there are more. */
  flush(most?: number): boolean;
  workflowOf(key: string): AnyWorkflow | undefined;
};

export const createRunMemory = (options: {
  readonly index: RunIndex;
  readonly workflows: readonly AnyWorkflow[];
  readonly cachedRuns: number;
  readonly steady: SteadyClock;
  /** A run that cannot be written, because its workflow cannot say what it has pending. */
  readonly broken: (key: string, error: unknown) => void;
  /** Called with the monotonic time of an alarm that was set. */
  readonly alarmSet: (dueMono: number) => void;
}): RunMemory => {
  const { index, cachedRuns, steady } = options;
  const byName = new Map(options.workflows.map((workflow) => [workflow.name, workflow]));
  /** In order of use, the least recently used first. */
  const cache = new Map<string, Run>();
  /** Not written as they are now. `touched`: nor are their alarms. */
  const dirty = new Map<string, 'kept' | 'touched'>();
  /** Runs with a row, from which their alarms have their age. */
  const rowed = new WeakSet<Run>();

  const workflowOf = (key: string): AnyWorkflow | undefined => byName.get(parseStreamName(key).category);

  const save = (run: Run): void => {
    index.save(toRow(run));
    rowed.add(run);
    dirty.delete(run.key);
  };

  const setAlarms = (run: Run, wanted: readonly Alarm[]): void => {
    const alarms = isOver(run) ? [] : wanted;
    index.setAlarms(run.key, alarms);
    for (const { dueMono } of alarms) options.alarmSet(dueMono);
  };

  const remember = (run: Run): void => {
    cache.delete(run.key);
    cache.set(run.key, run);
    if (cache.size <= cachedRuns) return;
    for (const [key, oldest] of cache) {
      write(oldest);
      cache.delete(key);
      break;
    }
  };

  const writeTouched = (run: Run): void => {
    const pending = pendingOf(run);
    const stored = index.alarmsOf(run.key);
    const reads = pending.effects.flatMap(({ effectId, everyMs }) => {
      if (everyMs === undefined) return [];
      const key = readAlarmKey(effectId);
      const alarm = stored.find((each) => each.key === key);
      // The events that made the run urgent (a deletion, say) may be newer than its alarm.
      const fits = alarm !== undefined && alarm.dueMono - steady.monotonicMs() <= everyMs;
      // Spread over the interval, so that a rebuilt index does not read everything at once.
      return [fits ? alarm : alarmIn(key, everyMs * fractionOf(run.key), steady)];
    });
    // One that has fired says so until its attempt has begun, whatever the clocks say by then.
    const waitingFor = new Set(pending.effects.map(({ effectId, attempt }) => gateAlarm(effectId, attempt)));
    const gates = stored.filter(({ key }) => waitingFor.has(key));
    save(run);
    setAlarms(run, [...timerAlarms(pending, steady.offset()), ...gates, ...reads]);
  };

  /** A bug or poison stops one run, whatever is written together with it. Its row stays behind, as of any parked run. */
  const write = (run: Run): void => {
    try {
      const how = dirty.get(run.key);
      if (how === 'touched') writeTouched(run);
      else if (how === 'kept') save(run);
    } catch (error) {
      if (isIndexError(error)) throw error;
      dirty.delete(run.key);
      options.broken(run.key, error);
    }
  };

  return {
    workflowOf,
    get: (key) => {
      const cached = cache.get(key);
      if (cached !== undefined) return cached;
      const workflow = workflowOf(key);
      if (workflow === undefined) throw new TypeError(`no workflow has runs called ${key}`);
      const row = index.load(key);
      if (row === undefined) return newRun(workflow, parseStreamName(key).id);
      const run = fromRow(row, workflow);
      if (run !== undefined) rowed.add(run);
      return run ?? 'closed';
    },
    isClosed: (key) => !cache.has(key) && index.load(key)?.closed === true,
    revisionsOf: (key) => cache.get(key) ?? index.revisionsOf(key),
    keep: (run, alarms) => {
      const over = isOver(run);
      if (over || !rowed.has(run)) save(run);
      else dirty.set(run.key, 'kept');
      setAlarms(run, alarms);
      if (over) cache.delete(run.key);
      else remember(run);
    },
    touch: (run) => {
      dirty.set(run.key, 'touched');
      remember(run);
    },
    forget: (key) => {
      cache.delete(key);
      dirty.delete(key);
      const workflow = workflowOf(key);
      if (workflow === undefined || index.load(key) === undefined) return;
      index.save(toRow(newRun(workflow, parseStreamName(key).id)));
    },
    flush: (most = Infinity) => {
      let written = 0;
      for (const key of dirty.keys()) {
        if (written >= most) return false;
        written += 1;
        const run = cache.get(key);
        if (run === undefined) dirty.delete(key);
        else write(run);
        if (run !== undefined && isOver(run)) cache.delete(key);
      }
      return true;
    },
  };
};

/** Alarm key of a workflow's timer. */
export const timerAlarm = (timerId: string): string => `t:${timerId}`;
/** Alarm key of the moment before which an attempt must not start. */
export const gateAlarm = (effectId: string, attempt: number): string => `e:${effectId}#${attempt}`;
/** Alarm key of an effect that is held back. */
export const heldAlarm = (effectId: string): string => `h:${effectId}`;
/** Alarm key of a timed read. */
export const readAlarmKey = (effectId: string): string => `r:${effectId}`;
export const timerOfAlarm = (alarm: string): string | undefined =>
  alarm.startsWith('t:') ? alarm.slice(2) : undefined;

/** `offset`: wall clock minus monotonic clock at the moment when these times were recorded. */
export const alarmAt = (key: string, due: string, offset: number): Alarm => {
  const ms = Date.parse(due);
  return { key, due: ms, dueMono: ms - offset };
};

/** An alarm `ms` milliseconds from now. */
export const alarmIn = (key: string, ms: number, steady: SteadyClock): Alarm => {
  const dueMono = steady.monotonicMs() + ms;
  return { key, due: dueMono + steady.offset(), dueMono };
};

export const timerAlarms = (pending: Pending, offset: number): Alarm[] =>
  pending.timers.map(({ timerId, dueAt }) => alarmAt(timerAlarm(timerId), dueAt, offset));
