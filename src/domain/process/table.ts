import type { Decider, DomainEvent } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import type { Declaration, Step, Work } from './declaration.ts';
import { BACKOFF, type EffectRules } from './effects.ts';
import type { Run } from './run.ts';
import { rowsOfUndo, type UndoTable } from './undo.ts';

/** A command as the engine knows it. */
export type Told = { readonly type: string };

/** A step of the declaration, or one that the engine adds: undo, settling before it, and the look after a deadline. */
export type Row<R, Command> = Omit<Step<R, Command>, 'phase' | 'effect' | 'undo'> & {
  readonly phase: 'forward' | 'live' | 'deletion' | 'undo' | 'always';
  /** Of its effect. */
  readonly kind: string;
};

/** The declaration made ready: rows by name and kind, defaults filled in. */
export type Table<Subject, Command extends Told, Memo> = UndoTable<Run<Subject, Memo>, Command> & {
  readonly declared: Omit<Declaration<Subject, Command, DomainEvent, Memo>, 'subject' | 'memo'> & {
    readonly memo?: Declaration<Subject, Command, DomainEvent, Memo>['memo'];
  };
  readonly category: string;
  readonly idOf: (subject: Subject) => string;
  readonly decider: Decider<Subject, Command, DomainEvent>;
  readonly rows: readonly Row<Run<Subject, Memo>, Command>[];
  readonly byName: ReadonlyMap<string, Row<Run<Subject, Memo>, Command>>;
  /** The first row of each kind of effect: its rules, and what its success tells. */
  readonly byKind: ReadonlyMap<string, Row<Run<Subject, Memo>, Command>>;
  readonly pivots: readonly Row<Run<Subject, Memo>, Command>[];
};

/** Name of the look that follows a deadline that passed, and kind of its effect. */
export const CHECK = 'check';

export const tableOf = <Subject, Command extends Told, Event extends DomainEvent, Memo>(
  declared: Declaration<Subject, Command, Event, Memo>,
): Table<Subject, Command, Memo> => {
  type R = Run<Subject, Memo>;
  const { steps, subject } = declared;
  const undo = rowsOfUndo<R, Command>(steps);
  const own = steps.map(
    (step): Row<R, Command> => ({ phase: 'forward', ...step, kind: step.effect ?? step.name }),
  );
  const rows = [...own, ...checkOf(declared), ...undo.rows];
  const byName = new Map(rows.map((row) => [row.name, row]));
  if (byName.size < rows.length) throw new TypeError(`${declared.name}: two steps have one name`);
  for (const { name, after = [], pivot, work } of rows) {
    const unknown = after.find((other) => !byName.has(other));
    if (unknown !== undefined) throw new TypeError(`${name}: no step is called ${unknown}`);
    if (pivot === true && work !== undefined && steps.find((step) => step.name === name)?.undo === undefined)
      throw new TypeError(`${name}: a pivot with an effect needs undo`);
  }
  const byKind = new Map<string, Row<R, Command>>();
  for (const row of rows) if (row.work !== undefined && !byKind.has(row.kind)) byKind.set(row.kind, row);
  return {
    ...undo,
    declared: declared as unknown as Table<Subject, Command, Memo>['declared'],
    category: subject.category,
    idOf: subject.idOf,
    decider: subject.decider as unknown as Decider<Subject, Command, DomainEvent>,
    rows,
    byName,
    byKind,
    pivots: own.filter(({ pivot }) => pivot === true),
  };
};

const checkOf = <Subject, Command extends Told, Event extends DomainEvent, Memo>({
  check,
  observe,
}: Declaration<Subject, Command, Event, Memo>): readonly Row<Run<Subject, Memo>, Command>[] => {
  if (check === undefined) return [];
  return [
    {
      name: CHECK,
      phase: 'always',
      kind: CHECK,
      needed: (run) =>
        Object.values(run.overdue).some(({ checked }) => checked === undefined) ||
        check.wanted?.(run) !== undefined,
      work: (run): Work => {
        const phase = run.ending === undefined ? 'live' : 'deletion';
        return {
          call: check.call(run),
          instance: [run.cycle, run.fired, phase, check.wanted?.(run) ?? ''].join('.'),
        };
      },
      record: check.record ?? observe ?? ((): undefined => undefined),
      keep: check.keep ?? ((): JsonObject => ({})),
      rules: { ...check.rules, mayBeRefused: false },
    },
  ];
};

export const rulesOf = <Subject, Command extends Told, Memo>(
  { byKind }: Table<Subject, Command, Memo>,
  run: Run<Subject, Memo>,
  kind: string,
): EffectRules => {
  const row = byKind.get(kind);
  const rules = typeof row?.rules === 'function' ? row.rules(run) : row?.rules;
  return { backoff: BACKOFF, attempts: 10, mayBeRefused: row?.phase === 'forward', ...rules };
};
