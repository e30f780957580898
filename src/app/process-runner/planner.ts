import type { Pending, PendingCommand, PendingEffect } from '../../domain/workflow.ts';
import type { Priority } from '../fairness/fair-queue.ts';
import type { Alarm, StoredAlarm } from './run-index.ts';
import { alarmAt, alarmIn, gateAlarm, heldAlarm, readAlarmKey, timerAlarms } from './run-memory.ts';
import { isKnown, pruneStarts, type Run } from './run.ts';
import type { Actor, Item } from './actor.ts';
import { keyOf } from './decisions.ts';
import type { Rounds } from './rounds.ts';
import type { RunsOptions } from './runs-options.ts';

/** `keep`: the alarm to keep in the index. */
type Due = { readonly due: boolean; readonly keep?: Alarm };

export type Planner = {
  /** The command whose turn it is: one at a time, in the order in which the workflow wants them. */
  nextCommand(actor: Actor, run: Run, pending: Pending): PendingCommand | undefined;
  /** Starts the effects that are outstanding and not under way; keeps run and alarms in the index. */
  plan(actor: Actor, run: Run, pending: Pending): void;
  /** A lane works again: what rests after failures in it is tried at once. */
  wakeLane(lane: string, howMany: 'all' | 'one'): void;
};

/** A command that its workflow still wants after its result is repeated, but not in a busy loop. */
const REPEAT_FIRST_MS = 500;
const REPEAT_MAX_MS = 60_000;

/** A timed read that fails is made at twice the interval each time, up to this one. */
const READ_REST_MAX_MS = 5 * 60_000;
/** Milliseconds until an effect that is held back is looked at again. */
const HELD_MS = 10_000;

/** What only looks can wait for what does something. */
const priorityOf = ({ priority, everyMs }: PendingEffect): Priority =>
  priority ?? (everyMs === undefined ? 'work' : 'read');

export const createPlanner = (
  options: RunsOptions & {
    readonly rounds: Rounds;
    readonly post: (key: string, item: Item) => void;
    readonly isDraining: () => boolean;
  },
): Planner => {
  const { index, memory, lanes, rounds, timers, steady, settings, post } = options;

  /** Runs that rest after failures, and the lanes in which they do. */
  const resting = new Map<string, Set<string>>();
  /** Runs whose rest in this lane is over. */
  const woken = new Map<string, string>();

  const rests = (run: Run, lane: string): void => {
    resting.set(run.key, (resting.get(run.key) ?? new Set<string>()).add(lane));
  };

  const wakeLane = (lane: string, howMany: 'all' | 'one'): void => {
    const runs = [...resting].filter(([, lanesOf]) => lanesOf.has(lane)).map(([run]) => run);
    for (const run of howMany === 'all' ? runs : runs.slice(0, 1)) {
      resting.delete(run);
      woken.set(run, lane);
      post(run, { kind: 'look' });
    }
  };

  const plan = (actor: Actor, run: Run, pending: Pending): void => {
    if (!isKnown(run)) return;
    resting.delete(run.key);
    rounds.recheck(run);
    pruneStarts(run, pending);
    const offset = actor.offset ?? steady.offset();
    const alarms = timerAlarms(pending, offset);
    const due: PendingEffect[] = [];
    for (const effect of pending.effects) {
      const alarm =
        effect.everyMs === undefined ? gateOf(actor, run, effect, offset) : readAlarm(actor, run, effect);
      if (alarm.due && options.isHeldBack?.(effect) === true) {
        alarms.push(alarmIn(heldAlarm(effect.effectId), HELD_MS, steady));
        continue;
      }
      if (alarm.due) due.push(effect);
      if (alarm.keep !== undefined) alarms.push(alarm.keep);
    }
    memory.keep(run, alarms);
    lanes.keep(run.runId, pending.effects);
    woken.delete(run.key);
    if (options.isDraining()) return;
    for (const effect of due) {
      actor.busy.set(effect.effectId, 'waiting');
      lanes.enqueue(
        effect.lane,
        (slot) => post(run.key, { kind: 'start-effect', effectId: effect.effectId, slot }),
        { tenant: run.tenant, priority: priorityOf(effect), order: run.runId, effect: effect.operation },
      );
    }
  };

  /** May this attempt start now, and if not, when. */
  const gateOf = (actor: Actor, run: Run, effect: PendingEffect, offset: number): Due => {
    const { effectId, attempt, lane } = effect;
    if (actor.busy.has(effectId)) return { due: false };
    const notBefore = woken.get(run.key) === lane ? effect.firmUntil : effect.notBefore;
    const until = [notBefore, heldUntil(run, effect)]
      .filter((time) => time !== undefined)
      .toSorted()
      .at(-1);
    if (until === undefined) return { due: true };
    const wanted = alarmAt(gateAlarm(effectId, attempt), until, offset);
    const stored = storedAlarm(run, wanted.key);
    const gate = stored?.due === wanted.due ? stored : { ...wanted, fired: 0 };
    if (isOver(gate)) return { due: true };
    if (attempt > 1) rests(run, lane);
    return { due: false, keep: gate };
  };

  /**
   * A timed read starts when it becomes pending and again some time after each answer. Its alarm always stands, also
   * while it is under way, so that after a restart nothing but the alarm has to be looked at.
   */
  const readAlarm = (actor: Actor, run: Run, effect: PendingEffect): Due => {
    const { effectId, lane } = effect;
    const failures = lanes.failuresOf(lane, { order: run.runId, effect: effect.operation });
    const everyMs = restedRead(effect.everyMs ?? 0, failures);
    const key = readAlarmKey(effectId);
    if (failures > 0 && woken.get(run.key) === lane && !actor.busy.has(effectId) && !actor.read.has(effectId))
      return { due: true, keep: alarmIn(key, everyMs, steady) };
    if (failures > 0) rests(run, lane);
    const next = (): Alarm => alarmIn(key, everyMs, steady);
    const answered = actor.read.get(effectId);
    if (answered === 'due' && actor.busy.has(effectId))
      return { due: false, keep: storedAlarm(run, key) ?? next() };
    actor.read.delete(effectId);
    if (answered === 'due') return { due: true, keep: next() };
    if (answered === 'idle' && rounds.join(run, effect)) return { due: false, keep: asleep(next()) };
    if (answered !== undefined) return { due: false, keep: next() };
    const stored = storedAlarm(run, key);
    if (rounds.holds(run, effect)) return { due: false, keep: asleep(stored ?? next()) };
    if (actor.busy.has(effectId))
      return { due: false, keep: stored === undefined || isOver(stored) ? next() : stored };
    // An alarm from before the run became urgent (a deletion, say) would hold it up for the longer interval.
    const tooLate = stored !== undefined && stored.dueMono - steady.monotonicMs() > everyMs;
    if (stored !== undefined && !isOver(stored)) return { due: false, keep: tooLate ? next() : stored };
    return { due: true, keep: next() };
  };

  const storedAlarm = (run: Run, key: string): StoredAlarm | undefined =>
    index.alarmsOf(run.key).find((alarm) => alarm.key === key);

  const isOver = (alarm: StoredAlarm): boolean => alarm.fired > 0 || alarm.dueMono <= steady.monotonicMs();

  /**
   * An attempt that another live runner started is left alone for as long as it may take: looking at once would only
   * double the calls. The start of an earlier epoch, or our own, is a crash's: it is observed at once.
   */
  const heldUntil = (run: Run, { effectId, port }: PendingEffect): string | undefined => {
    const started = run.started[effectId];
    if (started === undefined || started.instance === options.instance || started.epoch < options.epoch) {
      return undefined;
    }
    const deadlineMs = options.effectDeadlinesMs?.[port] ?? settings.effectDeadlineMs;
    return new Date(Date.parse(started.at) + deadlineMs).toISOString();
  };

  const nextCommand = (actor: Actor, run: Run, pending: Pending): PendingCommand | undefined => {
    const [command] = pending.commands;
    if (command === undefined || actor.delayed || options.isDraining()) return undefined;
    const key = keyOf(run, command);
    if (actor.answered === key) {
      repeatLater(actor);
      return undefined;
    }
    if (actor.answered !== undefined) actor.repeats = 0;
    actor.answered = key;
    return command;
  };

  const repeatLater = (actor: Actor): void => {
    actor.delayed = true;
    timers.after(Math.min(REPEAT_MAX_MS, REPEAT_FIRST_MS * 2 ** actor.repeats), () => {
      actor.delayed = false;
      actor.answered = undefined;
      actor.repeats += 1;
      post(actor.key, { kind: 'look' });
    });
  };

  return { nextCommand, plan, wakeLane };
};

/** A round comes instead of it, until the next start. */
const asleep = (alarm: Alarm): Alarm => ({ ...alarm, dueMono: Infinity });

const restedRead = (everyMs: number, failures: number): number =>
  failures < 2
    ? everyMs
    : Math.max(everyMs, Math.min(READ_REST_MAX_MS, everyMs * 2 ** Math.min(failures - 1, 10)));
