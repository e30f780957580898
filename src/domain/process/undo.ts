import type { Step, Undo } from './declaration.ts';
import { instanceOfEffect, isUnresolved } from './effects.ts';
import type { Run } from './run.ts';
import type { Row } from './table.ts';

/**
 * Compensation (design §6): what was begun is undone in reverse order of dependency, each with observed absence. An
 * attempt without an answer is settled by a look first. A success that comes after that is undone again.
 */
export type UndoTable<R, Command> = {
  /** By kind of effect. */
  readonly undos: ReadonlyMap<string, Undo<R, Command>>;
};

/** In `after` of a deletion step: nothing is left to undo. */
export const UNDO = 'undo';

const undoKind = (kind: string): string => `undo-${kind}`;
/** Kind of the effect that is undone; undefined: another effect. */
export const undoneKind = (kind: string): string | undefined =>
  kind.startsWith('undo-') ? kind.slice('undo-'.length) : undefined;

type AnyRun = Run<unknown, unknown>;

/** It is to be undone: an attempt was started, and was not undone since. */
const isBegun = ({ effects }: AnyRun, kind: string): boolean =>
  effects[kind] !== undefined && effects[kind].status !== 'undone';

const undoInstance = ({ undos }: AnyRun, kind: string): string => String(undos[kind] ?? 0);

/** Undoing is what the run is at; until a pivot in doubt is settled it is only wanted. */
export const isWound = (run: AnyRun): boolean =>
  (run.ending !== undefined || run.aborted !== undefined) && run.passed === undefined;

/** A success now would come too late for the undoing that has begun. */
export const isLate = (run: AnyRun, kind: string): boolean =>
  run.undoing === true && run.effects[undoKind(kind)]?.id === `${undoKind(kind)}:${undoInstance(run, kind)}`;

/** Folds a success of this kind, as far as undoing goes. */
export const afterSuccess = <R extends AnyRun>(before: R, run: R, effectId: string, kind: string): R => {
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

export const rowsOfUndo = <R extends AnyRun, Command>(
  steps: readonly Step<R, Command>[],
): UndoTable<R, Command> & { readonly rows: readonly Row<R, Command>[] } => {
  const undos = new Map<string, Undo<R, Command>>();
  const rows: Row<R, Command>[] = [];
  const dependents = dependentsOf(steps);
  for (const { name, effect, undo, pivot } of steps) {
    if (undo === undefined) continue;
    const kind = effect ?? name;
    undos.set(kind, undo);
    rows.push({
      name: `settle-${name}`,
      phase: 'undo',
      kind,
      needed: (run) => isUnresolved(run.effects[kind]) && (run.undoing === true || pivot === true),
      done: () => false,
      work: (run) => {
        const { id = '', facts } = run.effects[kind] ?? {};
        return {
          call: undo.look(run, id),
          instance: instanceOfEffect(id),
          ...(facts === undefined ? {} : { facts }),
        };
      },
    });
    rows.push({
      name: `undo-${name}`,
      phase: 'undo',
      kind: undoKind(kind),
      after: [`settle-${name}`, ...dependents(name).map((other) => `undo-${other}`)],
      needed: (run) => run.undoing === true && isBegun(run, kind),
      done: () => false,
      work: (run) => ({
        call: undo.call(run, run.effects[kind]?.id ?? ''),
        instance: undoInstance(run, kind),
      }),
      ...(undo.record === undefined ? {} : { record: undo.record }),
      rules: { ...undo.rules, mayBeRefused: false },
    });
  }
  const kinds = [...undos.keys()];
  rows.push({
    name: UNDO,
    phase: 'undo',
    kind: '',
    done: (run) => run.passed === true || (run.undoing === true && !kinds.some((kind) => isBegun(run, kind))),
  });
  return { undos, rows };
};

/** Steps with undo that come after this one, directly or not. */
const dependentsOf = <R, Command>(
  steps: readonly Step<R, Command>[],
): ((name: string) => readonly string[]) => {
  const reach = (name: string, path: readonly string[]): readonly string[] => {
    if (path.includes(name)) throw new TypeError(`${name} comes after itself`);
    return steps
      .filter(({ after = [] }) => after.includes(name))
      .flatMap((step) => [step.name, ...reach(step.name, [...path, name])]);
  };
  const undoable = new Set(steps.filter(({ undo }) => undo !== undefined).map(({ name }) => name));
  for (const { name } of steps) reach(name, []);
  return (name) => [...new Set(reach(name, []))].filter((other) => undoable.has(other));
};
