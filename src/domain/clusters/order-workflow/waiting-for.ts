import { hostedText } from '../observation.ts';
import { isRunning } from './automation.ts';
import { onItsHub, type OrderRun } from './run.ts';

/** What a deletion waits for: our own job first, then what the hub shows, then what does not get through. */
export const waitingFor = (run: OrderRun): readonly string[] => {
  const { problem } = run;
  const stuck = problem === undefined ? [] : [`${problem.reason}: ${problem.message}`];
  const shown = (onItsHub(run)?.waitingFor ?? []).filter((what) => SHOWN.some((of) => what.startsWith(of)));
  return [...ownJob(run), ...withoutOwnJobs(run, shown), ...stuck];
};

const SHOWN: readonly string[] = ['job ', 'finalizer ', hostedText('')];

/** What is waited for of a job that we launched. */
export const ownJob = (run: OrderRun): readonly string[] => {
  const { provision, deprovision } = onItsHub(run)?.asked ?? {};
  const job = isRunning(provision?.job) ? provision.job : deprovision?.job;
  if (job === undefined || job.state === 'Succeeded') return [];
  const tail = (job.outputTail ?? '').trimEnd().split('\n').at(-1) ?? '';
  return [`job ${job.id} ${job.state}${tail === '' ? '' : `: ${tail}`}`];
};

/** The order's status may show our job as well, as it was when the status was written. */
export const withoutOwnJobs = (run: OrderRun, shown: readonly string[]): readonly string[] => {
  const { provision, deprovision } = onItsHub(run)?.asked ?? {};
  const ours = [provision?.job?.id, deprovision?.job?.id].map((id) => `job ${id ?? ''} `);
  return shown.filter((what) => !ours.some((job) => what.startsWith(job)));
};
