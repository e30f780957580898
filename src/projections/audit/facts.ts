import type { RecordedEvent } from '../../app/log/event-store.ts';
import { actingKinds } from '../../domain/acting-kinds.ts';
import { objectAt, own, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { encodeId } from '../../domain/stream-name.ts';
import { ASKING, isHidden, namedIn, STREAMS_OF, type Named } from './mentions.ts';

/** What became of the call behind an event: everything but a recorded refusal was accepted. */
export const OUTCOMES = ['accepted', 'rejected', 'denied', 'unauthenticated'] as const;
export type AuditOutcome = (typeof OUTCOMES)[number];

/** What an auditor may ask for events by. Read from the event as stored, whatever its type: never fails. */
export type EventFacts = {
  /** '' when the event names none: the service's own. */
  readonly tenant: string;
  readonly subject: string;
  /** Category and stream of the document that it is about; '' when it is about none. */
  readonly kind: string;
  readonly resource: string;
  readonly outcome: AuditOutcome;
  /** What it is about beside that, and whether only the provider finds it by these. */
  readonly also: readonly Named[];
  /** The same of what somebody has asked for: its tenant finds it by what is the tenant's own alone. */
  readonly asked: readonly Named[];
  readonly hidden: boolean;
};

/** Streams of workflow runs belong to the document of the same id. */
export const RUNS_OF: { readonly [category: string]: string } = Object.fromEntries(
  actingKinds.map(({ workflow, kind }) => [workflow.name, kind]),
);

const REFUSED = 'RequestRefused';

/**
 * An event is about the document of its stream, about the one whose workflow run it belongs to, or, when it records a
 * refused call, about the one that the call named; and beside that about what it names (mentions.ts).
 */
export const factsOf = ({
  stream,
  type,
  data,
  metadata,
}: Pick<RecordedEvent, 'stream' | 'type' | 'data' | 'metadata'>): EventFacts => {
  const tenant = searchable(stringAt(metadata, 'tenant'));
  const subject = searchable(stringAt(objectAt(metadata, 'actor'), 'subjectId'));
  const hidden = isHidden(type, tenant, data);
  if (type !== REFUSED) {
    const named = namedIn(type, data);
    const [told, asked] = ASKING.has(type) ? [[], named] : [named, []];
    const also = [...ownerOf(stream), ...told, ...principalOf(metadata)];
    return { tenant, subject, ...documentOf(stream), outcome: 'accepted', also, asked, hidden };
  }
  const outcome = OUTCOMES.find((known) => known === own(data, 'outcome')) ?? 'rejected';
  return {
    tenant,
    subject: subject || searchable(stringAt(data, 'subjectId')),
    ...documentNamed(stringAt(data, 'kind'), stringAt(data, 'resourceId')),
    outcome,
    also: principalOf(metadata),
    asked: [],
    hidden,
  };
};

/** The stream under which everything about a document is found; '' for what cannot be one. */
export const resourceStream = (kind: string, id: string): string =>
  kind === '' || id === '' ? '' : searchable(`${kind}-${encodeId(id)}`);

const documentNamed = (kind: string, id: string) => {
  const resource = resourceStream(kind, id);
  return { kind: resource === '' ? '' : searchable(kind), resource };
};

/** The person for whom somebody else called. What the service does for who ordered something is about that thing alone. */
const principalOf = (metadata: JsonObject): readonly Named[] => {
  const actor = objectAt(metadata, 'actor');
  const id = stringAt(actor, 'authMethod') === 'internal' ? '' : stringAt(actor, 'onBehalfOf');
  return id === '' ? [] : [{ kind: 'user', id }];
};

/** The object to which a stream belongs that is one of its own. */
const ownerOf = (stream: string): readonly Named[] => {
  const at = stream.indexOf('-');
  const kind = at <= 0 ? undefined : own(STREAMS_OF, stream.slice(0, at));
  return kind === undefined ? [] : [{ stream: `${kind}${stream.slice(at)}` }];
};

/** Kind and stream of the document of a stream; both '' when the stream has none. */
export const documentOf = (stream: string): { readonly kind: string; readonly resource: string } => {
  const at = stream.indexOf('-');
  if (at <= 0) return { kind: '', resource: '' };
  const category = stream.slice(0, at);
  const kind = searchable(own(RUNS_OF, category) ?? category);
  return { kind, resource: searchable(`${kind}${stream.slice(at)}`) };
};

/** Text as a column holds it: a lone surrogate has no UTF-8, and everybody else replaces it, too. */
export const searchable = (text: string): string => text.toWellFormed();
