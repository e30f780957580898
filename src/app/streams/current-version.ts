import type { DomainEvent } from '../../domain/decider.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Registry } from '../../domain/registry.ts';
import type { RecordedEvent } from '../log/event-store.ts';

/** A newer release wrote the event: what it says is not known here. It waits until the publisher is of that release too. */
export class NewerRelease extends Error {
  override readonly name = 'NewerRelease';
}

/**
 * The event at the current version of its type. Throws NewerRelease for a type or a version that is not known here: a
 * record made without it, or of a state without it, would be wrong for good.
 */
export const liftEvent = (registry: Registry, event: RecordedEvent): DomainEvent<string, JsonObject> => {
  const { type, data, metadata } = event;
  const stored = metadata['schemaVersion'];
  const version = typeof stored === 'number' ? stored : 1;
  const known = registry.get(type)?.version;
  if (known === undefined)
    throw new NewerRelease(`event ${type} is of a type that this release does not know`);
  if (version > known)
    throw new NewerRelease(
      `event ${type} is of version ${version}; this release knows it up to version ${known}`,
    );
  return { type, data: registry.upcast(type, version, data) };
};
