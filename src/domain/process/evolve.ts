import { defined, stringAt, without } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import type { FoldedEvent } from '../workflow.ts';
import { stamped } from './activity.ts';
import { decided } from './decisions.ts';
import { doubted, evolveEffect, instanceOfEffect, kindOfEffect } from './effects.ts';
import type { RunEvent, RunEventOf } from './events.ts';
import type { AnyRun, Problem } from './run.ts';
import type { Table } from './row.ts';
import { CHECK } from './table.ts';
import { afterSuccess, begunAnew } from './undo.ts';

/** Name of the timer of a step's deadline. */
export const DEADLINE = 'deadline:';

/** Folds an event of the subject or of the run. Accepts everything ever stored. */
export const evolveRun =
  (table: Table) =>
  (before: AnyRun, event: FoldedEvent): AnyRun => {
    const { memo, retries, lifts } = table.declared;
    const at = stringAt(event.data, 'at');
    let run = event.of === 'subject' ? heard(table, before, event, at) : recorded(table, before, event);
    if (retries?.(run, event) === true) run = startedOver(run);
    if (run.halted !== undefined && lifts?.(run, event) === true) run = withoutHalt(run);
    if (memo !== undefined) {
      const success = Object.keys(run.done).find((kind) => run.done[kind] !== before.done[kind]);
      run = { ...run, memo: memo.evolve(run.memo, event, run, success) };
    }
    return stamped(table, run, at);
  };

const heard = ({ declared }: Table, before: AnyRun, event: FoldedEvent, at: string): AnyRun => {
  const subject = declared.subject.decider.evolve(before.subject, event);
  let run: AnyRun = { ...before, subject, subjectRevision: event.revision };
  if (run.status === 'none' && declared.begins(subject)) {
    run = { ...run, status: 'open', id: declared.subject.idOf(subject), tenant: event.tenant };
  }
  if (run.ending === undefined && declared.ends?.(subject) !== undefined) {
    run = { ...withoutHalt(run), ending: { at }, overdue: {} };
  }
  const aborts = run.ending === undefined ? declared.aborts?.(subject) : undefined;
  if (aborts === true && run.aborted === undefined) {
    run = { ...withoutHalt(run), aborted: { at, by: '', reason: '' } };
  } else if (aborts === false && run.aborted !== undefined) run = begunAnew(run);
  for (const [kind, effect] of Object.entries(run.effects)) {
    if (effect.startId === event.causationId && effect.status !== 'done') {
      run = succeeded(run, { kind, effectId: effect.id, at });
    }
  }
  return run;
};

const recorded = (table: Table, run: AnyRun, event: FoldedEvent): AnyRun => {
  // Own events are read by the registry's schema before they come here.
  const { type, data } = event as unknown as RunEvent;
  const own = { type, data } as RunEvent;
  const kindOf = (step: string): string => table.byName.get(step)?.kind ?? step;
  switch (own.type) {
    case 'EffectSucceeded':
    case 'EffectSettled': {
      const { effectId, at } = own.data;
      const kind = kindOfEffect(effectId);
      if (run.effects[kind]?.id !== effectId) return run;
      if (own.type === 'EffectSucceeded') {
        return succeeded(run, { kind, effectId, at, result: own.data.result });
      }
      return own.data.found ? succeeded(run, { kind, effectId, at }) : withEffect(run, own, event.id);
    }
    case 'EffectStarted':
    case 'EffectFailed':
    case 'EffectOutcomeUnknown':
      return withEffect(run, own, event.id);
    case 'EffectRefused':
    case 'EffectStalled': {
      const permanent = own.type === 'EffectRefused';
      const problem = problemOf(own.data, permanent);
      const told = withEffect(run, own, event.id);
      // What became of a step after it was skipped stands in nobody's way.
      if (Object.keys(run.skipped).some((step) => kindOf(step) === problem.effect)) return told;
      return { ...told, problem, ...(permanent ? { halted: problem } : {}) };
    }
    case 'TimerFired':
      return timerFired(run, own.data, table.declared.check !== undefined);
    case 'CommandRefused': {
      const { key, code } = own.data;
      return { ...run, refused: { ...run.refused, [stepOfKey(key)]: code } };
    }
    case 'RunRetried':
      return startedOver(run);
    case 'StepSkipped':
      return decided(run.halted?.effect === kindOf(own.data.step) ? withoutHalt(run) : run, own);
    case 'StepResumed':
      return resumed(decided(run, own), own.data.at, kindOf(own.data.step));
    case 'RunAborted':
      return run.passed === true || run.ending !== undefined ? run : decided(run, own);
    // Of a newer release.
    default:
      return run;
  }
};

/** Keys of commands that tell something by themselves: `<step>@<revision of the subject>`. */
export const stepOfKey = (key: string): string => key.slice(0, key.lastIndexOf('@'));

const withEffect = (run: AnyRun, event: RunEvent, eventId: string): AnyRun => {
  const kind = kindOfEffect((event.data as { readonly effectId: string }).effectId);
  const effect = evolveEffect(run.effects[kind], event, eventId);
  return effect === undefined ? run : { ...run, effects: { ...run.effects, [kind]: effect } };
};

const problemOf = (
  { at, effectId, reason, message }: RunEventOf<'EffectRefused' | 'EffectStalled'>['data'],
  permanent: boolean,
): Problem => ({ at, effect: kindOfEffect(effectId), reason, message, permanent });

type Success = {
  readonly kind: string;
  readonly effectId: string;
  readonly at: string;
  readonly result?: JsonObject;
};

const succeeded = (before: AnyRun, { kind, effectId, at, result }: Success): AnyRun => {
  const effect = before.effects[kind];
  if (effect === undefined) return before;
  const done = {
    instance: instanceOfEffect(effectId),
    at,
    times: (before.done[kind]?.times ?? 0) + 1,
    ...defined({ result, facts: effect.facts }),
  };
  const run: AnyRun = {
    ...(['problem', 'halted'] as const)
      .filter((told) => before[told]?.effect === kind)
      .reduce<AnyRun>((told, member) => without(told, member), before),
    effects: { ...before.effects, [kind]: { ...effect, status: 'done' } },
    done: { ...before.done, [kind]: done },
    overdue: kind === CHECK ? checkedOverdue(before.overdue, at) : before.overdue,
  };
  return afterSuccess(before, run, effectId, kind);
};

const checkedOverdue = (overdue: AnyRun['overdue'], checked: string): AnyRun['overdue'] =>
  Object.fromEntries(Object.entries(overdue).map(([step, times]) => [step, { checked, ...times }]));

const timerFired = (
  run: AnyRun,
  { timerId, at }: RunEventOf<'TimerFired'>['data'],
  isLookedInto: boolean,
): AnyRun => {
  if (!timerId.startsWith(DEADLINE)) return run;
  const times = isLookedInto ? { fired: at } : { fired: at, checked: at };
  const overdue = { ...run.overdue, [timerId.slice(DEADLINE.length)]: times };
  return { ...run, fired: run.fired + 1, overdue };
};

const withoutHalt = (run: AnyRun): AnyRun => without(run, 'halted', 'problem');

/** A new cycle: effects get new ids, and deadlines start again. */
const startedOver = (run: AnyRun): AnyRun =>
  run.ending !== undefined || run.aborted !== undefined
    ? run
    : {
        ...withoutHalt(run),
        cycle: run.cycle + 1,
        overdue: {},
        since: {},
        refused: {},
        effects: doubted(run.effects),
      };

/** What was refused of it is tried once more, at once. */
const resumed = (run: AnyRun, notBefore: string, kind: string): AnyRun => {
  const effect = run.effects[kind];
  return effect?.status === 'refused'
    ? { ...run, effects: { ...run.effects, [kind]: { ...effect, status: 'failed', notBefore } } }
    : run;
};
