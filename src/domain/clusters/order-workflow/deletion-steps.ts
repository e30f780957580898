import { GONE_SOON, removeObjects } from '../../made-objects.ts';
import { OWN_BACKOFF } from '../../process/effects.ts';
import { isBegun, UNDO } from '../../process/undo.ts';
import type { OverdueTimes } from '../../process/run.ts';
import { CLUSTER_CATEGORY } from '../cluster.ts';
import type { ClusterCommand } from '../commands.ts';
import { hostedText } from '../observation.ts';
import { boundObjects, isBound } from '../endpoints.ts';
import { isRunning } from './automation.ts';
import { UNDOING } from './automation-steps.ts';
import { isAbsent, isDispatched, isGone, mayBeOnHub, onItsHub, orderOf, type OrderRun } from './run.ts';
import { siteOf } from './site-run.ts';
import { HOSTED_GONE, SITE_STEPS } from './site-steps.ts';
import { observeCall, onHub, orderRef, releaseCall, settling, type Step } from './work.ts';

const MINUTE = 60_000;
/** From the deletion until the HostedCluster is gone, and from there until nothing is left. */
const TEARDOWN_DEADLINE_MS = 120 * MINUTE;
const CLEANUP_DEADLINE_MS = 20 * MINUTE;
/** From there until the site has everything back. */
const GIVE_BACK_DEADLINE_MS = 30 * MINUTE;

/** What a deletion waits for: our own job first, then what the hub shows, then what does not get through. */
const waitingFor = (run: OrderRun): readonly string[] => {
  const { problem } = run;
  const stuck = problem === undefined ? [] : [`${problem.reason}: ${problem.message}`];
  const shown = (isGone(run) ? [] : (onItsHub(run)?.waitingFor ?? [])).filter((what) =>
    SHOWN.some((of) => what.startsWith(of)),
  );
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
    phase: 'undo',
    rules: { backoff: GONE_SOON },
    needed: (run) => isBound(orderOf(run)) && siteOf(run) === undefined,
    work: (run) => ({
      call: removeObjects({ kind: CLUSTER_CATEGORY, id: run.id }, boundObjects(orderOf(run))),
      instance: 0,
    }),
  },
  {
    // One that was never sent is gone then.
    name: 'confirm-unsent',
    phase: 'undo',
    after: ['remove-addresses'],
    needed: ({ subject, ending }) =>
      ending !== undefined && (subject.status === 'accepted' || subject.status === 'placed'),
    tell: (_run, at) => ({ type: 'ConfirmAbsence', at, unsent: true }),
  },
  {
    /** Again where it is back: a write that was given up arrived only after the deletion had found nothing. */
    name: 'delete',
    phase: 'undo',
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
    phase: 'undo',
    needed: (run) => !isAbsent(run) && waitingFor(run).length > 0,
    tell: (run, at) => ({ type: 'BlockDeletion', at, waitingFor: waitingFor(run) }),
  },
  {
    name: 'teardown',
    phase: 'undo',
    after: ['delete'],
    needed: mayBeOnHub,
    done: (run) => isGone(run) || isHostedGone(run),
    deadline: { ms: TEARDOWN_DEADLINE_MS, onOverdue: reportOverdue },
  },
  {
    name: 'cleanup',
    phase: 'undo',
    after: ['delete', 'teardown'],
    needed: mayBeOnHub,
    done: isGone,
    deadline: { ms: CLEANUP_DEADLINE_MS, onOverdue: reportOverdue },
  },
  {
    // Only waited for: what its nodes are attached to goes after them.
    name: HOSTED_GONE,
    phase: 'undo',
    after: ['delete', 'settle-apply'],
    needed: (run) => siteOf(run) !== undefined && mayBeOnHub(run),
    done: isGone,
  },
  {
    // Nothing leads to an address that is given back.
    name: 'return-addresses',
    phase: 'undo',
    effect: 'remove-addresses',
    rules: { backoff: GONE_SOON },
    after: [HOSTED_GONE, 'undo-dns', 'undo-nat'],
    needed: (run) => isBound(orderOf(run)) && siteOf(run) !== undefined,
    work: (run) => ({
      call: removeObjects({ kind: CLUSTER_CATEGORY, id: run.id }, boundObjects(orderOf(run))),
      instance: 0,
    }),
  },
  {
    name: 'give-back',
    phase: 'undo',
    after: [HOSTED_GONE, 'cleanup'],
    needed: (run) => siteOf(run) !== undefined,
    done: (run) =>
      SITE_STEPS.every(({ name, undo }) => undo === undefined || !isBegun(run, name)) || run.undoing !== true,
    deadline: { ms: GIVE_BACK_DEADLINE_MS, onOverdue: reportOverdue },
  },
  {
    name: 'confirm-absence',
    phase: 'undo',
    after: ['delete', HOSTED_GONE, 'return-addresses', UNDO],
    needed: (run) => run.ending !== undefined && isDispatched(run),
    done: isAbsent,
    // What may be there is confirmed to be gone by a look.
    tell: (run, at) => {
      if (!mayBeOnHub(run)) return { type: 'ConfirmAbsence', at, unsent: true };
      return run.memo.gone === true ? { type: 'ConfirmAbsence', at } : undefined;
    },
  },
  {
    name: 'release',
    phase: 'undo',
    rules: { backoff: OWN_BACKOFF },
    after: ['settle-place', 'confirm-absence'],
    needed: (run) => run.ending !== undefined && run.effects['place'] !== undefined,
    work: (run) => ({ call: releaseCall(run), instance: run.cycle }),
  },
  {
    // Of an order that was aborted: its retry may ask for a place at once.
    name: 'release-aborted',
    phase: 'undo',
    effect: 'release',
    rules: { backoff: OWN_BACKOFF },
    after: ['settle-place', HOSTED_GONE, 'return-addresses', UNDO],
    needed: (run) => run.ending === undefined && run.effects['place'] !== undefined,
    work: (run) => ({ call: releaseCall(run), instance: run.cycle }),
  },
  {
    name: 'confirm-withdrawal',
    phase: 'undo',
    after: ['release-aborted'],
    needed: (run) => run.ending === undefined,
    tell: (_run, at) => ({ type: 'ConfirmAbsence', at }),
  },
];

const isHostedGone = (run: OrderRun): boolean => {
  const { seen, waitingFor: shown = [] } = onItsHub(run) ?? {};
  const isSeen = seen?.deleting === true || seen?.missing !== undefined;
  return isSeen && !shown.some((what) => what.startsWith(hostedText('')));
};
