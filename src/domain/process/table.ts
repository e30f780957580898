import type { DomainEvent } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import type { Declaration, Step, Undo } from './declaration.ts';
import { BACKOFF, type EffectRules } from './effects.ts';
import type { AnyRun } from './run.ts';
import { rowsOfUndo } from './undo.ts';

/** A command, and a declaration, as the engine knows them: it never looks into subject, memo or commands. */
export type Told = { readonly type: string };
export type AnyDeclaration = Declaration<unknown, Told, DomainEvent, unknown>;
export type AnyStep = Step<AnyRun, Told>;
export type AnyUndo = Undo<AnyRun, Told>;

/** A step of the declaration, or one that the engine adds: undo, settling before it, and the look after a deadline. */
export type Row = Omit<AnyStep, 'phase' | 'effect' | 'undo'> & {
  readonly phase: NonNullable<AnyStep['phase']> | 'undo' | 'always';
  /** Of its effect. */
  readonly kind: string;
};

/** The declaration made ready: rows by name and kind, defaults filled in. */
export type Table = {
  readonly declared: AnyDeclaration;
  readonly rows: readonly Row[];
  readonly byName: ReadonlyMap<string, Row>;
  /** The first row of each kind of effect: its rules, and what its success tells. */
  readonly byKind: ReadonlyMap<string, Row>;
  readonly pivots: readonly Row[];
  /** By kind of effect. */
  readonly undos: ReadonlyMap<string, AnyUndo>;
};

/** Name of the look that follows a deadline that passed, and kind of its effect. */
export const CHECK = 'check';

export const tableOf = (declared: AnyDeclaration): Table => {
  const { steps, name: workflow } = declared;
  const own = steps.map((step): Row => ({ phase: 'forward', ...step, kind: step.effect ?? step.name }));
  const undo = steps.flatMap((step) => (step.undo === undefined ? [] : [[kindOf(step), step.undo] as const]));
  const rows = [...own, ...checkOf(declared), ...rowsOfUndo(steps)];
  const byName = new Map(rows.map((row) => [row.name, row]));
  if (byName.size < rows.length) throw new TypeError(`${workflow}: two steps have one name`);
  for (const { name, after = [] } of rows) {
    const unknown = after.find((other) => !byName.has(other));
    if (unknown !== undefined) throw new TypeError(`${name}: no step is called ${unknown}`);
  }
  for (const { name, pivot, work, undo } of steps) {
    if (pivot === true && work !== undefined && undo === undefined)
      throw new TypeError(`${name}: a pivot with an effect needs undo`);
  }
  return {
    declared,
    rows,
    byName,
    // The first of a kind stands: the last that is set.
    byKind: new Map(
      rows
        .filter(({ work }) => work !== undefined)
        .toReversed()
        .map((row) => [row.kind, row]),
    ),
    pivots: own.filter(({ pivot }) => pivot === true),
    undos: new Map(undo),
  };
};

export const kindOf = ({ name, effect }: AnyStep): string => effect ?? name;

const checkOf = ({ check, observe }: AnyDeclaration): readonly Row[] => {
  if (check === undefined) return [];
  const instance = (run: AnyRun): string => {
    const phase = run.ending === undefined ? 'live' : 'deletion';
    return [run.cycle, run.fired, phase, check.wanted?.(run) ?? ''].join('.');
  };
  return [
    {
      name: CHECK,
      phase: 'always',
      kind: CHECK,
      needed: (run) =>
        Object.values(run.overdue).some(({ checked }) => checked === undefined) ||
        check.wanted?.(run) !== undefined,
      work: (run) => ({ call: check.call(run), instance: instance(run) }),
      record: check.record ?? observe ?? ((): undefined => undefined),
      keep: check.keep ?? ((): JsonObject => ({})),
      rules: { ...check.rules, mayBeRefused: false },
    },
  ];
};

export const rulesOf = ({ byKind }: Table, run: AnyRun, kind: string): EffectRules => {
  const row = byKind.get(kind);
  const rules = typeof row?.rules === 'function' ? row.rules(run) : row?.rules;
  return { backoff: BACKOFF, attempts: 10, mayBeRefused: row?.phase === 'forward', ...rules };
};
