import type { ClusterEvent } from '../../domain/clusters/events.ts';
import type { JsonObject } from '../../domain/json.ts';
import {
  initialMeter,
  meterEvent,
  type ClusterMeter,
  type Metered,
} from '../../domain/metering/cluster-meter.ts';
import {
  heartbeatRecords,
  lifecycleRecords,
  METERING_SOURCE,
  RESOURCE_TYPE,
  type MeteringRecord,
} from '../../domain/metering/records.ts';
import type { Registry } from '../../domain/registry.ts';
import type { RecordedEvent } from '../event-store.ts';
import { extensionsOf, structured } from './cloud-event.ts';
import { liftEvent } from './lift.ts';
import type { KafkaRecord, RecordMapper } from './stream.ts';
import type { StreamFolds } from './stream-folds.ts';
import { METERING_TOPICS } from './topics.ts';

/** The meter of one cluster after an event, and what it said of it. */
export type MeterFold = { readonly meter: ClusterMeter; readonly step?: Metered };

export const emptyMeter = (): MeterFold => ({ meter: initialMeter() });

export const foldMeter = (registry: Registry, { meter }: MeterFold, event: RecordedEvent): MeterFold => {
  // What is no event of a cluster, as an announcement, changes nothing: the fold passes it.
  const step = meterEvent(meter, liftEvent(registry, event) as ClusterEvent);
  return { meter: step.meter, step };
};

/** Records of `osac.metering.lifecycle`: what changed in what a cluster is billed for (metering-events.md §7). */
export const createLifecycleMapper =
  ({ folds }: { readonly folds: StreamFolds<MeterFold> }): RecordMapper =>
  (event) =>
    folds.use(event, (before) => {
      const { meter, step } = folds.apply(before, event);
      const changes = step?.changes ?? [];
      if (changes.length === 0) return [];
      const place = extensionsOf(event);
      return lifecycleRecords(event.id, meter, changes).map((record) =>
        meteringRecord(METERING_TOPICS.lifecycle, record, place),
      );
    });

/** Records of `osac.metering.heartbeat` for one cluster, of the window that began at `windowStartMs`. */
export const heartbeatsOf = (meter: ClusterMeter, windowStartMs: number): readonly KafkaRecord[] =>
  heartbeatRecords(meter, windowStartMs).map((record) =>
    meteringRecord(METERING_TOPICS.heartbeat, record, {}),
  );

/**
 * OSAC's key and exactly OSAC's headers (metering-events.md §2); what we add are extensions, which consumers ignore. Not the
 * hub: bills go to tenants, and where a cluster runs is the provider's to know.
 */
const meteringRecord = (
  topic: string,
  { type, id, time, resource, delivered, data }: MeteringRecord,
  added: JsonObject,
): KafkaRecord => {
  const { osacproject: _project, ...place } = added;
  return {
    topic,
    key: resource.id,
    value: structured({
      id,
      source: METERING_SOURCE,
      type,
      time,
      extensions: {
        ...place,
        osacresourceid: resource.id,
        osacresourcetype: RESOURCE_TYPE,
        osactenant: resource.tenant,
        ...(resource.project === '' ? {} : { osacproject: resource.project }),
        ...(delivered === undefined ? {} : { osacdelivered: delivered }),
      },
      data,
    }),
    headers: { ce_specversion: '1.0', ce_type: type, ce_source: METERING_SOURCE, ce_id: id },
  };
};
