import { isStoredCluster } from '../clusters/state.ts';
import type { JsonObject } from '../json.ts';
import { stateOf, type Change, type ClusterMeter, type OpenInterval } from './cluster-meter.ts';
import type { Component } from './components.ts';

/**
 * Metering events in OSAC's own form (metering-events.md §3 to §6), without the envelope of the broker. Field names, their
 * order and their nulls are the contract with OSAC's adapters.
 */
export const RESOURCE_TYPE = 'cluster_order';
export const METERING_SOURCE = 'osac-metering';
const SCHEMA_VERSION = 'v1';

export type MeteringRecord = {
  readonly type: string;
  readonly id: string;
  /** ISO. */
  readonly time: string;
  readonly resource: MeteredResource;
  /** ISO time of the first READY; absent: there was none. What lies before it is no part of our bills. */
  readonly delivered?: string;
  readonly data: JsonObject;
};

export type MeteredResource = {
  readonly id: string;
  readonly tenant: string;
  readonly project: string;
};

/** Records of one event of a cluster: what changed with it, as `meterEvent` says, and the meter after it. */
export const lifecycleRecords = (
  eventId: string,
  meter: ClusterMeter,
  changes: readonly Change[],
): readonly MeteringRecord[] => {
  const { cluster, atMs } = meter;
  const resource = resourceOf(cluster);
  // An event without resource or tenant is never published (metering-events.md §3).
  if (resource === undefined || !isStoredCluster(cluster)) return [];
  const { template, version, catalogItem } = cluster;
  const whole = {
    cluster_template: template.name,
    ...(version.name === '' ? {} : { release_image: version.name }),
  };
  return changes.map(({ type, component, durationMs, previousState, currentState }) => ({
    type: `osac.resource.${type}.v1`,
    id: component === undefined ? eventId : `${eventId}/${component.nodeSet}`,
    time: isoOf(atMs),
    resource,
    ...deliveryOf(meter),
    data: {
      resource_id: resource.id,
      resource_type: RESOURCE_TYPE,
      tenant_id: resource.tenant,
      project_id: resource.project || null,
      catalog_item_id: catalogItem?.id ?? null,
      template_id: template.id || null,
      previous_state: previousState ?? null,
      current_state: currentState,
      transition_time: nanosecondsOf(atMs),
      duration_seconds: durationMs === undefined ? null : durationMs / 1000,
      billing_dimensions: component === undefined ? whole : dimensionsOf(component),
      schema_version: SCHEMA_VERSION,
    },
  }));
};

/** One record for each component that is billed, as of the start of the window; none for a cluster that is not. */
export const heartbeatRecords = (meter: ClusterMeter, windowStartMs: number): readonly MeteringRecord[] => {
  const { cluster, open } = meter;
  const resource = resourceOf(cluster);
  if (resource === undefined || !isStoredCluster(cluster)) return [];
  const window = `hb/${resource.id}/${Math.floor(windowStartMs / 1000)}`;
  return open.map((interval) => ({
    type: 'osac.resource.heartbeat.v1',
    id: `${window}/${interval.component.nodeSet}`,
    time: isoOf(windowStartMs),
    resource,
    ...deliveryOf(meter),
    data: {
      resource_id: resource.id,
      resource_type: RESOURCE_TYPE,
      tenant_id: resource.tenant,
      project_id: resource.project || null,
      current_state: stateOf(cluster),
      duration_seconds: lengthMs(interval, windowStartMs) / 1000,
      billing_dimensions: dimensionsOf(interval.component),
      schema_version: SCHEMA_VERSION,
    },
  }));
};

const deliveryOf = ({ deliveredMs }: ClusterMeter): Pick<MeteringRecord, 'delivered'> =>
  deliveredMs === undefined ? {} : { delivered: isoOf(deliveredMs) };

/** 0 for one that began in the window itself. */
const lengthMs = ({ sinceMs }: OpenInterval, atMs: number): number => Math.max(0, atMs - sinceMs);

const resourceOf = (cluster: ClusterMeter['cluster']): MeteredResource | undefined => {
  if (!isStoredCluster(cluster) || cluster.id === '' || cluster.tenant === '') return undefined;
  const { id, tenant, project } = cluster;
  return { id, tenant, project };
};

const dimensionsOf = ({
  template,
  nodeSet,
  component,
  hostType,
  nodeCount,
  releaseImage,
}: Component): JsonObject => ({
  cluster_template: template,
  node_set: nodeSet,
  component,
  host_type: hostType,
  node_count: nodeCount,
  ...(releaseImage === undefined ? {} : { release_image: releaseImage }),
});

const isoOf = (ms: number): string => new Date(ms).toISOString();

/** RFC 3339 with nanoseconds; events know milliseconds. */
const nanosecondsOf = (ms: number): string => isoOf(ms).replace('Z', '000000Z');
