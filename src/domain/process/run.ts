import type { JsonObject } from '../json.ts';
import type { EffectState } from './effects.ts';

/** State of one run, folded from its subject's stream and its own. Plain JSON. */
export type Run<Subject, Memo> = {
  /** `none`: the subject does not ask for anything yet. */
  readonly status: 'none' | 'open';
  readonly id: string;
  readonly tenant: string;
  readonly subject: Subject;
  /** -1: nothing of it is folded. */
  readonly subjectRevision: number;
  readonly memo: Memo;
  /** Operator retries so far: effects of a new cycle have ids of their own. */
  readonly cycle: number;
  /** The newest attempts, by kind of effect. */
  readonly effects: { readonly [kind: string]: EffectState };
  /** The last success, by kind of effect. */
  readonly done: { readonly [kind: string]: Done };
  /** Since when each active step is active: its keys are the active steps. */
  readonly since: { readonly [step: string]: string };
  /** Active steps whose deadline passed; `checked`: a look at the far side has not found them done. */
  readonly overdue: { readonly [step: string]: { readonly fired: string; readonly checked?: string } };
  /** Deadlines that passed so far. */
  readonly fired: number;
  /** A refused effect: no forward step is active until somebody retries, skips the step or deletes. */
  readonly halted?: Problem;
  /** The newest of what people are to be told of effects: refused, or stalled. */
  readonly problem?: Problem;
  /** Code of the last refusal of a step's command that was recorded. */
  readonly refused: { readonly [step: string]: string };
  readonly skipped: { readonly [step: string]: PersonsDecision };
  readonly aborted?: PersonsDecision;
  /** Deletion was asked for. */
  readonly ending?: { readonly at: string };
  /** The pivot is done: nothing is undone any more. */
  readonly passed?: true;
  /** What was begun is being undone, or is undone. */
  readonly undoing?: true;
  /** By kind of effect: how often its undoing had to begin again, because a success came late. */
  readonly undos: { readonly [kind: string]: number };
};

/** As the engine knows it. */
export type AnyRun = Run<unknown, unknown>;

export type Done = {
  readonly instance: string;
  readonly at: string;
  /** Successes of this kind so far. */
  readonly times: number;
  /** Absent where the subject recorded it. */
  readonly result?: JsonObject;
  /** What the attempt was started with. */
  readonly facts?: JsonObject;
};

export type Problem = {
  readonly at: string;
  /** Kind of the effect. */
  readonly effect: string;
  readonly reason: string;
  readonly message: string;
  /** Nothing happens until somebody acts. */
  readonly permanent: boolean;
};

export type PersonsDecision = { readonly at: string; readonly by: string; readonly reason: string };

/** `since`: when the step became active; `at`: when the look found it not done, which is the time of what is told. */
export type OverdueTimes = { readonly since: string; readonly at: string };

export const initialRun = <Subject, Memo>(subject: Subject, memo: Memo): Run<Subject, Memo> => ({
  status: 'none',
  id: '',
  tenant: '',
  subject,
  subjectRevision: -1,
  memo,
  cycle: 0,
  effects: {},
  done: {},
  since: {},
  overdue: {},
  fired: 0,
  refused: {},
  skipped: {},
  undos: {},
});
