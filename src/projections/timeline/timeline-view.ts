import type { RecordedEvent } from '../../app/log/event-store.ts';
import type { ActingKind } from '../../domain/acting-kind.ts';
import { own } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { because, from, textOf } from '../../domain/sentences.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { View } from '../view.ts';

/** The kinds whose objects have a timeline: their declarations hold what it says of their own events. */
type ToldKind = Pick<ActingKind, 'kind' | 'workflow' | 'timeline'>;
type Words = Pick<ToldKind['timeline'], 'deeds' | 'timers'>;

/** Of the events that the runs of all workflows have in common. */
const OF_RUNS: { readonly [type: string]: string | ((data: JsonObject, words: Words) => string) } = {
  EffectStarted: (data, words) => `${stepOf(data, words)} was started, attempt ${textOf(data['attempt'])}.`,
  EffectSucceeded: (data, words) => `${stepOf(data, words)} is done.`,
  EffectFailed: (data, words) => `${stepOf(data, words)} failed${because(data)}; it will be retried.`,
  EffectRefused: (data, words) => `${stepOf(data, words)} was refused${because(data)}.`,
  EffectOutcomeUnknown: (data, words) =>
    `${stepOf(data, words)} has an unknown outcome${because(data)}; the ledger asks the hub.`,
  EffectStalled: (data, words) =>
    `${stepOf(data, words)} has not succeeded after ${textOf(data['attempts'])} attempts${because(data)}; retries go on at the longest interval.`,
  // What follows a colon says of what it is the timer.
  TimerFired: ({ timerId }, { timers }) =>
    own(timers, textOf(timerId).split(':')[0] ?? '') ?? `Timer ${textOf(timerId)} fired.`,
  CommandRefused: (data) =>
    `${textOf(data['key']) || 'A command'} was refused${because({ ...data, reason: data['code'] ?? '' })}.`,
  EffectSettled: (data, words) =>
    `${stepOf(data, words)} ${data['found'] === true ? 'took effect' : 'did not take effect'}, as a look showed.`,
  RunRetried: (data) => `An operator requested a retry${from(textOf(data['reason']), ': ')}.`,
  RunAborted: (data) => `An operator aborted the work${from(textOf(data['reason']), ': ')}.`,
  StepSkipped: (data) => `Step ${textOf(data['step'])} was skipped${from(textOf(data['reason']), ': ')}.`,
  StepResumed: (data) => `Step ${textOf(data['step'])} was resumed${from(textOf(data['reason']), ': ')}.`,
};

/** `data` as the reader may see it. A type without a sentence shows its name. */
export const summaryOf = (
  { timeline }: Pick<ToldKind, 'timeline'>,
  type: string,
  data: JsonObject,
): string => {
  const sentence = own(timeline.sentences, type) ?? own(OF_RUNS, type) ?? type;
  return typeof sentence === 'string' ? sentence : sentence(data, timeline);
};

const stepOf = (data: JsonObject, { deeds }: Words): string => {
  const id = textOf(data['effectId']);
  const deed = own(deeds, id.split(':')[0] ?? '');
  return `Step ${id}${deed === undefined ? '' : ` (to ${deed})`}`.trimEnd();
};

/** What the timeline needs of the registry of event types. */
export type EventWords = {
  /** Lifts an event to the current version of its type. */
  readonly decode: (event: Pick<RecordedEvent, 'type' | 'data' | 'metadata'>) => TimelineEvent;
  /** The event as this audience may see it; undefined: not at all. */
  readonly redact: (event: TimelineEvent, audience: 'tenant' | 'provider') => TimelineEvent | undefined;
};
type TimelineEvent = { readonly type: string; readonly data: JsonObject };

type TimelineViewOptions = {
  readonly words: EventWords;
  readonly kinds: readonly ToldKind[];
};

/**
 * What happened to an order, oldest first: events of its document and of its workflow run. Internal
 * events are left out; what tenants see is kept apart only where it differs from what the provider sees.
 */
export const timelineView = ({ words, kinds }: TimelineViewOptions): View =>
  timelineOf(words, byCategory(kinds));

/** Of one order is every stream of its document and every one of its run. */
const byCategory = (kinds: readonly ToldKind[]): ReadonlyMap<string, ToldKind> =>
  new Map(
    kinds.flatMap((kind) => [kind.kind, kind.workflow.name].map((category) => [category, kind] as const)),
  );

const timelineOf = (words: EventWords, kinds: ReadonlyMap<string, ToldKind>): View => ({
  name: 'timeline',
  version: 6,
  settings: JSON.stringify({ categories: [...kinds.keys()] }),
  schema: `
    CREATE TABLE entries (
      kind TEXT NOT NULL,
      id TEXT NOT NULL,
      position TEXT NOT NULL,
      at TEXT NOT NULL,
      type TEXT NOT NULL,
      audience TEXT NOT NULL CHECK (audience IN ('tenant', 'provider')),
      actor TEXT NOT NULL,
      correlation_id TEXT NOT NULL,
      summary TEXT NOT NULL,
      data TEXT NOT NULL,
      tenant_summary TEXT,
      tenant_data TEXT,
      PRIMARY KEY (kind, id, position)
    ) STRICT;
  `,
  tables: ['entries'],
  filter: { streamPrefixes: [...kinds.keys()].map((category) => `${category}-`) },
  rowsBelongToOneStream: true,
  // No write waits for its entries; a read that names a position wakes it.
  isUrgent: false,
  gatherMs: 100,
  open: (db) => {
    // A redelivered event writes the same row again.
    const insert = db.prepare('INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
    return (event) => {
      const { category, id } = parseStreamName(event.stream);
      const kind = kinds.get(category);
      if (kind === undefined) return;
      const decoded = words.decode(event);
      const provider = words.redact(decoded, 'provider');
      if (provider === undefined) return;
      const tenant = words.redact(decoded, 'tenant');
      const shown = textsOf(kind, provider);
      const forTenants = tenant === undefined || tenant === provider ? shown : textsOf(kind, tenant);
      insert.run(
        kind.kind,
        id,
        event.position,
        text(event.metadata['occurredAt']) || event.recordedAt,
        decoded.type,
        tenant === undefined ? 'provider' : 'tenant',
        text((event.metadata['actor'] as JsonObject | undefined)?.['subjectId']),
        text(event.metadata['correlationId']),
        shown.summary,
        shown.data,
        forTenants.summary === shown.summary ? null : forTenants.summary,
        forTenants.data === shown.data ? null : forTenants.data,
      );
    };
  },
});

const textsOf = (kind: ToldKind, { type, data }: TimelineEvent): { summary: string; data: string } => ({
  summary: summaryOf(kind, type, data),
  data: JSON.stringify(data),
});
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
