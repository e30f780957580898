import type { DomainEvent } from '../decider.ts';
import { defined } from '../json-tools.ts';
import type { Workflow } from '../workflow.ts';
import { decideRun } from './decide.ts';
import { runDecisionsDecider, type Decidable } from './decisions.ts';
import type { Declaration } from './declaration.ts';
import type { RunEvent } from './events.ts';
import { evolveRun } from './evolve.ts';
import { NOTHING, pendingOf } from './pending.ts';
import { initialRun, type AnyRun, type Run } from './run.ts';
import type { AnyDeclaration, Told } from './row.ts';
import { shownSteps, type ShownStep } from './shown-steps.ts';
import { tableOf } from './table.ts';

/** A process manager from a declaration: one run per subject, in `<name>-<id of the subject>`. */
export const stepWorkflow = <Subject, Command extends Told, Event extends DomainEvent, Memo = null>(
  declaration: Declaration<Subject, Command, Event, Memo>,
): StepWorkflow<Run<Subject, Memo>> =>
  // The engine hands subject, memo and commands on to the declaration's own functions, and nowhere else.
  workflowOf(declaration as unknown as AnyDeclaration) as unknown as StepWorkflow<Run<Subject, Memo>>;

export type StepWorkflow<State> = Workflow<State, RunEvent> &
  Decidable & { readonly shownSteps: (run: State) => readonly ShownStep[] };

const workflowOf = (declared: AnyDeclaration): StepWorkflow<AnyRun> => {
  const table = tableOf(declared);
  const { name, stateVersion, wakes, subject, memo, ends, hubOf } = declared;
  const isClosed = (run: AnyRun): boolean =>
    run.status === 'open' && Object.keys(run.since).length === 0 && ends?.(run.subject) === 'gone';
  return {
    name,
    ...defined({ stateVersion, wakes, hubOf }),
    subject: subject.category,
    subjectTypes: subject.types,
    initialState: () => initialRun(subject.decider.initialState(), memo?.initial ?? null),
    evolve: evolveRun(table),
    decide: decideRun(table),
    pending: (run) => (run.status === 'none' || isClosed(run) ? NOTHING : pendingOf(table, run)),
    isClosed,
    decisions: runDecisionsDecider(declared.steps),
    shownSteps: shownSteps(table),
  };
};
