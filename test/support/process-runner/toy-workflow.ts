import { z } from 'zod';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { Aggregate } from '../../../src/app/commands/command.ts';
import { createCommandRunner } from '../../../src/app/commands/command-runner.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore, RecordedEvent } from '../../../src/app/log/event-store.ts';
import { eventId } from '../../../src/app/log/identifiers.ts';
import type { Clock } from '../../../src/app/ports.ts';
import { createProcessRunner } from '../../../src/app/process-runner/process-runner.ts';
import type {
  Aggregates,
  AnyWorkflow,
  ProcessRunner,
  ProcessRunnerOptions,
} from '../../../src/app/process-runner/types.ts';
import { foldRun } from '../../../src/app/process-runner/fold-run.ts';
import { isRejection, reject, type Decider, type DomainEvent } from '../../../src/domain/decider.ts';
import type { EventType } from '../../../src/domain/event-type.ts';
import type { FoldedEvent, PendingEffect, Reaction, Workflow } from '../../../src/domain/workflow.ts';
import type { Workshop } from './toy-workshop.ts';
import { silentLogger } from '../loggers.ts';

/**
 * A workflow with everything the process runner has to deal with and nothing else: an order of toys makes one object
 * per part on a far side (one after the other), tells the order's own stream when each is there, and gives up at a
 * deadline. The far side keeps at most one object per effect id and remembers every call.
 */
export type ToyEvent =
  | DomainEvent<
      'ToyOrdered',
      {
        readonly id: string;
        readonly at: string;
        readonly shop: string;
        readonly parts: readonly string[];
        readonly patienceMs?: number;
        readonly lookEveryMs?: number;
        readonly lookTogether?: boolean;
      }
    >
  | DomainEvent<'ToyPartArrived', { readonly part: string }>
  | DomainEvent<'ToyShopOpened', { readonly shop: string }>
  | DomainEvent<'ToyPainted', { readonly colour: string }>
  | DomainEvent<'ToyPatienceSet', { readonly at: string; readonly patienceMs: number }>
  | DomainEvent<'ToyPolished', { readonly times: number }>
  | DomainEvent<'ToySeen', { readonly colour: string }>;

/** What a toy's run records by itself; of the subject's events it copies none. */
export type ToyRunEvent =
  | DomainEvent<
      'EffectStarted',
      {
        readonly at: string;
        readonly effectId: string;
        readonly attempt: number;
        readonly epoch: number;
        readonly facts?: { readonly paintedWith: readonly string[] };
      }
    >
  | DomainEvent<'EffectSucceeded', { readonly at: string; readonly effectId: string }>
  | DomainEvent<'CommandRefused', { readonly at: string; readonly key: string; readonly code: string }>
  | DomainEvent<'TimerFired', { readonly at: string; readonly timerId: string }>
  /** A loud colour is worth a note. */
  | DomainEvent<'ColourNoticed', { readonly at: string; readonly colour: string }>
  /** A person's decision, appended by somebody else. */
  | DomainEvent<'ToyHurried', { readonly by: string }>;

export type ToyCommand =
  | { readonly type: 'NotePart'; readonly part: string }
  | { readonly type: 'NoteColour'; readonly colour: string }
  | { readonly type: 'Polish' };

type Toy = {
  readonly ordered: boolean;
  readonly parts: readonly string[];
  readonly seen: readonly string[];
  /** Coats of gold that were painted, and those that were polished. */
  readonly gold: number;
  readonly polished: number;
};

export const toyDecider: Decider<Toy, ToyCommand, ToyEvent> = {
  initialState: () => ({ ordered: false, parts: [], seen: [], gold: 0, polished: 0 }),
  evolve: (state, event) => {
    switch (event.type) {
      case 'ToyOrdered':
        return { ...state, ordered: true };
      case 'ToyPartArrived':
        return { ...state, parts: [...state.parts, event.data.part] };
      case 'ToySeen':
        return { ...state, seen: [...state.seen, event.data.colour] };
      case 'ToyPainted':
        return event.data.colour === 'gold' ? { ...state, gold: state.gold + 1 } : state;
      case 'ToyPolished':
        return { ...state, polished: event.data.times };
      default:
        return state;
    }
  },
  decide: (state, command) => {
    if (!state.ordered) return reject('failed-precondition', 'NO', 'no');
    switch (command.type) {
      case 'NotePart':
        if (command.part === 'cursed') return reject('failed-precondition', 'CURSED', 'nobody takes it');
        if (state.parts.includes(command.part)) return [];
        return [{ type: 'ToyPartArrived', data: { part: command.part } }];
      case 'NoteColour':
        if (state.seen.at(-1) === command.colour) return [];
        return [{ type: 'ToySeen', data: { colour: command.colour } }];
      case 'Polish':
        return state.polished >= state.gold ? [] : [{ type: 'ToyPolished', data: { times: state.gold } }];
    }
  },
};

export const toyAggregate: Aggregate<Toy, ToyCommand, ToyEvent> = {
  category: 'toy',
  decider: toyDecider,
  stateVersion: 1,
};

type Part = {
  readonly name: string;
  readonly attempts: number;
  readonly startedAt: string;
  /** Of the newest `EffectStarted`. */
  readonly startedBy: string;
  /** Told by the subject, or by the run itself where the subject had nothing to say. */
  readonly made: boolean;
};
export type ToyRun = {
  readonly status: 'none' | 'working' | 'closed';
  readonly id: string;
  readonly shop: string;
  readonly parts: readonly Part[];
  readonly deadline?: string;
  /** Milliseconds between two looks at the shop; 0: none. */
  readonly lookEveryMs: number;
  readonly lookTogether: boolean;
  readonly colours: readonly string[];
  readonly noticed: readonly string[];
  /** What was folded, in this order: `s<revision>` of the subject, `r<revision>` of the run. */
  readonly folded: readonly string[];
  readonly toy: Toy;
  readonly hurried: boolean;
};

/** Milliseconds between two attempts at one part. */
export const TOY_BACKOFF_MS = 20;

const later = (time: string, ms: number): string => new Date(Date.parse(time) + ms).toISOString();

const SUBJECT_TYPES = [
  'ToyPatienceSet',
  'ToyOrdered',
  'ToyPartArrived',
  'ToyPainted',
  'ToyPolished',
  'ToySeen',
];

const evolve = (before: ToyRun, event: FoldedEvent): ToyRun => {
  if (before.status === 'closed') return before;
  const mark = `${event.of === 'run' ? 'r' : 's'}${event.revision}`;
  const state = { ...before, folded: [...before.folded, mark] };
  const next =
    event.of === 'run'
      ? evolveOwn(state, event as FoldedEvent & ToyRunEvent)
      : evolveSubject(state, event as FoldedEvent & ToyEvent);
  const done = next.status === 'working' && next.parts.length > 0 && next.parts.every(({ made }) => made);
  return done ? { ...next, status: 'closed' } : next;
};

const change = (state: ToyRun, name: string, changed: Partial<Part>): ToyRun => ({
  ...state,
  parts: state.parts.map((part) => (part.name === name ? { ...part, ...changed } : part)),
});

const evolveSubject = (before: ToyRun, event: FoldedEvent & ToyEvent): ToyRun => {
  const state = { ...before, toy: toyDecider.evolve(before.toy, event) };
  switch (event.type) {
    case 'ToyOrdered': {
      const { id, at, shop, parts, lookEveryMs = 0, lookTogether = false, patienceMs } = event.data;
      const fresh = { attempts: 0, startedAt: '', startedBy: '', made: false };
      return {
        ...state,
        status: 'working',
        id,
        shop,
        lookEveryMs,
        lookTogether,
        parts: parts.map((name) => ({ name, ...fresh })),
        ...(patienceMs !== undefined && { deadline: later(at, patienceMs) }),
      };
    }
    case 'ToyPatienceSet':
      return { ...state, deadline: later(event.data.at, event.data.patienceMs) };
    case 'ToyPainted':
      return { ...state, colours: [...state.colours, event.data.colour] };
    case 'ToyPartArrived': {
      const { causationId } = event;
      const part = state.parts.find(({ startedBy }) => startedBy !== '' && startedBy === causationId);
      return part === undefined ? state : change(state, part.name, { made: true });
    }
    default:
      return state;
  }
};

const evolveOwn = (state: ToyRun, event: FoldedEvent & ToyRunEvent): ToyRun => {
  switch (event.type) {
    case 'EffectStarted':
      return change(state, event.data.effectId, {
        attempts: event.data.attempt,
        startedAt: event.data.at,
        startedBy: event.id,
      });
    case 'EffectSucceeded':
      return change(state, event.data.effectId, { made: true });
    case 'ColourNoticed':
      return { ...state, noticed: [...state.noticed, event.data.colour] };
    case 'TimerFired':
      return { ...state, status: 'closed' };
    case 'ToyHurried':
      return { ...state, hurried: true };
    default:
      return state;
  }
};

const nothing = (...events: ToyRunEvent[]): Reaction<ToyRunEvent> => ({ events, commands: [] });

export const toyWorkflow: Workflow<ToyRun, ToyRunEvent> = {
  name: 'toyRun',
  subject: 'toy',
  subjectTypes: SUBJECT_TYPES,
  initialState: () => ({
    status: 'none',
    id: '',
    shop: '',
    parts: [],
    lookEveryMs: 0,
    lookTogether: false,
    colours: [],
    noticed: [],
    folded: [],
    toy: toyDecider.initialState(),
    hurried: false,
  }),
  evolve,
  decide: (state, input) => {
    if (state.status !== 'working') return nothing();
    const at = input.now;
    switch (input.kind) {
      case 'settle': {
        if (state.colours.includes('poison')) throw new Error('this colour is poison');
        const loud = state.colours.filter((colour) => colour.startsWith('loud'));
        const fresh = loud.filter((colour) => !state.noticed.includes(colour));
        return nothing(
          ...fresh.map((colour): ToyRunEvent => ({ type: 'ColourNoticed', data: { at, colour } })),
        );
      }
      case 'effect-result': {
        if (input.outcome.outcome !== 'done') return nothing();
        const part = state.parts.find(({ name }) => name === input.effectId);
        const command = { type: 'NotePart', part: input.effectId };
        const key = `effect:${input.effectId}`;
        const cause = part?.startedBy ?? '';
        return { events: [], commands: [{ key, aggregate: 'toy', id: state.id, command, cause }] };
      }
      case 'command-result': {
        const { to, result } = input;
        if (to?.kind !== 'effect-result' || (result.accepted && result.changed)) return nothing();
        if (state.parts.find(({ name }) => name === to.effectId)?.made !== false) return nothing();
        const done: ToyRunEvent = { type: 'EffectSucceeded', data: { at, effectId: to.effectId } };
        if (result.accepted) return nothing(done);
        const { code } = result;
        return nothing({ type: 'CommandRefused', data: { at, key: input.commandKey, code } }, done);
      }
      case 'timer-due':
        return nothing({ type: 'TimerFired', data: { at, timerId: input.timerId } });
      case 'observation': {
        const command = { type: 'NoteColour', colour: input.observation['colour'] as string } as const;
        const news = toyDecider.decide(state.toy, command);
        if (isRejection(news) || news.length === 0) return nothing();
        return { events: [], commands: [{ aggregate: 'toy', id: state.id, command }] };
      }
    }
  },
  pending: (state) => {
    if (state.status !== 'working') return { commands: [], effects: [], timers: [] };
    const wanted = state.parts.find((part) => !part.made);
    const revision = state.folded.findLast((mark) => mark.startsWith('s'));
    const isDull = state.toy.gold > state.toy.polished;
    const command = { type: 'Polish' };
    return {
      commands: isDull ? [{ key: `polish@${revision}`, aggregate: 'toy', id: state.id, command }] : [],
      effects: [
        ...(wanted === undefined ? [] : [effectOf(state, wanted)]),
        ...(state.lookEveryMs === 0 ? [] : [lookOf(state)]),
      ],
      timers: state.deadline === undefined ? [] : [{ timerId: 'patience', dueAt: state.deadline }],
    };
  },
  wakes: [{ types: ['ToyShopOpened'], timerId: 'patience' }],
  hubOf: ({ status, parts, shop }) =>
    status === 'none' || parts[0]?.attempts === 0 ? undefined : `hub of ${shop}`,
  isClosed: (state) => state.status === 'closed',
};

const effectOf = (state: ToyRun, part: Part): PendingEffect => ({
  effectId: part.name,
  port: 'workshop',
  operation: 'make',
  args: { shop: state.shop, name: `${state.id}-${part.name}` },
  attempt: part.attempts + 1,
  mode: part.attempts === 0 ? 'perform' : 'observe',
  lane: `shop:${state.shop}`,
  ...(state.colours.length > 0 && { facts: { paintedWith: [...state.colours] } }),
  ...(part.attempts > 0 && {
    notBefore: later(part.startedAt, TOY_BACKOFF_MS),
  }),
});

const lookOf = (state: ToyRun): PendingEffect => ({
  effectId: 'look',
  port: 'workshop',
  operation: 'look',
  args: { shop: state.shop, toy: state.id },
  attempt: 1,
  mode: 'observe',
  lane: `look:${state.shop}`,
  // A toy in a hurry is looked at more often than it was ordered to be.
  everyMs: state.toy.seen.includes('hurry') ? Math.min(20, state.lookEveryMs) : state.lookEveryMs,
  ...(state.lookTogether && { together: 'compare' }),
});

const any = (type: string, context: string): EventType => ({
  type,
  version: 1,
  context,
  audience: 'internal',
  schema: z.record(z.string(), z.unknown()),
});
export const RUN_EVENT_TYPES = [
  'EffectStarted',
  'EffectSucceeded',
  'CommandRefused',
  'TimerFired',
  'ColourNoticed',
  'ToyHurried',
];
export const toyCodec = () =>
  createEventCodec([
    ...[...SUBJECT_TYPES, 'ToyShopOpened'].map((type) => any(type, 'toys')),
    ...RUN_EVENT_TYPES.map((type) => any(type, 'process')),
  ]);

/** A wall clock that can be set; the monotonic one goes on. */
export const settableClock = (): Clock & { jump(ms: number): void } => {
  const system = systemClock();
  let shift = 0;
  return {
    now: () => new Date(Date.parse(system.now()) + shift).toISOString(),
    monotonicMs: () => system.monotonicMs(),
    jump: (ms) => {
      shift += ms;
    },
  };
};

export type ToyRunner = ProcessRunner & {
  readonly instance: string;
  /** Graceful. */
  stop(): Promise<void>;
};

/** Starts a runner of the toy workflow on a store and a far side that may outlive it. */
export const startToyRunner = (options: {
  readonly store: EventStore;
  readonly workshop: Workshop;
  readonly instance: string;
  readonly more?: Partial<ProcessRunnerOptions>;
}): ToyRunner => {
  const { store, workshop, instance } = options;
  const clock = options.more?.clock ?? systemClock();
  const timers = options.more?.timers ?? systemTimers();
  const logger = options.more?.logger ?? silentLogger;
  const codec = toyCodec();
  const stop = new AbortController();
  const runner = createProcessRunner({
    store,
    codec,
    commandRunner: createCommandRunner({ store, codec, clock, instance, recordRejection: () => undefined }),
    aggregates: { toy: toyAggregate } as unknown as Aggregates,
    workflows: [toyWorkflow as unknown as AnyWorkflow],
    runEventTypes: RUN_EVENT_TYPES,
    effectPorts: { workshop: workshop.port },
    clock,
    timers,
    instance,
    logger,
    ownership: createLeases({
      store,
      instance,
      directory: instance,
      clock,
      timers,
      logger,
    })('processes'),
    dataFile: ':memory:',
    ...options.more,
    settings: { stopGraceMs: 1_000, effectDeadlineMs: 500, ...options.more?.settings },
  });
  const ended = runner.start(stop.signal);
  return {
    ...runner,
    instance,
    stop: async () => {
      stop.abort();
      await ended;
    },
  };
};

export const toyStore = (singleWriter = true): EventStore => createMemoryEventStore({ singleWriter });

export const orderToy = async (
  store: EventStore,
  order: {
    id: string;
    shop?: string;
    parts?: readonly string[];
    patienceMs?: number;
    lookEveryMs?: number;
    /** Looks at several toys of one shop are compared there. */
    lookTogether?: boolean;
    /** When, by the clock of whoever works on it. */
    at?: string;
  },
): Promise<void> => {
  const { id, shop = 'one', parts = ['body'], at = new Date().toISOString(), ...rest } = order;
  await appendToy(store, id, 'ToyOrdered', { id, at, shop, parts, ...rest });
};

/** Appends an event to the toy's stream, or to that of its run, as the command runner would for a person. */
export const appendToy = async (
  store: EventStore,
  id: string,
  type: string,
  data: object,
  more: {
    readonly category?: 'toy' | 'toyRun';
    readonly commandId?: string;
    readonly requestHash?: string;
    readonly subjectId?: string;
  } = {},
): Promise<void> => {
  const stream = `${more.category ?? 'toy'}-${id}`;
  const expected = await store.currentRevision(stream);
  const metadata = {
    tenant: `tenant-of-${id}`,
    project: 'default',
    actor: { subjectId: more.subjectId ?? 'someone', roles: [], authMethod: 'jwt' },
    command: type,
    commandId: more.commandId ?? `${id}-${type}-${expected}`,
    requestHash: more.requestHash ?? '',
    correlationId: `correlation-of-${id}`,
    ticket: `ticket-of-${id}`,
    traceparent: `trace-of-${id}`,
    causationId: '',
    occurredAt: '2026-01-01T00:00:00.000Z',
    instance: 'test',
    schemaVersion: 1,
  };
  await store.append(stream, expected, [
    {
      id: eventId(metadata.commandId, stream, 0),
      type,
      data: JSON.stringify(data),
      metadata: JSON.stringify(metadata),
    },
  ]);
};

export const readAll = async (store: EventStore, stream: string): Promise<RecordedEvent[]> => {
  const events: RecordedEvent[] = [];
  for await (const event of store.readStream(stream)) events.push(event);
  return events;
};

/** The run as its two streams have it. */
export const toyRunIn = async (store: EventStore, id: string): Promise<ToyRun> =>
  (await foldRun(toyWorkflow as unknown as AnyWorkflow, id, store, toyCodec())).state as ToyRun;

export const isDone = async (store: EventStore, id: string): Promise<boolean> =>
  (await toyRunIn(store, id)).status === 'closed';
