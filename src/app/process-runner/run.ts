import type { DomainEvent } from '../../domain/decider.ts';
import type { JsonObject } from '../../domain/json.ts';
import { defined } from '../../domain/json-tools.ts';
import { streamName } from '../../domain/stream-name.ts';
import type { FoldedEvent, Pending } from '../../domain/workflow.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import { principalIn, SYSTEM_SUBJECT, workflowActor, type EventMetadata } from '../log/metadata.ts';
import type { RunRow } from './run-index.ts';
import type { AnyWorkflow, Asked, RunCodec } from './types.ts';

/** A run folded from its subject's stream and its own, and what the runner itself needs to know of it. */
export type Run = {
  /** Name of the run's stream. */
  readonly key: string;
  readonly workflow: AnyWorkflow;
  readonly runId: string;
  /** Name of the stream that the run is about. */
  readonly subject: string;
  state: unknown;
  /** What was outstanding in this very state: it is asked several times. */
  outstanding?: { readonly state: unknown; readonly pending: Pending };
  /** Of its own stream; -1: nothing was recorded yet. */
  revision: number;
  /** Of the subject's stream; -1: nothing of it is folded. */
  subjectRevision: number;
  /** The subject was folded further, and what follows from that was not asked yet. */
  unsettled: boolean;
  /** Of the subject's first event; empty until then. */
  tenant: string;
  project: string;
  correlationId: string;
  /** Who made the newest request that was folded, its ticket and trace: what the run does is done for that. */
  asked: Asked;
  /** Id of the newest event: it causes what follows. A start of an effect causes its own outcome alone. */
  lastEventId: string;
  /** Newest `EffectStarted` per effect that is still outstanding. */
  started: { [effectId: string]: EffectStart };
};

type Asking = Pick<EventMetadata, 'ticket' | 'traceparent' | 'actor'>;

/** What of a request's metadata goes on to what follows from it. */
const askedIn = ({ ticket, traceparent, actor }: Asking): Asked => {
  const principal = principalIn(actor);
  return defined({
    ticket,
    traceparent,
    onBehalfOf: principal === SYSTEM_SUBJECT ? undefined : principal,
  });
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
  /** Of its `EffectStarted`. */
  readonly id: string;
  readonly attempt: number;
  readonly epoch: number;
  readonly instance: string;
  readonly at: string;
  /** Of the first attempt; absent when its start is no longer remembered. */
  readonly firstAt?: string;
};

/** The one run event that the runner writes by itself: before an effect, at the expected revision. */
export const EFFECT_STARTED = 'EffectStarted';

export const newRun = (workflow: AnyWorkflow, runId: string): Run => ({
  key: streamName(workflow.name, runId),
  workflow,
  runId,
  subject: streamName(workflow.subject, runId),
  state: workflow.initialState(),
  revision: -1,
  subjectRevision: -1,
  unsettled: false,
  tenant: '',
  project: '',
  correlationId: '',
  asked: {},
  lastEventId: '',
  started: {},
});

export type FoldedMetadata = Asking &
  Pick<EventMetadata, 'tenant' | 'project' | 'correlationId' | 'causationId' | 'instance'>;

/** Folds one stored event of either stream, unless it is folded already or the workflow does not name its type. */
export const foldRecorded = (run: Run, recorded: RecordedEvent, codec: RunCodec): void => {
  const { id, revision, metadata } = recorded;
  const of = recorded.stream === run.key ? 'run' : 'subject';
  if (revision <= (of === 'run' ? run.revision : run.subjectRevision)) return;
  if (of === 'subject' && !run.workflow.subjectTypes.includes(recorded.type)) return;
  fold(run, of, codec.decode(recorded), { id, revision }, metadata as unknown as FoldedMetadata);
};

export const fold = (
  run: Run,
  of: FoldedEvent['of'],
  { type, data }: DomainEvent,
  { id, revision }: Pick<FoldedEvent, 'id' | 'revision'>,
  metadata: FoldedMetadata,
): void => {
  const { tenant, project, correlationId, causationId } = metadata;
  const event = { of, id, type, data: data as JsonObject, revision, causationId, tenant };
  run.state = run.workflow.evolve(run.state, event);
  if (metadata.actor.authMethod !== 'internal') run.asked = askedIn(metadata);
  if (of === 'subject') {
    if (run.subjectRevision < 0) Object.assign(run, { tenant, project, correlationId });
    run.subjectRevision = revision;
    run.unsettled = true;
  } else run.revision = revision;
  if (of === 'run' && type === EFFECT_STARTED) noteStart(run, id, data, metadata.instance);
  else run.lastEventId = id;
};

const noteStart = (run: Run, id: string, data: unknown, instance: string): void => {
  const { effectId, attempt, epoch, at } = data as EffectStart & { effectId: string };
  const firstAt = attempt === 1 ? at : run.started[effectId]?.firstAt;
  const start = { id, attempt, epoch, at, instance };
  run.started[effectId] = { ...start, ...(firstAt === undefined ? {} : { firstAt }) };
};

/** How far the subject was folded when this event of a run was appended; undefined: a person's decision. */
export const inputsOf = (recorded: RecordedEvent, subject: string): number | undefined =>
  (recorded.metadata as Partial<Pick<EventMetadata, 'inputs'>>).inputs?.[subject];

export const isKnown = ({ revision, subjectRevision }: Pick<Run, 'revision' | 'subjectRevision'>): boolean =>
  revision >= 0 || subjectRevision >= 0;

/** Nothing will ever be done for it again. */
export const isOver = (run: Run): boolean => isKnown(run) && run.workflow.isClosed(run.state);

const NOTHING: Pending = { commands: [], effects: [], timers: [] };

export const pendingOf = (run: Run): Pending => {
  if (!isKnown(run)) return NOTHING;
  const { state, outstanding } = run;
  if (outstanding !== undefined && outstanding.state === state) return outstanding.pending;
  const pending = isOver(run) ? NOTHING : run.workflow.pending(state);
  run.outstanding = { state, pending };
  return pending;
};

/** Forgets the starts of effects that are no longer outstanding. */
export const pruneStarts = (run: Run, pending: Pending): void => {
  const wanted = new Set(pending.effects.map((effect) => effect.effectId));
  for (const effectId of Object.keys(run.started)) {
    if (!wanted.has(effectId)) delete run.started[effectId];
  }
};

type Memory = Omit<
  Run,
  'key' | 'workflow' | 'runId' | 'subject' | 'outstanding' | 'revision' | 'subjectRevision'
>;

export const toRow = (run: Run): RunRow => {
  const {
    key,
    workflow,
    runId,
    subject: _,
    outstanding: _pending,
    revision,
    subjectRevision,
    ...memory
  } = run;
  const closed = isOver(run);
  const pending = pendingOf(run);
  return {
    key,
    workflow: workflow.name,
    runId,
    revision,
    subjectRevision,
    closed,
    // Timed reads have an alarm that wakes them.
    work:
      !closed &&
      (run.unsettled ||
        pending.commands.length > 0 ||
        pending.effects.some(({ everyMs }) => everyMs === undefined)),
    memory: closed ? '' : JSON.stringify(memory satisfies Memory),
  };
};

/** Undefined for a closed run: its state is forgotten. */
export const fromRow = (row: RunRow, workflow: AnyWorkflow): Run | undefined => {
  if (row.closed) return undefined;
  const { runId, revision, subjectRevision } = row;
  return { ...newRun(workflow, runId), ...(JSON.parse(row.memory) as Memory), revision, subjectRevision };
};
