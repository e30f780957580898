import type { JsonObject } from '../../json.ts';
import { evolveEffect, isUnresolved, kindOfEffect } from '../../process/effects.ts';
import type { RunEvent } from '../../process/events.ts';
import type { OrderedSpec } from '../cluster-order-manifest.ts';
import { failureSentence } from '../failure-texts.ts';
import { JOB_REASONS } from '../observation.ts';
import type { PlaceResult } from '../placement.ts';
import { waitingWords } from '../room-words.ts';
import {
  claimBeforeApply,
  NOTHING_REACHED,
  wantedClaim,
  type OpenRun,
  type OrderRun,
  type Problem,
  type Started,
} from './run.ts';
import { CHECK_OF_DELETION } from './looking-steps.ts';
import { activeSteps, overdueCommandOf, overdueName, overdueSteps } from './steps.ts';
import { stringAt } from '../../json-tools.ts';
import {
  driftCorrected,
  jobSeen,
  prepared,
  requestTaken,
  withNews,
  withoutNews,
} from './evolve-automation.ts';
import { observed } from './evolve-observation.ts';
import { PLACEMENT_DEADLINE, placementFailure } from './placement-deadline.ts';
import { isCertainlyUnsent, RECONSIDER_HUB } from './reconsider.ts';
import { changedSpec } from './spec-changes.ts';
import { statusText } from './wanted-status.ts';

/** Folds the events of a run. Accepts everything ever stored. */
export const evolveRun = (state: OrderRun, event: RunEvent): OrderRun => {
  if (event.type === 'RunStarted')
    return state.status === 'none' ? stamped(started(event.data), event) : state;
  if (state.status !== 'open') return state;
  if (event.type === 'RunClosed') return { status: 'closed' };
  return stamped(withinDeadline(evolveOpen(state, event), event), event);
};

const withinDeadline = (run: OpenRun, event: RunEvent): OpenRun => {
  const problem = placementFailure(run, event.data.at);
  return problem === undefined ? run : { ...withProblem(withoutWaiting(run), problem), halted: problem };
};

/** Since when a step is active, or is to be told of as overdue: deadlines count from then, and its command carries that time. */
const stamped = (run: OpenRun, event: RunEvent): OpenRun => {
  const activeSince: { [step: string]: string } = {};
  const overdue = overdueSteps(run).map(({ name }) => overdueName(name));
  for (const step of [...activeSteps(run), ...overdue])
    activeSince[step] = run.activeSince[step] ?? event.data.at;
  return { ...run, activeSince };
};

const started = ({ runId, tenant, facts, revision }: Started): OpenRun => {
  const { zone, simulation, placementDeadline, ...spec } = facts as unknown as OrderedSpec & {
    zone?: string;
    simulation?: string;
    placementDeadline?: string;
  };
  return {
    status: 'open',
    clusterId: runId,
    tenant,
    ...(zone === undefined ? {} : { zone }),
    ...(simulation === undefined ? {} : { simulation }),
    ...(placementDeadline === undefined ? {} : { placementDeadline }),
    spec,
    specRevision: 0,
    lastInput: revision,
    cycle: 0,
    capacityTries: 0,
    selected: false,
    dispatched: false,
    stepsAssigned: false,
    asked: {},
    news: [],
    newsCount: 0,
    statusWrites: 0,
    drift: 0,
    effects: {},
    sent: {},
    answered: {},
    timers: {},
    overdue: {},
    reached: NOTHING_REACHED,
    wasAvailable: false,
    recordNext: false,
    observations: 0,
    absenceRecorded: false,
    problems: 0,
    activeSince: {},
  };
};

const evolveOpen = (run: OpenRun, event: RunEvent): OpenRun => {
  switch (event.type) {
    case 'RunInputTaken':
      return inputTaken({ ...run, lastInput: event.data.revision }, event.data);
    case 'EffectStarted': {
      const kind = kindOfEffect(event.data.effectId);
      const claim = kind === 'place' ? wantedClaim(run) : claimToSend(run);
      const status = kind === 'status' ? { status: statusText(run) } : {};
      const sent = { ...run.sent, [kind]: { revision: run.specRevision, claim, ...status } };
      return withEffect({ ...run, sent }, event);
    }
    case 'EffectSucceeded':
      return succeeded(noLongerFailing(withEffect(run, event), event.data), event.data);
    case 'EffectRefused': {
      const { at, reason, message } = event.data;
      const problem = { at, reason, message, permanent: true };
      return { ...withProblem(withEffect(run, event), problem), halted: problem };
    }
    case 'EffectStalled': {
      const { at, reason, message } = event.data;
      const stalled = {
        ...withEffect(run, event),
        failing: { kind: kindOfEffect(event.data.effectId), reason },
      };
      return withProblem(stalled, { at, reason, message, permanent: false });
    }
    case 'EffectFailed':
    case 'EffectOutcomeUnknown':
      return withEffect(run, event);
    case 'TimerScheduled':
      return { ...run, timers: { ...run.timers, [event.data.timerId]: event.data.dueAt } };
    case 'TimerCancelled':
      return withoutTimer(run, event.data.timerId);
    case 'TimerFired':
      return timerFired(run, event.data);
    case 'CommandAccepted':
      return answered(run, event.data.key, undefined);
    case 'CommandRefused':
      return answered(run, event.data.key, event.data.code);
    case 'StepsAssigned':
      return { ...run, stepsAssigned: true };
    case 'AutomationJobSeen':
      return jobSeen(run, event.data);
    case 'ObservationTaken':
      return observed(run, event.data);
    default:
      return run;
  }
};

/** Growing comes before the spec is sent, shrinking after the hub took it. */
export const claimToSend = (run: OpenRun): ReturnType<typeof wantedClaim> =>
  'resize-down' in run.activeSince ? wantedClaim(run) : claimBeforeApply(run);

const withEffect = (run: OpenRun, event: RunEvent): OpenRun => {
  const kind = kindOfEffect((event.data as { effectId: string }).effectId);
  const effect = evolveEffect(run.effects[kind], event);
  return effect === undefined ? run : { ...run, effects: { ...run.effects, [kind]: effect } };
};

const inputTaken = (
  run: OpenRun,
  { type, revision, facts, at }: Extract<RunEvent, { type: 'RunInputTaken' }>['data'],
): OpenRun => {
  switch (type) {
    case 'ClusterDispatchStarted':
      return { ...run, dispatched: true };
    case 'ClusterStatusReported':
      return { ...run, recordNext: true };
    case 'ClusterDeletionRequested': {
      const { halted: _halted, problem: _problem, gone: _gone, ...kept } = withoutWaiting(run);
      return { ...kept, overdue: {}, deletion: { at } };
    }
    case 'ClusterRetryRequested':
      return { ...retried(run), triesSince: at };
    default:
      return {
        ...withoutFormerChange(run),
        ...(type === 'ClusterSpecRevised' && run.asked.provision !== undefined ? { otherChanged: true } : {}),
        ...(run.applied === undefined ? {} : { changes: { first: run.changes?.first ?? at, last: at } }),
        triesSince: at,
        spec: changedSpec(run.spec, type, facts),
        specRevision: revision,
        drift: 0,
        overdue: withoutKeys(run.overdue, ['nodes', 'ready']),
        reached: { ...run.reached, nodes: false, ready: false },
      };
  }
};

/** What was built can be changed again after a change that failed; whether it has to wait is to be told again. */
const withoutFormerChange = (run: OpenRun): OpenRun => {
  const { changeFailed: _failed, shownWaiting: _told, ...kept } = withoutWaiting(run);
  if (run.built === undefined) return kept;
  const { halted: _halted, problem: _problem, ...open } = kept;
  return open;
};

/** As after a retry, but that it may stay where it is. */
const reconsidered = (run: OpenRun): OpenRun =>
  isCertainlyUnsent(run)
    ? {
        ...retried(run),
        ...(run.failing === undefined ? {} : { failing: run.failing }),
        reconsidering: true,
        reconsidered: (run.reconsidered ?? 0) + 1,
      }
    : run;

/** A new cycle: effects get new ids, deadlines start again, what vanished is built again. */
const retried = (run: OpenRun): OpenRun => {
  const {
    halted: _halted,
    problem: _problem,
    reconsidering: _asking,
    reconsidered: _asked,
    changeFailed: _failed,
    placementOverdue: _overdue,
    failing: _failing,
    built,
    gone,
    applied,
    observation,
    ...kept
  } = withoutWaiting(run);
  const cycle = run.cycle + 1;
  const reset = {
    cycle,
    overdue: {},
    drift: 0,
    reached: NOTHING_REACHED,
    ...(wasNeverTaken(run) ? { replacing: true as const, selected: false } : {}),
  };
  if (gone === 'cluster-order') return { ...kept, ...reset, wasAvailable: false };
  return {
    ...kept,
    ...reset,
    ...(applied === undefined ? {} : { applied }),
    ...(observation === undefined ? {} : { observation }),
    ...(built === undefined || gone !== undefined ? {} : { built }),
    wasAvailable: gone === undefined && run.wasAvailable,
  };
};

/** Refusals that say that its hub holds it already. */
const FOUND_THERE: ReadonlySet<string> = new Set(['DuplicateOrders', 'NetworkRangeNotRemovable']);

/** Nothing of it is on its hub, for certain: every attempt to send it was answered, and none was taken. */
const wasNeverTaken = (run: OpenRun): boolean =>
  run.hub !== undefined &&
  !FOUND_THERE.has(run.halted?.reason ?? '') &&
  run.applied === undefined &&
  run.answered['record-placed'] === undefined &&
  !isUnresolved(run.effects['apply']);

/** Logs of before orders were placed again send a retried one to its old hub. */
const settledOnHub = ({ replacing, reconsidering: _asking, ...run }: OpenRun): OpenRun =>
  replacing === true ? { ...run, selected: true } : run;

type Succeeded = Extract<RunEvent, { type: 'EffectSucceeded' }>['data'];
const succeeded = (run: OpenRun, { effectId, attempt, result, at }: Succeeded): OpenRun => {
  switch (kindOfEffect(effectId)) {
    case 'place':
      return placed({ ...run, capacityTries: run.capacityTries + 1 }, result, at);
    case 'resize':
      return resized({ ...run, capacityTries: run.capacityTries + 1 }, result, at);
    case 'apply':
      return driftCorrected(applied(resumed(run), effectId, result), { effectId, attempt, result, at });
    case 'prepare':
      return prepared(resumed(run), { effectId, attempt, result, at });
    case 'trigger':
      return requestTaken(resumed(run), 'provision', { effectId, attempt, result, at });
    case 'undo':
      return requestTaken(run, 'deprovision', { effectId, attempt, result, at });
    case 'status': {
      const written = run.sent['status']?.status;
      const statusWrites = run.statusWrites + 1;
      return written === undefined ? run : { ...run, statusWrites, statusWritten: written };
    }
    case 'check':
      return checked(run, effectId, result);
    case 'delete': {
      // What was seen before the deletion was sent says nothing about absence.
      const { observation: _observation, gone: _gone, ...kept } = run;
      return kept;
    }
    case 'release': {
      const { held: _held, ...kept } = run;
      return kept;
    }
    default:
      return run;
  }
};

/** The call that people were told of as failing came through. */
const noLongerFailing = (run: OpenRun, { effectId, at }: Succeeded): OpenRun => {
  const { failing, ...kept } = run;
  return failing === undefined || failing.kind !== kindOfEffect(effectId)
    ? run
    : withNews(kept, { type: 'EndFailure', at, reason: failing.reason });
};

/** A change that could not be sent goes on; one whose job failed has failed until a newer job succeeds. */
const resumed = (run: OpenRun): OpenRun => {
  const { changeFailed, ...kept } = run;
  return changeFailed === undefined || JOB_REASONS.includes(changeFailed.reason) ? run : kept;
};

const applied = (run: OpenRun, effectId: string, result: JsonObject): OpenRun => {
  const revision = run.sent['apply']?.revision ?? run.specRevision;
  const [uid, name] = [stringAt(result, 'uid'), stringAt(result, 'name')];
  const instance = effectId.slice('apply:'.length);
  const { changes, ...kept } = settledOnHub(withoutWaiting(run));
  return {
    ...kept,
    // What came after it was sent waits for the next time.
    ...(changes === undefined || revision === run.specRevision
      ? {}
      : { changes: { first: changes.last, last: changes.last } }),
    applied: { instance, revision, uid, ...(name === '' ? {} : { name }) },
    // Whatever was reported before, the next look says how things are now.
    recordNext: true,
  };
};

const placed = (run: OpenRun, result: JsonObject, at: string): OpenRun => {
  // The scheduler's own result type; it came through JSON.
  const answer = result as unknown as PlaceResult;
  // An attempt that was settled by giving back has no answer, and a deleted order does not wait.
  if (run.deletion !== undefined && result['placed'] !== true) return run;
  if (!answer.placed) {
    const message = waitingWords(run.spec.nodeSets, { zone: run.zone, why: answer.message });
    return { ...run, waiting: { message, decision: answer.decision, at } };
  }
  const claim = run.sent['place']?.claim ?? wantedClaim(run);
  const {
    replacing: _replaced,
    reconsidering: _asked,
    waitedOut: _waited,
    placementOverdue: _overdue,
    ...kept
  } = withoutWaiting(run);
  const stepsAssigned = run.stepsAssigned && run.hub?.hub === answer.hub;
  return { ...kept, hub: answer, held: claim, stepsAssigned };
};

const resized = (run: OpenRun, result: JsonObject, at: string): OpenRun => {
  if (run.deletion !== undefined) return run;
  const claim = run.sent['resize']?.claim ?? wantedClaim(run);
  if (result['resized'] === true) {
    const { waitedOut: _waited, ...kept } = withoutWaiting(run);
    return { ...kept, held: claim };
  }
  const reason = typeof result['message'] === 'string' ? result['message'] : 'no room left';
  const hub = run.hub?.hub ?? '';
  const candidate = { hub, fits: false, reasons: [reason], scores: {}, total: 0 };
  const held = run.held?.nodes ?? {};
  const message = waitingWords(run.spec.nodeSets, { zone: run.zone, held });
  const decision = { weightsVersion: run.hub?.decision.weightsVersion ?? 0, candidates: [candidate] };
  return { ...run, waiting: { message, decision, at } };
};

/** A look that was asked for: deadlines that passed before it are settled by it, and so is a suspicion. */
const checked = (run: OpenRun, effectId: string, result: JsonObject): OpenRun => {
  // A look from before the deletion was sent cannot confirm absence.
  if (run.deletion !== undefined && !effectId.endsWith(CHECK_OF_DELETION)) return run;
  const overdue = Object.fromEntries(Object.keys(run.overdue).map((step) => [step, 'checked' as const]));
  const { gone: _before, ...kept } = run;
  const missing = result['missing'];
  return missing === 'cluster-order' || missing === 'hosted-cluster'
    ? { ...kept, overdue, gone: missing }
    : { ...kept, overdue };
};

/** Timers run on the monotonic clock: one that is due may be recorded a little before its wall-clock time. */
const EARLY_MS = 1_000;

const timerFired = (
  before: OpenRun,
  { timerId, at }: Extract<RunEvent, { type: 'TimerFired' }>['data'],
): OpenRun => {
  const run = withoutTimer(before, timerId);
  if (timerId === RECONSIDER_HUB) return reconsidered(run);
  if (timerId === PLACEMENT_DEADLINE) return { ...run, placementOverdue: true };
  if (timerId !== 'placement-retry') {
    return { ...run, overdue: { ...run.overdue, [timerId.slice('deadline:'.length)]: 'fired' } };
  }
  const woken = Date.parse(at) < Date.parse(before.timers[timerId] ?? at) - EARLY_MS;
  const waitedOut = (run.waitedOut ?? 0) + (woken ? 0 : 1);
  return { ...withoutWaiting(run), waitedOut };
};

const answered = (run: OpenRun, key: string, code: string | undefined): OpenRun => {
  const at = key.indexOf(':');
  const [step, instance] = [key.slice(0, at), key.slice(at + 1)];
  const answer = { instance, ...(code === undefined ? {} : { code }) };
  const next: OpenRun = { ...run, answered: { ...run.answered, [step]: answer } };
  switch (step) {
    case 'select-hub':
      return code === undefined ? { ...next, selected: true } : next;
    case 'start-dispatch':
      return code === undefined ? { ...next, dispatched: true } : next;
    case 'defer':
      return run.waiting === undefined ? next : { ...next, shownWaiting: run.waiting };
    case 'confirm-absence':
      return { ...next, absenceRecorded: true };
    case 'tell-live':
    case 'tell-deletion':
      return withoutNews(next, instance);
    case 'report-problem': {
      const { problem, ...kept } = next;
      return problem === undefined || String(problem.number) !== instance ? next : kept;
    }
    default:
      return code === undefined ? withOverdue(next, step) : next;
  }
};

/** A deadline of a change that passed, as the cluster was told of it. */
const withOverdue = (run: OpenRun, step: string): OpenRun => {
  if (run.built === undefined || run.changeFailed !== undefined || !step.startsWith('overdue-')) return run;
  const command = overdueCommandOf(run, step.slice('overdue-'.length));
  if (command?.type !== 'RecordFailure') return run;
  const { reason, message } = command;
  return { ...run, changeFailed: { why: 'failed', reason, message } };
};

const withProblem = (run: OpenRun, problem: Problem): OpenRun => {
  const { reason, message: detail } = problem;
  const failed = { why: 'failed', reason, message: failureSentence(reason), detail } as const;
  return {
    ...run,
    ...(run.built === undefined ? {} : { changeFailed: failed }),
    problems: run.problems + 1,
    problem: { ...problem, number: run.problems + 1 },
  };
};

const withoutWaiting = (run: OpenRun): OpenRun => {
  const { waiting: _waiting, ...kept } = run;
  return kept;
};

const withoutTimer = (run: OpenRun, timerId: string): OpenRun => {
  const { [timerId]: _timer, ...timers } = run.timers;
  return { ...run, timers };
};

const withoutKeys = <Value>(
  map: { readonly [key: string]: Value },
  keys: readonly string[],
): { readonly [key: string]: Value } =>
  Object.fromEntries(Object.entries(map).filter(([key]) => !keys.includes(key)));
