import type { JsonObject } from '../../domain/json.ts';
import type { PendingCommand, PendingEffect } from '../../domain/workflow.ts';
import type { Alarm } from './run-index.ts';
import { Stopped } from './run-log.ts';
import { alarmAt, gateAlarm, timerAlarms } from './run-memory.ts';
import { pendingOf, pruneStarts, type Run } from './run.ts';
import type { Item, RunsOptions } from './runs.ts';
import { contextOf } from './work.ts';

/** What is going on with one run in this process. It is forgotten as soon as nothing is. */
export type Actor = {
  readonly key: string;
  readonly mailbox: Item[];
  driving: boolean;
  /** Effects that wait for their lane or are being performed. */
  readonly busy: Map<string, 'waiting' | 'running'>;
  /** Key of the command being carried out. */
  command: string | undefined;
  /** Key of the last command whose result was taken in. */
  answered: string | undefined;
  /** How often in a row the same command was still wanted after its result. */
  repeats: number;
  delayed: boolean;
  /** Wall clock minus monotonic clock when this process last recorded something: what its times were made with. */
  offset: number | undefined;
  observation: JsonObject | undefined;
};

export type Planner = {
  /** Starts what is outstanding and not under way; keeps run and alarms in the index. */
  plan(actor: Actor, run: Run): void;
};

/** A command that its workflow still wants after its result is repeated, but not in a busy loop. */
const REPEAT_FIRST_MS = 500;
const REPEAT_MAX_MS = 60_000;

export const createPlanner = (
  options: RunsOptions & {
    readonly post: (key: string, item: Item) => void;
    readonly isDraining: () => boolean;
    readonly commandFailed: (key: string, error: unknown) => void;
  },
): Planner => {
  const { index, memory, lanes, work, timers, steady, settings, post } = options;

  const plan = (actor: Actor, run: Run): void => {
    if (run.revision < 0) return;
    const pending = pendingOf(run);
    pruneStarts(run, pending);
    const offset = actor.offset ?? steady.offset();
    const gates: Alarm[] = [];
    const due: PendingEffect[] = [];
    for (const effect of pending.effects) {
      if (actor.busy.has(effect.effectId)) continue;
      const gate = gateOf(run, effect, offset);
      if (gate === undefined) due.push(effect);
      else gates.push(gate);
    }
    memory.keep(run, pending, [...timerAlarms(pending, offset), ...gates]);
    if (options.isDraining()) return;
    const [command] = pending.commands;
    if (command !== undefined) startCommand(actor, run, command);
    for (const effect of due) {
      actor.busy.set(effect.effectId, 'waiting');
      lanes.enqueue(effect.lane, (slot) =>
        post(run.key, { kind: 'start-effect', effectId: effect.effectId, slot }),
      );
    }
  };

  /** The moment before which this attempt must not start; undefined: it may start now. */
  const gateOf = (run: Run, effect: PendingEffect, offset: number): Alarm | undefined => {
    const { effectId, attempt, notBefore } = effect;
    const held = heldUntil(run, effectId);
    const until = [notBefore, held]
      .filter((time) => time !== undefined)
      .toSorted()
      .at(-1);
    if (until === undefined) return undefined;
    const key = gateAlarm(effectId, attempt);
    const wanted = alarmAt(key, until, offset);
    const stored = index.alarmsOf(run.key).find((alarm) => alarm.key === key && alarm.due === wanted.due);
    if (stored !== undefined && stored.fired > 0) return undefined;
    const gate = stored ?? wanted;
    return gate.dueMono <= steady.monotonicMs() ? undefined : gate;
  };

  /**
   * An attempt that another live runner started is left alone for as long as it may take: looking at once would only
   * double the calls. The start of an earlier epoch, or our own, is a crash's: it is observed at once.
   */
  const heldUntil = (run: Run, effectId: string): string | undefined => {
    const started = run.started[effectId];
    if (started === undefined || started.instance === options.instance || started.epoch < options.epoch) {
      return undefined;
    }
    return new Date(Date.parse(started.at) + settings.effectDeadlineMs).toISOString();
  };

  /** One at a time per run, in the order in which the workflow wants them. */
  const startCommand = (actor: Actor, run: Run, command: PendingCommand): void => {
    if (actor.command !== undefined || actor.delayed) return;
    if (actor.answered === command.key) {
      repeatLater(actor);
      return;
    }
    if (actor.answered !== undefined) actor.repeats = 0;
    actor.command = command.key;
    void work.command(contextOf(run), command).then(
      (result) => post(run.key, { kind: 'command-result', key: command.key, result }),
      (error: unknown) => {
        actor.command = undefined;
        if (!(error instanceof Stopped)) options.commandFailed(run.key, error);
      },
    );
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

  return { plan };
};
