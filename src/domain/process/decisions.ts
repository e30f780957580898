import { reject, type Decider, type Rejection } from '../decider.ts';
import { own } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import type { Step } from './declaration.ts';
import type { RunEvent } from './events.ts';
import type { AnyRun, PersonsDecision } from './run.ts';

/** What people decide about a run. Appended to its own stream, by whoever is asked; the engine folds it. */
export type RunDecision =
  | ({ readonly type: 'RetryRun' } & PersonsDecision)
  | ({ readonly type: 'AbortRun' } & PersonsDecision)
  | ({ readonly type: 'SkipStep'; readonly step: string } & PersonsDecision)
  | ({ readonly type: 'ResumeStep'; readonly step: string } & PersonsDecision);

export type RunDecisions = Pick<AnyRun, 'skipped' | 'aborted'>;

/** A workflow whose runs take decisions of people. */
export type Decidable = { readonly decisions: Decider<RunDecisions, RunDecision, RunEvent> };

/** Folds a decision; any other event changes nothing. */
export const decided = <State extends RunDecisions>(state: State, event: RunEvent): State => {
  switch (event.type) {
    case 'StepSkipped': {
      const { step, at, by, reason } = event.data;
      return { ...state, skipped: { ...state.skipped, [step]: { at, by, reason } } };
    }
    case 'StepResumed': {
      const { [event.data.step]: _resumed, ...skipped } = state.skipped;
      return { ...state, skipped };
    }
    case 'RunAborted': {
      const { at, by, reason } = event.data;
      return { ...state, aborted: state.aborted ?? { at, by, reason } };
    }
    default:
      return state;
  }
};

/**
 * Decider of a run's own stream for people's commands. It does not know whether the pivot is done: an abort after that is
 * recorded and has no effect.
 */
export const runDecisionsDecider = (
  steps: readonly Pick<Step<never, never>, 'name' | 'mayBeSkipped' | 'pivot'>[],
): Decidable['decisions'] => {
  const skippable = steps.filter(({ mayBeSkipped }) => mayBeSkipped === true).map(({ name }) => name);
  const choice = `steps that may be skipped: ${skippable.join(', ') || 'none'}`;
  const hasPivot = steps.some(({ pivot }) => pivot === true);
  const refusalOf = (command: RunDecision): Rejection | undefined => {
    if (command.reason.trim() === '') {
      return reject('invalid', 'REASON_REQUIRED', 'a reason is required', { field: 'reason' });
    }
    if (command.type === 'RetryRun' || command.type === 'AbortRun') return undefined;
    const { step } = command;
    if (skippable.includes(step)) return undefined;
    return steps.some(({ name }) => name === step)
      ? never('NOT_SKIPPABLE', `step '${step}' may not be skipped; ${choice}`)
      : reject('invalid', 'UNKNOWN_STEP', `step '${step}' not found; ${choice}`, { field: 'step' });
  };
  return {
    initialState: () => ({ skipped: {} }),
    evolve: decided,
    decide: ({ skipped, aborted }, command) => {
      const refusal = refusalOf(command);
      if (refusal !== undefined) return refusal;
      const { at, by, reason } = command;
      if (command.type === 'AbortRun') {
        return aborted === undefined ? [{ type: 'RunAborted', data: { at, by, reason } }] : [];
      }
      // With a pivot the abort may have come too late.
      if (aborted !== undefined && !hasPivot) return never('RUN_ABORTED', 'the order was aborted: delete it');
      if (command.type === 'RetryRun') return [{ type: 'RunRetried', data: { at, by, reason } }];
      const { step } = command;
      const isSkipped = own(skipped, step) !== undefined;
      if (command.type === 'SkipStep') {
        return isSkipped ? [] : [{ type: 'StepSkipped', data: { at, by, reason, step } }];
      }
      return isSkipped ? [{ type: 'StepResumed', data: { at, by, reason, step } }] : [];
    },
  };
};

const TOO_LATE = 'it is past the point of no return: delete it instead';

const never = (code: string, message: string): Rejection => reject('failed-precondition', code, message);

/** Why it would change nothing of a run: what the decider, which folds the run's own stream alone, cannot know. */
export const refusedBy = (run: AnyRun, { type }: RunDecision): Rejection | undefined => {
  if (type !== 'RetryRun' && type !== 'AbortRun') return undefined;
  if (run.ending !== undefined) return never('DELETION_REQUESTED', 'the order is being deleted');
  return type === 'AbortRun' && run.passed === true ? never('PIVOT_PASSED', TOO_LATE) : undefined;
};

/** What holds of them, as operators read it. */
export const shownDecisions = ({ skipped, aborted }: RunDecisions): JsonObject => ({
  skipped: Object.entries(skipped).map(([step, decision]) => ({ step, ...decision })),
  ...(aborted === undefined ? {} : { aborted }),
});
