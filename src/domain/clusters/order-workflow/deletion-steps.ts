import { GONE_SOON, removeObjects } from '../../made-objects.ts';
import { OWN_BACKOFF } from '../../process/effects.ts';
import type { OverdueTimes } from '../../process/run.ts';
import { CLUSTER_CATEGORY } from '../cluster.ts';
import type { ClusterCommand } from '../commands.ts';
import { hostedText } from '../observation.ts';
import { boundObjects, isBound } from '../endpoints.ts';
import { isRunning } from './automation.ts';
import { UNDOING } from './automation-steps.ts';
import { isAbsent, isDispatched, mayBeOnHub, onItsHub, orderOf, type OrderRun } from './run.ts';
import { observeCall, onHub, orderRef, releaseCall, settling, type Step } from './work.ts';

const MINUTE = 60_000;
/** From the deletion until the HostedCluster is gone, and from there until nothing is left. */
const TEARDOWN_DEADLINE_MS = 120 * MINUTE;
const CLEANUP_DEADLINE_MS = 20 * MINUTE;

/** What a deletion waits for: our own job first, then what the hub shows, then what does not get through. */
const waitingFor = (run: OrderRun): readonly string[] => {
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

const reportOverdue = (run: OrderRun, times: OverdueTimes): ClusterCommand => ({
  type: 'ReportDeletionOverdue',
  ...times,
  waitingFor: waitingFor(run),
});

/** Undoing, to confirmed absence and capacity given back. */
export const DELETION: readonly Step[] = [
  // Whatever an unanswered attempt reserved is given back.
  settling('place', releaseCall, {
    needed: (run) => !isDispatched(run) || run.memo.replacing === true,
  }),
  // What is there is deleted.
  settling('apply', observeCall),
  {
    // Nothing is attached to what is taken down.
    name: 'remove-addresses',
    phase: 'deletion',
    rules: { backoff: GONE_SOON },
    needed: (run) => isBound(orderOf(run)),
    work: (run) => ({
      call: removeObjects({ kind: CLUSTER_CATEGORY, id: run.id }, boundObjects(orderOf(run))),
      instance: 0,
    }),
  },
  {
    // One that was never sent is gone then.
    name: 'confirm-unsent',
    phase: 'deletion',
    after: ['remove-addresses'],
    needed: ({ subject }) => subject.status === 'accepted' || subject.status === 'placed',
    tell: (_run, at) => ({ type: 'ConfirmAbsence', at, unsent: true }),
  },
  {
    /** Again where it is back: a write that was given up arrived only after the deletion had found nothing. */
    name: 'delete',
    phase: 'deletion',
    after: ['settle-apply', 'remove-addresses'],
    needed: mayBeOnHub,
    work: (run) => ({
      call: onHub(run, 'deleteObject', orderRef(run)),
      instance: run.memo.backs === 0 ? run.cycle : `${run.cycle}.${run.memo.backs}`,
    }),
  },
  ...UNDOING,
  {
    name: 'report-blocked',
    phase: 'deletion',
    needed: (run) => !isAbsent(run) && waitingFor(run).length > 0,
    tell: (run, at) => ({ type: 'BlockDeletion', at, waitingFor: waitingFor(run) }),
  },
  {
    name: 'teardown',
    phase: 'deletion',
    after: ['delete'],
    needed: mayBeOnHub,
    done: (run) => isAbsent(run) || isHostedGone(run),
    deadline: { ms: TEARDOWN_DEADLINE_MS, onOverdue: reportOverdue },
  },
  {
    name: 'cleanup',
    phase: 'deletion',
    after: ['delete', 'teardown'],
    needed: mayBeOnHub,
    done: isAbsent,
    deadline: { ms: CLEANUP_DEADLINE_MS, onOverdue: reportOverdue },
  },
  {
    name: 'confirm-absence',
    phase: 'deletion',
    after: ['delete'],
    needed: isDispatched,
    done: isAbsent,
    // What may be there is confirmed to be gone by a look.
    tell: (run, at) => (mayBeOnHub(run) ? undefined : { type: 'ConfirmAbsence', at, unsent: true }),
  },
  {
    name: 'release',
    phase: 'deletion',
    rules: { backoff: OWN_BACKOFF },
    after: ['settle-place', 'confirm-absence'],
    needed: (run) => run.effects['place'] !== undefined,
    work: (run) => ({ call: releaseCall(run), instance: run.cycle }),
  },
];

const isHostedGone = (run: OrderRun): boolean => {
  const { seen, waitingFor: shown = [] } = onItsHub(run) ?? {};
  const isSeen = seen?.deleting === true || seen?.missing !== undefined;
  return isSeen && !shown.some((what) => what.startsWith(hostedText('')));
};
