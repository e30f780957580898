import { isUnresolved } from '../../process/effects.ts';
import type { ClusterCommand } from '../commands.ts';
import { hostedText } from '../observation.ts';
import { isRunning } from './automation.ts';
import { UNDOING } from './automation-steps.ts';
import { mayBeOnHub } from './reconsider.ts';
import type { OpenRun } from './run.ts';
import { CLEANUP_DEADLINE_MS, TEARDOWN_DEADLINE_MS, type Step } from './step.ts';
import { answeredFor, cluster, observeCall, onHub, orderRef, releaseCall, settled } from './work.ts';

const reportOverdue = (
  run: OpenRun,
  times: { readonly since: string; readonly at: string },
): ClusterCommand => ({
  type: 'ReportDeletionOverdue',
  ...times,
  waitingFor: waitingFor(run),
});

/** Undoing, to confirmed absence and capacity given back. */
export const DELETION: readonly Step[] = [
  {
    // Instead of placing again: whatever an unanswered attempt reserved is given back.
    name: 'settle-place',
    phase: 'deletion',
    after: [],
    needed: (run) => run.hub === undefined || run.replacing === true,
    done: (run) => !isUnresolved(run.effects['place']),
    work: (run) => settled(run, 'place', '', releaseCall(run)),
  },
  {
    // Instead of sending again: a look ends the doubt, and what is there is deleted.
    name: 'settle-apply',
    phase: 'deletion',
    after: [],
    done: (run) => !isUnresolved(run.effects['apply']),
    work: (run) => settled(run, 'apply', '', observeCall(run)),
  },
  {
    name: 'delete',
    phase: 'deletion',
    after: ['settle-apply'],
    needed: mayBeOnHub,
    done: (run) => run.effects['delete']?.status === 'done' && !isBack(run),
    work: (run) =>
      settled(run, 'delete', isBack(run) ? `${run.cycle}.${run.observations}` : run.cycle, {
        ...onHub(run),
        operation: 'deleteClusterOrder',
        args: orderRef(run),
      }),
  },
  ...UNDOING,
  {
    name: 'report-blocked',
    phase: 'deletion',
    after: ['delete'],
    needed: (run) => waitingFor(run).length > 0,
    done: (run) => answeredFor(run, 'report-blocked', blockedInstance(run)),
    work: (run, at) =>
      cluster(blockedInstance(run), {
        type: 'BlockDeletion',
        at: run.observation?.at ?? at,
        waitingFor: waitingFor(run),
      }),
  },
  {
    name: 'report-stuck',
    phase: 'deletion',
    after: [],
    needed: (run) => run.problem !== undefined,
    done: (run) => answeredFor(run, 'report-stuck', run.problem?.number ?? 0),
    work: ({ problem }) =>
      problem === undefined
        ? undefined
        : cluster(problem.number, {
            type: 'BlockDeletion',
            at: problem.at,
            waitingFor: [`${problem.reason}: ${problem.message}`],
          }),
  },
  {
    name: 'teardown',
    phase: 'deletion',
    after: ['delete'],
    needed: mayBeOnHub,
    done: (run) => run.absenceRecorded || isHostedGone(run),
    deadline: { ms: TEARDOWN_DEADLINE_MS, onOverdue: reportOverdue },
  },
  {
    name: 'cleanup',
    phase: 'deletion',
    after: ['delete', 'teardown'],
    needed: mayBeOnHub,
    done: (run) => run.absenceRecorded,
    deadline: { ms: CLEANUP_DEADLINE_MS, onOverdue: reportOverdue },
  },
  {
    name: 'confirm-absence',
    phase: 'deletion',
    after: ['delete'],
    needed: (run) => run.dispatched,
    done: (run) => run.absenceRecorded,
    work: (run, at) => {
      if (!mayBeOnHub(run)) return cluster(run.cycle, { type: 'ConfirmAbsence', at, unsent: true });
      return run.gone === 'cluster-order' ? cluster(run.cycle, { type: 'ConfirmAbsence', at }) : undefined;
    },
  },
  {
    name: 'release',
    phase: 'deletion',
    after: ['settle-place', 'confirm-absence'],
    needed: (run) => run.effects['place'] !== undefined,
    done: (run) => run.effects['release']?.status === 'done',
    work: (run) => settled(run, 'release', run.cycle, releaseCall(run)),
  },
];

/**
 * Nobody has deleted what is there: a write that was given up arrived only after the deletion had found nothing. What
 * was seen before a deletion is forgotten when that has succeeded.
 */
const isBack = ({ observation }: OpenRun): boolean =>
  observation?.assessment.found === true && !observation.assessment.deleting;

const waitingFor = (run: OpenRun): readonly string[] => {
  const assessment = run.observation?.assessment;
  if (assessment === undefined) return [];
  if (!assessment.found) return assessment.left === undefined ? [] : [hostedText(assessment.left)];
  // The order's status may show our job as well, as it was when the status was written.
  const { provision, deprovision } = run.asked;
  const ours = [provision?.job?.id, deprovision?.job?.id].map((id) => `job ${id ?? ''} `);
  const others = assessment.waitingFor.filter((what) => !ours.some((job) => what.startsWith(job)));
  return [...ownJob(run), ...others];
};

/** What is waited for of a job that we launched. */
const ownJob = ({ asked: { provision, deprovision } }: OpenRun): readonly string[] => {
  const job = isRunning(provision?.job) ? provision.job : deprovision?.job;
  if (job === undefined || job.state === 'Succeeded') return [];
  const tail = (job.outputTail ?? '').trimEnd().split('\n').at(-1) ?? '';
  return [`job ${job.id} ${job.state}${tail === '' ? '' : `: ${tail}`}`];
};

/** One report for each thing that was seen: an observation, or the state of a job. */
const blockedInstance = (run: OpenRun): string => {
  const [job] = ownJob(run);
  return `${run.observation?.number ?? 0}${job === undefined ? '' : `.${job.split(':')[0]}`}`;
};

const isHostedGone = (run: OpenRun): boolean =>
  run.observation !== undefined && !waitingFor(run).some((what) => what.startsWith(hostedText('')));
