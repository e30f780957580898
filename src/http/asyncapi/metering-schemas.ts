import type { JsonObject } from '../../domain/json.ts';
import { METERING_TOPICS } from '../../app/streams/topics.ts';
import { METERING_SOURCE, RESOURCE_TYPE } from '../../domain/metering/records.ts';
import { TEXT } from './envelope.ts';

/** OSAC's metering records (metering-events.md §4), by their type: topic, sources and `data`. */
export type MeteringMessage = {
  readonly type: string;
  readonly topic: string;
  readonly sources: readonly string[];
  readonly data: JsonObject;
};

const NULLABLE: JsonObject = { type: ['string', 'null'] };
const COUNT: JsonObject = { type: 'integer', minimum: 0 };

const record = (properties: JsonObject, optional: readonly string[] = []): JsonObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false,
});

const WHOLE = record({ cluster_template: TEXT, release_image: TEXT }, ['release_image']);
const COMPONENT = record(
  {
    cluster_template: TEXT,
    node_set: TEXT,
    component: { enum: ['control_plane', 'worker'] },
    host_type: TEXT,
    node_count: COUNT,
    release_image: TEXT,
  },
  ['release_image'],
);

const IDENTITY: JsonObject = {
  resource_id: TEXT,
  resource_type: { const: RESOURCE_TYPE },
  tenant_id: TEXT,
  project_id: NULLABLE,
};
const VERSION: JsonObject = { const: 'v1' };

const lifecycle = (dimensions: JsonObject): JsonObject =>
  record({
    ...IDENTITY,
    catalog_item_id: NULLABLE,
    template_id: NULLABLE,
    previous_state: NULLABLE,
    current_state: TEXT,
    transition_time: {
      type: 'string',
      format: 'date-time',
      pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{9}Z$',
    },
    duration_seconds: { type: ['number', 'null'], minimum: 0 },
    billing_dimensions: dimensions,
    schema_version: VERSION,
  });

const heartbeat = record({
  ...IDENTITY,
  current_state: TEXT,
  duration_seconds: { type: 'number', minimum: 0 },
  billing_dimensions: COMPONENT,
  schema_version: VERSION,
});

const correction = record(
  {
    ...IDENTITY,
    reason: { enum: ['missed_creation', 'state_drift', 'billing_dimensions_drift', 'missed_deletion'] },
    description: TEXT,
    corrected_state: NULLABLE,
    previous_state_in_projection: NULLABLE,
    actual_state_from_source: NULLABLE,
    billing_dimensions: { anyOf: [WHOLE, COMPONENT] },
    affected_interval: { type: ['object', 'null'] },
    schema_version: VERSION,
  },
  ['billing_dimensions', 'affected_interval'],
);

export const METERING_MESSAGES: readonly MeteringMessage[] = [
  ...['created', 'started', 'resumed', 'suspended', 'updated', 'deleted'].map((change) => ({
    type: `osac.resource.${change}.v1`,
    topic: METERING_TOPICS.lifecycle,
    sources: [METERING_SOURCE],
    data: lifecycle(change === 'created' || change === 'deleted' ? WHOLE : COMPONENT),
  })),
  {
    type: 'osac.resource.heartbeat.v1',
    topic: METERING_TOPICS.heartbeat,
    sources: [METERING_SOURCE],
    data: heartbeat,
  },
  {
    type: 'osac.resource.correction.v1',
    topic: METERING_TOPICS.corrections,
    sources: [`${METERING_SOURCE}/reconciler`],
    data: correction,
  },
];
