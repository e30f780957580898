import { reject, type Decision, type Rejection } from '../decider.ts';
import { sameJson } from '../json-tools.ts';
import type { ClusterState, LiveCluster } from './state.ts';
import { isLiveCluster } from './state.ts';
import type { ClusterReport } from './commands.ts';
import {
  FULFILLMENT_FINALIZER,
  type ClusterEvent,
  type ConditionName,
  type ConditionState,
  type PlacementDecision,
} from './events.ts';
import { changeWords } from './change-words.ts';
import { toldOfJob, type JobErrors } from './failure-texts.ts';
import type { Assessment } from './observation.ts';
import type { StoppedChange } from './observed.ts';

/** What the cluster-order workflow may record on a cluster. Everything here is safe to repeat. */
type Dispatched = Extract<LiveCluster, { status: 'dispatched' }>;
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
    case 'StartDispatch':
      return startDispatch(state, report.at);
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
  report: Exclude<
    ClusterReport,
    { type: 'SelectHub' | 'DeferPlacement' | 'StartDispatch' | 'RecordFailure' | 'EndFailure' }
  >,
): Decision<ClusterEvent> => {
  const { at } = report;
  const { id: hub, orderName } = state.hub;
  switch (report.type) {
    case 'RecordPlaced':
      return state.uid === report.uid && state.lost === undefined
        ? []
        : [{ type: 'ClusterOrderPlaced', data: { at, hub, orderName, uid: report.uid } }];
    case 'RecordSpecSynced': {
      if (!state.specPending && state.waiting === undefined) return [];
      // What it waited for, as READY, is carried out now.
      const goesOn = state.ready && state.waiting !== undefined;
      return [
        { type: 'ClusterSpecSynced', data: { at, hub, orderName } },
        ...(goesOn ? [{ type: 'ClusterReconfiguring' as const, data: { at } }] : []),
      ];
    }
    case 'RecordObservation':
      return report.assessment.found ? recordObservation(state, report, report.assessment) : [];
    case 'ReportNotAccepting':
      return state.notAccepting !== undefined || state.deletionRequestedAt !== undefined
        ? []
        : [{ type: 'HubNotAccepting', data: { at, hub, since: report.since } }];
    case 'ReportLost':
      return state.lost === report.what || state.deletionRequestedAt !== undefined
        ? []
        : [{ type: 'ClusterLostOnHub', data: { at, what: report.what } }];
    case 'RecordPrepared':
    case 'RecordAutomationRequest':
    case 'RecordJob':
    case 'RecordDriftCorrected':
    case 'ReportDuplicates':
      return reportWork(state, report);
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

type WorkReport = Report<
  'RecordPrepared' | 'RecordAutomationRequest' | 'RecordJob' | 'RecordDriftCorrected' | 'ReportDuplicates'
>;

/** What was done for it on its hub: for the timeline, the document stays as it is. */
const reportWork = ({ hub: { id: hub, orderName } }: Dispatched, report: WorkReport): ClusterEvent[] => {
  switch (report.type) {
    case 'RecordPrepared':
      return report.created.length === 0
        ? []
        : [{ type: 'ClusterSpacePrepared', data: { ...withoutType(report), hub, orderName } }];
    case 'RecordAutomationRequest':
      return [{ type: 'AutomationRequested', data: { ...withoutType(report), hub } }];
    case 'RecordJob':
      return [{ type: 'AutomationJobChanged', data: { ...withoutType(report), hub } }];
    case 'RecordDriftCorrected':
      return [{ type: 'ClusterDriftCorrected', data: { ...withoutType(report), hub, orderName } }];
    case 'ReportDuplicates':
      return [{ type: 'ClusterOrdersDuplicated', data: { ...withoutType(report), hub } }];
  }
};

const withoutType = <R extends ClusterReport>({ type: _type, ...data }: R): Omit<R, 'type'> => data;

const selectHub = (state: LiveCluster, command: Report<'SelectHub'>): Decision<ClusterEvent> => {
  if (state.deletionRequestedAt !== undefined) return deletionRequested();
  if (state.status === 'dispatched') {
    // Staying is told when the cluster shows that it waits for another one.
    const isTold = state.waiting === undefined || state.uid !== undefined || command.again !== true;
    if (state.hub.id === command.hub && isTold) return [];
    if (command.again !== true || state.uid !== undefined) return alreadyDispatched();
  }
  const { type: _type, again: _again, ...data } = command;
  if (state.status === 'placed' && state.hub.id === data.hub && state.hub.orderName === data.orderName) {
    return [];
  }
  return [{ type: 'HubSelected', data }];
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

const startDispatch = (state: LiveCluster, at: string): Decision<ClusterEvent> => {
  if (state.status === 'dispatched') return [];
  if (state.deletionRequestedAt !== undefined) return deletionRequested();
  if (state.status === 'accepted') {
    return reject('failed-precondition', 'NOT_PLACED', 'no hub was selected for this order yet');
  }
  const { id: hub, orderName } = state.hub;
  return [{ type: 'ClusterDispatchStarted', data: { at, hub, orderName } }];
};

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

/** It is the first of each reason that is told; the ones after it are further tries. */
const isTold = (
  { failure, failedFor = [] }: LiveCluster,
  { reason, permanent }: { reason: string; permanent: boolean },
): boolean =>
  failure !== undefined &&
  failure.permanent === permanent &&
  (failure.reason === reason || failedFor.includes(reason));

const changeFailed = (
  state: Dispatched,
  at: string,
  { reason, message, detail }: { reason: string; message: string; detail?: string },
): ClusterEvent[] => {
  const change = state.built === undefined ? '' : changeWords(state.built, state);
  const failed = { change, reason, message, ...(detail === undefined ? {} : { detail }) };
  const { changeFailed: known } = state;
  return known?.change === change && known.reason === reason
    ? []
    : [{ type: 'ClusterChangeFailed', data: { at, ...failed } }];
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

type Found = Extract<Assessment, { found: true }>;

const recordObservation = (
  state: Dispatched,
  { at, jobErrors }: Report<'RecordObservation'>,
  assessment: Found,
): ClusterEvent[] => {
  // A deletion has its own report; what is being torn down is neither ready nor degraded.
  if (state.deletionRequestedAt !== undefined) return [];
  return [
    ...conditionEvents(state, at, assessment),
    ...measuredEvents(state, at, assessment),
    ...verdictEvents(state, at, assessment, jobErrors),
  ];
};

const conditionEvents = (state: Dispatched, at: string, assessment: Found): ClusterEvent[] => {
  // Written status and the alarm end with the next observation, even when no condition changed.
  const all = state.reported !== undefined || (state.notAccepting !== undefined && assessment.accepted);
  const changed: { [Name in ConditionName]?: ConditionState } = {};
  for (const [name, shown] of Object.entries(assessment.conditions)) {
    const known = state.conditions[name as ConditionName];
    const since = known !== undefined && known.status === shown.status ? known.since : at;
    const condition = { ...shown, since };
    if (all || !sameJson(known, condition)) changed[name as ConditionName] = condition;
  }
  return Object.keys(changed).length === 0
    ? []
    : [{ type: 'ClusterConditionsObserved', data: { at, conditions: changed } }];
};

const measuredEvents = (state: Dispatched, at: string, assessment: Found): ClusterEvent[] => {
  const events: ClusterEvent[] = [];
  const { controlPlane, ready } = assessment;
  if (controlPlane !== undefined && !sameJson(controlPlane, state.endpoints)) {
    events.push({ type: 'ControlPlaneBecameAvailable', data: { at, ...controlPlane } });
  }
  // Nothing: the hub does not show them any more, and what it showed before would stand for ever.
  if (!sameJson(ready, state.readyNodes ?? {})) {
    events.push({ type: 'NodesObserved', data: { at, ready } });
  }
  return events;
};

const verdictEvents = (
  state: Dispatched,
  at: string,
  { verdict }: Found,
  jobErrors: JobErrors | undefined,
): ClusterEvent[] => {
  const cleared: ClusterEvent[] =
    state.failure === undefined && state.changeFailed === undefined
      ? []
      : [{ type: 'ClusterFailureCleared', data: { at } }];
  const recovered: ClusterEvent[] =
    state.degraded === undefined ? [] : [{ type: 'ClusterRecovered', data: { at } }];
  switch (verdict.kind) {
    case 'ready': {
      if (verdict.stopped !== undefined) {
        return [...recovered, ...stoppedEvents(state, at, verdict.stopped, jobErrors)];
      }
      const isBuilt = state.built !== undefined && changeWords(state.built, state) === '';
      const ready: ClusterEvent[] =
        state.ready && isBuilt ? [] : [{ type: 'ClusterBecameReady', data: { at } }];
      return [...cleared, ...recovered, ...ready];
    }
    case 'progressing': {
      const busy: ClusterEvent[] = state.ready ? [{ type: 'ClusterReconfiguring', data: { at } }] : [];
      // A hub that merely works on has not succeeded: FAILED stands. What was lost and is there again, is.
      const goesOn = state.failure?.permanent !== true && (state.changeFailed ?? state.lost) !== undefined;
      return [...(goesOn ? cleared : []), ...recovered, ...busy];
    }
    case 'degraded': {
      const { reason, message } = verdict;
      const degraded: ClusterEvent[] = sameJson(state.degraded, { reason, message })
        ? []
        : [{ type: 'ClusterDegraded', data: { at, reason, message } }];
      return verdict.stopped === undefined
        ? [...cleared, ...degraded]
        : [...degraded, ...stoppedEvents(state, at, verdict.stopped, jobErrors)];
    }
    case 'failed': {
      const { kind: _kind, ...said } = verdict;
      const failure = { ...toldOfJob(said, jobErrors), permanent: false };
      if (state.failure?.permanent === true || isTold(state, failure)) return [];
      return [{ type: 'ClusterFailed', data: { at, ...failure } }];
    }
    default:
      return [];
  }
};

/** The order itself has not failed. That a change waits, the workflow tells by itself. */
const stoppedEvents = (
  state: Dispatched,
  at: string,
  stopped: StoppedChange,
  jobErrors: JobErrors | undefined,
): ClusterEvent[] => {
  const cleared: ClusterEvent[] =
    state.failure === undefined ? [] : [{ type: 'ClusterFailureCleared', data: { at } }];
  return stopped.why === 'failed'
    ? [...cleared, ...changeFailed(state, at, toldOfJob(stopped, jobErrors))]
    : cleared;
};

const deletionRequested = (): Rejection =>
  reject('failed-precondition', 'DELETION_REQUESTED', 'the cluster is being deleted');

const alreadyDispatched = (): Rejection =>
  reject('failed-precondition', 'ALREADY_DISPATCHED', 'the order was sent to another hub already');
