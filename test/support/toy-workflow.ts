import { z } from 'zod';
import { createMemoryEventStore } from '../../src/adapters/event-store/memory/memory-event-store.ts';
import { createLeaseOwnership } from '../../src/adapters/ownership/lease-ownership.ts';
import { systemClock, systemTimers } from '../../src/adapters/system/system-ports.ts';
import type { Aggregate } from '../../src/app/command.ts';
import { createCommandRunner } from '../../src/app/command-runner.ts';
import { createEventCodec } from '../../src/app/event-codec.ts';
import type { EventStore, RecordedEvent } from '../../src/app/event-store.ts';
import { eventId } from '../../src/app/identifiers.ts';
import type { Clock } from '../../src/app/ports.ts';
import { createProcessRunner } from '../../src/app/process-runner/process-runner.ts';
import type {
  Aggregates,
  AnyWorkflow,
  ProcessRunner,
  ProcessRunnerOptions,
} from '../../src/app/process-runner/types.ts';
import { reject, type Decider, type DomainEvent } from '../../src/domain/decider.ts';
import type { EventType } from '../../src/domain/event-type.ts';
import type { RunEvent } from '../../src/domain/process/events.ts';
import type { PendingEffect, Workflow } from '../../src/domain/workflow.ts';
import type { Workshop } from './toy-workshop.ts';
import { silentLogger } from './loggers.ts';

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
        readonly shop: string;
        readonly parts: readonly string[];
        readonly patienceMs?: number;
      }
    >
  | DomainEvent<'ToyPartArrived', { readonly part: string }>
  | DomainEvent<'ToyShopOpened', { readonly shop: string }>
  | DomainEvent<'ToyPainted', { readonly colour: string }>;

export type ToyCommand =
  | { readonly type: 'NotePart'; readonly part: string }
  | { readonly type: 'NeverAccepted'; readonly part: string };

type Toy = { readonly parts: readonly string[]; readonly ordered: boolean };

export const toyDecider: Decider<Toy, ToyCommand, ToyEvent> = {
  initialState: () => ({ parts: [], ordered: false }),
  evolve: (state, event) => {
    if (event.type === 'ToyOrdered') return { ...state, ordered: true };
    if (event.type === 'ToyPartArrived') return { ...state, parts: [...state.parts, event.data.part] };
    return state;
  },
  decide: (state, command) => {
    if (command.type === 'NeverAccepted' || !state.ordered) return reject('failed-precondition', 'NO', 'no');
    if (state.parts.includes(command.part)) return [];
    return [{ type: 'ToyPartArrived', data: { part: command.part } }];
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
  readonly made: boolean;
  readonly noted: boolean;
};
export type ToyRun = {
  readonly status: 'none' | 'working' | 'closed';
  readonly shop: string;
  readonly parts: readonly Part[];
  readonly deadline?: string;
  /** Milliseconds between two looks at the shop; 0: none. */
  readonly lookEveryMs: number;
  readonly colours: readonly string[];
  readonly seen: readonly string[];
};

/** Milliseconds between two attempts at one part. */
export const TOY_BACKOFF_MS = 20;

const evolve = (state: ToyRun, event: RunEvent): ToyRun => {
  const part = (name: string, change: Partial<Part>): ToyRun => ({
    ...state,
    parts: state.parts.map((each) => (each.name === name ? { ...each, ...change } : each)),
  });
  switch (event.type) {
    case 'RunStarted': {
      const { shop, parts, lookEveryMs } = event.data.facts as {
        shop: string;
        parts: string[];
        lookEveryMs: number;
      };
      const fresh = { attempts: 0, startedAt: '', made: false, noted: false };
      return {
        ...state,
        status: 'working',
        shop,
        lookEveryMs,
        parts: parts.map((name) => ({ name, ...fresh })),
      };
    }
    case 'RunInputTaken':
      return { ...state, colours: [...state.colours, event.data.facts['colour'] as string] };
    case 'EffectStarted':
      return part(event.data.effectId, { attempts: event.data.attempt, startedAt: event.data.at });
    case 'EffectSucceeded':
      return part(event.data.effectId, { made: true });
    case 'CommandAccepted':
      return part(event.data.key, { noted: true });
    case 'TimerScheduled':
      return { ...state, deadline: event.data.dueAt };
    case 'ObservationTaken':
      return { ...state, seen: [...state.seen, event.data.assessment['colour'] as string] };
    case 'RunClosed':
      return { ...state, status: 'closed' };
    default:
      return state;
  }
};

export const toyWorkflow: Workflow<ToyRun, RunEvent> = {
  name: 'toyRun',
  inputTypes: ['ToyOrdered', 'ToyPainted'],
  runIdOf: (event) => event.stream.slice('toy-'.length),
  initialState: () => ({ status: 'none', shop: '', parts: [], lookEveryMs: 0, colours: [], seen: [] }),
  evolve,
  decide: (state, input) => {
    const at = input.now;
    switch (input.kind) {
      case 'event': {
        const { type, data, revision, tenant } = input.event;
        if (type === 'ToyPainted') {
          if (data['colour'] === 'poison') throw new Error('this colour is poison');
          if (state.status !== 'working') return [];
          return [
            { type: 'RunInputTaken', data: { at, type, revision, facts: { colour: data['colour'] ?? '' } } },
          ];
        }
        if (state.status !== 'none') return [];
        const lookEveryMs = data['lookEveryMs'] ?? 0;
        const facts = { shop: data['shop'] ?? '', parts: data['parts'] ?? [], lookEveryMs };
        const runId = data['id'] as string;
        const started: RunEvent = {
          type: 'RunStarted',
          data: { at, workflow: 'toyRun', runId, tenant, revision, facts },
        };
        if (data['patienceMs'] === undefined) return [started];
        const dueAt = new Date(Date.parse(at) + Number(data['patienceMs'])).toISOString();
        return [started, { type: 'TimerScheduled', data: { at, timerId: 'patience', dueAt } }];
      }
      case 'effect-result': {
        if (state.status !== 'working' || input.outcome.outcome !== 'done') return [];
        const attempt = state.parts.find((part) => part.name === input.effectId)?.attempts ?? 0;
        return [
          {
            type: 'EffectSucceeded',
            data: { at, effectId: input.effectId, attempt, result: input.outcome.result },
          },
        ];
      }
      case 'command-result': {
        if (!input.result.accepted) return [];
        const noted: RunEvent = { type: 'CommandAccepted', data: { at, key: input.commandKey } };
        const last = state.parts.every((part) => part.noted || part.name === input.commandKey);
        return last ? [noted, { type: 'RunClosed', data: { at, outcome: 'deleted' } }] : [noted];
      }
      case 'timer-due':
        if (state.status !== 'working') return [];
        return [
          { type: 'TimerFired', data: { at, timerId: input.timerId } },
          { type: 'RunClosed', data: { at, outcome: 'cancelled' } },
        ];
      case 'observation': {
        const colour = input.observation['colour'] as string;
        if (state.status !== 'working' || state.seen.at(-1) === colour) return [];
        return [
          { type: 'ObservationTaken', data: { at, number: state.seen.length + 1, assessment: { colour } } },
        ];
      }
    }
  },
  pending: (state) => {
    if (state.status !== 'working') return { commands: [], effects: [], timers: [] };
    const arrived = state.parts.find((part) => part.made && !part.noted);
    const wanted = state.parts.find((part) => !part.made);
    const command = { type: 'NotePart', part: arrived?.name ?? '' };
    return {
      commands:
        arrived === undefined
          ? []
          : [{ key: arrived.name, aggregate: 'toy', id: state.shop === '' ? 'x' : orderOf(state), command }],
      effects: [
        ...(wanted === undefined || arrived !== undefined ? [] : [effectOf(state, wanted)]),
        ...(state.lookEveryMs === 0 ? [] : [lookOf(state)]),
      ],
      timers: state.deadline === undefined ? [] : [{ timerId: 'patience', dueAt: state.deadline }],
    };
  },
  wakes: { types: ['ToyShopOpened'], timerId: 'patience' },
  hubOf: ({ status, shop }) => (status === 'none' ? undefined : `hub of ${shop}`),
  isClosed: (state) => state.status === 'closed',
};

/** The toy's id is the shop's text after the slash: `<shop>/<id>`. */
const orderOf = (state: ToyRun): string => state.shop.slice(state.shop.indexOf('/') + 1);

const effectOf = (state: ToyRun, part: Part): PendingEffect => ({
  effectId: part.name,
  port: 'workshop',
  operation: 'make',
  args: { shop: state.shop.split('/')[0] ?? '', name: `${orderOf(state)}-${part.name}` },
  attempt: part.attempts + 1,
  mode: part.attempts === 0 ? 'perform' : 'observe',
  lane: `shop:${state.shop.split('/')[0]}`,
  ...(part.attempts > 0 && {
    notBefore: new Date(Date.parse(part.startedAt) + TOY_BACKOFF_MS).toISOString(),
  }),
});

const lookOf = (state: ToyRun): PendingEffect => ({
  effectId: 'look',
  port: 'workshop',
  operation: 'look',
  args: { shop: state.shop.split('/')[0] ?? '' },
  attempt: 1,
  mode: 'observe',
  lane: `look:${state.shop.split('/')[0]}`,
  // A toy in a hurry is looked at more often than it was ordered to be.
  everyMs: state.seen.includes('hurry') ? Math.min(20, state.lookEveryMs) : state.lookEveryMs,
});

const any = (type: string, context: string): EventType => ({
  type,
  version: 1,
  context,
  audience: 'internal',
  schema: z.record(z.string(), z.unknown()),
});
export const RUN_EVENT_TYPES = [
  'RunStarted',
  'RunInputTaken',
  'EffectStarted',
  'EffectSucceeded',
  'TimerScheduled',
  'TimerFired',
  'CommandAccepted',
  'ObservationTaken',
  'RunClosed',
];
const TOY_TYPES = ['ToyOrdered', 'ToyPartArrived', 'ToyShopOpened', 'ToyPainted'];
export const toyCodec = () =>
  createEventCodec([
    ...TOY_TYPES.map((type) => any(type, 'toys')),
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
    ownership: createLeaseOwnership({
      store,
      name: 'processes',
      instance,
      directory: instance,
      clock,
      timers,
      logger,
    }),
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
  },
): Promise<void> => {
  const { id, shop = 'one', parts = ['body'], ...rest } = order;
  const data = { id, shop: `${shop}/${id}`, parts, ...rest };
  await appendToy(store, id, 'ToyOrdered', data);
};

/** Appends an event to the toy's stream as the command runner would. */
export const appendToy = async (store: EventStore, id: string, type: string, data: object): Promise<void> => {
  const stream = `toy-${id}`;
  const expected = await store.currentRevision(stream);
  const metadata = {
    tenant: `tenant-of-${id}`,
    project: 'default',
    actor: { subjectId: 'someone', roles: [], authMethod: 'jwt' },
    command: type,
    commandId: `${id}-${type}-${expected}`,
    requestHash: '',
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

export const isDone = async (store: EventStore, id: string): Promise<boolean> =>
  (await readAll(store, `toyRun-${id}`)).at(-1)?.type === 'RunClosed';
