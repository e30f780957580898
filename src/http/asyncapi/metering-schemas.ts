import type { JsonObject } from '../../domain/json.ts';
import { METERING_TOPICS } from '../../app/streams/topics.ts';
import { meteredKinds } from '../../domain/acting-kinds.ts';
import { METERING_SOURCE } from '../../domain/metering/records.ts';
import { TEXT } from './envelope.ts';

/** OSAC's metering records (metering-events.md §4) and ours in their form, by their type: topic, sources and `data`. */
export type MeteringMessage = {
  readonly type: string;
  /** Default: the type. */
  readonly name?: string;
  readonly topic: string;
  readonly sources: readonly string[];
  /** Pattern of ids, which consumers know duplicates by (metering-events.md §6). */
  readonly ids: string;
  readonly data: JsonObject;
  /** One of a kind that the service never sends itself. */
  readonly example?: { readonly headers: JsonObject; readonly payload: JsonObject };
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
  resource_type: { enum: meteredKinds.map(({ meter }) => meter.resourceType) },
  tenant_id: TEXT,
  project_id: NULLABLE,
};
const VERSION: JsonObject = { const: 'v1' };

const lifecycle = (dimensions: JsonObject, resourceType = 'cluster_order'): JsonObject =>
  record({
    ...IDENTITY,
    resource_type: { const: resourceType },
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

const REASONS = ['missed_creation', 'state_drift', 'billing_dimensions_drift', 'missed_deletion'] as const;

const correction = record(
  {
    ...IDENTITY,
    reason: { enum: [...REASONS] },
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

const UUID = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const NODE_SET = '/[^/]+';
/** Projected and actual state are empty where there is none; the sum is FNV-64 of dimensions and interval. */
const CORRECTION_ID = `^correction/[^/]+/(${REASONS.join('|')})/[A-Z_]*/[A-Z_]*/[0-9a-f]{1,16}(${NODE_SET})?$`;

const CORRECTION = 'osac.resource.correction.v1';
const RECONCILER = `${METERING_SOURCE}/reconciler`;
const corrected = '0193a1b2-0000-7000-8000-0000000000c1';
const correctionId = `correction/${corrected}/state_drift/READY/FAILED/9e3779b97f4a7c15/workers`;
const CORRECTION_EXAMPLE = {
  headers: { ce_specversion: '1.0', ce_type: CORRECTION, ce_source: RECONCILER, ce_id: correctionId },
  payload: {
    specversion: '1.0',
    id: correctionId,
    source: RECONCILER,
    type: CORRECTION,
    time: '2026-11-21T12:00:00.000Z',
    datacontenttype: 'application/json',
    osacresourceid: corrected,
    osacresourcetype: 'cluster_order',
    osactenant: 'acme',
    data: {
      resource_id: corrected,
      resource_type: 'cluster_order',
      tenant_id: 'acme',
      project_id: null,
      reason: 'state_drift',
      description: 'the projection has READY, the service FAILED',
      corrected_state: 'FAILED',
      previous_state_in_projection: 'READY',
      actual_state_from_source: 'FAILED',
      billing_dimensions: {
        cluster_template: 'small',
        node_set: 'workers',
        component: 'worker',
        host_type: 'fc430',
        node_count: 2,
      },
      schema_version: 'v1',
    },
  },
} as const;

export const METERING_MESSAGES: readonly MeteringMessage[] = [
  ...['created', 'started', 'resumed', 'suspended', 'updated', 'deleted'].map((change) => ({
    type: `osac.resource.${change}.v1`,
    topic: METERING_TOPICS.lifecycle,
    sources: [METERING_SOURCE],
    ...(change === 'created' || change === 'deleted'
      ? { ids: `^${UUID}$`, data: lifecycle(WHOLE) }
      : { ids: `^${UUID}${NODE_SET}$`, data: lifecycle(COMPONENT) }),
  })),
  {
    type: 'osac.resource.heartbeat.v1',
    topic: METERING_TOPICS.heartbeat,
    sources: [METERING_SOURCE],
    // Of the start of the window, in seconds since 1970.
    ids: `^hb/[^/]+/[0-9]+${NODE_SET}$`,
    data: heartbeat,
  },
  // What is billed as a whole has no component, so that its amounts never change.
  ...['created', 'started', 'resumed', 'suspended', 'deleted'].map((change) => ({
    type: `osac.resource.${change}.v1`,
    name: `${METERING_TOPICS.extra}.${change}.v1`,
    topic: METERING_TOPICS.extra,
    sources: [METERING_SOURCE],
    ids: `^${UUID}(/[a-z]+)?$`,
    data: lifecycle(record({ external_ip_pool: TEXT }), 'external_ip'),
  })),
  {
    type: CORRECTION,
    topic: METERING_TOPICS.corrections,
    sources: [RECONCILER],
    ids: CORRECTION_ID,
    data: correction,
    example: CORRECTION_EXAMPLE,
  },
];
