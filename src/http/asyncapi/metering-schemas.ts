import type { JsonObject } from '../../domain/json.ts';
import { METERING_TOPICS } from '../../app/streams/topics.ts';
import { meteredKinds } from '../../domain/acting-kinds.ts';
import { METERING_SOURCE } from '../../domain/metering/records.ts';
import { COUNT, record, TEXT } from '../openapi/ledger-schemas.ts';

/** OSAC's metering records and ours in their form, by their type: topic, sources and `data`. */
export type MeteringMessage = {
  readonly type: string;
  /** Default: the type. */
  readonly name?: string;
  readonly topic: string;
  readonly sources: readonly string[];
  /** Pattern of ids, which consumers know duplicates by (OSAC). */
  readonly ids: string;
  readonly data: JsonObject;
};

const NULLABLE: JsonObject = { type: ['string', 'null'] };

const WHOLE = record({ cluster_template: TEXT, 'release_image?': TEXT });
const COMPONENT = record({
  cluster_template: TEXT,
  node_set: TEXT,
  component: { enum: ['control_plane', 'worker'] },
  host_type: TEXT,
  node_count: COUNT,
  'release_image?': TEXT,
});

/** Of a compute instance, whole and as its own only component; each only if set. */
const MACHINE = record({ 'instance_type?': TEXT, 'image_ref?': TEXT, 'boot_disk_size_gib?': COUNT });

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

const heartbeat = (dimensions: JsonObject): JsonObject =>
  record({
    ...IDENTITY,
    current_state: TEXT,
    duration_seconds: { type: 'number', minimum: 0 },
    billing_dimensions: dimensions,
    schema_version: VERSION,
  });

const REASONS = ['missed_creation', 'state_drift', 'billing_dimensions_drift', 'missed_deletion'] as const;

const correction = record({
  ...IDENTITY,
  reason: { enum: [...REASONS] },
  description: TEXT,
  corrected_state: NULLABLE,
  previous_state_in_projection: NULLABLE,
  actual_state_from_source: NULLABLE,
  'billing_dimensions?': { anyOf: [WHOLE, COMPONENT, MACHINE] },
  'affected_interval?': { type: ['object', 'null'] },
  schema_version: VERSION,
});

const UUID = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const NODE_SET = '/[^/]+';
/** Projected and actual state are empty where there is none; the sum is FNV-64 of dimensions and interval. */
const CORRECTION_ID = `^correction/[^/]+/(${REASONS.join('|')})/[A-Z_]*/[A-Z_]*/[0-9a-f]{1,16}(${NODE_SET})?$`;

/** A compute instance is one thing: no record of it names a component. */
const MACHINES = lifecycle(MACHINE, 'compute_instance');

/** Of resource types that OSAC does not meter. */
const EXTRA = [
  lifecycle(record({ external_ip_pool: TEXT }), 'external_ip'),
  lifecycle(
    record({
      'host_type?': TEXT,
      'bare_metal_instance_type?': TEXT,
      // Of its components; of the instance as a whole there is none.
      'measure?': { enum: ['reserved', 'powered'] },
      // 0: this component ended, while the other goes on.
      'node_count?': COUNT,
    }),
    'bare_metal_instance',
  ),
  lifecycle(record({ network_class: TEXT }), 'virtual_network'),
  lifecycle(record({ virtual_network: TEXT }), 'subnet'),
  lifecycle(record({ storage_tier: TEXT, size_gib: { type: 'integer', minimum: 1 } }), 'volume'),
];

export const METERING_MESSAGES: readonly MeteringMessage[] = [
  ...['created', 'started', 'resumed', 'suspended', 'updated', 'deleted'].map((change) => ({
    type: `osac.resource.${change}.v1`,
    topic: METERING_TOPICS.lifecycle,
    sources: [METERING_SOURCE],
    ...(change === 'created' || change === 'deleted'
      ? { ids: `^${UUID}$`, data: { oneOf: [lifecycle(WHOLE), MACHINES] } }
      : { ids: `^${UUID}(${NODE_SET})?$`, data: { oneOf: [lifecycle(COMPONENT), MACHINES] } }),
  })),
  {
    type: 'osac.resource.heartbeat.v1',
    topic: METERING_TOPICS.heartbeat,
    sources: [METERING_SOURCE],
    // Of the start of the window, in seconds since 1970.
    ids: `^hb/[^/]+/[0-9]+(${NODE_SET})?$`,
    data: { anyOf: [heartbeat(COMPONENT), heartbeat(MACHINE)] },
  },
  // What is billed as a whole has no component, so that its amounts never change.
  ...['created', 'started', 'resumed', 'suspended', 'updated', 'deleted'].map((change) => ({
    type: `osac.resource.${change}.v1`,
    name: `${METERING_TOPICS.extra}.${change}.v1`,
    topic: METERING_TOPICS.extra,
    sources: [METERING_SOURCE],
    ids: `^${UUID}(/[a-z]+)?$`,
    data: { oneOf: EXTRA },
  })),
  {
    type: 'osac.resource.correction.v1',
    topic: METERING_TOPICS.corrections,
    sources: [`${METERING_SOURCE}/reconciler`],
    ids: CORRECTION_ID,
    data: correction,
  },
];
