import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import type { KafkaRecord } from './stream.ts';

/** CloudEvents 1.0, structured JSON, with the extensions of docs/streams.md. */
export const CLOUD_EVENT_HEADERS = {
  'content-type': 'application/cloudevents+json; charset=utf-8',
} as const;

/** When it happened: as the event says, else when the store recorded it. */
export const timeOf = ({ metadata, recordedAt }: RecordedEvent): string =>
  stringAt(metadata, 'occurredAt') || recordedAt;

/** Unique in one store, whatever the topic: `cluster-4711@3`. */
export const eventIdOf = ({ stream, revision }: RecordedEvent): string => `${stream}@${revision}`;

export type Attributes = {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  /** RFC 3339. */
  readonly time: string;
  readonly extensions: JsonObject;
  readonly data: JsonValue;
};

export const structured = ({ id, source, type, time, extensions, data }: Attributes): string =>
  JSON.stringify({
    specversion: '1.0',
    id,
    source,
    type,
    time,
    datacontenttype: 'application/json',
    ...extensions,
    data,
  });

/**
 * Where an event stands in the log and who caused it. What is empty is left out. Where a thing runs (`osacsite`) is the
 * provider's to know.
 */
export const extensionsOf = (
  event: RecordedEvent,
  { site = false }: { readonly site?: boolean } = {},
): JsonObject => {
  const { metadata } = event;
  const { category, id } = parseStreamName(event.stream);
  const extensions: { [name: string]: string | number } = {
    osacstream: event.stream,
    osacrevision: event.revision,
    osacposition: event.position,
  };
  const add = (name: string, text: string): void => {
    if (text !== '') extensions[name] = text;
  };
  add('osaccorrelation', stringAt(metadata, 'correlationId'));
  add('osaccausation', stringAt(metadata, 'causationId'));
  const actor = objectAt(metadata, 'actor');
  add('osacactor', stringAt(actor, 'subjectId'));
  add('osaconbehalfof', stringAt(actor, 'onBehalfOf'));
  add('osactenant', stringAt(metadata, 'tenant'));
  add('osacproject', stringAt(metadata, 'project'));
  add('osacresourceid', id);
  add('osacresourcetype', category);
  if (site) add('osacsite', stringAt(metadata, 'hub'));
  add('traceparent', stringAt(metadata, 'traceparent'));
  return extensions;
};

/** A record of a topic of ours: keyed by the aggregate, with the place in its stream where no value need be read for it. */
export const recordOf = (topic: string, event: RecordedEvent, value: string | null): KafkaRecord => ({
  topic,
  key: parseStreamName(event.stream).id,
  value,
  headers: {
    ...(value === null ? {} : CLOUD_EVENT_HEADERS),
    osacstream: event.stream,
    osacrevision: String(event.revision),
  },
});
