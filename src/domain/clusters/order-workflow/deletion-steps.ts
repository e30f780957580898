import { OWN_BACKOFF } from '../../process/effects.ts';
import type { OverdueTimes } from '../../process/run.ts';
import type { ClusterCommand } from '../commands.ts';
import { hostedText } from '../observation.ts';
import { UNDOING } from './automation-steps.ts';
import { isAbsent, isDispatched, mayBeOnHub, onItsHub, type OrderRun } from './run.ts';
import { waitingFor } from './waiting-for.ts';
import { observeCall, onHub, orderRef, releaseCall, settling, type Step } from './work.ts';

const MINUTE = 60_000;
/** From the deletion until the HostedCluster is gone, and from there until nothing is left (§2.2, step D). */
const TEARDOWN_DEADLINE_MS = 120 * MINUTE;
const CLEANUP_DEADLINE_MS = 20 * MINUTE;

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
    /** Again where it is back: a write that was given up arrived only after the deletion had found nothing. */
    name: 'delete',
    phase: 'deletion',
    after: ['settle-apply'],
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
