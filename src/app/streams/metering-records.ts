import { meteredKinds } from '../../domain/acting-kinds.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Metered, Metering } from '../../domain/metering/meter.ts';
import {
  heartbeatRecords,
  lifecycleRecords,
  METERING_SOURCE,
  type MeteringRecord,
} from '../../domain/metering/records.ts';
import type { Registry } from '../../domain/registry.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import { extensionsOf, structured } from './cloud-event.ts';
import { liftEvent } from './current-version.ts';
import type { KafkaRecord, RecordMapper } from './stream.ts';
import type { StreamFolds } from './stream-folds.ts';
import { meteringTopicOf, METERING_TOPICS } from './topics.ts';

/** The meter of one object after an event, and what it said of it; nothing before its first. */
export type MeterFold = { readonly meter?: Metering; readonly step?: Metered };

export const emptyMeter = (): MeterFold => ({});

export const foldMeter = (registry: Registry, { meter }: MeterFold, event: RecordedEvent): MeterFold => {
  const { category } = parseStreamName(event.stream);
  const rules = meteredKinds.find(({ kind }) => kind === category)?.meter;
  if (rules === undefined) return {};
  const step = rules.fold(meter ?? rules.initial(), liftEvent(registry, event));
  return { meter: step.meter, step };
};

/** Records of `osac.metering.lifecycle`, or of the topic of what OSAC does not meter: what changed in what somebody is billed for. */
export const createLifecycleMapper =
  ({ folds }: { readonly folds: StreamFolds<MeterFold> }): RecordMapper =>
  (event) =>
    folds.use(event, (before) => {
      const { meter, step } = folds.apply(before, event);
      const changes = step?.changes ?? [];
      if (meter === undefined || changes.length === 0) return [];
      const place = extensionsOf(event);
      return lifecycleRecords(event.id, meter, changes).map((record) =>
        meteringRecord(meteringTopicOf(meter.facts ?? {}), record, place),
      );
    });

/** Records of `osac.metering.heartbeat` for one object, of the window that began at `windowStartMs`. */
export const heartbeatsOf = (meter: Metering, windowStartMs: number): readonly KafkaRecord[] =>
  heartbeatRecords(meter, windowStartMs).map((record) =>
    meteringRecord(METERING_TOPICS.heartbeat, record, {}),
  );

/**
 * OSAC's key and exactly OSAC's headers; what we add are extensions, which consumers ignore. Not the
 * hub: bills go to tenants, and where it runs is the provider's to know.
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
        osacresourcetype: resource.type,
        osactenant: resource.tenant,
        ...(resource.project === '' ? {} : { osacproject: resource.project }),
        ...(delivered === undefined ? {} : { osacdelivered: delivered }),
      },
      data,
    }),
    headers: { ce_specversion: '1.0', ce_type: type, ce_source: METERING_SOURCE, ce_id: id },
  };
};
