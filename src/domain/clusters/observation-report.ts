import { defined, sameJson } from '../json-tools.ts';
import { toldRetry } from './automation-record.ts';
import { changeWords } from './change-words.ts';
import type { ClusterReport } from './commands.ts';
import {
  eventIf,
  isLeaving,
  type ClusterEvent,
  type ConditionName,
  type ConditionState,
  type Seen,
  type LiveCluster,
  type Dispatched,
} from './state.ts';
import { toldOfJob } from './failure-texts.ts';
import { failureIn, hostedText, type Assessment } from './observation.ts';
import type { StoppedChange } from './observed.ts';
import { isOvertaken } from './observed-version.ts';

/** What a look at the hub tells of a cluster: only what differs from what is known. */
type Report = Extract<ClusterReport, { type: 'RecordObservation' }>;
type Found = Extract<Assessment, { found: true }>;

export const recordObservation = (state: Dispatched, report: Report): ClusterEvent[] => {
  if (isOvertaken(state.seenVersion, report)) return [];
  const events = isLeaving(state) ? whileLeaving(state, report) : whileWanted(state, report);
  const [first, ...others] = events;
  if (first === undefined || report.version === undefined) return events;
  const { version } = report;
  return [{ ...first, data: { ...first.data, version } } as ClusterEvent, ...others];
};

/** What is torn down is neither ready nor degraded: only what its end waits for is told. */
const whileLeaving = (state: Dispatched, { at, assessment, waitingFor = [] }: Report): ClusterEvent[] => {
  const left = assessment.found ? undefined : assessment.left;
  const waits = left === undefined ? waitingFor : [hostedText(left)];
  const isBlocked = waits.length > 0 && !sameJson(waits, state.waitingFor);
  const gone: Seen = left === undefined ? { missing: 'cluster-order' } : { left };
  const seen = assessment.found ? defined({ deleting: assessment.deleting, work: assessment.work }) : gone;
  return [
    ...seenEvents(state, at, seen),
    ...eventIf(isBlocked, 'ClusterDeletionBlocked', { at, waitingFor: waits }),
  ];
};

const seenEvents = (state: Dispatched, at: string, seen: Seen): ClusterEvent[] =>
  eventIf(!sameJson(seen, state.seen), 'ClusterOrderSeen', { at, ...seen });

const whileWanted = (state: Dispatched, report: Report): ClusterEvent[] => {
  const { at, assessment } = report;
  if (!assessment.found) {
    return seenEvents(state, at, defined({ missing: 'cluster-order', left: assessment.left }));
  }
  const { duplicates: names = [], work, specMatches } = assessment;
  const { id: hub, orderName } = state.hub;
  // The hub refused what it shows now: an attempt of which nobody knew had been taken before.
  const isSettled = report.settles === true && state.specPending && specMatches;
  // A webhook that was posted again was carried out.
  const isFinished = work === 'finished' && state.hub.mode === 'eda' && !state.specPending;
  const isDuplicated = names.length > 0 && !sameJson(names, state.seen.duplicates);
  // An order that nobody has taken up shows nothing yet; a status that somebody wrote ends with any look.
  const isSilent =
    !assessment.accepted && Object.keys(state.conditions).length === 0 && state.reported === undefined;
  return [
    ...eventIf(isSettled, 'ClusterSpecSynced', { at, hub, orderName }),
    ...(isFinished ? toldRetry(state, 'eda', 'provision') : []),
    ...seenEvents(state, at, seenOf(state, assessment, isSilent)),
    ...eventIf(isDuplicated, 'ClusterOrdersDuplicated', { at, hub, names }),
    ...conditionEvents(state, at, assessment, isSilent),
    ...endpointEvents(state, at, assessment),
    ...verdictEvents(state, report, assessment),
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

/** Conditions and counts in one event: a change of one is nearly always one of the other. */
const conditionEvents = (
  state: Dispatched,
  at: string,
  assessment: Found,
  isSilent: boolean,
): ClusterEvent[] => {
  const conditions = isSilent ? {} : changedConditions(state, at, assessment);
  // Nothing: the hub does not show them any more, and what it showed before would stand for ever.
  const counts = sameJson(assessment.ready, state.readyNodes ?? {}) ? {} : { ready: assessment.ready };
  const isNews = Object.keys({ ...conditions, ...counts }).length > 0;
  return eventIf(isNews, 'ClusterConditionsObserved', { at, conditions, ...counts });
};

type Conditions = { readonly [Name in ConditionName]?: ConditionState };

const changedConditions = (state: Dispatched, at: string, assessment: Found): Conditions => {
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
  return changed;
};

const endpointEvents = (state: Dispatched, at: string, { controlPlane }: Found): ClusterEvent[] =>
  controlPlane === undefined || sameJson(controlPlane, state.endpoints)
    ? []
    : eventIf(true, 'ControlPlaneBecameAvailable', { at, ...controlPlane });

const verdictEvents = (state: Dispatched, { at, jobErrors }: Report, { verdict }: Found): ClusterEvent[] => {
  const { failure, built, ready } = state;
  const cleared = (is: boolean): ClusterEvent[] => eventIf(is, 'ClusterFailureCleared', { at });
  const recovered = eventIf(state.degraded !== undefined, 'ClusterRecovered', { at });
  const isCleared = (failure ?? state.changeFailed) !== undefined;
  // The order itself has not failed. That a change waits, the workflow tells by itself.
  const stopped = (change: StoppedChange): ClusterEvent[] => [
    ...cleared(failure !== undefined),
    ...(change.why === 'failed' ? changeFailed(state, at, toldOfJob(change, jobErrors)) : []),
  ];
  switch (verdict.kind) {
    case 'ready': {
      if (verdict.stopped !== undefined) return [...recovered, ...stopped(verdict.stopped)];
      const isBuilt = built !== undefined && changeWords(built, state) === '';
      return [
        ...cleared(isCleared),
        ...recovered,
        ...(isOursToFinish(state)
          ? eventIf(state.installed !== true, 'ClusterInstalled', { at })
          : eventIf(!ready || !isBuilt, 'ClusterBecameReady', { at })),
      ];
    }
    case 'progressing': {
      // A hub that merely works on has not succeeded: FAILED stands. What was lost and is there again, is.
      const goesOn = failure?.permanent !== true && (state.changeFailed ?? state.lost) !== undefined;
      const busy = eventIf(ready, 'ClusterReconfiguring', { at });
      return [...cleared(goesOn && isCleared), ...recovered, ...busy];
    }
    case 'degraded': {
      const { reason, message } = verdict;
      const isKnown = sameJson(state.degraded, { reason, message });
      const degraded = eventIf(!isKnown, 'ClusterDegraded', { at, reason, message });
      return verdict.stopped === undefined
        ? [...cleared(isCleared), ...degraded]
        : [...degraded, ...stopped(verdict.stopped)];
    }
    case 'failed': {
      const { kind: _kind, ...said } = verdict;
      const told = { ...toldOfJob(said, jobErrors), permanent: false };
      const isKnown = failure?.permanent === true || isTold(state, told);
      return eventIf(!isKnown, 'ClusterFailed', { at, ...told });
    }
    default:
      return [];
  }
};

/** The ledger has something to do on it once it runs; a cluster that was READY once has had that. */
const isOursToFinish = ({ built, hub }: Dispatched): boolean =>
  built === undefined && hub.site?.steps.some((step) => AFTER_INSTALL.includes(step)) === true;
const AFTER_INSTALL: readonly string[] = ['post-install', 'validation'];

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
  const { changeFailed: known } = state;
  const isKnown = known?.change === change && known.reason === reason;
  return eventIf(!isKnown, 'ClusterChangeFailed', defined({ at, change, reason, message, detail }));
};
