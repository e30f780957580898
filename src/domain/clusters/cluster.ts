import { sortedTexts } from '../catalog/document.ts';
import type { JsonObject } from '../json.ts';
import { own, sameJson } from '../json-tools.ts';
import type { SecretRef } from '../secret-ref.ts';
import {
  FULFILLMENT_FINALIZER,
  type ClusterEvent,
  type ConditionName,
  type ConditionState,
  type NodeSet,
  type PlacementDecision,
  type ResolvedVersion,
} from './events.ts';
import { shownConditions, shownState, type ShownConditionType } from './shown-status.ts';

/** The cluster as its own stream tells it: state and `evolve`. Which commands it accepts is in `decide.ts`. */
export const CLUSTER_CATEGORY = 'cluster';

export type ClusterState =
  | { readonly status: 'absent' }
  | { readonly status: 'abandoned'; readonly times: number }
  | ({ readonly status: 'accepted' } & Order)
  /** A hub is chosen; nothing was sent to it yet. */
  | ({ readonly status: 'placed'; readonly hub: SelectedHub } & Order)
  /** Something may exist on the hub: the cluster is gone only after its absence was observed. */
  | ({ readonly status: 'dispatched'; readonly hub: SelectedHub } & Order & Progress)
  | ({ readonly status: 'deleted'; readonly how: 'not-dispatched' | 'absence-confirmed' } & Order);

export type Order = {
  readonly id: string;
  readonly orderedAt: string;
  readonly tenant: string;
  readonly project: string;
  readonly name: string;
  readonly creator: string;
  readonly labels: { readonly [key: string]: string };
  readonly annotations: { readonly [key: string]: string };
  readonly displayName: string;
  readonly description: string;
  readonly template: { readonly id: string; readonly name: string; readonly revision: number };
  readonly templateParameters: { readonly [name: string]: JsonObject };
  readonly nodeSets: { readonly [name: string]: NodeSet };
  readonly version: ResolvedVersion;
  readonly sshPublicKey?: string;
  readonly pullSecret?: SecretRef;
  readonly network?: { readonly podCidr?: string; readonly serviceCidr?: string };
  readonly zone?: string;
  /** As shown; ours among them while `ours`. */
  readonly finalizers: readonly string[];
  /** Our finalizer stands: from the start of dispatch until absence was observed. */
  readonly ours: boolean;
  readonly deletionRequestedAt?: string;
  readonly failure?: {
    readonly reason: string;
    readonly message: string;
    /** The provider's to know. */
    readonly detail?: string;
    readonly permanent: boolean;
  };
  /** Why it waits, when no hub has room. */
  readonly waiting?: { readonly message: string; readonly decision: PlacementDecision };
  /** Status that a private caller wrote: shown instead of ours until the next observation. */
  readonly reported?: JsonObject;
  /** When the shown state was entered: OSAC's billing clock. */
  readonly stateSince: string;
  /** When each shown condition last changed its status. */
  readonly conditionsSince: { readonly [Type in ShownConditionType]?: string };
};

export type SelectedHub = {
  readonly id: string;
  readonly namespace: string;
  readonly mode: 'operator' | 'eda' | 'aap';
  readonly simulated: boolean;
  readonly orderName: string;
};

export type Endpoints = {
  readonly apiUrl: string;
  readonly consoleUrl: string;
  readonly apiEndpoint: string;
  readonly ingressEndpoint: string;
};

export type Progress = {
  /** Uid of the ClusterOrder, once it was seen. */
  readonly uid?: string;
  /** The hub has not confirmed the present spec yet. */
  readonly specPending: boolean;
  readonly conditions: { readonly [Name in ConditionName]?: ConditionState };
  readonly endpoints?: Endpoints;
  readonly readyNodes?: { readonly [nodeSet: string]: number };
  readonly ready: boolean;
  readonly degraded?: { readonly reason: string; readonly message: string };
  readonly notAccepting?: { readonly since: string };
  readonly lost?: 'cluster-order' | 'hosted-cluster';
  /** What the hub still has to do before the cluster is gone. */
  readonly waitingFor: readonly string[];
};

export type LiveCluster = Exclude<ClusterState, { status: 'absent' | 'abandoned' | 'deleted' }>;
export type StoredCluster = LiveCluster | Extract<ClusterState, { status: 'deleted' }>;

export const initialCluster = (): ClusterState => ({ status: 'absent' });

export const isStoredCluster = (state: ClusterState): state is StoredCluster =>
  state.status !== 'absent' && state.status !== 'abandoned';

export const isLiveCluster = (state: ClusterState): state is LiveCluster =>
  isStoredCluster(state) && state.status !== 'deleted';

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
  const rest = { displayName, description, finalizers: [], ours: false, conditionsSince: {} };
  return { status: 'accepted', ...facts, ...rest, orderedAt: at, stateSince: at };
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
      const { sshPublicKey: _key, pullSecret: _secret, network: _network, ...kept } = state;
      return specChanged(kept as LiveCluster, { version: state.version, ...event.data.spec });
    }
    case 'ClusterFinalizersChanged': {
      const finalizers = sortedTexts(event.data.finalizers);
      return { ...state, finalizers, ours: state.ours && finalizers.includes(FULFILLMENT_FINALIZER) };
    }
    case 'ClusterStatusReported':
      return { ...state, reported: event.data.status };
    case 'HubSelected': {
      const { hub: id, namespace, mode, simulated, orderName } = event.data;
      const selected = { id, namespace, mode, simulated, orderName };
      if (state.status === 'dispatched') {
        return state.uid === undefined ? { ...state, hub: selected } : state;
      }
      const { waiting: _waiting, ...kept } =
        state.failure?.permanent === false ? withoutFailure(state) : state;
      return { ...kept, status: 'placed', hub: selected };
    }
    case 'PlacementDeferred': {
      const { message, decision } = event.data;
      return { ...state, waiting: { message, decision } };
    }
    case 'ClusterFailed': {
      const { at: _at, ...failure } = event.data;
      return { ...observed(state), failure };
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
const evolveProgress = (state: LiveCluster, event: ClusterEvent): LiveCluster => {
  if (event.type === 'ClusterDispatchStarted') return dispatched(state);
  if (state.status !== 'dispatched') return state;
  switch (event.type) {
    case 'ClusterOrderPlaced': {
      const { lost: _lost, ...kept } = state;
      return { ...kept, uid: event.data.uid };
    }
    case 'ClusterSpecSynced': {
      const { waiting: _waiting, ...kept } = state;
      return { ...kept, specPending: false };
    }
    case 'ClusterConditionsObserved': {
      const { notAccepting: _late, ...kept } = observed(state);
      return { ...kept, conditions: { ...state.conditions, ...event.data.conditions } };
    }
    case 'ControlPlaneBecameAvailable': {
      const { at: _at, ...endpoints } = event.data;
      return { ...observed(state), endpoints };
    }
    case 'NodesObserved':
      return { ...observed(state), readyNodes: event.data.ready };
    case 'ClusterBecameReady':
      return { ...observed(state), ready: true };
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
      return {
        ...observed(state),
        ready: false,
        lost: event.data.what,
        failure: lostFailure(event.data.what),
      };
    case 'ClusterRetryRequested': {
      const { lost: _lost, notAccepting: _late, ...kept } = state;
      return kept;
    }
    case 'ClusterDeletionBlocked':
      return { ...state, waitingFor: event.data.waitingFor };
    default:
      return state;
  }
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
      };

/** An observation of the hub wins over a status that somebody wrote. */
const observed = <State extends LiveCluster>(state: State): State => {
  const { reported: _reported, ...kept } = state;
  return kept as State;
};

const withoutFailure = (state: LiveCluster): LiveCluster => {
  const { failure: _failure, ...kept } = state;
  return kept as LiveCluster;
};

const withSet = (state: LiveCluster, name: string, set: NodeSet): Pick<Order, 'nodeSets'> => ({
  nodeSets: { ...state.nodeSets, [name]: set },
});

const specChanged = (state: LiveCluster, change: Partial<Order>): LiveCluster =>
  state.status === 'dispatched' ? { ...state, ...change, specPending: true } : { ...state, ...change };

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
