import { reject, type Decider, type Rejection } from '../decider.ts';
import type { Step } from './declaration.ts';
import type { RunEvent } from './events.ts';

/** What people decide about a run. Appended to its own stream, by whoever is asked; the engine folds it. */
export type RunDecision =
  | ({ readonly type: 'RetryRun' } & Reasoned)
  | ({ readonly type: 'AbortRun' } & Reasoned)
  | ({ readonly type: 'SkipStep'; readonly step: string } & Reasoned)
  | ({ readonly type: 'ResumeStep'; readonly step: string } & Reasoned);

type Reasoned = { readonly at: string; readonly by: string; readonly reason: string };

export type RunDecisions = { readonly skipped: readonly string[]; readonly aborted: boolean };

/**
 * Decider of a run's own stream for people's commands. It does not know whether the pivot is done: an abort after that is
 * recorded and has no effect.
 */
export const runDecisionsDecider = (
  steps: readonly Pick<Step<never, never>, 'name' | 'mayBeSkipped' | 'pivot'>[],
): Decider<RunDecisions, RunDecision, RunEvent> => {
  const skippable = new Map(steps.map(({ name, mayBeSkipped }) => [name, mayBeSkipped === true]));
  const hasPivot = steps.some(({ pivot }) => pivot === true);
  const refusalOf = (command: RunDecision): Rejection | undefined => {
    if (command.reason.trim() === '') {
      return reject('invalid', 'REASON_REQUIRED', 'a reason is required', { field: 'reason' });
    }
    if (command.type === 'RetryRun' || command.type === 'AbortRun') return undefined;
    if (skippable.get(command.step) === true) return undefined;
    return skippable.has(command.step)
      ? reject('failed-precondition', 'NOT_SKIPPABLE', `step '${command.step}' may not be skipped`)
      : reject('invalid', 'UNKNOWN_STEP', `step '${command.step}' not found`, { field: 'step' });
  };
  return {
    initialState: () => ({ skipped: [], aborted: false }),
    evolve: (state, event) => {
      switch (event.type) {
        case 'StepSkipped':
          return { ...state, skipped: [...state.skipped, event.data.step] };
        case 'StepResumed':
          return { ...state, skipped: state.skipped.filter((step) => step !== event.data.step) };
        case 'RunAborted':
          return { ...state, aborted: true };
        default:
          return state;
      }
    },
    decide: ({ skipped, aborted }, command) => {
      const refusal = refusalOf(command);
      if (refusal !== undefined) return refusal;
      const { at, by, reason } = command;
      if (command.type === 'AbortRun') {
        return aborted ? [] : [{ type: 'RunAborted', data: { at, by, reason } }];
      }
      // With a pivot the abort may have come too late.
      if (aborted && !hasPivot) return reject('failed-precondition', 'RUN_ABORTED', 'the run was aborted');
      if (command.type === 'RetryRun') return [{ type: 'RunRetried', data: { at, by, reason } }];
      const { step } = command;
      const isSkipped = skipped.includes(step);
      if (command.type === 'SkipStep') {
        return isSkipped ? [] : [{ type: 'StepSkipped', data: { at, by, reason, step } }];
      }
      return isSkipped ? [{ type: 'StepResumed', data: { at, by, reason, step } }] : [];
    },
  };
};
