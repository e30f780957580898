import type { ZodType } from 'zod';
import type { JsonObject } from './json.ts';

/** Who may read an event: the tenant it concerns, the provider's staff, or only this service. */
export type Audience = 'tenant' | 'provider' | 'internal';

/**
 * Registry entry of an event type. The names and fields described here are the storage
 * format: version them with care. A change of meaning is a new type; an added optional field is not a new version.
 */
export type EventType = {
  readonly type: string;
  /** Current schema version; 1 for a new type. */
  readonly version: number;
  /** Bounded context, also the Kafka topic part: `clusters`, `hubs`, `catalog`, `tenancy`, `naming`, `process`, `system`. */
  readonly context: string;
  readonly audience: Audience;
  /** OSAC kind (`cluster`, `hub` …) of the document that the stream of this event holds, if it holds one. */
  readonly resource?: string;
  /** False for events of a document's stream that do not change the document (no version bump, no watch event). */
  readonly changesDocument?: boolean;
  /** True for the event that creates a document: versions are counted from there, also when one came before it. */
  readonly begins?: true;
  /**
   * Dotted paths of fields only the provider may see; `*` matches one key or list index. A path that is added later
   * holds
   * for stored events too, but then exports for tenants withhold those that have the field: their leaves would show
   * too much.
   */
  readonly providerOnly?: readonly string[];
  /** Dotted paths of fields that hold `Encrypted` personal data. */
  readonly personal?: readonly string[];
  /** Schema of the current version's `data`. */
  readonly schema: ZodType;
  /**
   * Lifts stored data of an older version to the next one: `upcast[1]` turns v1 into v2. Pure. Also for data without
   * what
   * `providerOnly` names: exports for tenants begin with that.
   */
  readonly upcast?: { readonly [fromVersion: number]: (data: JsonObject) => JsonObject };
};
