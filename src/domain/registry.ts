import { actingKinds } from './acting-kinds.ts';
import { agentEventTypes } from './agents/event-types.ts';
import { announcementTypes } from './announcements.ts';
import { auditEventTypes } from './audit/event-types.ts';
import { bookkeepingEventTypes } from './bookkeeping/event-types.ts';
import { documentTypes } from './catalog/document-types.ts';
import type { DomainEvent } from './decider.ts';
import type { Audience, EventType } from './event-type.ts';
import { hubEventTypes } from './hubs/event-types.ts';
import type { JsonObject } from './json.ts';
import { withoutPaths } from './json-tools.ts';
import { documentKinds } from './kinds.ts';
import { namingEventTypes } from './naming/event-types.ts';
import { poolEventTypes } from './pools/event-types.ts';
import { processEventTypes } from './process/event-types.ts';
import { projectEntryTypes } from './tenancy/event-types.ts';
import { tenantSpaceTypes } from './tenancy/tenant-space.ts';

/**
 * Every event type of the service: those of acting kinds as they declare them, those of document kinds as
 * their declarations imply, and the others. But for what is implied, fixtures/events/ has a stored sample of each
 * version.
 */
export const eventTypes: readonly EventType[] = [
  ...new Set(actingKinds.flatMap((kind) => kind.eventTypes)),
  ...documentKinds.flatMap(documentTypes),
  ...projectEntryTypes,
  ...tenantSpaceTypes,
  ...hubEventTypes,
  ...agentEventTypes,
  ...namingEventTypes,
  ...poolEventTypes,
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
  /** What hides from a tenant, of each type, the fields that only the provider may see. */
  const hiding = new Map<string, <Data>(data: Data) => Data>();
  for (const entry of types) {
    if (byType.has(entry.type)) throw new TypeError(`event type ${entry.type} is registered twice`);
    for (let version = 1; version < entry.version; version += 1) {
      if (entry.upcast?.[version] === undefined) {
        throw new TypeError(`event type ${entry.type} cannot be lifted from version ${version}`);
      }
    }
    byType.set(entry.type, entry);
    if (entry.providerOnly !== undefined) hiding.set(entry.type, withoutPaths(entry.providerOnly));
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
    redact: (event, audience) => {
      const entry = byType.get(event.type);
      if (entry === undefined || !SEES[audience].includes(entry.audience)) return undefined;
      const hide = audience === 'tenant' ? hiding.get(event.type) : undefined;
      return hide === undefined ? event : { ...event, data: hide(event.data) };
    },
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
