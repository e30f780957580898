import { AUTOMATION_LIVE } from './automation-steps.ts';
import { DELETION } from './deletion-steps.ts';
import { FORWARD } from './forward-steps.ts';
import { LIVE } from './live-steps.ts';
import { checking, reading } from './looking-steps.ts';
import type { ClusterCommand } from '../commands.ts';
import type { OpenRun } from './run.ts';
import type { Step } from './step.ts';
import { answeredFor } from './work.ts';

/** In the order in which commands and effects are offered. */
export const STEPS: readonly Step[] = [
  ...FORWARD,
  ...LIVE,
  ...AUTOMATION_LIVE,
  checking('live'),
  reading('live'),
  ...DELETION,
  checking('deletion'),
  reading('deletion'),
];

const BY_NAME = new Map(STEPS.map((step) => [step.name, step]));

const isDone = (run: OpenRun, name: string): boolean => {
  const step = BY_NAME.get(name);
  return step === undefined || step.needed?.(run) === false || step.done(run);
};

const isActive = (run: OpenRun, step: Step): boolean => {
  if ((step.phase === 'deletion') !== (run.deletion !== undefined)) return false;
  if (step.phase === 'forward' && run.halted !== undefined) return false;
  if (step.needed?.(run) === false || step.done(run)) return false;
  return step.after.every((name) => isDone(run, name));
};

/** Names of the steps that something is to be done for, or that are waited for. */
export const activeSteps = (run: OpenRun): readonly string[] =>
  STEPS.filter((step) => isActive(run, step)).map(({ name }) => name);

/** Commands to report steps whose deadline passed and that a look did not find done. */
export const overdueSteps = (run: OpenRun): readonly Step[] =>
  STEPS.filter(
    (step) =>
      step.deadline?.onOverdue !== undefined &&
      run.overdue[step.name] === 'checked' &&
      run.gone === undefined &&
      isActive(run, step) &&
      !answeredFor(run, overdueName(step.name), overdueInstance(run)),
  );

/** What is told of this step once its deadline has passed. */
export const overdueCommandOf = (run: OpenRun, name: string): ClusterCommand | undefined =>
  BY_NAME.get(name)?.deadline?.onOverdue?.(run, {
    since: run.activeSince[name] ?? '',
    at: run.activeSince[overdueName(name)] ?? '',
  });

/** In `activeSince` and in the keys of commands: what is told of the step once it is overdue. */
export const overdueName = (step: string): string => `overdue-${step}`;

export const overdueInstance = (run: OpenRun): string => `${run.specRevision}.${run.cycle}`;
