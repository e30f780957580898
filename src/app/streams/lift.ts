import type { DomainEvent } from '../../domain/decider.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Registry } from '../../domain/registry.ts';
import type { RecordedEvent } from '../event-store.ts';

/**
 * The event at the current version of its type. Throws for one that a newer release wrote: what it holds is not known
 * here, and a record of it would be wrong for good. Such an event waits until the publisher is of that release too.
 */
export const liftEvent = (registry: Registry, event: RecordedEvent): DomainEvent<string, JsonObject> => {
  const { type, data, metadata } = event;
  const stored = metadata['schemaVersion'];
  const version = typeof stored === 'number' ? stored : 1;
  const known = registry.get(type)?.version;
  if (known !== undefined && version > known)
    throw new Error(`event ${type} is of version ${version}; this release knows it up to version ${known}`);
  return { type, data: registry.upcast(type, version, data) };
};
