import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import type { ClusterState } from '../../../../src/domain/clusters/state.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/events.ts';
import type { ClusterObservation } from '../../../../src/domain/clusters/observed.ts';
import type { PlaceResult } from '../../../../src/domain/clusters/placement.ts';
import type { OrderRun } from '../../../../src/domain/clusters/order-workflow/run.ts';
import { clusterOrderWorkflow } from '../../../../src/domain/clusters/order-workflow/workflow.ts';
import { isRejection } from '../../../../src/domain/decider.ts';
import { hubFacts } from '../../../../src/domain/hubs/hub.resource.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import type {
  CommandResult,
  EffectOutcome,
  PendingEffect,
  WorkflowInput,
} from '../../../../src/domain/workflow.ts';
import { decision, HUB, ID, ordered } from './samples.ts';

const START = Date.parse('2026-11-21T12:00:00.000Z');
const { steps } = hubFacts({ id: HUB, document: {} });

export const placedOn = (hub = HUB): PlaceResult => ({
  placed: true,
  hub,
  namespace: 'osac-hub',
  mode: 'operator',
  controller: 'operator',
  simulated: true,
  steps,
  decision,
});
export const done = (result: object = {}): EffectOutcome => ({
  outcome: 'done',
  result: result as JsonObject,
});
export const failed = (reason = 'Unavailable', retryAfterMs?: number): EffectOutcome => ({
  outcome: 'failed',
  reason,
  message: `${reason} for now`,
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});
export const unknown: EffectOutcome = { outcome: 'unknown', reason: 'TimedOut', message: 'no answer' };
export const refused: EffectOutcome = {
  outcome: 'refused',
  reason: 'ValidationFailed',
  message: 'spec.releaseImage is wrong',
};

/**
 * A cluster and its run side by side, driven by hand: the process runner reduced to what the workflow sees of it.
 * Every fact goes through `evolve`, so that what is pending is always derived from recorded events.
 */
export const createOrderRun = () => {
  let run: OrderRun = clusterOrderWorkflow.initialState();
  let cluster: ClusterState = clusterDecider.initialState();
  let ms = START;
  const runLog: RunEvent[] = [];
  const clusterLog: ClusterEvent[] = [];

  const now = (): string => new Date((ms += 10)).toISOString();
  const record = (...events: readonly RunEvent[]): readonly RunEvent[] => {
    runLog.push(...events);
    run = events.reduce(clusterOrderWorkflow.evolve, run);
    return events;
  };
  const input = (given: WorkflowInput): readonly RunEvent[] =>
    record(...clusterOrderWorkflow.decide(run, given));
  let lastHeard: WorkflowInput | undefined;
  const hear = (event: ClusterEvent, revision: number): readonly RunEvent[] => {
    lastHeard = {
      kind: 'event',
      now: now(),
      event: {
        type: event.type,
        data: event.data as unknown as JsonObject,
        stream: `cluster-${ID}`,
        revision,
        position: String(revision).padStart(16, '0'),
        tenant: 't1',
      },
    };
    return input(lastHeard);
  };

  /** Gives the cluster a command and tells the run what it recorded, as the log does. */
  const command = (given: ClusterCommand): CommandResult => {
    const decided = clusterDecider.decide(cluster, given);
    if (isRejection(decided)) return { accepted: false, code: decided.code, message: decided.message };
    cluster = decided.reduce(clusterDecider.evolve, cluster);
    for (const event of decided) {
      clusterLog.push(event);
      if (clusterOrderWorkflow.inputTypes.includes(event.type)) hear(event, clusterLog.length - 1);
    }
    return { accepted: true, events: [] };
  };

  const pending = () => clusterOrderWorkflow.pending(run);
  const effect = (kind: string): PendingEffect => {
    const found = pending().effects.find(({ effectId }) => effectId.startsWith(`${kind}:`));
    if (found === undefined) throw new Error(`no effect ${kind} is pending`);
    return found;
  };
  const start = (kind: string): PendingEffect => {
    const found = effect(kind);
    const { effectId, attempt } = found;
    record({ type: 'EffectStarted', data: { at: now(), effectId, attempt, epoch: 1 } });
    return found;
  };
  const result = (effectId: string, outcome: EffectOutcome): readonly RunEvent[] =>
    input({ kind: 'effect-result', effectId, outcome, now: now() });

  /** Carries out commands, one after the other, until none is left. Returns their types. */
  const commands = (): string[] => {
    const carried: string[] = [];
    for (let [next] = pending().commands; next !== undefined; [next] = pending().commands) {
      if (carried.length > 50) throw new Error(`commands never end: ${carried.slice(-3).join(', ')}`);
      const answer = command(next.command as unknown as ClusterCommand);
      carried.push(answer.accepted ? next.command.type : `${next.command.type} ${answer.code}`);
      input({ kind: 'command-result', commandKey: next.key, result: answer, now: now() });
    }
    return carried;
  };

  const run_ = {
    input,
    record,
    hear,
    /** What it would decide if it were told the last event once more. */
    heardAgain: (): readonly RunEvent[] =>
      lastHeard === undefined ? [] : clusterOrderWorkflow.decide(run, lastHeard),
    command,
    commands,
    pending,
    effect,
    start,
    result,
    /** Starts the effect and gives its outcome. */
    perform: (kind: string, outcome: EffectOutcome) => result(start(kind).effectId, outcome),
    observe: (observation: ClusterObservation) =>
      input({ kind: 'observation', observation: observation as unknown as JsonObject, now: now() }),
    fire: (timerId: string) => input({ kind: 'timer-due', timerId, now: now() }),
    after: (elapsedMs: number) => {
      ms += elapsedMs;
    },
    at: (): string => new Date(ms).toISOString(),
    state: () => run,
    cluster: () => cluster,
    runTypes: () => runLog.map(({ type }) => type),
    clusterTypes: () => clusterLog.map(({ type }) => type),
    clusterEvents: (): readonly ClusterEvent[] => clusterLog,
    /** Kinds of pending effects, and the timers. */
    effects: () => pending().effects.map(({ effectId }) => effectId.slice(0, effectId.indexOf(':'))),
    timers: () => pending().timers.map(({ timerId }) => timerId),
    /** Folds the recorded events again, as the next incarnation does. */
    replayed: (): OrderRun => runLog.reduce(clusterOrderWorkflow.evolve, clusterOrderWorkflow.initialState()),
    order: () => command({ type: 'OrderCluster', ...ordered }),
    /** Accepted, placed and sent to the hub. */
    toHub: () => {
      run_.order();
      run_.perform('place', done(placedOn()));
      run_.commands();
      run_.perform('apply', done({ uid: 'uid-1' }));
      run_.commands();
    },
    toReady: (observation: ClusterObservation) => {
      run_.toHub();
      run_.observe(observation);
      run_.commands();
    },
  };
  return run_;
};
