import type { RecordedEvent } from '../../app/event-store.ts';
import { objectAt, own, stringAt } from '../../domain/json-tools.ts';
import { encodeId } from '../../domain/stream-name.ts';

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
};

/** Streams of workflow runs belong to the document of the same id. */
const RUNS_OF: { readonly [category: string]: string } = { clusterOrder: 'cluster' };

const REFUSED = 'RequestRefused';

/**
 * An event is about the document of its stream, about the one whose workflow run it belongs to, or, when it records a
 * refused call, about the one that the call named.
 */
export const factsOf = ({
  stream,
  type,
  data,
  metadata,
}: Pick<RecordedEvent, 'stream' | 'type' | 'data' | 'metadata'>): EventFacts => {
  const tenant = searchable(stringAt(metadata, 'tenant'));
  const subject = searchable(stringAt(objectAt(metadata, 'actor'), 'subjectId'));
  if (type !== REFUSED) return { tenant, subject, ...documentOf(stream), outcome: 'accepted' };
  const outcome = OUTCOMES.find((known) => known === own(data, 'outcome')) ?? 'rejected';
  return {
    tenant,
    subject: subject || searchable(stringAt(data, 'subjectId')),
    ...named(stringAt(data, 'kind'), stringAt(data, 'resourceId')),
    outcome,
  };
};

/** The stream under which everything about a document is found; '' for what cannot be one. */
export const resourceStream = (kind: string, id: string): string =>
  kind === '' || id === '' ? '' : searchable(`${kind}-${encodeId(id)}`);

const named = (kind: string, id: string) => {
  const resource = resourceStream(kind, id);
  return { kind: resource === '' ? '' : searchable(kind), resource };
};

const documentOf = (stream: string) => {
  const at = stream.indexOf('-');
  if (at <= 0) return { kind: '', resource: '' };
  const category = stream.slice(0, at);
  const kind = searchable(own(RUNS_OF, category) ?? category);
  return { kind, resource: searchable(`${kind}${stream.slice(at)}`) };
};

/** Text as a column holds it: a lone surrogate has no UTF-8, and everybody else replaces it, too. */
export const searchable = (text: string): string => text.toWellFormed();
