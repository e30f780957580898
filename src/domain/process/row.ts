import type { DomainEvent } from '../decider.ts';
import type { Declaration, Step, Undo } from './declaration.ts';
import type { AnyRun } from './run.ts';

/** A command, and a declaration, as the engine knows them: it never looks into subject, memo or commands. */
export type Told = { readonly type: string };
export type AnyDeclaration = Declaration<unknown, Told, DomainEvent, unknown>;
export type AnyStep = Step<AnyRun, Told>;
export type AnyUndo = Undo<AnyRun, Told>;

/** A step of the declaration, or one that the engine adds: undo, settling before it, and the look after a deadline. */
export type Row = Omit<AnyStep, 'phase' | 'effect' | 'undo'> & {
  readonly phase: NonNullable<AnyStep['phase']> | 'always';
  /** Of its effect. */
  readonly kind: string;
};

/** The declaration made ready: rows by name and kind, defaults filled in. */
export type Table = {
  readonly declared: AnyDeclaration;
  readonly rows: readonly Row[];
  /** Of each row, the numbers of those that it comes after. */
  readonly after: readonly (readonly number[])[];
  readonly byName: ReadonlyMap<string, Row>;
  /** The first row of each kind of effect: its rules, and what its success tells. */
  readonly byKind: ReadonlyMap<string, Row>;
  readonly pivots: readonly Row[];
  /** By kind of effect. */
  readonly undos: ReadonlyMap<string, AnyUndo>;
};

export const kindOf = ({ name, effect }: AnyStep): string => effect ?? name;
