import { isUnresolved, later } from '../../process/effects.ts';
import { orderName } from '../cluster-order-manifest.ts';
import type { ClusterCommand } from '../commands.ts';
import { PREPARING } from './automation-steps.ts';
import {
  applyInstance,
  claimBeforeApply,
  isApplied,
  sameClaim,
  wantedClaim,
  type ObservedStep,
  type OpenRun,
} from './run.ts';
import {
  ACCEPT_DEADLINE_MS,
  CONTROL_PLANE_DEADLINE_MS,
  LONGEST_QUIET_MS,
  NODES_DEADLINE_MS,
  QUIET_MS,
  READY_DEADLINE_MS,
  type Step,
} from './step.ts';
import { answeredFor, applyCall, cluster, placeCall, resizeWork, settled } from './work.ts';

const MINUTE = 60_000;

const overdueCommand =
  (reason: string, message: string) =>
  (_run: OpenRun, { at }: { readonly at: string }): ClusterCommand => ({
    type: 'RecordFailure',
    at,
    reason,
    message,
    permanent: false,
  });

const reachedStep = (step: ObservedStep) => (run: OpenRun) => run.reached[step];

/**
 * A cluster that is being built is not changed at each of a burst of changes, but some time after the last of them.
 * Simulated hubs are told at once: nothing is spared there.
 */
const quietUntil = ({ changes, hub, effects }: OpenRun): string | undefined =>
  changes === undefined || hub?.simulated !== false || isUnresolved(effects['apply'])
    ? undefined
    : [later(changes.last, QUIET_MS), later(changes.first, LONGEST_QUIET_MS)].toSorted()[0];

/**
 * While a change of what it holds may have happened or not, nobody knows: it is settled before anything relies on it, by
 * growing before the spec is sent, by giving back after that.
 */
const holds = (run: OpenRun, claim: ReturnType<typeof wantedClaim>): boolean =>
  !isUnresolved(run.effects['resize']) && sameClaim(run.held, claim);

/** The way to READY, again for every change of the spec. */
export const FORWARD: readonly Step[] = [
  {
    name: 'place',
    phase: 'forward',
    after: [],
    done: (run) => run.hub !== undefined && run.replacing !== true,
    work: (run) =>
      run.waiting === undefined
        ? settled(run, 'place', `${run.capacityTries}.${run.cycle}`, placeCall(run))
        : undefined,
  },
  {
    name: 'select-hub',
    phase: 'forward',
    after: ['place'],
    done: (run) => run.selected,
    work: (run, at) => {
      if (run.hub === undefined || answeredFor(run, 'select-hub', run.cycle)) return undefined;
      const { hub, namespace, mode, simulated, decision } = run.hub;
      const order = { orderName: orderName(run.clusterId), decision };
      const again = run.dispatched ? { again: true } : {};
      return cluster(run.cycle, {
        type: 'SelectHub',
        at,
        hub,
        namespace,
        mode,
        simulated,
        ...order,
        ...again,
      });
    },
  },
  {
    name: 'start-dispatch',
    phase: 'forward',
    after: ['select-hub'],
    done: (run) => run.dispatched,
    work: (run, at) =>
      answeredFor(run, 'start-dispatch', run.cycle)
        ? undefined
        : cluster(run.cycle, { type: 'StartDispatch', at }),
  },
  {
    name: 'resize-up',
    phase: 'forward',
    after: ['select-hub', 'start-dispatch'],
    done: (run) =>
      isApplied(run) ? sameClaim(run.held, claimBeforeApply(run)) : holds(run, claimBeforeApply(run)),
    work: (run) => resizeWork(run, claimBeforeApply(run)),
  },
  {
    name: 'apply',
    phase: 'forward',
    after: ['select-hub', 'start-dispatch', 'resize-up'],
    done: isApplied,
    work: (run) => {
      const work = settled(run, 'apply', applyInstance(run), applyCall(run));
      const quiet = quietUntil(run);
      return quiet === undefined ? work : { ...work, notBefore: quiet };
    },
  },
  ...PREPARING,
  {
    name: 'record-placed',
    phase: 'forward',
    after: ['apply'],
    done: (run) => answeredFor(run, 'record-placed', run.applied?.uid ?? ''),
    work: (run, at) => {
      const uid = run.applied?.uid ?? '';
      return cluster(uid, { type: 'RecordPlaced', at, uid });
    },
  },
  {
    name: 'record-synced',
    phase: 'forward',
    after: ['apply'],
    needed: (run) => (run.applied?.revision ?? 0) > 0,
    done: (run) => answeredFor(run, 'record-synced', run.applied?.revision ?? 0),
    work: (run, at) => cluster(run.applied?.revision ?? 0, { type: 'RecordSpecSynced', at }),
  },
  {
    name: 'resize-down',
    phase: 'forward',
    after: ['apply', 'record-synced'],
    done: (run) => holds(run, wantedClaim(run)),
    work: (run) => resizeWork(run, wantedClaim(run)),
  },
  {
    name: 'accepted',
    phase: 'forward',
    after: ['apply'],
    done: reachedStep('accepted'),
    deadline: {
      ms: ACCEPT_DEADLINE_MS,
      onOverdue: (_run, times) => ({ type: 'ReportNotAccepting', ...times }),
    },
  },
  {
    name: 'control-plane',
    phase: 'forward',
    after: ['accepted', 'trigger'],
    done: reachedStep('control-plane'),
    deadline: {
      ms: CONTROL_PLANE_DEADLINE_MS,
      onOverdue: overdueCommand(
        'ControlPlaneTimedOut',
        `the control plane did not become available within ${CONTROL_PLANE_DEADLINE_MS / MINUTE} minutes`,
      ),
    },
  },
  {
    // Of a cluster that runs the control plane stands all along: what the hub was not sent yet takes it no time.
    name: 'nodes',
    phase: 'forward',
    after: ['apply', 'trigger', 'control-plane'],
    done: reachedStep('nodes'),
    deadline: {
      ms: NODES_DEADLINE_MS,
      onOverdue: overdueCommand(
        'NodesTimedOut',
        `the nodes did not become ready within ${NODES_DEADLINE_MS / MINUTE} minutes`,
      ),
    },
  },
  {
    name: 'ready',
    phase: 'forward',
    after: ['nodes'],
    done: reachedStep('ready'),
    deadline: {
      ms: READY_DEADLINE_MS,
      onOverdue: overdueCommand(
        'InstallTimedOut',
        `the cluster did not become ready within ${READY_DEADLINE_MS / MINUTE} minutes`,
      ),
    },
  },
];
