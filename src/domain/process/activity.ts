import { isRejection } from '../decider.ts';
import { own } from '../json-tools.ts';
import { isUnresolved } from './effects.ts';
import type { AnyRun } from './run.ts';
import type { Row, Table, Told } from './table.ts';
import { hasStartedUndo, isUnwinding } from './undo.ts';

/** What the subject would make of it, asked on its folded state: events, nothing, or a refusal for now. */
export const answerTo = (
  { declared }: Table,
  run: AnyRun,
  command: Told | undefined,
): 'events' | 'nothing' | 'refused' => {
  if (command === undefined) return 'nothing';
  const decision = declared.subject.decider.decide(run.subject, command);
  if (isRejection(decision)) return 'refused';
  return decision.length === 0 ? 'nothing' : 'events';
};

/** Since when each step is active; `at`: now, for those that were not before. */
const activeSince = (table: Table, run: AnyRun, at: string): { readonly [step: string]: string } => {
  const known = { done: new Map<string, boolean>(), passes: new Map<string, boolean>() };
  const since = (row: Row): string => run.since[row.name] ?? at;
  const once = (map: Map<string, boolean>, row: Row, find: () => boolean): boolean => {
    const found = map.get(row.name) ?? find();
    map.set(row.name, found);
    return found;
  };
  const isDone = (row: Row): boolean => once(known.done, row, () => isStepDone(table, run, row, since(row)));
  const isLeftOut = (row: Row): boolean =>
    own(run.skipped, row.name) !== undefined || row.needed?.(run) === false;
  const mayFollow = ({ after = [] }: Row): boolean =>
    after.every((name) => {
      const row = table.byName.get(name);
      return (
        row === undefined || once(known.passes, row, () => (isLeftOut(row) ? mayFollow(row) : isDone(row)))
      );
    });
  const applies: { readonly [Phase in Row['phase']]: boolean } = {
    forward:
      run.ending === undefined &&
      run.aborted === undefined &&
      run.halted === undefined &&
      table.declared.halts?.(run) === undefined,
    live: run.ending === undefined,
    deletion: run.ending !== undefined,
    undo: isUnwinding(run),
    always: true,
  };
  const active: { [step: string]: string } = {};
  for (const row of table.rows) {
    if (applies[row.phase] && !isLeftOut(row) && mayFollow(row) && !isDone(row))
      active[row.name] = since(row);
  }
  return active;
};

const isStepDone = (table: Table, run: AnyRun, row: Row, since: string): boolean => {
  if (row.done !== undefined) return row.done(run);
  if (row.tell !== undefined) return answerTo(table, run, row.tell(run, since)) === 'nothing';
  const last = run.done[row.kind];
  if (row.work === undefined || last === undefined || isUnresolved(run.effects[row.kind])) return false;
  const instance = row.work(run, since)?.instance;
  return instance === undefined || String(instance) === last.instance;
};

/** Marks what the folded events made possible: the pivot passed, undoing began, steps became active or are no longer. */
export const stamped = (table: Table, folded: AnyRun, at: string): AnyRun => {
  if (folded.status === 'none') return folded;
  const run = unwinding(table, folded);
  const since = activeSince(table, run, at);
  const overdue = Object.fromEntries(Object.entries(run.overdue).filter(([step]) => step in since));
  return { ...run, since, overdue };
};

/**
 * An abort that comes when the pivot is done has no effect; one while nobody knows waits until a look has shown it. What
 * the subject recorded before the abort may be folded after it, so that only an undoing that was started settles it.
 */
const unwinding = (table: Table, run: AnyRun): AnyRun => {
  if (run.passed === true || hasStartedUndo(table, run)) return run;
  if (table.pivots.some((row) => isStepDone(table, run, row, ''))) {
    const { aborted: _without, undoing: _wanted, ...kept } = run;
    return { ...kept, passed: true };
  }
  const doubtful = table.pivots.some(({ kind }) => isUnresolved(run.effects[kind]));
  return isUnwinding(run) && !doubtful ? { ...run, undoing: true } : run;
};
