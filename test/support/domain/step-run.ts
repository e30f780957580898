import { isDeepStrictEqual } from 'node:util';
import { isRejection, type Decider, type DomainEvent } from '../../../src/domain/decider.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { runDecisionsDecider, type RunDecision } from '../../../src/domain/process/decisions.ts';
import type { Step } from '../../../src/domain/process/declaration.ts';
import { registry } from '../../../src/domain/registry.ts';
import { processEventTypes } from '../../../src/domain/process/event-types.ts';
import type { RunEvent } from '../../../src/domain/process/events.ts';
import type {
  CommandResult,
  EffectOutcome,
  FoldedEvent,
  PendingCommand,
  PendingEffect,
  Workflow,
  WorkflowInput,
} from '../../../src/domain/workflow.ts';

const SCHEMAS = new Map(processEventTypes.map(({ type, schema }) => [type, schema]));
const START = Date.parse('2026-11-21T12:00:00.000Z');

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
  message: 'the spec is wrong',
};

/** As stored: `inputs` says how many of the subject's events an own event comes after. */
type Stored = FoldedEvent & { readonly inputs?: number };

/**
 * A subject and its run side by side, driven by hand: the process runner reduced to what the workflow sees of it. What
 * is pending is always derived from recorded events.
 */
export const createStepRun = <
  State,
  Subject,
  Command extends { readonly type: string },
  Event extends DomainEvent,
>(
  workflow: Workflow<State, RunEvent>,
  decider: Decider<Subject, Command, Event>,
  {
    id = 'one',
    steps = [],
  }: {
    readonly id?: string;
    readonly steps?: readonly Pick<Step<never, never>, 'name' | 'mayBeSkipped' | 'pivot'>[];
  } = {},
) => {
  const people = runDecisionsDecider(steps);
  const subjectLog: Stored[] = [];
  const runLog: Stored[] = [];
  /** What a command left, by its key: a repetition is recognised. */
  const carriedOut = new Map<string, CommandResult>();
  let subject = decider.initialState();
  let state = workflow.initialState();
  let heard = 0;
  let ms = START;

  const now = (): string => new Date((ms += 10)).toISOString();
  const stored = (
    of: FoldedEvent['of'],
    { type, data }: DomainEvent,
    log: Stored[],
    causationId: string,
  ): Stored => ({
    of,
    id: `${of}-${log.length}`,
    type,
    data: data as JsonObject,
    revision: log.length,
    causationId,
    tenant: 't1',
  });
  const hear = (): void => {
    for (const event of subjectLog.slice(heard)) state = workflow.evolve(state, event);
    heard = subjectLog.length;
  };
  const record = (...events: readonly RunEvent[]): readonly RunEvent[] => {
    for (const event of events) {
      SCHEMAS.get(event.type)?.parse(event.data);
      const own = { ...stored('run', event, runLog, ''), inputs: heard };
      runLog.push(own);
      state = workflow.evolve(state, own);
    }
    return events;
  };
  /** Both streams in the order in which any incarnation folds them. */
  const inOrder = (upTo = subjectLog.length): readonly Stored[] => {
    const order: Stored[] = [];
    let taken = 0;
    for (const own of runLog) {
      for (; taken < (own.inputs ?? 0); taken += 1) order.push(...subjectLog.slice(taken, taken + 1));
      order.push(own);
    }
    return [...order, ...subjectLog.slice(taken, upTo)];
  };
  const replayed = (upTo?: number): State =>
    inOrder(upTo).reduce<State>(workflow.evolve, workflow.initialState());

  const append = (given: Command, causationId: string): CommandResult => {
    const decided = decider.decide(subject, given);
    if (isRejection(decided)) return { accepted: false, code: decided.code, message: decided.message };
    for (const event of decided) {
      // As the log would: what its schema refuses is not stored. Toy kinds have none.
      registry.get(event.type)?.schema.parse(event.data);
      subjectLog.push(stored('subject', event, subjectLog, causationId));
      subject = decider.evolve(subject, event);
    }
    return { accepted: true, changed: decided.length > 0 };
  };
  const carryOut = (pending: PendingCommand): CommandResult => {
    const key = pending.key ?? `observation ${subjectLog.length} ${runLog.length}`;
    const known = carriedOut.get(key);
    const newest = inOrder(heard).findLast(({ type }) => type !== 'EffectStarted')?.id ?? '';
    const result = known ?? append(pending.command as unknown as Command, pending.cause ?? newest);
    if (result.accepted) carriedOut.set(key, { accepted: true, changed: false });
    hear();
    return result;
  };
  /** Gives the run an input and carries out what follows. `dies`: before its commands are carried out, or told of. */
  const input = (given: WorkflowInput, dies?: 'before' | 'after'): readonly RunEvent[] => {
    const { events, commands } = workflow.decide(state, given);
    const recorded = [...record(...events)];
    if (dies === 'before') return recorded;
    for (const command of commands) {
      const result = carryOut(command);
      if (dies === 'after' || given.kind === 'command-result') continue;
      const answer = { commandKey: command.key ?? '', result, to: given, now: now() } as const;
      recorded.push(...record(...workflow.decide(state, { kind: 'command-result', ...answer }).events));
    }
    return recorded;
  };
  const pending = () => workflow.pending(state);
  const effect = (kind: string): PendingEffect => {
    const found = pending().effects.find(({ effectId }) => effectId.startsWith(`${kind}:`));
    if (found === undefined) throw new Error(`no effect ${kind} is pending`);
    return found;
  };
  const begin = (found: PendingEffect): PendingEffect => {
    const { effectId, attempt, facts } = found;
    const started = { at: now(), effectId, attempt, epoch: 1, ...(facts === undefined ? {} : { facts }) };
    record({ type: 'EffectStarted', data: started });
    return found;
  };
  const run = {
    input,
    record,
    hear,
    now,
    /** From now on another machine's clock counts, which is so many milliseconds behind. */
    takeOver: (behindMs: number): void => void (ms -= behindMs),
    /** What somebody else asks of the subject. `unheard`: the run hears of it later. */
    command: (given: Command, unheard?: 'unheard'): CommandResult => {
      const result = append(given, 'request');
      if (unheard === undefined) hear();
      return result;
    },
    /** A person's decision, appended by whoever was asked: the run is folded again. */
    decided: (given: RunDecision): CommandResult => {
      const own = runLog
        .map((event) => event as unknown as RunEvent)
        .reduce(people.evolve, people.initialState());
      const events = people.decide(own, given);
      if (isRejection(events)) return { accepted: false, code: events.code, message: events.message };
      for (const event of events) {
        runLog.push({ ...stored('run', event, runLog, 'request'), inputs: subjectLog.length });
      }
      if (events.length > 0) run.restart();
      return { accepted: true, changed: events.length > 0 };
    },
    pending,
    isClosed: (): boolean => workflow.isClosed(state),
    effect,
    begin,
    start: (kind: string): PendingEffect => begin(effect(kind)),
    result: (effectId: string, outcome: EffectOutcome, dies?: 'before' | 'after'): readonly RunEvent[] =>
      input({ kind: 'effect-result', effectId, outcome, now: now() }, dies),
    /** Starts the effect and gives its outcome. */
    perform: (kind: string, outcome: EffectOutcome): readonly RunEvent[] =>
      run.result(run.start(kind).effectId, outcome),
    observe: (observation: object): readonly RunEvent[] =>
      input({ kind: 'observation', observation: observation as JsonObject, now: now() }),
    fire: (timerId: string): readonly RunEvent[] => input({ kind: 'timer-due', timerId, now: now() }),
    /** Carries out commands, one after the other, until none is left. Returns their types. */
    commands: (): string[] => {
      const carried: string[] = [];
      for (let [next] = pending().commands; next !== undefined; [next] = pending().commands) {
        if (carried.length > 50) throw new Error(`commands never end: ${carried.slice(-3).join(', ')}`);
        const result = carryOut(next);
        carried.push(result.accepted ? next.command.type : `${next.command.type} ${result.code}`);
        input({ kind: 'command-result', commandKey: next.key ?? '', result, now: now() });
      }
      return carried;
    },
    after: (elapsedMs: number): void => {
      ms += elapsedMs;
    },
    at: (): string => new Date(ms).toISOString(),
    id,
    state: (): State => state,
    subject: (): Subject => subject,
    /** Folds both streams from the start, as the next incarnation does. */
    replayed,
    restart: (): void => {
      state = replayed();
      heard = subjectLog.length;
    },
    /** The state is what any incarnation folds of the two streams, and survives being written as JSON. */
    isFolded: (): boolean =>
      isDeepStrictEqual(replayed(heard), state) &&
      isDeepStrictEqual(JSON.parse(JSON.stringify(state)), state),
    runLog: (): readonly Stored[] => runLog,
    subjectLog: (): readonly Stored[] => subjectLog,
    runTypes: () => runLog.map(({ type }) => type),
    subjectTypes: () => subjectLog.map(({ type }) => type),
    /** Kinds of pending effects, and the timers. */
    effects: () => pending().effects.map(({ effectId }) => effectId.slice(0, effectId.indexOf(':'))),
    timers: () => pending().timers.map(({ timerId }) => timerId),
  };
  return run;
};
