import { sameJson } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isEncrypted, type Encrypted, type OpenPersonal } from '../../domain/personal.ts';
import type { Registry } from '../../domain/registry.ts';
import type { EventCodec } from '../event-codec.ts';
import type { RecordedEvent } from '../event-store.ts';
import { listAt, objectAt } from '../../domain/json-tools.ts';

/** For whom history is shown: the auditors of a tenant, or those of the provider. */
export type AuditAudience = 'tenant' | 'provider';

/** What an event is shown by: the registry of event types, and the keys of personal data. */
export type AuditWords = {
  readonly codec: Pick<EventCodec, 'decode'>;
  readonly registry: Pick<Registry, 'redact'>;
  readonly open: OpenPersonal;
};

/**
 * `full`: everything that was stored. `redacted`: less, `data` is what is left; of what only the service itself may read
 * the provider learns that it happened.
 */
export type ShownEvent = {
  readonly shown: 'full' | 'redacted';
  readonly data: JsonObject;
  readonly metadata: JsonObject;
};

/** Undefined: this audience may not even learn which event it was. */
export const shownTo = (
  event: RecordedEvent,
  audience: AuditAudience,
  { codec, registry }: Pick<AuditWords, 'codec' | 'registry'>,
): ShownEvent | undefined => {
  const decoded = codec.decode(event);
  const visible = registry.redact(decoded, audience);
  const metadata = metadataFor(event.metadata, audience);
  if (visible === undefined)
    return audience === 'provider' ? { shown: 'redacted', data: {}, metadata } : undefined;
  const whole =
    metadata === event.metadata && (visible.data === decoded.data || sameJson(visible.data, decoded.data));
  return { shown: whole ? 'full' : 'redacted', data: visible.data, metadata };
};

/** On which hub something happened is for the provider only, as in data (design §4). */
const metadataFor = (metadata: JsonObject, audience: AuditAudience): JsonObject => {
  if (audience === 'provider' || !Object.hasOwn(metadata, 'hub')) return metadata;
  const { hub: _hub, ...others } = metadata;
  return others;
};

/** Names and addresses of the provider's own people are not for tenants. */
export const revealsActor = (metadata: JsonObject, audience: AuditAudience): boolean =>
  audience === 'provider' || !listAt(objectAt(metadata, 'actor'), 'roles').includes('admin');

/** What stands for personal data whose key was destroyed (fleet-and-networks.md §1.9 rule 4). */
export const ERASED_MARK: JsonObject = { erased: true };

/** A value with all personal data in clear, or marked as erased. */
export const opened = (value: JsonValue, open: OpenPersonal): JsonValue => {
  if (typeof value !== 'object' || value === null) return value;
  if (isEncrypted(value)) return openedText(value, open) ?? ERASED_MARK;
  if (Array.isArray(value)) return value.map((inner: JsonValue) => opened(inner, open));
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, opened(inner as JsonValue, open)]),
  );
};

/** Undefined: its key was destroyed. */
export const openedText = (value: Encrypted, open: OpenPersonal): string | undefined => open([value])[0];
