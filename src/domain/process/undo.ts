import { defined } from '../json-tools.ts';
import { instanceOfEffect, isUnresolved } from './effects.ts';
import type { AnyRun } from './run.ts';
import { kindOf, type AnyStep, type Row } from './row.ts';

/** In `after` of a deletion step: nothing is left to undo. */
export const UNDO = 'undo';

export const undoKind = (kind: string): string => `undo-${kind}`;
/** Kind of the effect that is undone; undefined: another effect. */
export const undoneKind = (kind: string): string | undefined =>
  kind.startsWith('undo-') ? kind.slice('undo-'.length) : undefined;

/** It is to be undone: an attempt was started, and was not undone since. */
export const isBegun = ({ effects }: AnyRun, kind: string): boolean =>
  effects[kind] !== undefined && effects[kind].status !== 'undone';

const undoInstance = ({ undos }: AnyRun, kind: string): string => String(undos[kind] ?? 0);

/** Undoing is what the run is at; until a pivot in doubt is settled it is only wanted. */
export const isUnwinding = (run: AnyRun): boolean =>
  (run.ending !== undefined || run.aborted !== undefined) && run.passed === undefined;

/** A success now would come too late for the undoing that has begun. */
export const isLate = (run: AnyRun, kind: string): boolean =>
  run.undoing === true && run.effects[undoKind(kind)]?.id === `${undoKind(kind)}:${undoInstance(run, kind)}`;

/** Folds a success of this kind, as far as undoing goes. */
export const afterSuccess = (before: AnyRun, run: AnyRun, effectId: string, kind: string): AnyRun => {
  if (isLate(before, kind)) {
    return { ...run, undos: { ...run.undos, [kind]: (run.undos[kind] ?? 0) + 1 } };
  }
  const undone = undoneKind(kind);
  const effect = undone === undefined ? undefined : run.effects[undone];
  if (undone === undefined || effect === undefined) return run;
  // An undoing that began before a late success says nothing of what came with it.
  if (instanceOfEffect(effectId) !== undoInstance(run, undone)) return run;
  const { [undone]: _undone, ...done } = run.done;
  return { ...run, done, effects: { ...run.effects, [undone]: { ...effect, status: 'undone' } } };
};

/** After an abort, once all of it was undone: the next undoing is another one. */
export const begunAnew = ({ aborted: _aborted, undoing: _undoing, ...run }: AnyRun): AnyRun => {
  const undone = Object.entries(run.effects).filter(([, { status }]) => status === 'undone');
  const undos = Object.fromEntries(undone.map(([kind]) => [kind, (run.undos[kind] ?? 0) + 1]));
  return { ...run, undos: { ...run.undos, ...undos } };
};

/**
 * Compensation: what was begun is undone in reverse order of dependency, each with observed absence. An attempt without an
 * answer is settled by a look first. A success that comes after that is undone again.
 */
export const rowsOfUndo = (steps: readonly AnyStep[]): readonly Row[] => {
  const dependents = dependentsOf(steps);
  const undoable = steps.filter(({ undo }) => undo !== undefined);
  const kinds = undoable.map(kindOf);
  const all: Row = {
    name: UNDO,
    phase: 'undo',
    kind: '',
    done: (run) => run.passed === true || (run.undoing === true && !kinds.some((kind) => isBegun(run, kind))),
  };
  return [...undoable.flatMap((step) => rowsOf(step, undoable, dependents)), all];
};

const rowsOf = (
  step: AnyStep,
  undoable: readonly AnyStep[],
  dependents: (name: string) => ReadonlySet<string>,
): readonly Row[] => {
  const { name, undo, pivot } = step;
  if (undo === undefined) return [];
  const kind = kindOf(step);
  const after = dependents(name);
  const settle: Row = {
    name: `settle-${name}`,
    phase: 'undo',
    kind,
    needed: (run) => isUnresolved(run.effects[kind]) && (run.undoing === true || pivot === true),
    done: () => false,
    work: (run) => {
      const { id = '', facts } = run.effects[kind] ?? {};
      return defined({ call: undo.look(run, id), instance: instanceOfEffect(id), facts });
    },
  };
  const remove: Row = {
    name: `undo-${name}`,
    phase: 'undo',
    kind: undoKind(kind),
    after: [
      settle.name,
      ...(undo.after ?? []),
      ...undoable.filter((other) => after.has(other.name)).map((other) => `undo-${other.name}`),
    ],
    needed: (run) => run.undoing === true && isBegun(run, kind),
    done: () => false,
    work: (run) => ({
      call: undo.call(run, run.effects[kind]?.id ?? ''),
      instance: undoInstance(run, kind),
    }),
    ...(undo.record === undefined ? {} : { record: undo.record }),
    rules: { ...undo.rules, mayBeRefused: false },
  };
  return [settle, remove];
};

/** Steps that come after one, directly or not. */
const dependentsOf = (steps: readonly AnyStep[]): ((name: string) => ReadonlySet<string>) => {
  const known = new Map<string, ReadonlySet<string>>();
  const reach = (name: string, path: readonly string[]): ReadonlySet<string> => {
    if (path.includes(name)) throw new TypeError(`${name} comes after itself`);
    const direct = steps.filter(({ after = [] }) => after.includes(name)).map((step) => step.name);
    const found =
      known.get(name) ?? new Set(direct.flatMap((step) => [step, ...reach(step, [...path, name])]));
    known.set(name, found);
    return found;
  };
  for (const { name } of steps) reach(name, []);
  return (name) => reach(name, []);
};
