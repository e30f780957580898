import type { RecordedEvent } from '../../app/event-store.ts';
import type { Audience } from '../../domain/event-type.ts';
import type { JsonObject } from '../../domain/json.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { View } from '../view.ts';
import { summaryOf } from './summaries.ts';

/** What the timeline needs to know of event types. */
export type EventWords = {
  /** Lifts an event to the current version of its type. */
  readonly decode: (event: Pick<RecordedEvent, 'type' | 'data' | 'metadata'>) => {
    readonly type: string;
    readonly data: JsonObject;
  };
  /** Unknown types are internal. */
  readonly audienceOf: (type: string) => Audience;
  /** `data` without what this audience must not see. */
  readonly redact: (type: string, data: JsonObject, audience: 'tenant' | 'provider') => JsonObject;
};

export type TimelineViewOptions = {
  readonly words: EventWords;
  /** Stream categories of which every stream is one order's: its document, its workflow run. */
  readonly categories: readonly string[];
};

/**
 * What happened to an order, oldest first: events of its document and of its workflow run (design §5). Text for
 * tenants is kept apart only where it differs. Of internal events only the sentence is kept, never the data.
 */
export const timelineView = ({ words, categories }: TimelineViewOptions): View => ({
  name: 'timeline',
  version: 1,
  schema: `
    CREATE TABLE entries (
      cluster_id TEXT NOT NULL,
      position TEXT NOT NULL,
      at TEXT NOT NULL,
      type TEXT NOT NULL,
      audience TEXT NOT NULL CHECK (audience IN ('tenant', 'provider', 'internal')),
      actor TEXT NOT NULL,
      correlation_id TEXT NOT NULL,
      summary TEXT NOT NULL,
      data TEXT NOT NULL,
      tenant_summary TEXT,
      tenant_data TEXT,
      PRIMARY KEY (cluster_id, position)
    ) STRICT;
  `,
  tables: ['entries'],
  filter: { streamPrefixes: categories.map((category) => `${category}-`) },
  rowsBelongToOneStream: true,
  open: (db) => {
    // A redelivered event writes the same row again.
    const insert = db.prepare('INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
    return (event) => {
      const { type, data } = words.decode(event);
      const audience = words.audienceOf(type);
      const provider = audience === 'internal' ? {} : words.redact(type, data, 'provider');
      const providerText = JSON.stringify(provider);
      const providerSummary = summaryOf(type, words.redact(type, data, 'provider'));
      const tenant = audience === 'tenant' ? words.redact(type, data, 'tenant') : provider;
      const tenantText = JSON.stringify(tenant);
      const tenantSummary = audience === 'tenant' ? summaryOf(type, tenant) : providerSummary;
      insert.run(
        parseStreamName(event.stream).id,
        event.position,
        occurredAt(event),
        type,
        audience,
        actorOf(event.metadata),
        text(event.metadata['correlationId']),
        providerSummary,
        providerText,
        tenantSummary === providerSummary ? null : tenantSummary,
        tenantText === providerText ? null : tenantText,
      );
    };
  },
});

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const occurredAt = (event: RecordedEvent): string => text(event.metadata['occurredAt']) || event.recordedAt;
const actorOf = (metadata: JsonObject): string => {
  const actor = metadata['actor'] as JsonObject | undefined;
  return text(actor?.['subjectId']);
};
