import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { streamName } from '../../../src/domain/stream-name.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { registry } from '../../../src/domain/registry.ts';
import { eventSamples } from '../domain/event-samples.ts';

/** The metadata that every command leaves, each field with a value of its own. */
export const METADATA: JsonObject = {
  tenant: 't1',
  project: 'p1',
  actor: { subjectId: 'subject-1', roles: ['tenant-admin'], authMethod: 'jwt', via: 'http' },
  command: 'OrderCluster',
  commandId: 'command-1',
  requestHash: 'hash',
  correlationId: 'correlation-1',
  causationId: 'causation-1',
  occurredAt: '2026-11-21T12:00:00.123Z',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  instance: 'one',
  hub: 'hub-east',
  schemaVersion: 1,
};

/** An event as the store gives it back. Revision and position go together: the log holds one stream. */
export const recorded = (
  type: string,
  data: JsonObject,
  {
    stream = 'cluster-c1',
    revision = 0,
    metadata = {},
    version = 1,
  }: {
    readonly stream?: string;
    readonly revision?: number;
    readonly metadata?: JsonObject;
    readonly version?: number;
  } = {},
): RecordedEvent => ({
  position: String(revision + 1).padStart(20, '0'),
  stream,
  revision,
  id: `event-${revision}`,
  type,
  data,
  metadata: { ...METADATA, commandId: `command-${revision}`, schemaVersion: version, ...metadata },
  recordedAt: '2026-11-21T12:00:01.000Z',
});

/** Every stored sample of an event, as the first event of a stream of its kind. */
export const recordedSamples = (): readonly RecordedEvent[] =>
  eventSamples.map(({ type, version, data }) =>
    recorded(type, data, { stream: streamName(registry.get(type)?.resource ?? 'sample', 'id-1'), version }),
  );
