import { announcementTypes } from './announcements.ts';
import { auditEventTypes } from './audit/event-types.ts';
import { bookkeepingEventTypes } from './bookkeeping/event-types.ts';
import { catalogEventTypes } from './catalog/event-types.ts';
import { catalogItemEventTypes } from './catalog/cluster-catalog-item-events.ts';
import { clusterEventTypes } from './clusters/event-types.ts';
import { computeEventTypes } from './compute/event-types.ts';
import type { DomainEvent } from './decider.ts';
import type { Audience, EventType } from './event-type.ts';
import { hubEventTypes } from './hubs/event-types.ts';
import { imageEventTypes } from './images/event-types.ts';
import type { JsonObject } from './json.ts';
import { namingEventTypes } from './naming/event-types.ts';
import { processEventTypes } from './process/event-types.ts';
import { secretEventTypes } from './secrets/event-types.ts';
import { tenancyEventTypes } from './tenancy/event-types.ts';
import { userEventTypes } from './tenancy/user-event-types.ts';

/** Every event type of the service (design §4). A stored sample of each version is in fixtures/events/. */
export const eventTypes: readonly EventType[] = [
  ...clusterEventTypes,
  ...catalogEventTypes,
  ...catalogItemEventTypes,
  ...tenancyEventTypes,
  ...userEventTypes,
  ...secretEventTypes,
  ...computeEventTypes,
  ...imageEventTypes,
  ...hubEventTypes,
  ...namingEventTypes,
  ...processEventTypes,
  ...bookkeepingEventTypes,
  ...announcementTypes,
  ...auditEventTypes,
];

export type Registry = {
  readonly types: readonly EventType[];
  /** Undefined: a type of a newer release. */
  readonly get: (type: string) => EventType | undefined;
  /** Stored data of any older version, lifted to the current one; data of an unknown type passes as it is. */
  readonly upcast: (type: string, storedVersion: number, data: JsonObject) => JsonObject;
  /**
   * The event as this audience may see it, undefined when it may not. Unknown types are shown to nobody: what they
   * hold is not known here.
   */
  readonly redact: <Event extends DomainEvent>(event: Event, audience: Audience) => Event | undefined;
};

/** Throws a TypeError when a type is registered twice or a version in between cannot be lifted. */
export const createRegistry = (types: readonly EventType[]): Registry => {
  const byType = new Map<string, EventType>();
  for (const entry of types) {
    if (byType.has(entry.type)) throw new TypeError(`event type ${entry.type} is registered twice`);
    for (let version = 1; version < entry.version; version += 1) {
      if (entry.upcast?.[version] === undefined) {
        throw new TypeError(`event type ${entry.type} cannot be lifted from version ${version}`);
      }
    }
    byType.set(entry.type, entry);
  }
  return {
    types,
    get: (type) => byType.get(type),
    upcast: (type, storedVersion, data) => {
      const entry = byType.get(type);
      let lifted = data;
      for (let version = storedVersion; version < (entry?.version ?? 0); version += 1) {
        lifted = entry?.upcast?.[version]?.(lifted) ?? lifted;
      }
      return lifted;
    },
    redact: (event, audience) => redactWith(byType.get(event.type), event, audience),
  };
};

export const registry: Registry = createRegistry(eventTypes);

/** The one redaction of the service: timeline, watch, exports and Kafka all use it. */
export const redact = registry.redact;

/** Each audience sees its own events and those of the audiences after it. */
const SEES: { readonly [Reader in Audience]: readonly Audience[] } = {
  tenant: ['tenant'],
  provider: ['tenant', 'provider'],
  internal: ['tenant', 'provider', 'internal'],
};

const redactWith = <Event extends DomainEvent>(
  entry: EventType | undefined,
  event: Event,
  audience: Audience,
): Event | undefined => {
  if (entry === undefined || !SEES[audience].includes(entry.audience)) return undefined;
  if (audience !== 'tenant' || (entry.providerOnly ?? []).length === 0) return event;
  const paths = (entry.providerOnly ?? []).map((path) => path.split('.'));
  return { ...event, data: paths.reduce<unknown>(withoutPath, event.data) };
};

/** The value without what lies at the path: copied along the path, shared beside it. `*` is every key. */
const withoutPath = (node: unknown, [head = '', ...rest]: readonly string[]): unknown => {
  if (typeof node !== 'object' || node === null) return node;
  const keys = head === '*' ? Object.keys(node) : Object.hasOwn(node, head) ? [head] : [];
  if (keys.length === 0) return node;
  const copy = (Array.isArray(node) ? [...(node as unknown[])] : { ...node }) as { [key: string]: unknown };
  for (const key of keys) {
    if (rest.length === 0) delete copy[key];
    else copy[key] = withoutPath(copy[key], rest);
  }
  return copy;
};
