import { isRejection } from '../decider.ts';
import { own, without } from '../json-tools.ts';
import { doubted, isUnresolved } from './effects.ts';
import type { AnyRun } from './run.ts';
import type { Row, Table, Told } from './row.ts';
import { isUnwinding } from './undo.ts';

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
  const { rows, after, declared } = table;
  const halted = run.halted !== undefined || declared.halts?.(run) !== undefined;
  const applies: { readonly [Phase in Row['phase']]: boolean } = {
    forward: run.ending === undefined && run.aborted === undefined && !halted,
    live: run.ending === undefined,
    deletion: run.ending !== undefined,
    undo: isUnwinding(run),
    always: true,
  };
  // Asked for each event of each run, by row: what several steps come after is worked out once.
  const done: (boolean | undefined)[] = [];
  const passed: (boolean | undefined)[] = [];
  const isDone = (row: Row, i: number): boolean =>
    (done[i] ??= isStepDone(table, run, row, run.since[row.name] ?? at));
  const isLeftOut = (row: Row): boolean =>
    own(run.skipped, row.name) !== undefined || row.needed?.(run) === false;
  const mayFollow = (i: number): boolean => after[i]?.every(passes) ?? true;
  const passes = (i: number): boolean => {
    const row = rows[i];
    if (row === undefined) return true;
    return (passed[i] ??= isLeftOut(row) ? mayFollow(i) : isDone(row, i));
  };
  const active: { [step: string]: string } = {};
  for (const [i, row] of rows.entries()) {
    if (applies[row.phase] && !isLeftOut(row) && mayFollow(i) && !isDone(row, i)) {
      active[row.name] = run.since[row.name] ?? at;
    }
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

export const isDoneIn = (table: Table, run: AnyRun, row: Row): boolean =>
  isStepDone(table, run, row, run.since[row.name] ?? '');

/** Marks what the folded events made possible: the pivot passed, undoing began, steps became active or are no longer. */
export const stamped = (table: Table, folded: AnyRun, at: string): AnyRun => {
  if (folded.status === 'none') return folded;
  const run = unwinding(table, folded);
  const since = activeSince(table, run, at);
  const overdue = Object.fromEntries(Object.entries(run.overdue).filter(([step]) => step in since));
  return { ...run, since, overdue };
};

/** An abort that comes when the pivot is done has no effect; one while nobody knows waits until a look has shown it. */
const unwinding = (table: Table, run: AnyRun): AnyRun => {
  if (run.passed === true || run.undoing === true) return run;
  if (table.pivots.some((row) => isStepDone(table, run, row, ''))) {
    return { ...without(run, 'aborted'), passed: true };
  }
  if (!isUnwinding(run)) return run;
  const effects = doubted(run.effects);
  const doubtful = table.pivots.some(({ kind }) => isUnresolved(effects[kind]));
  return { ...run, effects, ...(doubtful ? {} : { undoing: true }) };
};
