import { usersOf } from './endpoints.ts';
import type { PlacementDecision } from '../hubs/capacity-events.ts';
import { FULFILLMENT_FINALIZER } from '../hubs/hub-object.ts';
import { reject, type Decision, type Rejection } from '../decider.ts';
import { own, sameJson } from '../json-tools.ts';
import {
  isLeaving,
  isLiveCluster,
  type ClusterState,
  type Dispatched,
  type LiveCluster,
  eventIf,
  type ClusterEvent,
} from './state.ts';
import type { ClusterReport } from './commands.ts';
import { recordJob, recordRequest } from './automation-record.ts';
import { selectedHub } from './cluster.ts';
import { changeFailed, isTold, recordObservation } from './observation-report.ts';

/** What the cluster-order workflow may record on a cluster. Everything here is safe to repeat. */
type Report<Type extends ClusterReport['type']> = Extract<ClusterReport, { type: Type }>;
type Records<State> = {
  readonly [Type in ClusterReport['type']]?: (state: State, report: Report<Type>) => Decision<ClusterEvent>;
};

export const reportOnCluster = (state: ClusterState, report: ClusterReport): Decision<ClusterEvent> => {
  if (!isLiveCluster(state)) {
    return reject('not-found', 'NOT_FOUND', 'the cluster is gone');
  }
  const record = own(OF_ORDER, report.type) as Recording<LiveCluster> | undefined;
  if (record !== undefined) return record(state, report);
  return state.status === 'dispatched'
    ? (ON_HUB[report.type] as Recording<Dispatched>)(state, report)
    : reject('failed-precondition', 'NOT_DISPATCHED', 'the order was not sent to a hub yet');
};
type Recording<State> = (state: State, report: ClusterReport) => Decision<ClusterEvent>;

/** Of a deletion nothing is told but its end. */
const recordApplied = (
  state: Dispatched,
  { at, uid, name, generation, fields = [] }: Report<'RecordApplied'>,
): ClusterEvent[] => {
  if (isLeaving(state)) return [];
  const { id: hub, orderName: known } = state.hub;
  const order = { at, hub, orderName: name ?? known };
  const waits = state.waiting !== undefined;
  const isPlaced = state.uid !== uid || state.lost !== undefined || order.orderName !== known;
  const isSynced = generation > 0 && generation === state.generation && (state.specPending || waits);
  const isCorrected = !isSynced && state.seen.differs === true && fields.length > 0;
  return [
    ...eventIf(isPlaced, 'ClusterOrderPlaced', { ...order, uid }),
    ...eventIf(isSynced, 'ClusterSpecSynced', order),
    // What it waited for, as READY, is carried out now.
    ...eventIf(isSynced && state.ready && waits, 'ClusterReconfiguring', { at }),
    ...eventIf(isCorrected, 'ClusterDriftCorrected', { ...order, fields }),
  ];
};

/** An order that was not sent before is sent now: its deletion has something to do on the hub from here on. */
const selectHub = (state: LiveCluster, command: Report<'SelectHub'>): Decision<ClusterEvent> => {
  if (isLeaving(state)) return deletionRequested();
  const { type: _type, again, ...data } = command;
  const selected: ClusterEvent = { type: 'HubSelected', data };
  const { at, hub, orderName } = data;
  if (state.status !== 'dispatched') {
    return [selected, { type: 'ClusterDispatchStarted', data: { at, hub, orderName } }];
  }
  const isAgain = again === true && state.uid === undefined;
  if (state.hub.id !== hub) return isAgain ? [selected] : alreadyDispatched();
  // Staying is told when the cluster shows that it waits for another one, or when its hub is worked on otherwise.
  const isKnown = sameJson(selectedHub(data), state.hub);
  return isAgain && (state.waiting !== undefined || !isKnown) ? [selected] : [];
};

const defer = (state: LiveCluster, command: Report<'DeferPlacement'>): Decision<ClusterEvent> => {
  const { at, message, decision } = command;
  if (isLeaving(state)) return [];
  const { waiting } = state;
  const runs = isRunning(state);
  const same =
    waiting !== undefined &&
    (!runs || state.ready) &&
    waiting.message === message &&
    sameJson(reasonsOf(waiting.decision), reasonsOf(decision));
  return eventIf(!same, 'PlacementDeferred', { at, message, decision, ...(runs ? { runs } : {}) });
};

/** It was built, and is there: what happens to a change of it, does not happen to the cluster. */
const isRunning = (state: LiveCluster): state is Dispatched =>
  state.status === 'dispatched' && state.built !== undefined && state.lost === undefined;

/** What a reader of the timeline would see change; scores move all the time. */
export const reasonsOf = (decision: PlacementDecision): object =>
  Object.fromEntries(decision.candidates.map(({ hub, reasons }) => [hub, [...reasons]]));

const recordFailure = (
  state: LiveCluster,
  { type: _type, aborts, ...failure }: Report<'RecordFailure'>,
): ClusterEvent[] => {
  if (isLeaving(state)) return [];
  // A deadline says less than what was told before.
  const isDeadline = !failure.permanent && failure.detail === undefined;
  if (isRunning(state))
    return isDeadline && state.changeFailed !== undefined ? [] : changeFailed(state, failure.at, failure);
  const isKnown = (isDeadline && state.failure?.detail !== undefined) || isTold(state, failure);
  const { at, reason } = failure;
  return [
    ...eventIf(!isKnown, 'ClusterFailed', failure),
    ...eventIf(aborts === true, 'ClusterAborted', { at, reason }),
  ];
};

const confirmAbsence = (
  state: LiveCluster,
  { at, unsent }: Report<'ConfirmAbsence'>,
): Decision<ClusterEvent> => {
  if (!isLeaving(state)) {
    return reject('failed-precondition', 'NOT_DELETING', 'no deletion of this cluster was requested');
  }
  if (state.deletionRequestedAt === undefined)
    return eventIf(state.withdrawn !== true, 'ClusterWithdrawn', { at });
  // One that was never sent had to wait for others that go first.
  if (state.status !== 'dispatched')
    return eventIf(state.finalizers.length === 0 && usersOf(state).length === 0, 'ClusterDeleted', {
      at,
      how: 'not-dispatched',
    });
  if (!state.ours) return [];
  const finalizers = state.finalizers.filter((finalizer) => finalizer !== FULFILLMENT_FINALIZER);
  const how = unsent === true ? 'not-dispatched' : 'absence-confirmed';
  return finalizers.length === 0
    ? [{ type: 'ClusterDeleted', data: { at, how } }]
    : [{ type: 'ClusterFinalizersChanged', data: { at, finalizers } }];
};

const deletionRequested = (): Rejection =>
  reject('failed-precondition', 'DELETION_REQUESTED', 'the cluster is being deleted');

const alreadyDispatched = (): Rejection =>
  reject('failed-precondition', 'ALREADY_DISPATCHED', 'the order was sent to another hub already');

/** Of any order that is there. */
const OF_ORDER: Records<LiveCluster> = {
  SelectHub: selectHub,
  DeferPlacement: defer,
  RecordFailure: recordFailure,
  ConfirmAbsence: confirmAbsence,
  EndFailure: ({ failure }, { at, reason }) =>
    eventIf(failure?.permanent === false && failure.reason === reason, 'ClusterFailureCleared', { at }),
};

/** Of one that was sent to its hub. */
const ON_HUB: Records<Dispatched> = {
  RecordApplied: recordApplied,
  RecordObservation: recordObservation,
  ReportNotAccepting: (state, { at, since }) => {
    const isNews = state.notAccepting === undefined && !isLeaving(state);
    return eventIf(isNews, 'HubNotAccepting', { at, hub: state.hub.id, since });
  },
  ReportLost: (state, { at, what }) =>
    eventIf(state.lost !== what && !isLeaving(state), 'ClusterLostOnHub', { at, what }),
  RecordValidated: (state, { at }) =>
    eventIf(state.installed === true && !isLeaving(state), 'ClusterBecameReady', { at }),
  RecordPrepared: ({ hub: { id: hub, orderName } }, { at, created }) =>
    eventIf(created.length > 0, 'ClusterSpacePrepared', { at, created, hub, orderName }),
  RecordAutomationRequest: recordRequest,
  RecordJob: recordJob,
  ReportDeletionOverdue: (state, { type: _type, ...late }) =>
    eventIf(state.overdue === undefined && isLeaving(state), 'ClusterDeletionOverdue', late),
  BlockDeletion: (state, { at, waitingFor }) => {
    const isNews = isLeaving(state) && !sameJson(state.waitingFor, waitingFor);
    return eventIf(isNews, 'ClusterDeletionBlocked', { at, waitingFor });
  },
};
