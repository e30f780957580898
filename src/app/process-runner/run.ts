import type { DomainEvent } from '../../domain/decider.ts';
import type { Pending } from '../../domain/workflow.ts';
import type { RecordedEvent } from '../event-store.ts';
import { principalIn, SYSTEM_SUBJECT, workflowActor, type EventMetadata } from '../metadata.ts';
import type { RunRow } from './run-index.ts';
import type { AnyWorkflow, Asked, RunCodec } from './types.ts';

/** A run folded from its stream, and what the runner itself needs to know of it. */
export type Run = {
  /** Name of the run's stream. */
  readonly key: string;
  readonly workflow: AnyWorkflow;
  readonly runId: string;
  state: unknown;
  /** -1: no run event yet. */
  revision: number;
  /** Of the originating order; empty until the first input. */
  tenant: string;
  project: string;
  correlationId: string;
  /** Who made the last request that the run took in, its ticket and trace: what it does now is done for that. */
  asked: Asked;
  /** Id of the newest run event; causation of what follows from it. */
  lastEventId: string;
  /** Highest revision taken in per input stream: what a redelivery is recognised by. */
  taken: { [stream: string]: number };
  /** Newest `EffectStarted` per effect that is still outstanding. */
  started: { [effectId: string]: EffectStart };
};

type Asking = Pick<EventMetadata, 'ticket' | 'traceparent' | 'actor'>;

/** What of a request's metadata goes on to what follows from it, or of a run's own what was put down of the request. */
export const askedIn = ({ ticket, traceparent, actor }: Asking): Asked => {
  const principal = principalIn(actor);
  return {
    ...(ticket !== undefined && { ticket }),
    ...(traceparent !== undefined && { traceparent }),
    ...(principal !== SYSTEM_SUBJECT && { onBehalfOf: principal }),
  };
};

/** The fields of metadata that tell of a request, in what the workflow does for it. */
export const askedOf = (
  workflow: string,
  { onBehalfOf, ...asked }: Asked,
): Pick<EventMetadata, 'ticket' | 'traceparent' | 'actor'> => ({
  actor: workflowActor(workflow, onBehalfOf),
  ...asked,
});

export type EffectStart = {
  readonly attempt: number;
  readonly epoch: number;
  readonly instance: string;
  readonly at: string;
  /** Of the first attempt; absent when its start is no longer remembered. */
  readonly firstAt?: string;
};

/** The one run event that the runner writes by itself (design §6): before an effect, at the expected revision. */
export const EFFECT_STARTED = 'EffectStarted';

export const newRun = (key: string, workflow: AnyWorkflow, runId: string): Run => ({
  key,
  workflow,
  runId,
  state: workflow.initialState(),
  revision: -1,
  tenant: '',
  project: '',
  correlationId: '',
  asked: {},
  lastEventId: '',
  taken: {},
  started: {},
});

/** Folds one stored run event; older ones than known are ignored. */
export const foldRecorded = (run: Run, recorded: RecordedEvent, codec: RunCodec): void => {
  if (recorded.revision <= run.revision) return;
  fold(
    run,
    codec.decode(recorded),
    recorded.revision,
    recorded.id,
    recorded.metadata as unknown as EventMetadata,
  );
};

export const fold = (
  run: Run,
  event: DomainEvent,
  revision: number,
  id: string,
  metadata: Pick<
    EventMetadata,
    'tenant' | 'project' | 'actor' | 'correlationId' | 'instance' | 'inputs' | 'ticket' | 'traceparent'
  >,
): void => {
  run.state = run.workflow.evolve(run.state, event);
  run.revision = revision;
  run.lastEventId = id;
  run.tenant = metadata.tenant;
  run.project = metadata.project;
  run.correlationId = metadata.correlationId;
  run.asked = askedIn(metadata);
  for (const [stream, taken] of Object.entries(metadata.inputs ?? {})) {
    run.taken[stream] = Math.max(run.taken[stream] ?? -1, taken);
  }
  if (event.type === EFFECT_STARTED) {
    const data = event.data as { effectId: string; attempt: number; epoch: number; at: string };
    const { effectId, attempt, epoch, at } = data;
    const firstAt = attempt === 1 ? at : run.started[effectId]?.firstAt;
    const start = { attempt, epoch, at, instance: metadata.instance };
    run.started[effectId] = { ...start, ...(firstAt === undefined ? {} : { firstAt }) };
  }
};

export const isTaken = (run: Run, input: { stream: string; revision: number }): boolean =>
  input.revision <= (run.taken[input.stream] ?? -1);

export const NOTHING: Pending = { commands: [], effects: [], timers: [] };

export const pendingOf = (run: Run): Pending =>
  run.revision < 0 || run.workflow.isClosed(run.state) ? NOTHING : run.workflow.pending(run.state);

/** Forgets the starts of effects that are no longer outstanding. */
export const pruneStarts = (run: Run, pending: Pending): void => {
  const wanted = new Set(pending.effects.map((effect) => effect.effectId));
  for (const effectId of Object.keys(run.started)) {
    if (!wanted.has(effectId)) delete run.started[effectId];
  }
};

type Memory = Omit<Run, 'key' | 'workflow' | 'runId' | 'revision'>;

export const toRow = (run: Run, pending: Pending): RunRow => {
  const closed = run.revision >= 0 && run.workflow.isClosed(run.state);
  const { key, workflow, runId, revision, ...memory } = run;
  return {
    key,
    workflow: workflow.name,
    runId,
    revision,
    closed,
    // Timed reads have an alarm that wakes them.
    work: pending.commands.length > 0 || pending.effects.some(({ everyMs }) => everyMs === undefined),
    // A closed run will never decide again; `taken` alone recognises late redeliveries, and so does its being closed.
    memory: closed ? '' : JSON.stringify(memory satisfies Memory),
  };
};

/** Undefined for a closed run: its state is forgotten. */
export const fromRow = (row: RunRow, workflow: AnyWorkflow): Run | undefined => {
  if (row.closed) return undefined;
  return {
    key: row.key,
    workflow,
    runId: row.runId,
    revision: row.revision,
    // Rows of an earlier release do not have it.
    asked: {},
    ...(JSON.parse(row.memory) as Omit<Memory, 'asked'> & Partial<Memory>),
  };
};
