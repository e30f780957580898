import type { PlacementDecision } from '../hubs/capacity-events.ts';
import { FULFILLMENT_FINALIZER } from '../hubs/hub-object.ts';
import { reject, type Decision, type Rejection } from '../decider.ts';
import { sameJson } from '../json-tools.ts';
import type { ClusterState, LiveCluster, Dispatched } from './state.ts';
import { isLiveCluster } from './state.ts';
import type { ClusterReport } from './commands.ts';
import { type ClusterEvent } from './events.ts';
import { recordJob, recordRequest } from './automation-record.ts';
import { selectedHub } from './cluster.ts';
import { changeFailed, isTold, recordObservation } from './observation-report.ts';

/** What the cluster-order workflow may record on a cluster. Everything here is safe to repeat. */
type Report<Type extends ClusterReport['type']> = Extract<ClusterReport, { type: Type }>;

export const reportOnCluster = (state: ClusterState, report: ClusterReport): Decision<ClusterEvent> => {
  if (!isLiveCluster(state)) {
    return reject('not-found', 'NOT_FOUND', 'there is no such cluster any more');
  }
  switch (report.type) {
    case 'SelectHub':
      return selectHub(state, report);
    case 'DeferPlacement':
      return defer(state, report);
    case 'RecordFailure':
      return recordFailure(state, report);
    case 'EndFailure':
      return state.failure?.permanent === false && state.failure.reason === report.reason
        ? [{ type: 'ClusterFailureCleared', data: { at: report.at } }]
        : [];
    default:
      return state.status === 'dispatched'
        ? reportOnDispatched(state, report)
        : reject('failed-precondition', 'NOT_DISPATCHED', 'the order was not sent to a hub yet');
  }
};

const reportOnDispatched = (
  state: Dispatched,
  report: Exclude<ClusterReport, { type: 'SelectHub' | 'DeferPlacement' | 'RecordFailure' | 'EndFailure' }>,
): Decision<ClusterEvent> => {
  const { at } = report;
  const { id: hub, orderName } = state.hub;
  switch (report.type) {
    case 'RecordApplied':
      return recordApplied(state, report);
    case 'RecordObservation':
      return recordObservation(state, report);
    case 'ReportNotAccepting':
      return state.notAccepting !== undefined || state.deletionRequestedAt !== undefined
        ? []
        : [{ type: 'HubNotAccepting', data: { at, hub, since: report.since } }];
    case 'ReportLost':
      return state.lost === report.what || state.deletionRequestedAt !== undefined
        ? []
        : [{ type: 'ClusterLostOnHub', data: { at, what: report.what } }];
    case 'RecordPrepared':
      return report.created.length === 0
        ? []
        : [{ type: 'ClusterSpacePrepared', data: { ...withoutType(report), hub, orderName } }];
    case 'RecordAutomationRequest':
      return recordRequest(state, report);
    case 'RecordJob':
      return recordJob(state, report);
    case 'ReportDeletionOverdue':
      return state.overdue !== undefined || state.deletionRequestedAt === undefined
        ? []
        : [{ type: 'ClusterDeletionOverdue', data: withoutType(report) }];
    case 'BlockDeletion':
      return blockDeletion(state, report);
    case 'ConfirmAbsence':
      return confirmAbsence(state, report);
  }
};

/** Of a deletion nothing is told but its end. */
const recordApplied = (
  state: Dispatched,
  { at, uid, name, generation, fields = [] }: Report<'RecordApplied'>,
): ClusterEvent[] => {
  if (state.deletionRequestedAt !== undefined) return [];
  const events: ClusterEvent[] = [];
  const { id: hub, orderName: known } = state.hub;
  const order = { at, hub, orderName: name ?? known };
  if (state.uid !== uid || state.lost !== undefined || order.orderName !== known) {
    events.push({ type: 'ClusterOrderPlaced', data: { ...order, uid } });
  }
  if (generation > 0 && generation === state.generation && (state.specPending || state.waiting)) {
    events.push({ type: 'ClusterSpecSynced', data: order });
    // What it waited for, as READY, is carried out now.
    if (state.ready && state.waiting !== undefined)
      events.push({ type: 'ClusterReconfiguring', data: { at } });
  } else if (state.seen.differs === true && fields.length > 0) {
    events.push({ type: 'ClusterDriftCorrected', data: { ...order, fields } });
  }
  return events;
};

const withoutType = <R extends ClusterReport>({ type: _type, ...data }: R): Omit<R, 'type'> => data;

/** An order that was not sent before is sent now: its deletion has something to do on the hub from here on. */
const selectHub = (state: LiveCluster, command: Report<'SelectHub'>): Decision<ClusterEvent> => {
  if (state.deletionRequestedAt !== undefined) return deletionRequested();
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
  if (state.deletionRequestedAt !== undefined) return [];
  const { waiting } = state;
  const runs = isRunning(state);
  const same =
    waiting !== undefined &&
    (!runs || state.ready) &&
    waiting.message === message &&
    sameJson(reasonsOf(waiting.decision), reasonsOf(decision));
  return same
    ? []
    : [{ type: 'PlacementDeferred', data: { at, message, decision, ...(runs ? { runs } : {}) } }];
};

/** It was built, and is there: what happens to a change of it, does not happen to the cluster. */
const isRunning = (state: LiveCluster): state is Dispatched =>
  state.status === 'dispatched' && state.built !== undefined && state.lost === undefined;

/** What a reader of the timeline would see change; scores move all the time. */
export const reasonsOf = (decision: PlacementDecision): object =>
  Object.fromEntries(decision.candidates.map(({ hub, reasons }) => [hub, [...reasons]]));

const recordFailure = (state: LiveCluster, report: Report<'RecordFailure'>): Decision<ClusterEvent> => {
  const { at, type: _type, ...failure } = report;
  if (state.deletionRequestedAt !== undefined) return [];
  if (isRunning(state)) {
    // A deadline says less than what was told before.
    if (state.changeFailed !== undefined && !failure.permanent && failure.detail === undefined) return [];
    return changeFailed(state, at, failure);
  }
  // A deadline says less than what was told before.
  const isDeadline = !failure.permanent && failure.detail === undefined;
  if (isDeadline && state.failure?.detail !== undefined) return [];
  return isTold(state, failure) ? [] : [{ type: 'ClusterFailed', data: { at, ...failure } }];
};

const blockDeletion = (state: Dispatched, report: Report<'BlockDeletion'>): Decision<ClusterEvent> => {
  const { at, waitingFor } = report;
  if (state.deletionRequestedAt === undefined || sameJson(state.waitingFor, waitingFor)) return [];
  return [{ type: 'ClusterDeletionBlocked', data: { at, waitingFor } }];
};

const confirmAbsence = (
  state: Dispatched,
  { at, unsent }: Report<'ConfirmAbsence'>,
): Decision<ClusterEvent> => {
  if (state.deletionRequestedAt === undefined) {
    return reject('failed-precondition', 'NOT_DELETING', 'nobody asked to delete this cluster');
  }
  if (!state.ours) return [];
  const finalizers = state.finalizers.filter((finalizer) => finalizer !== FULFILLMENT_FINALIZER);
  return finalizers.length === 0
    ? [
        {
          type: 'ClusterDeleted',
          data: { at, how: unsent === true ? 'not-dispatched' : 'absence-confirmed' },
        },
      ]
    : [{ type: 'ClusterFinalizersChanged', data: { at, finalizers } }];
};

const deletionRequested = (): Rejection =>
  reject('failed-precondition', 'DELETION_REQUESTED', 'the cluster is being deleted');

const alreadyDispatched = (): Rejection =>
  reject('failed-precondition', 'ALREADY_DISPATCHED', 'the order was sent to another hub already');
