import { FULFILLMENT_FINALIZER } from '../hubs/hub-object.ts';
import { sortedTexts } from '../catalog/document.ts';
import { own, sameJson } from '../json-tools.ts';
import { type ClusterEvent, type NodeSet } from './events.ts';
import { jobChanged, requested } from './automation-record.ts';
import { builtSpec, changeWords } from './change-words.ts';
import { LOST } from './observed-conditions.ts';
import { shownConditions, shownState } from './shown-status.ts';
import {
  isLiveCluster,
  isStoredCluster,
  type ClusterState,
  type LiveCluster,
  type Order,
  type SelectedHub,
  type StoredCluster,
  type Dispatched,
} from './state.ts';

/** The cluster as its own stream tells it: state and `evolve`. Which commands it accepts is in `decide.ts`. */
export const CLUSTER_CATEGORY = 'cluster';

/** Accepts every event ever stored; one that makes no sense in this state changes nothing. */
export const evolveCluster = (state: ClusterState, event: ClusterEvent): ClusterState => {
  if (event.type === 'ClusterOrdered') return isStoredCluster(state) ? state : ordered(event.data);
  if (event.type === 'CreationAbandoned') {
    if (isStoredCluster(state)) return state;
    return { status: 'abandoned', times: state.status === 'abandoned' ? state.times + 1 : 1 };
  }
  if (!isLiveCluster(state)) return state;
  const next = evolveOrder(evolveProgress(state, event), event);
  return next === state ? state : withTimes(state, next, event.data.at);
};

const ordered = (data: Extract<ClusterEvent, { type: 'ClusterOrdered' }>['data']): ClusterState => {
  const { at, displayName = '', description = '', ...facts } = data;
  const rest = { displayName, description, generation: 0, finalizers: [], ours: false, conditionsSince: {} };
  return { status: 'accepted', ...facts, ...rest, orderedAt: at, stateSince: at };
};

export const selectedHub = (
  data: Omit<Extract<ClusterEvent, { type: 'HubSelected' }>['data'], 'at'>,
): SelectedHub => {
  const { hub: id, namespace, mode, simulated, controller, tenantNamespace, orderName } = data;
  const own = tenantNamespace === undefined ? {} : { tenantNamespace };
  return { id, namespace, mode, simulated, controller, ...own, orderName };
};

/** What belongs to the order itself, whatever has become of it on a hub. */
const evolveOrder = (state: LiveCluster, event: ClusterEvent): StoredCluster => {
  switch (event.type) {
    case 'ClusterLabelled':
      return { ...state, labels: event.data.labels };
    case 'ClusterAnnotated':
      return { ...state, annotations: event.data.annotations };
    case 'ClusterDescribed':
      return { ...state, displayName: event.data.displayName, description: event.data.description };
    case 'NodeSetAdded':
      return specChanged(state, withSet(state, event.data.name, event.data.nodeSet));
    case 'NodeSetResized': {
      const { name, to } = event.data;
      const set = own(state.nodeSets, name);
      return set === undefined ? state : specChanged(state, withSet(state, name, { ...set, size: to }));
    }
    case 'NodeSetRemoved': {
      const { [event.data.name]: _removed, ...nodeSets } = state.nodeSets;
      return specChanged(state, { nodeSets });
    }
    case 'ClusterSpecRevised': {
      const {
        sshPublicKey: _key,
        pullSecret: _secret,
        pullSecretSecret: _named,
        network: _network,
        ...kept
      } = state;
      const changed = specChanged(kept as LiveCluster, { version: state.version, ...event.data.spec });
      const isOther = changed.status === 'dispatched' && changed.asked.provision !== undefined;
      return isOther ? { ...changed, otherChanged: true } : changed;
    }
    case 'ClusterFinalizersChanged': {
      const finalizers = sortedTexts(event.data.finalizers);
      return { ...state, finalizers, ours: state.ours && finalizers.includes(FULFILLMENT_FINALIZER) };
    }
    case 'ClusterStatusReported':
      return { ...state, reported: event.data.status };
    case 'HubSelected': {
      const selected = selectedHub(event.data);
      if (state.status === 'dispatched') {
        if (state.uid !== undefined) return state;
        const { waiting: _waited, ...kept } = state;
        return { ...kept, hub: selected };
      }
      const { waiting: _waiting, ...kept } =
        state.failure?.permanent === false ? withoutFailure(state) : state;
      return { ...kept, status: 'placed', hub: selected };
    }
    case 'PlacementDeferred': {
      const { message, decision } = event.data;
      return { ...state, waiting: { message, decision, since: event.data.at } };
    }
    case 'ClusterFailed': {
      const { at: _at, version: _version, ...failure } = event.data;
      return {
        ...observed(state),
        failure,
        failedFor: [...new Set([...(state.failedFor ?? []), failure.reason])],
      };
    }
    case 'ClusterFailureCleared':
    case 'ClusterRetryRequested':
      return withoutFailure(event.type === 'ClusterRetryRequested' ? state : observed(state));
    case 'ClusterDeletionRequested':
      return { ...state, deletionRequestedAt: event.data.at };
    case 'ClusterDeleted': {
      const { deletionRequestedAt = event.data.at } = state;
      return { ...state, status: 'deleted', how: event.data.how, ours: false, deletionRequestedAt };
    }
    default:
      return state;
  }
};

/** What has become of it on its hub. */
const evolveProgress = (before: LiveCluster, event: ClusterEvent): LiveCluster => {
  if (event.type === 'ClusterDispatchStarted') return dispatched(before);
  if (before.status !== 'dispatched') return before;
  const state = withVersion(before, event);
  switch (event.type) {
    case 'ClusterOrderPlaced': {
      const { lost: _lost, ...kept } = withoutDrift(state);
      return { ...kept, uid: event.data.uid, hub: { ...state.hub, orderName: event.data.orderName } };
    }
    case 'ClusterSpecSynced': {
      const { waiting: _waiting, ...kept } = withoutDrift(state);
      return { ...kept, specPending: false };
    }
    case 'ClusterDriftCorrected':
      return withoutDrift(state);
    case 'AutomationRequested':
      return requested(state, event.data, true);
    case 'AutomationTried':
      return requested(state, event.data, false);
    case 'AutomationJobChanged':
      return jobChanged(state, event.data);
    case 'ClusterOrderSeen': {
      const { at: seenAt, version: _version, ...seen } = event.data;
      return withFinished({ ...state, seen, seenAt });
    }
    case 'PlacementDeferred':
      return event.data.runs === true ? { ...state, ready: true } : state;
    case 'ClusterConditionsObserved': {
      const { notAccepting: _late, ...kept } = observed(state);
      return { ...kept, conditions: { ...state.conditions, ...event.data.conditions } };
    }
    case 'ControlPlaneBecameAvailable': {
      const { at: _at, version: _version, ...endpoints } = event.data;
      return { ...observed(state), endpoints, wasAvailable: true };
    }
    case 'NodesObserved': {
      const { readyNodes: _former, ...kept } = observed(state);
      const { ready } = event.data;
      return Object.keys(ready).length === 0 ? kept : { ...kept, readyNodes: ready };
    }
    case 'ClusterBecameReady': {
      // A change that the hub has not taken yet is not built.
      const built = (state.specPending ? state.built : undefined) ?? builtSpec(state);
      const isPresent = changeWords(built, state) === '';
      const known = { ...withoutChangeFailure(observed(state)), ready: true, built };
      return isPresent ? { ...known, wasReady: true } : known;
    }
    case 'ClusterChangeFailed': {
      const { at: since, version: _version, ...failed } = event.data;
      return { ...observed(state), ready: true, changeFailed: { ...failed, since } };
    }
    case 'ClusterFailureCleared': {
      // What vanished is there again, and may vanish again.
      const { lost: _lost, ...kept } = withoutChangeFailure(state);
      return kept;
    }
    case 'ClusterReconfiguring':
      return { ...state, ready: false };
    case 'ClusterDegraded': {
      const { reason, message } = event.data;
      return { ...observed(state), degraded: { reason, message } };
    }
    case 'ClusterRecovered': {
      const { degraded: _degraded, ...kept } = observed(state);
      return kept;
    }
    case 'HubNotAccepting':
      return { ...state, notAccepting: { since: event.data.since } };
    case 'ClusterLostOnHub':
      return lost(observed(state), event.data.what, event.data.at);
    case 'ClusterRetryRequested': {
      const { notAccepting: _late, ...kept } = withoutChangeFailure(state);
      return afterLoss(kept);
    }
    case 'ClusterDeletionRequested':
      return leaving(state);
    case 'ClusterDeletionOverdue':
      return { ...state, overdue: { since: event.data.since } };
    case 'ClusterDeletionBlocked':
      return { ...state, waitingFor: event.data.waitingFor };
    default:
      return state;
  }
};

/** What was seen of it before is over: addresses and counts would lead nowhere. */
const lost = (
  state: Dispatched,
  what: 'cluster-order' | 'hosted-cluster',
  at: string,
): LiveCluster & Dispatched => {
  const {
    endpoints: _endpoints,
    readyNodes: _nodes,
    degraded: _degraded,
    ...kept
  } = withoutChangeFailure(state);
  const failure = lostFailure(what);
  const vanished = what === 'hosted-cluster' ? LOST : UNSEEN_WITHOUT_ORDER;
  const conditions = Object.fromEntries(
    Object.entries(state.conditions).map(([name, known]) => {
      const since = known.status === vanished.status ? known.since : at;
      return [name, { ...vanished, since }];
    }),
  );
  return { ...kept, conditions, ready: false, lost: what, failure };
};

/** What vanished is built for the first time again. */
const afterLoss = (state: Dispatched): Dispatched => {
  const { lost: gone, wasReady: _ready, ...others } = state;
  if (gone === undefined) return state.ready ? state : others;
  const { built: _built, wasAvailable: _available, uid, ...kept } = others;
  const { missing: _missing, left: _left, ...seen } = kept.seen;
  return gone === 'hosted-cluster' && uid !== undefined ? { ...kept, seen, uid } : { ...kept, seen };
};

const UNSEEN_WITHOUT_ORDER = {
  status: 'Unknown',
  reason: 'ClusterOrderLost',
  message: 'the hub holds no order that would tell of it',
} as const;

/**
 * What is torn down is neither what it was nor looked at in detail: only what its end waits for is told. Conditions and
 * failure are kept for those who look back once it is gone.
 */
const leaving = (state: Dispatched): Dispatched => {
  const {
    endpoints: _endpoints,
    readyNodes: _nodes,
    degraded: _degraded,
    notAccepting: _late,
    ...kept
  } = withoutChangeFailure(state);
  // What was seen before it was asked for says nothing of the deletion.
  return { ...kept, ready: false, seen: {} };
};

/** Cleared when it is seen again; until then nothing but a retry or a deletion helps. */
const lostFailure = (what: 'cluster-order' | 'hosted-cluster'): NonNullable<Order['failure']> => ({
  reason: what === 'cluster-order' ? 'ClusterOrderLost' : 'HostedClusterLost',
  message: `the ${what === 'cluster-order' ? 'cluster order' : 'hosted cluster'} vanished from its hub; retry to build it again, or delete it`,
  permanent: false,
});

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
const withoutDrift = (state: Dispatched): Dispatched => {
  const { differs: _differs, ...seen } = state.seen;
  return { ...state, seen };
};

/** A webhook of which the hub shows that it was carried out. */
const withFinished = (state: Dispatched): Dispatched => {
  const { provision } = state.asked;
  return provision === undefined || state.seen.work !== 'finished' || state.specPending
    ? state
    : { ...state, asked: { ...state.asked, provision: { ...provision, finished: true } } };
};

/** An observation of the hub wins over a status that somebody wrote. */
const observed = <State extends LiveCluster>(state: State): State => {
  const { reported: _reported, ...kept } = state;
  return kept as State;
};

const withoutChangeFailure = (state: Dispatched): Dispatched => {
  const { changeFailed: _failed, ...kept } = state;
  return kept;
};

const withoutFailure = (state: LiveCluster): LiveCluster => {
  const { failure: _failure, failedFor: _reasons, ...kept } = state;
  return kept as LiveCluster;
};

const withSet = (state: LiveCluster, name: string, set: NodeSet): Pick<Order, 'nodeSets'> => ({
  nodeSets: { ...state.nodeSets, [name]: set },
});

const specChanged = (before: LiveCluster, change: Partial<Order>): LiveCluster => {
  const state = { ...before, generation: before.generation + 1 };
  if (state.status !== 'dispatched') return { ...state, ...change };
  const { waiting, wasReady: _ready, ...kept } = withoutDrift(withoutChangeFailure(state));
  // A cluster that runs waited for room for its former change.
  const waits = state.built === undefined && waiting !== undefined ? { waiting } : {};
  return { ...kept, ...waits, ...change, specPending: true };
};

/** Stamps what is shown with the time at which it changed. */
const withTimes = (before: LiveCluster, after: StoredCluster, at: string): StoredCluster => {
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
