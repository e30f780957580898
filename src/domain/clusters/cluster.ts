import { attachedTo, detachedFrom } from './endpoints.ts';
import { FULFILLMENT_FINALIZER } from '../hubs/hub-object.ts';
import { sortedTexts } from '../catalog/document.ts';
import type { DataOf } from '../decider.ts';
import { defined, own, sameJson, without } from '../json-tools.ts';
import {
  type ClusterEvent,
  type Lost,
  type NodeSet,
  isLiveCluster,
  isStoredCluster,
  type ClusterState,
  type LiveCluster,
  type Order,
  type SelectedHub,
  type StoredCluster,
  type Dispatched,
} from './state.ts';
import { jobChanged, requested } from './automation-record.ts';
import { builtSpec, changeWords } from './change-words.ts';
import { LOST } from './observed-conditions.ts';
import { shownConditions, shownState } from './shown-status.ts';

/** The cluster as its own stream tells it: state and `evolve`. Which commands it accepts is in `decide.ts`. */
export const CLUSTER_CATEGORY = 'cluster';

type Data<Type extends ClusterEvent['type']> = DataOf<ClusterEvent, Type>;

/** Accepts every event ever stored; one that makes no sense in this state changes nothing. */
export const evolveCluster = (state: ClusterState, event: ClusterEvent): ClusterState => {
  if (event.type === 'ClusterOrdered') return isStoredCluster(state) ? state : ordered(event.data);
  if (event.type === 'CreationAbandoned') {
    if (isStoredCluster(state)) return state;
    return { status: 'abandoned', times: state.status === 'abandoned' ? state.times + 1 : 1 };
  }
  if (!isLiveCluster(state)) return state;
  const next = folded(OF_ORDER, evolveProgress(state, event), event);
  return next === state ? state : withTimes(state, next, event.data.at);
};

/** What events change of a cluster in such a state; those that are not there change nothing. */
type Folds<Before extends StoredCluster, After extends StoredCluster> = {
  readonly [Type in ClusterEvent['type']]?: (state: Before, data: Data<Type>) => After;
};

const folded = <Before extends StoredCluster, After extends StoredCluster>(
  folds: Folds<Before, After>,
  state: Before,
  { type, data }: ClusterEvent,
): Before | After => {
  const fold = own(folds, type) as ((state: Before, data: object) => After) | undefined;
  return fold === undefined ? state : fold(state, data);
};

const ordered = (data: Data<'ClusterOrdered'>): ClusterState => {
  const { at, displayName = '', description = '', ...facts } = data;
  const rest = { displayName, description, generation: 0, finalizers: [], ours: false, conditionsSince: {} };
  return { status: 'accepted', ...facts, ...rest, orderedAt: at, stateSince: at };
};

export const selectedHub = (data: Omit<Data<'HubSelected'>, 'at'>): SelectedHub => {
  const { hub: id, namespace, mode, simulated, controller, tenantNamespace, orderName, site } = data;
  const steps = Object.keys(data.steps).filter((step) => data.steps[step] === 'ledger');
  return {
    ...defined({ id, namespace, mode, simulated, controller, tenantNamespace, orderName }),
    ...(site === undefined ? {} : { site: { ...site, steps } }),
  };
};

/** What is known of it on a hub, and where that is. */
const ON_ITS_HUB = [
  'hub',
  'uid',
  'specPending',
  'conditions',
  'endpoints',
  'readyNodes',
  'ready',
  'installed',
  'notAccepting',
  'lost',
  'waitingFor',
  'overdue',
  'seen',
  'seenAt',
  'seenVersion',
  'wasAvailable',
  'asked',
  'otherChanged',
] as const satisfies readonly (keyof Dispatched)[];

/** As it was before it was placed, but for its failure. */
const withdrawn = (state: LiveCluster): LiveCluster => ({
  ...(without(state as Dispatched, 'waiting', ...ON_ITS_HUB) as Order),
  status: 'accepted',
  finalizers: state.finalizers.filter((finalizer) => finalizer !== FULFILLMENT_FINALIZER),
  ours: false,
  withdrawn: true,
});

/**
 * What is torn down is neither what it was nor looked at in detail: only what its end waits for is told. What was seen
 * before says nothing of that. Conditions and failure are kept for those who look back.
 */
const leaving = (state: Dispatched): Dispatched => ({
  ...without(state, 'changeFailed', 'endpoints', 'readyNodes', 'degraded', 'notAccepting', 'installed'),
  ready: false,
  seen: {},
});

/** What belongs to the order itself, whatever has become of it on a hub. */
const OF_ORDER: Folds<LiveCluster, StoredCluster> = {
  ClusterLabelled: (state, { labels }) => ({ ...state, labels }),
  ClusterAnnotated: (state, { annotations }) => ({ ...state, annotations }),
  ClusterDescribed: (state, { displayName, description }) => ({ ...state, displayName, description }),
  NodeSetAdded: (state, { name, nodeSet }) => withSet(state, name, nodeSet),
  NodeSetResized: (state, { name, to: size }) => {
    const set = own(state.nodeSets, name);
    return set === undefined ? state : withSet(state, name, { ...set, size });
  },
  NodeSetRemoved: (state, { name }) => {
    const { [name]: _removed, ...nodeSets } = state.nodeSets;
    return specChanged(state, { nodeSets });
  },
  ClusterSpecRevised: (state, { spec }) => {
    const kept = without(state, 'sshPublicKey', 'pullSecret', 'pullSecretSecret', 'network');
    const changed = specChanged(kept, { version: state.version, ...spec });
    const isOther = changed.status === 'dispatched' && changed.asked.provision !== undefined;
    return isOther ? { ...changed, otherChanged: true } : changed;
  },
  ClusterFinalizersChanged: (state, data) => {
    const finalizers = sortedTexts(data.finalizers);
    return { ...state, finalizers, ours: state.ours && finalizers.includes(FULFILLMENT_FINALIZER) };
  },
  ClusterEndpointAttached: attachedTo,
  ClusterEndpointDetached: detachedFrom,
  ClusterStatusReported: (state, { status }) => ({ ...state, reported: status }),
  HubSelected: (state, data) => {
    const hub = selectedHub(data);
    if (state.status === 'dispatched')
      return state.uid === undefined ? { ...without(state, 'waiting'), hub } : state;
    const kept = state.failure?.permanent === false ? withoutFailure(state) : state;
    return { ...without(kept, 'waiting'), status: 'placed', hub };
  },
  PlacementDeferred: (state, { at: since, message, decision }) => ({
    ...state,
    waiting: { message, decision, since },
  }),
  ClusterFailed: (state, data) => {
    const failure = without(data, 'at', 'version');
    const failedFor = [...new Set([...(state.failedFor ?? []), failure.reason])];
    return { ...observed(state), failure, failedFor };
  },
  ClusterFailureCleared: (state) => withoutFailure(observed(state)),
  ClusterAborted: (state, { at, reason }) => ({ ...state, aborted: { at, reason } }),
  ClusterRetryRequested: (state) => without(withoutFailure(state), 'aborted', 'withdrawn'),
  ClusterWithdrawn: withdrawn,
  ClusterDeletionRequested: (state, { at }) => ({ ...state, deletionRequestedAt: at }),
  ClusterDeleted: (state, { at, how }) => {
    const { deletionRequestedAt = at } = state;
    return { ...state, status: 'deleted', how, ours: false, deletionRequestedAt };
  },
};

/** What has become of it on its hub. */
const evolveProgress = (state: LiveCluster, event: ClusterEvent): LiveCluster => {
  if (event.type === 'ClusterDispatchStarted') return dispatched(state);
  return state.status === 'dispatched' ? folded(ON_HUB, withVersion(state, event), event) : state;
};

const ON_HUB: Folds<Dispatched, Dispatched> = {
  ClusterOrderPlaced: (state, { uid, orderName }) => ({
    ...without(withoutDrift(state), 'lost'),
    uid,
    hub: { ...state.hub, orderName },
  }),
  ClusterSpecSynced: (state) => ({ ...without(withoutDrift(state), 'waiting'), specPending: false }),
  ClusterDriftCorrected: (state) => withoutDrift(state),
  AutomationRequested: (state, data) => requested(state, data, true),
  AutomationTried: (state, data) => requested(state, data, false),
  AutomationJobChanged: jobChanged,
  ClusterOrderSeen: (state, { at: seenAt, version: _version, ...seen }) =>
    withFinished({ ...state, seen, seenAt }),
  PlacementDeferred: (state, { runs }) => (runs === true ? { ...state, ready: true } : state),
  ClusterConditionsObserved: (state, { conditions, ready = state.readyNodes }) => {
    const isTold = Object.keys(conditions).length > 0;
    const kept = isTold ? without(observed(state), 'notAccepting') : observed(state);
    return {
      ...without(kept, 'readyNodes'),
      conditions: { ...state.conditions, ...conditions },
      ...(ready === undefined || Object.keys(ready).length === 0 ? {} : { readyNodes: ready }),
    };
  },
  ControlPlaneBecameAvailable: (state, data) => {
    const endpoints = without(data, 'at', 'version');
    return { ...observed(state), endpoints, wasAvailable: true };
  },
  ClusterBecameReady: (state) => {
    // A change that the hub has not taken yet is not built.
    const built = (state.specPending ? state.built : undefined) ?? builtSpec(state);
    const isPresent = changeWords(built, state) === '';
    const known = { ...without(observed(state), 'changeFailed', 'installed'), ready: true, built };
    return isPresent ? { ...known, wasReady: true } : known;
  },
  ClusterInstalled: (state) => ({ ...observed(state), installed: true }),
  ClusterChangeFailed: (state, { at: since, version: _version, ...failed }) => ({
    ...observed(state),
    ready: true,
    changeFailed: { ...failed, since },
  }),
  // What vanished is there again, and may vanish again.
  ClusterFailureCleared: (state) => without(state, 'changeFailed', 'lost'),
  ClusterReconfiguring: (state) => ({ ...state, ready: false }),
  ClusterDegraded: (state, { reason, message }) => ({ ...observed(state), degraded: { reason, message } }),
  ClusterRecovered: (state) => without(observed(state), 'degraded'),
  HubNotAccepting: (state, { since }) => ({ ...state, notAccepting: { since } }),
  ClusterLostOnHub: (state, { what, at }) => lost(observed(state), what, at),
  ClusterRetryRequested: (state) => afterLoss(without(state, 'changeFailed', 'notAccepting')),
  ClusterDeletionRequested: leaving,
  ClusterAborted: leaving,
  ClusterDeletionOverdue: (state, { since }) => ({ ...state, overdue: { since } }),
  ClusterDeletionBlocked: (state, { waitingFor }) => ({ ...state, waitingFor }),
};

/** What was seen of it before is over: addresses and counts would lead nowhere. */
const lost = (state: Dispatched, what: Lost, at: string): Dispatched => {
  const vanished = what === 'hosted-cluster' ? LOST : UNSEEN_WITHOUT_ORDER;
  const conditions = Object.fromEntries(
    Object.entries(state.conditions).map(([name, known]) => {
      const since = known.status === vanished.status ? known.since : at;
      return [name, { ...vanished, since }];
    }),
  );
  const kept = without(state, 'changeFailed', 'endpoints', 'readyNodes', 'degraded');
  return { ...kept, conditions, ready: false, lost: what, failure: LOST_FAILURES[what] };
};

/** What vanished is built for the first time again. */
const afterLoss = (state: Dispatched): Dispatched => {
  if (state.lost === undefined) return state.ready ? state : without(state, 'wasReady');
  const kept = without(state, 'lost', 'wasReady', 'built', 'wasAvailable');
  const seen = without(state.seen, 'missing', 'left');
  return { ...(state.lost === 'hosted-cluster' ? kept : without(kept, 'uid')), seen };
};

const UNSEEN_WITHOUT_ORDER = {
  status: 'Unknown',
  reason: 'ClusterOrderLost',
  message: 'the hub holds no order that would tell of it',
} as const;

/** Cleared when it is seen again; until then nothing but a retry or a deletion helps. */
const lostFailure = (reason: string, what: string): NonNullable<Order['failure']> => ({
  reason,
  message: `the ${what} vanished from its hub; retry to build it again, or delete it`,
  permanent: false,
});
const LOST_FAILURES = {
  'cluster-order': lostFailure('ClusterOrderLost', 'cluster order'),
  'hosted-cluster': lostFailure('HostedClusterLost', 'hosted cluster'),
};

const dispatched = (state: LiveCluster): LiveCluster =>
  state.status !== 'placed'
    ? state
    : {
        ...state,
        status: 'dispatched',
        ours: true,
        finalizers: sortedTexts([...state.finalizers, FULFILLMENT_FINALIZER]),
        specPending: false,
        conditions: {},
        ready: false,
        waitingFor: [],
        seen: {},
        asked: {},
      };

const withVersion = (state: Dispatched, { data }: ClusterEvent): Dispatched =>
  'version' in data && typeof data.version === 'object' && 'uid' in data.version
    ? { ...state, seenVersion: { ...data.version, at: data.at } }
    : state;

/** The hub holds the spec as it was sent. */
const withoutDrift = (state: Dispatched): Dispatched => ({ ...state, seen: without(state.seen, 'differs') });

/** A webhook of which the hub shows that it was carried out. */
const withFinished = (state: Dispatched): Dispatched => {
  const { provision } = state.asked;
  return provision === undefined || state.seen.work !== 'finished' || state.specPending
    ? state
    : { ...state, asked: { ...state.asked, provision: { ...provision, finished: true } } };
};

/** An observation of the hub wins over a status that somebody wrote. */
const observed = <State extends LiveCluster>(state: State): State => without(state, 'reported') as State;

const withoutFailure = (state: LiveCluster): LiveCluster => without(state, 'failure', 'failedFor');

const withSet = (state: LiveCluster, name: string, set: NodeSet): LiveCluster =>
  specChanged(state, { nodeSets: { ...state.nodeSets, [name]: set } });

const specChanged = (before: LiveCluster, change: Partial<Order>): LiveCluster => {
  const state = { ...before, generation: before.generation + 1 };
  if (state.status !== 'dispatched') return { ...state, ...change };
  const { waiting, ...kept } = without(withoutDrift(state), 'changeFailed', 'wasReady');
  // A cluster that runs waited for room for its former change.
  const waits = state.built === undefined && waiting !== undefined ? { waiting } : {};
  return { ...kept, ...waits, ...change, specPending: true };
};

/** Stamps what is shown with the time at which it changed. */
const withTimes = (before: LiveCluster, after: StoredCluster, at: string): StoredCluster => {
  if (isShownAlike(before, after)) return after;
  const old = shownConditions(before);
  let { conditionsSince } = after;
  for (const { type, status } of shownConditions(after)) {
    const known = old.find((condition) => condition.type === type);
    if (known?.status !== status) conditionsSince = { ...conditionsSince, [type]: at };
  }
  const stateSince = shownState(before) === shownState(after) ? after.stateSince : at;
  return sameJson(conditionsSince, after.conditionsSince) && stateSince === after.stateSince
    ? after
    : { ...after, conditionsSince, stateSince };
};

/** What state and status of the shown conditions follow from: most looks at a hub change nothing of it. */
const DECIDES_SHOWN = [
  'status',
  'deletionRequestedAt',
  'failure',
  'waiting',
  'notAccepting',
  'ready',
  'degraded',
] as const satisfies readonly (keyof Dispatched)[];
const isShownAlike = (left: Partial<Dispatched> | StoredCluster, right: typeof left): boolean =>
  DECIDES_SHOWN.every(
    (field) => (left as Partial<Dispatched>)[field] === (right as Partial<Dispatched>)[field],
  );
