import type { JsonObject } from '../json.ts';
import type { Change, Component, MeteredFacts, Metering, OpenInterval } from './meter.ts';

/**
 * Metering events in OSAC's own form, without the envelope of the broker. Field names, their
 * order and their nulls are the contract with OSAC's adapters.
 */
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
  readonly type: string;
  readonly id: string;
  readonly tenant: string;
  readonly project: string;
};

/** Records of one event of an object: what changed with it, as `meterEvent` says, and the meter after it. */
export const lifecycleRecords = (
  eventId: string,
  meter: Metering,
  changes: readonly Change[],
): readonly MeteringRecord[] => {
  const { facts, atMs } = meter;
  // An event without resource or tenant is never published (OSAC).
  if (facts === undefined || !isPublished(facts)) return [];
  const resource = resourceOf(facts);
  return changes.map(({ type, component, durationMs, previousState, currentState }) => ({
    type: `osac.resource.${type}.v1`,
    id: ofComponent(eventId, component),
    time: isoOf(atMs),
    resource,
    ...deliveryOf(meter),
    data: {
      resource_id: resource.id,
      resource_type: resource.type,
      tenant_id: resource.tenant,
      project_id: resource.project || null,
      catalog_item_id: facts.catalogItem ?? null,
      template_id: (facts.templateRecord ?? facts.template.id) || null,
      previous_state: previousState ?? null,
      current_state: currentState,
      transition_time: nanosecondsOf(atMs),
      duration_seconds: durationMs === undefined ? null : durationMs / 1000,
      billing_dimensions: (component ?? facts).dimensions,
      schema_version: SCHEMA_VERSION,
    },
  }));
};

/** One record for each component that is billed, as of the start of the window; none for what is not. */
export const heartbeatRecords = (meter: Metering, windowStartMs: number): readonly MeteringRecord[] => {
  const { facts, open } = meter;
  if (facts === undefined || facts.isOurs === true || !isPublished(facts)) return [];
  const resource = resourceOf(facts);
  const window = `hb/${resource.id}/${Math.floor(windowStartMs / 1000)}`;
  return open.map((interval) => ({
    type: 'osac.resource.heartbeat.v1',
    id: ofComponent(window, interval.component),
    time: isoOf(windowStartMs),
    resource,
    ...deliveryOf(meter),
    data: {
      resource_id: resource.id,
      resource_type: resource.type,
      tenant_id: resource.tenant,
      project_id: resource.project || null,
      current_state: facts.state,
      duration_seconds: lengthMs(interval, windowStartMs) / 1000,
      billing_dimensions: interval.component.dimensions,
      schema_version: SCHEMA_VERSION,
    },
  }));
};

/** What is billed as a whole has one component, without a node set. */
const ofComponent = (id: string, component: Component | undefined): string =>
  component === undefined || component.nodeSet === '' ? id : `${id}/${component.nodeSet}`;

const deliveryOf = ({ deliveredMs }: Metering): Pick<MeteringRecord, 'delivered'> =>
  deliveredMs === undefined ? {} : { delivered: isoOf(deliveredMs) };

/** 0 for one that began in the window itself. */
const lengthMs = ({ sinceMs }: OpenInterval, atMs: number): number => Math.max(0, atMs - sinceMs);

const isPublished = ({ id, tenant }: MeteredFacts): boolean => id !== '' && tenant !== '';

const resourceOf = ({ resourceType: type, id, tenant, project }: MeteredFacts): MeteredResource => ({
  type,
  id,
  tenant,
  project,
});

const isoOf = (ms: number): string => new Date(ms).toISOString();

/** RFC 3339 with nanoseconds; events know milliseconds. */
const nanosecondsOf = (ms: number): string => isoOf(ms).replace('Z', '000000Z');
