import { sameJson } from '../json-tools.ts';
import { toldRetry } from './automation-record.ts';
import { changeWords } from './change-words.ts';
import type { ClusterReport } from './commands.ts';
import type { ClusterEvent, ConditionName, ConditionState, Seen } from './events.ts';
import { toldOfJob, type JobErrors } from './failure-texts.ts';
import { failureIn, hostedText, type Assessment } from './observation.ts';
import type { StoppedChange } from './observed.ts';
import { isOvertaken } from './observed-version.ts';
import type { LiveCluster } from './state.ts';

/** What a look at the hub tells of a cluster: only what differs from what is known. */
type Dispatched = Extract<LiveCluster, { status: 'dispatched' }>;
type Report = Extract<ClusterReport, { type: 'RecordObservation' }>;
type Found = Extract<Assessment, { found: true }>;

export const recordObservation = (state: Dispatched, report: Report): ClusterEvent[] => {
  if (isOvertaken(state.seenVersion, report)) return [];
  const events =
    state.deletionRequestedAt === undefined ? whileWanted(state, report) : whileLeaving(state, report);
  const [first, ...others] = events;
  if (first === undefined || report.version === undefined) return events;
  const { version } = report;
  return [{ ...first, data: { ...first.data, version } } as ClusterEvent, ...others];
};

/** What is torn down is neither ready nor degraded: only what its end waits for is told. */
const whileLeaving = (state: Dispatched, { at, assessment, waitingFor = [] }: Report): ClusterEvent[] => {
  const left = assessment.found ? undefined : assessment.left;
  const waits = left === undefined ? waitingFor : [hostedText(left)];
  const blocked: ClusterEvent[] =
    waits.length === 0 || sameJson(waits, state.waitingFor)
      ? []
      : [{ type: 'ClusterDeletionBlocked', data: { at, waitingFor: waits } }];
  if (assessment.found) {
    const { deleting, work } = assessment;
    return [...seenEvents(state, at, { deleting, ...(work === undefined ? {} : { work }) }), ...blocked];
  }
  return [...seenEvents(state, at, left === undefined ? { missing: 'cluster-order' } : { left }), ...blocked];
};

const seenEvents = (state: Dispatched, at: string, seen: Seen): ClusterEvent[] =>
  sameJson(seen, state.seen) ? [] : [{ type: 'ClusterOrderSeen', data: { at, ...seen } }];

const whileWanted = (state: Dispatched, report: Report): ClusterEvent[] => {
  const { at, assessment, jobErrors } = report;
  if (!assessment.found) {
    const left = assessment.left === undefined ? {} : { left: assessment.left };
    return seenEvents(state, at, { missing: 'cluster-order', ...left });
  }
  const { duplicates: names = [] } = assessment;
  const duplicated: ClusterEvent[] =
    names.length === 0 || sameJson(names, state.seen.duplicates)
      ? []
      : [{ type: 'ClusterOrdersDuplicated', data: { at, hub: state.hub.id, names } }];
  // An order that nobody has taken up shows nothing yet; a status that somebody wrote ends with any look.
  const isSilent =
    !assessment.accepted && Object.keys(state.conditions).length === 0 && state.reported === undefined;
  return [
    ...settledEvents(state, report, assessment),
    ...finishedEvents(state, assessment),
    ...seenEvents(state, at, seenOf(state, assessment, isSilent)),
    ...duplicated,
    ...(isSilent ? [] : conditionEvents(state, at, assessment)),
    ...measuredEvents(state, at, assessment),
    ...verdictEvents(state, at, assessment, jobErrors),
  ];
};

const seenOf = (state: Dispatched, assessment: Found, isSilent: boolean): Seen => {
  const { verdict, accepted, specMatches, jobUnknown, work } = assessment;
  // Only the watch sees all orders at once; a look by name says nothing of others.
  const duplicates = assessment.duplicates ?? state.seen.duplicates ?? [];
  return {
    ...(duplicates.length === 0 ? {} : { duplicates }),
    ...(verdict.kind === 'hosted-cluster-lost' ? { missing: 'hosted-cluster' } : {}),
    ...(accepted || isSilent ? {} : { unaccepted: true }),
    // While a change is on its way it is no wonder.
    ...(specMatches || state.specPending ? {} : { differs: true }),
    ...(jobUnknown === true ? { jobUnknown } : {}),
    ...(work === undefined ? {} : { work }),
  };
};

/** The hub refused what it shows now: an attempt of which nobody knew had been taken before. */
const settledEvents = (
  { specPending, hub: { id: hub, orderName } }: Dispatched,
  { at, settles }: Report,
  { specMatches }: Found,
): ClusterEvent[] =>
  settles === true && specPending && specMatches
    ? [{ type: 'ClusterSpecSynced', data: { at, hub, orderName } }]
    : [];

/** A webhook that was posted again was carried out. */
const finishedEvents = (state: Dispatched, { work }: Found): ClusterEvent[] =>
  work === 'finished' && state.hub.mode === 'eda' && !state.specPending
    ? toldRetry(state, 'eda', 'provision')
    : [];

const conditionEvents = (state: Dispatched, at: string, assessment: Found): ClusterEvent[] => {
  // Written status and the alarm end with the next observation, even when no condition changed.
  const all = state.reported !== undefined || (state.notAccepting !== undefined && assessment.accepted);
  const changed: { [Name in ConditionName]?: ConditionState } = {};
  // Which try it was that failed for the same reason, is no news.
  const failure = failureIn(assessment.verdict);
  const told = [...(state.failedFor ?? []), state.changeFailed?.reason];
  const isAgain = failure !== undefined && told.includes(failure.reason);
  for (const [name, shown] of Object.entries(assessment.conditions)) {
    const known = state.conditions[name as ConditionName];
    if (!all && name === 'TemplateApplied' && known?.reason === shown.reason && isAgain) continue;
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

/** It is the first of each reason that is told; the ones after it are further tries. */
export const isTold = (
  { failure, failedFor = [] }: LiveCluster,
  { reason, permanent }: { reason: string; permanent: boolean },
): boolean =>
  failure !== undefined &&
  failure.permanent === permanent &&
  (failure.reason === reason || failedFor.includes(reason));

export const changeFailed = (
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
