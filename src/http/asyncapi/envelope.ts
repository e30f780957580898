import type { JsonObject } from '../../domain/json.ts';
import { record, TEXT, TIME } from '../openapi/ledger-schemas.ts';

/** Envelope and headers of the records, as JSON Schema (docs/streams.md says what each is for). */
const REVISION: JsonObject = { type: 'integer', minimum: 0, maximum: 2 ** 31 - 1 };

const ATTRIBUTES: JsonObject = {
  specversion: { const: '1.0' },
  id: TEXT,
  source: TEXT,
  time: TIME,
  datacontenttype: { const: 'application/json' },
};

/** Extensions that every record of an event has, and those that are left out where they would be empty. */
const PLACE: JsonObject = {
  osacstream: { ...TEXT, description: 'Stream of the event log.' },
  osacrevision: {
    ...REVISION,
    description: 'Revision of the stream: apply what is newer than the last one seen.',
  },
  osacposition: {
    type: 'string',
    pattern: '^[0-9]+$',
    description: 'Position in the whole log; sorts as text.',
  },
};
const CAUSES: JsonObject = {
  osaccorrelation: { ...TEXT, description: 'Id that all events of one undertaking share.' },
  osaccausation: { ...TEXT, description: 'The command or event that led to it.' },
  osacactor: { ...TEXT, description: 'Pseudonym of who did it; `system` for the service itself.' },
  osaconbehalfof: {
    ...TEXT,
    description: 'Pseudonym of the person for whom it was done, where that is another.',
  },
  osactenant: TEXT,
  osacproject: TEXT,
  traceparent: { ...TEXT, description: 'W3C Trace Context.' },
};
/** On events only, which say by `osacaudience` whose they are. */
export const SITE: JsonObject = {
  osacsite: { ...TEXT, description: 'Hub; only where the provider alone reads.' },
};
/** On metering records only. */
const DELIVERED: JsonObject = {
  osacdelivered: {
    ...TIME,
    description:
      'Time of the first READY, from which on `usage` bills; absent before it. See docs/streams.md.',
  },
};
const RESOURCE: JsonObject = {
  osacresourceid: TEXT,
  osacresourcetype: TEXT,
};

/** A record of one of our own topics; `sometimes`: attributes that it may have beside those of every record. */
export const ownEnvelope = (
  type: string,
  data: JsonObject,
  more: JsonObject = {},
  sometimes: JsonObject = {},
): JsonObject => envelope(type, data, { ...PLACE, ...RESOURCE, ...more }, { ...CAUSES, ...sometimes });

/** A record of OSAC's metering topics: the place in the log is an addition of ours. */
export const meteringEnvelope = (
  type: string,
  data: JsonObject,
  { sources, ids }: { readonly sources: readonly string[]; readonly ids: string },
): JsonObject =>
  envelope(
    type,
    data,
    { id: { ...TEXT, pattern: ids }, source: { enum: [...sources] }, ...RESOURCE, osactenant: TEXT },
    { ...PLACE, ...CAUSES, ...DELIVERED },
  );

const envelope = (type: string, data: JsonObject, always: JsonObject, sometimes: JsonObject): JsonObject => {
  const required: JsonObject = { ...ATTRIBUTES, type: { const: type }, ...always, data };
  const optional = Object.entries(sometimes).filter(([name]) => !Object.hasOwn(required, name));
  return record({
    ...required,
    ...Object.fromEntries(optional.map(([name, schema]) => [`${name}?`, schema])),
  });
};

const PLACE_HEADERS: JsonObject = {
  osacstream: TEXT,
  osacrevision: { type: 'string', pattern: '^[0-9]+$' },
};
export const OWN_HEADERS = record({
  'content-type': { const: 'application/cloudevents+json; charset=utf-8' },
  ...PLACE_HEADERS,
});
export const TOMBSTONE_HEADERS = record(PLACE_HEADERS);
export const meteringHeaders = (
  type: string,
  { sources, ids }: { readonly sources: readonly string[]; readonly ids: string },
): JsonObject =>
  record({
    ce_specversion: { const: '1.0' },
    ce_type: { const: type },
    ce_source: { enum: [...sources] },
    ce_id: { ...TEXT, pattern: ids },
  });
