import { sameJson } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isEncrypted, type Encrypted, type OpenPersonal } from '../../domain/personal.ts';
import type { Registry } from '../../domain/registry.ts';
import type { EventCodec } from '../log/event-codec.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import { splitOf, withoutHiddenFields } from '../log/metadata.ts';
import { listAt, objectAt } from '../../domain/json-tools.ts';
import { hashedMetadata } from './merkle/leaf.ts';

/** For whom history is shown: the auditors of a tenant, or those of the provider. */
export type AuditAudience = 'tenant' | 'provider';

/** What an event is shown by: the registry of event types, and the keys of personal data. */
export type AuditWords = {
  readonly codec: Pick<EventCodec, 'decode'>;
  readonly registry: Pick<Registry, 'redact'>;
  readonly open: OpenPersonal;
};

/** What an event holds, in the form that it is stored in. */
export type StoredContent = Pick<RecordedEvent, 'data' | 'metadata'>;

/**
 * `full`: everything that was stored. `redacted`: less, `data` is what is left; of what only the service itself may
 * read
 * the provider learns that it happened.
 */
export type ShownEvent = {
  readonly shown: 'full' | 'redacted';
  /** At the current version of its type. */
  readonly data: JsonObject;
  readonly metadata: JsonObject;
  /** What of it the leaf proves to this audience: all that is shown; absent where it proves no content to them. */
  readonly stored?: StoredContent;
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
  const { data } = visible;
  if (metadata === event.metadata && (data === decoded.data || sameJson(data, decoded.data)))
    return {
      shown: 'full',
      data,
      metadata,
      stored: { data: event.data, metadata: hashedMetadata(metadata) },
    };
  const stored = provableTo(event, audience, { codec, registry });
  return {
    shown: 'redacted',
    data,
    metadata: withoutHiddenFields(metadata),
    ...(stored === undefined ? {} : { stored }),
  };
};

/**
 * The part of an event that was stored as what tenants may see. Undefined for one that has none, and where today
 * more is
 * kept from them than when it was stored.
 */
const provableTo = (
  event: RecordedEvent,
  audience: AuditAudience,
  { codec, registry }: Pick<AuditWords, 'codec' | 'registry'>,
): StoredContent | undefined => {
  const split = splitOf({ data: event.data, metadata: hashedMetadata(event.metadata) });
  if (split === undefined) return undefined;
  const { data, metadata } = split;
  const decoded = codec.decode({ type: event.type, data, metadata });
  const visible = registry.redact(decoded, audience);
  return metadataFor(metadata, audience) === metadata && sameJson(visible?.data, decoded.data)
    ? { data, metadata }
    : undefined;
};

/** On which hub something happened is for the provider only, as in data. */
const metadataFor = (metadata: JsonObject, audience: AuditAudience): JsonObject => {
  if (audience === 'provider' || !Object.hasOwn(metadata, 'hub')) return metadata;
  const { hub: _hub, ...others } = metadata;
  return others;
};

/** Names and addresses of the provider's own people are not for tenants. */
export const revealsActor = (metadata: JsonObject, audience: AuditAudience): boolean =>
  audience === 'provider' || !listAt(objectAt(metadata, 'actor'), 'roles').includes('admin');

/** What stands for personal data whose key was destroyed. */
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
