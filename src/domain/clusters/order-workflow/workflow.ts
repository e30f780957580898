import { failureSentence } from '../../failure-sentences.ts';
import { HUB_NEWS } from '../../hubs/health-events.ts';
import { stepWorkflow } from '../../process/step-workflow.ts';
import type { Problem } from '../../process/run.ts';
import type { FoldedEvent } from '../../workflow.ts';
import { CLUSTER_CATEGORY } from '../cluster.ts';
import type { ClusterCommand } from '../commands.ts';
import { clusterDecider } from '../decide.ts';
import { clusterEventTypes } from '../event-types.ts';
import { type ClusterEvent, isStoredCluster, type ClusterState } from '../state.ts';
import { AUTOMATION_LIVE } from './automation-steps.ts';
import { DELETION } from './deletion-steps.ts';
import { FORWARD } from './forward-steps.ts';
import { confirm, keep, observe, reading, suspicion } from './looking-steps.ts';
import { evolveMemo } from './memo.ts';
import {
  hubOf,
  INITIAL_MEMO,
  isCertainlyUnsent,
  JOB_STATUS,
  onItsHub,
  type Memo,
  type OrderRun,
} from './run.ts';
import { AGENTS_RETRY, PLACEMENT_RETRY, POOL_RETRY, RECONSIDER_HUB, timersOf, unplaced } from './timers.ts';
import { isUndoneOnFailure } from './site-run.ts';
import { SITE_STEPS } from './site-steps.ts';
import { SITE_TASKS } from './site-tasks.ts';
import { observeCall, type Step } from './work.ts';

/** An automation that cannot be asked about a job for so long is told of. */
const JOB_STATUS_DEADLINE_MS = 5 * 60_000;

const problemOf = (run: OrderRun): Problem | undefined => {
  const late = unplaced(run);
  if (late !== undefined) return late;
  return run.problem?.at === run.memo.told ? undefined : run.problem;
};

/** What goes on beside the way to READY. */
const LIVE: readonly Step[] = [
  {
    // Only waited for: conditions tell of it once it takes too long.
    name: JOB_STATUS,
    phase: 'live',
    needed: (run) => onItsHub(run)?.seen.jobUnknown === true,
    deadline: { ms: JOB_STATUS_DEADLINE_MS },
  },
  {
    name: 'report-problem',
    phase: 'live',
    tell: (run) => {
      const problem = problemOf(run);
      if (problem === undefined) return undefined;
      const { at, reason, message, effect } = problem;
      const isOurs = problem === run.problem;
      const failure = isOurs ? { message: failureSentence(reason), detail: message } : { message };
      // What was tried as often as it may be on a site, has failed.
      const isFinal = problem.permanent || [...SITE_STEPS, ...SITE_TASKS].some(({ name }) => name === effect);
      const aborts = isOurs && isFinal && isUndoneOnFailure(run);
      const permanent = problem.permanent || aborts;
      return { type: 'RecordFailure', at, reason, ...failure, permanent, ...(aborts ? { aborts } : {}) };
    },
  },
  {
    name: 'report-end-of-failure',
    phase: 'live',
    tell: ({ memo: { ended } }) => (ended === undefined ? undefined : { type: 'EndFailure', ...ended }),
  },
];

export const CLUSTER_STEPS: readonly Step[] = [
  ...FORWARD,
  ...LIVE,
  ...AUTOMATION_LIVE,
  reading('live'),
  ...DELETION,
  reading('undo'),
];

export const CLUSTER_ORDER = 'clusterOrder';

const CHANGES: readonly string[] = ['NodeSetAdded', 'NodeSetResized', 'NodeSetRemoved', 'ClusterSpecRevised'];

/** What was built can be changed again after a change that failed; what was found to be there is no longer refused. */
const lifts = (run: OrderRun, { of, type }: FoldedEvent): boolean =>
  of === 'subject' &&
  (type === 'ClusterSpecSynced' || (CHANGES.includes(type) && onItsHub(run)?.built !== undefined));

/**
 * Process manager of a cluster order: from the accepted order to READY, through every change of its spec, to confirmed
 * absence. One run per cluster, in `clusterOrder-<cluster id>`.
 */
export const clusterOrderWorkflow = stepWorkflow<ClusterState, ClusterCommand, ClusterEvent, Memo>({
  name: CLUSTER_ORDER,
  stateVersion: 9,
  subject: {
    category: CLUSTER_CATEGORY,
    types: clusterEventTypes.map(({ type }) => type),
    decider: clusterDecider,
    idOf: (cluster) => (isStoredCluster(cluster) ? cluster.id : ''),
  },
  begins: isStoredCluster,
  ends: (cluster) =>
    isStoredCluster(cluster) && cluster.deletionRequestedAt !== undefined ? 'gone' : undefined,
  aborts: (cluster) => isStoredCluster(cluster) && cluster.aborted !== undefined,
  retries: (run, { type, data }) =>
    type === 'ClusterRetryRequested' ||
    (type === 'TimerFired' && data['timerId'] === RECONSIDER_HUB && isCertainlyUnsent(run)),
  lifts,
  halts: unplaced,
  memo: { initial: INITIAL_MEMO, evolve: evolveMemo },
  steps: CLUSTER_STEPS,
  timers: timersOf,
  observe,
  check: { call: observeCall, wanted: suspicion, record: confirm, keep },
  // Whatever may make room: a hub came, changed or is well again, or somebody gave capacity back.
  wakes: [
    {
      types: [
        ...HUB_NEWS,
        'HubAutomationAnswered',
        'HubCapacityDeclared',
        'HubCapacityReleased',
        'HubCapacityResized',
      ],
      timerId: PLACEMENT_RETRY,
    },
    { types: ['AgentsReserved'], timerId: AGENTS_RETRY, perHolder: true },
    {
      types: [
        'VlanPoolCreated',
        'VlanPoolResized',
        'VlanReleased',
        'PrefixPoolCreated',
        'PrefixPoolResized',
        'PrefixReleased',
      ],
      timerId: POOL_RETRY,
    },
  ],
  hubOf: (run) => hubOf(run)?.id,
});
