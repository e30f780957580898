import { defined, own, stringAt } from '../json-tools.ts';
import { isDoneIn } from './activity.ts';
import type { AnyRun } from './run.ts';
import type { Row, Table } from './row.ts';
import { undoKind } from './undo.ts';

/** A step of a run as operators see it. */
export type ShownStep = {
  readonly step: string;
  /** Name of the rule by which it is not left to somebody else. */
  readonly rule?: string;
  readonly state: 'pending' | 'active' | 'waits' | 'refused' | 'done' | 'skipped' | 'undoing' | 'undone';
  /** Of its effect in the present instance: its far side journals it under this id. */
  readonly effect?: string;
  readonly attempts?: number;
  readonly started?: string;
  readonly ended?: string;
  /** Why it waits. */
  readonly waiting?: string;
};

/** The steps forward that the run needs, in the order of the table. */
export const shownSteps =
  (table: Table) =>
  (run: AnyRun): readonly ShownStep[] =>
    table.declared.steps.flatMap(({ name }) => {
      const row = table.byName.get(name);
      return row === undefined || row.phase !== 'forward' || row.needed?.(run) === false
        ? []
        : [shownStep(table, run, row)];
    });

const shownStep = (table: Table, run: AnyRun, row: Row): ShownStep => {
  const { name, kind, rule } = row;
  const effect = own(run.effects, kind);
  const undone = own(run.effects, undoKind(kind));
  const state = stateOf(table, run, row);
  const last = state === 'undone' ? own(run.done, undoKind(kind)) : own(run.done, kind);
  const isUndo = state === 'undone' || state === 'undoing';
  const shown = isUndo ? undone : effect;
  const waiting = state === 'waits' ? stringAt(last?.result, 'waiting') : '';
  return defined({
    step: name,
    rule,
    state,
    effect: shown && `${table.declared.name}-${run.id}/${shown.id}`,
    attempts: shown?.attempt,
    started: own(run.since, name) ?? effect?.startedAt,
    ended: state === 'done' || state === 'undone' ? last?.at : undefined,
    waiting: waiting || undefined,
  });
};

const stateOf = (table: Table, run: AnyRun, row: Row): ShownStep['state'] => {
  const { name, kind } = row;
  const effect = own(run.effects, kind);
  if (own(run.skipped, name) !== undefined) return 'skipped';
  if (effect?.status === 'undone') return 'undone';
  if (run.undoing === true && table.undos.has(kind) && effect !== undefined) return 'undoing';
  if (effect?.status === 'refused' && run.halted?.effect === kind) return 'refused';
  if (name in run.since) return stringAt(own(run.done, kind)?.result, 'waiting') === '' ? 'active' : 'waits';
  return isDoneIn(table, run, row) ? 'done' : 'pending';
};
