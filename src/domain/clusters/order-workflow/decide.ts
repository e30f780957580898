import { SIMULATION_ANNOTATION } from '../cluster-order-manifest.ts';
import { own, sameJson, stringAt } from '../../json-tools.ts';
import type { JsonObject } from '../../json.ts';
import { watchedJob } from './automation-steps.ts';
import { kindOfEffect, later, recordOutcome, type EffectRules } from '../../process/effects.ts';
import type { RunEvent } from '../../process/events.ts';
import type { InputEvent, WorkflowInput } from '../../workflow.ts';
import type { ClusterEvent } from '../events.ts';
import { assess, withKnownFailure, type Assessment } from '../observation.ts';
import type { ClusterObservation } from '../observed.ts';
import { evolveRun } from './evolve.ts';
import { isOvertaken, versionOf } from './observed-version.ts';
import { PLACEMENT_DEADLINE, placementDueAt } from './placement-deadline.ts';
import { desiredOf, type Missing, type OpenRun, type OrderRun } from './run.ts';
import { EFFECT_RULES } from './step.ts';
import { timersOf } from './reconsider.ts';
import { activeSteps, STEPS } from './steps.ts';
import { asJson } from './as-json.ts';

/** What to record of an input, and what follows from it at once: deadlines to keep, and the end of the run. */
export const decideRun = (state: OrderRun, input: WorkflowInput): readonly RunEvent[] => {
  const events = [...direct(state, input)];
  let run = events.reduce(evolveRun, state);
  // Each round settles what the round before made possible; closing is the last of them.
  for (let more = consequences(run, input.now); more.length > 0; more = consequences(run, input.now)) {
    events.push(...more);
    run = more.reduce(evolveRun, run);
  }
  return events;
};

export const CLUSTER_ORDER = 'clusterOrder';
export const PLACEMENT_RETRY = 'placement-retry';

/** Types of the cluster's events that the run hears of. */
export const INPUT_TYPES: readonly ClusterEvent['type'][] = [
  'ClusterOrdered',
  'NodeSetAdded',
  'NodeSetResized',
  'NodeSetRemoved',
  'ClusterSpecRevised',
  'ClusterStatusReported',
  'ClusterDispatchStarted',
  'ClusterRetryRequested',
  'ClusterDeletionRequested',
];

const direct = (state: OrderRun, input: WorkflowInput): readonly RunEvent[] => {
  if (state.status === 'none') return input.kind === 'event' ? begin(input.event, input.now) : [];
  if (state.status === 'closed') return [];
  switch (input.kind) {
    case 'event':
      return heard(state, input.event, input.now);
    case 'effect-result':
      return effectEnded(state, input);
    case 'observation':
      if (Object.hasOwn(input.observation, 'job')) return jobShown(state, input.observation, input.now);
      return observe(state, observationOf(input.observation), input.now);
    case 'timer-due':
      return own(timersOf(state), input.timerId) === undefined
        ? []
        : [{ type: 'TimerFired', data: { at: input.now, timerId: input.timerId } }];
    case 'command-result': {
      const { commandKey: key, result, now: at } = input;
      if (isAnswered(state, key)) return [];
      return result.accepted
        ? [{ type: 'CommandAccepted', data: { at, key } }]
        : [{ type: 'CommandRefused', data: { at, key, code: result.code, message: result.message } }];
    }
  }
};

const begin = (event: InputEvent, at: string): readonly RunEvent[] => {
  // Inputs are read by the registry's schema before they come here.
  const ordered = event as unknown as ClusterEvent;
  if (ordered.type !== 'ClusterOrdered') return [];
  const { id, template, templateParameters, nodeSets, version, sshPublicKey, pullSecret, network, zone } =
    ordered.data;
  const { placementDeadline } = ordered.data;
  const simulation = ordered.data.annotations[SIMULATION_ANNOTATION];
  const facts = asJson({
    template,
    templateParameters,
    nodeSets,
    version,
    ...(sshPublicKey === undefined ? {} : { sshPublicKey }),
    ...(pullSecret === undefined ? {} : { pullSecret }),
    ...(network === undefined ? {} : { network }),
    ...(zone === undefined ? {} : { zone }),
    ...(placementDeadline === undefined ? {} : { placementDeadline }),
    ...(simulation === undefined ? {} : { simulation }),
  });
  const { tenant, revision } = event;
  return [{ type: 'RunStarted', data: { at, workflow: CLUSTER_ORDER, runId: id, tenant, revision, facts } }];
};

const heard = (run: OpenRun, event: InputEvent, at: string): readonly RunEvent[] => {
  const { type, revision } = event;
  if (type === 'ClusterOrdered' || revision <= run.lastInput) return [];
  if (run.deletion !== undefined || (type === 'ClusterDispatchStarted' && run.dispatched)) return [];
  const { at: _at, ...facts } = event.data;
  return [{ type: 'RunInputTaken', data: { at, type, revision, facts } }];
};

const effectEnded = (
  run: OpenRun,
  input: Extract<WorkflowInput, { kind: 'effect-result' }>,
): readonly RunEvent[] => {
  const { effectId, outcome, now } = input;
  const kind = kindOfEffect(effectId);
  // A runner that records the start of timed reads as well gives their answers here.
  if (kind === 'job' && outcome.outcome === 'done') return jobShown(run, outcome.result, now);
  if (kind === 'read') {
    return outcome.outcome === 'done' ? observe(run, observationOf(outcome.result), now) : [];
  }
  const rules = rulesOf(run, kind);
  if (rules === undefined) return [];
  if (kind !== 'check' || outcome.outcome !== 'done') {
    return recordOutcome(own(run.effects, kind), effectId, outcome, now, rules);
  }
  const observation = observationOf(outcome.result);
  if (observation === undefined) return [];
  const assessment = assess(observation, desiredOf(run));
  const missing = missingIn(run, assessment);
  const result = { found: assessment.found, ...(missing === undefined ? {} : { missing }) };
  const recorded = recordOutcome(own(run.effects, kind), effectId, { outcome: 'done', result }, now, rules);
  if (recorded.length === 0) return [];
  const after = recorded.reduce<OrderRun>(evolveRun, run);
  return after.status === 'open' ? [...recorded, ...taken(after, observation, assessment, now)] : recorded;
};

/** Until its hub took it, an order may go to another one: only while it is certain that no attempt came through. */
const rulesOf = (run: OpenRun, kind: string): EffectRules | undefined => {
  const rules = own(EFFECT_RULES, kind);
  if (rules === undefined || kind !== 'apply' || run.applied !== undefined) return rules;
  // Asking for another place begins a new count of attempts, but no shorter rest.
  const again = Math.min(10, run.reconsidered ?? 0);
  const { firstMs, maxMs } = rules.backoff;
  const backoff = { firstMs: Math.min(maxMs, firstMs * 8 ** again), maxMs };
  return { ...rules, everyFailure: true, backoff, attempts: Math.max(1, rules.attempts >> again) };
};

const MAX_TAIL = 4_000;

/** The platform's answer about the job that is looked at; null: it has no record of it. */
const jobShown = (run: OpenRun, { job: shown }: JsonObject, at: string): readonly RunEvent[] => {
  const watched = watchedJob(run);
  if (watched === undefined) return [];
  const { purpose, job } = watched;
  if (shown === null) {
    return job.vanished === true
      ? []
      : [{ type: 'AutomationJobSeen', data: { at, purpose, job: job.id, state: 'Unknown', vanished: true } }];
  }
  // Another one's may come late.
  const state = stringAt(shown, 'state');
  if (stringAt(shown, 'id') !== job.id || (state === job.state && job.vanished !== true)) return [];
  const tail = stringAt(shown, 'outputTail').slice(-MAX_TAIL).toWellFormed();
  const outputTail = tail === '' ? {} : { outputTail: tail };
  return [{ type: 'AutomationJobSeen', data: { at, purpose, job: job.id, state, ...outputTail } }];
};

const missingIn = (run: OpenRun, assessment: Assessment): Missing | undefined => {
  if (!assessment.found) {
    return run.deletion !== undefined && assessment.left !== undefined ? undefined : 'cluster-order';
  }
  return assessment.verdict.kind === 'hosted-cluster-lost' ? 'hosted-cluster' : undefined;
};

/** An observation says something only once the order was sent, and while it is not known to be gone. */
const observe = (
  run: OpenRun,
  observation: ClusterObservation | undefined,
  now: string,
): readonly RunEvent[] => {
  const expected =
    run.deletion === undefined ? run.applied !== undefined : run.effects['delete']?.status === 'done';
  if (!expected || observation === undefined || run.absenceRecorded) return [];
  // An order may have been meant for another hub before: what is seen there is not this one.
  if (observation.hub !== undefined && observation.hub !== run.hub?.hub) return [];
  return taken(run, observation, assess(observation, desiredOf(run)), now);
};

/** Recorded only when it says something new, so that a cluster that stays as it is leaves no events. */
const taken = (
  run: OpenRun,
  observation: ClusterObservation,
  assessment: Assessment,
  at: string,
): readonly RunEvent[] => {
  if (isOvertaken(run, observation)) return [];
  const seen = withKnownFailure(run.observation?.assessment, withKnownDuplicates(run, assessment));
  if (!run.recordNext && sameJson(run.observation?.assessment, seen)) return [];
  const number = run.observations + 1;
  const version = versionOf(observation);
  return [
    {
      type: 'ObservationTaken',
      data: { at, number, assessment: asJson(seen), ...(version === undefined ? {} : { version }) },
    },
  ];
};

/** Only the watch sees all orders at once; a look by name says nothing of others. */
const withKnownDuplicates = (run: OpenRun, assessment: Assessment): Assessment => {
  const known = run.observation?.assessment;
  if (!assessment.found || assessment.duplicates !== undefined) return assessment;
  return known?.found === true && known.duplicates !== undefined
    ? { ...assessment, duplicates: known.duplicates }
    : assessment;
};

/** Undefined when it is not an observation: an empty answer must never count as absence. */
const observationOf = (value: object): ClusterObservation | undefined => {
  const { order } = value as { order?: unknown };
  return order === null || (typeof order === 'object' && order !== null)
    ? (value as ClusterObservation)
    : undefined;
};

const isAnswered = (run: OpenRun, key: string): boolean => {
  const at = key.indexOf(':');
  return run.answered[key.slice(0, at)]?.instance === key.slice(at + 1);
};

/** Facts that follow from the state itself, recorded with the input that made them so. */
const consequences = (state: OrderRun, now: string): readonly RunEvent[] => {
  if (state.status !== 'open') return [];
  const { hub, stepsAssigned } = state;
  const assigned: RunEvent[] =
    hub === undefined || stepsAssigned
      ? []
      : [{ type: 'StepsAssigned', data: { at: now, hub: hub.hub, rules: hub.steps } }];
  const events = [...assigned, ...timerChanges(state, now)];
  if (events.length > 0 || state.deletion === undefined || activeSteps(state).length > 0) return events;
  return [{ type: 'RunClosed', data: { at: now, outcome: state.dispatched ? 'deleted' : 'cancelled' } }];
};

const timerChanges = (run: OpenRun, now: string): readonly RunEvent[] => {
  const wanted = wantedTimers(run);
  const scheduled = Object.entries(wanted)
    .filter(([timerId]) => run.timers[timerId] === undefined)
    .map(([timerId, dueAt]): RunEvent => ({ type: 'TimerScheduled', data: { at: now, timerId, dueAt } }));
  const cancelled = Object.keys(run.timers)
    .filter((timerId) => wanted[timerId] === undefined)
    .map((timerId): RunEvent => ({ type: 'TimerCancelled', data: { at: now, timerId } }));
  return [...cancelled, ...scheduled];
};

/** Placing again is tried at growing intervals; a hub's news wakes it at once and makes no interval longer. */
const RETRY_FIRST_MS = 30_000;
const RETRY_MAX_MS = 10 * 60_000;

const wantedTimers = (run: OpenRun): { readonly [timerId: string]: string } => {
  const timers: { [timerId: string]: string } = {};
  for (const { name, deadline } of STEPS) {
    const since = run.activeSince[name];
    if (deadline !== undefined && since !== undefined && run.overdue[name] === undefined) {
      timers[`deadline:${name}`] = later(since, deadline.ms);
    }
  }
  if (run.waiting !== undefined) {
    const wait = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** Math.min(10, run.waitedOut ?? 0));
    timers[PLACEMENT_RETRY] = later(run.waiting.at, wait);
  }
  const placeBy = placementDueAt(run);
  if (placeBy !== undefined) timers[PLACEMENT_DEADLINE] = placeBy;
  return timers;
};
