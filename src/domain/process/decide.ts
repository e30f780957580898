import type { JsonObject } from '../json.ts';
import {
  NO_REACTION,
  type EffectOutcome,
  type PendingCommand,
  type Reaction,
  type WorkflowInput,
} from '../workflow.ts';
import { answerTo } from './activity.ts';
import { isUnresolved, kindOfEffect, recordOutcome, type EffectState } from './effects.ts';
import type { RunEvent } from './events.ts';
import { stepOfKey } from './evolve.ts';
import { commandTo, offered, timersOf } from './pending.ts';
import type { AnyRun } from './run.ts';
import type { Table } from './row.ts';
import { rulesOf } from './table.ts';
import { isLate, isUnwinding, undoKind, undoneKind } from './undo.ts';

type InputOf<Kind extends WorkflowInput['kind']> = Extract<WorkflowInput, { readonly kind: Kind }>;

/** What to record of an input, and what to tell the subject of it. */
export const decideRun =
  (table: Table) =>
  (run: AnyRun, input: WorkflowInput): Reaction<RunEvent> => {
    if (run.status === 'none') return NO_REACTION;
    switch (input.kind) {
      // Everything that follows by itself is read off the state.
      case 'settle':
        return NO_REACTION;
      case 'effect-result':
        return effectEnded(table, run, input);
      case 'observation':
        return observed(table, run, input);
      case 'timer-due': {
        const { timerId, now: at } = input;
        const isKept = timersOf(table, run).some((timer) => timer.timerId === timerId);
        return isKept ? recording({ type: 'TimerFired', data: { at, timerId } }) : NO_REACTION;
      }
      case 'command-result':
        return answered(table, run, input);
    }
  };

const recording = (...events: readonly RunEvent[]): Reaction<RunEvent> => ({ events, commands: [] });

const STILL_THERE = 'StillThere';

const effectEnded = (
  table: Table,
  run: AnyRun,
  { effectId, outcome, now }: Omit<InputOf<'effect-result'>, 'kind'>,
  isSeenGone = false,
): Reaction<RunEvent> => {
  const kind = kindOfEffect(effectId);
  const effect = run.effects[kind];
  if (effect?.id !== effectId) return NO_REACTION;
  const rules = rulesOf(table, run, kind);
  const recordAs = (as: EffectOutcome, mayBeRefused = rules.mayBeRefused): Reaction<RunEvent> =>
    recording(...recordOutcome(effect, effectId, as, now, { ...rules, mayBeRefused }));
  if (table.undos.has(kind) && isUnwinding(run))
    return unwound(table, run, effect, kind, outcome, now, recordAs);
  if (outcome.outcome !== 'done') return recordAs(outcome);
  const { result } = outcome;
  const undone = undoneKind(kind);
  if (!isSeenGone && undone !== undefined && table.undos.get(undone)?.absent(run, result) === false) {
    return recordAs({ outcome: 'unknown', reason: STILL_THERE, message: 'the object is still there' });
  }
  if (effect.status === 'done' || effect.status === 'refused') return NO_REACTION;
  const command = table.byKind.get(kind)?.record?.(run, result, now);
  if (command !== undefined && answerTo(table, run, command) === 'events') {
    const told = { ...commandTo(table, run, command), key: RECORD + effectId, cause: effect.startId };
    return { events: [], commands: [told] };
  }
  return recordAs({ outcome: 'done', result: kept(table, run, kind, result) });
};

const RECORD = 'effect:';

/** An answer to what is to be undone, or a look at it, tells whether it is there. */
const unwound = (
  table: Table,
  run: AnyRun,
  effect: EffectState,
  kind: string,
  outcome: EffectOutcome,
  at: string,
  recordAs: (as: EffectOutcome, mayBeRefused?: boolean) => Reaction<RunEvent>,
): Reaction<RunEvent> => {
  // A refusal says nothing of an attempt before it, and giving up is no option.
  if (outcome.outcome !== 'done') return recordAs(outcome, false);
  const { id: effectId, attempt } = effect;
  if (table.undos.get(kind)?.absent(run, outcome.result) === true) {
    return isUnresolved(effect)
      ? recording({ type: 'EffectSettled', data: { at, effectId, attempt, found: false } })
      : NO_REACTION;
  }
  const result = kept(table, run, kind, outcome.result);
  return isLate(run, kind)
    ? recording({ type: 'EffectSucceeded', data: { at, effectId, attempt, result } })
    : recordAs({ outcome: 'done', result });
};

const kept = ({ byKind }: Table, run: AnyRun, kind: string, result: JsonObject): JsonObject =>
  byKind.get(kind)?.keep?.(run, result) ?? result;

const observed = (
  table: Table,
  run: AnyRun,
  { observation, now }: InputOf<'observation'>,
): Reaction<RunEvent> => {
  const events: RunEvent[] = [];
  for (const [kind, { shown, gone }] of table.undos) {
    const effect = run.effects[kind];
    const removal = run.effects[undoKind(kind)];
    // What was seen before the removal was asked for may have been seen before it was there.
    const isAsked = removal !== undefined && (removal.attempt > 1 || removal.status !== 'started');
    if (isAsked && removal.status !== 'done' && gone?.(run, observation) === true) {
      const outcome = { outcome: 'done', result: observation } as const;
      return effectEnded(table, run, { effectId: removal.id, outcome, now }, true);
    }
    if (effect?.status === 'undone' && shown?.(run, observation) === true) {
      const { id: effectId, attempt } = effect;
      events.push({ type: 'EffectSettled', data: { at: now, effectId, attempt, found: true } });
    }
  }
  const command = table.declared.observe?.(run, observation, now);
  const commands: PendingCommand[] =
    command !== undefined && answerTo(table, run, command) === 'events'
      ? [commandTo(table, run, command)]
      : [];
  return { events, commands };
};

/** Whatever came of a command is folded by now: what it was to record and did not is recorded here. */
const answered = (
  table: Table,
  run: AnyRun,
  { commandKey, result, to, now: at }: InputOf<'command-result'>,
): Reaction<RunEvent> => {
  if (commandKey.startsWith(RECORD)) {
    if (to?.kind !== 'effect-result' || to.outcome.outcome !== 'done') return NO_REACTION;
    const { effectId, outcome } = to;
    const kind = kindOfEffect(effectId);
    const ended: EffectOutcome = { outcome: 'done', result: kept(table, run, kind, outcome.result) };
    return recording(...recordOutcome(run.effects[kind], effectId, ended, at, rulesOf(table, run, kind)));
  }
  const step = stepOfKey(commandKey);
  if (result.accepted || run.refused[step] === result.code) return NO_REACTION;
  if (!offered(table, run).some(({ key }) => key === commandKey)) return NO_REACTION;
  const { code, message } = result;
  return recording({ type: 'CommandRefused', data: { at, key: commandKey, code, message } });
};
