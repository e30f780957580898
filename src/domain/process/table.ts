import type { JsonObject } from '../json.ts';
import { BACKOFF, type EffectRules } from './effects.ts';
import { kindOf, type AnyDeclaration, type Row, type Table } from './row.ts';
import type { AnyRun } from './run.ts';
import { rowsOfUndo } from './undo.ts';

/** Name of the look that follows a deadline that passed, and kind of its effect. */
export const CHECK = 'check';

export const tableOf = (declared: AnyDeclaration): Table => {
  const { steps, name: workflow } = declared;
  const own = steps.map((step): Row => ({ phase: 'forward', ...step, kind: step.effect ?? step.name }));
  const undo = steps.flatMap((step) => (step.undo === undefined ? [] : [[kindOf(step), step.undo] as const]));
  const rows = [...own, ...checkOf(declared), ...rowsOfUndo(steps)];
  const byName = new Map(rows.map((row) => [row.name, row]));
  if (byName.size < rows.length) throw new TypeError(`${workflow}: two steps have one name`);
  const names = rows.map(({ name }) => name);
  const numberOf = (other: string): number => {
    if (!byName.has(other)) throw new TypeError(`${workflow}: no step is called ${other}`);
    return names.indexOf(other);
  };
  for (const { name, pivot, work, undo } of steps) {
    if (pivot === true && work !== undefined && undo === undefined)
      throw new TypeError(`${name}: a pivot with an effect needs undo`);
  }
  return {
    declared,
    rows,
    after: rows.map(({ after = [] }) => after.map(numberOf)),
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
