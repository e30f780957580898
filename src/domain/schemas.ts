import { z } from 'zod';
import type { EventType } from './event-type.ts';
import type { JsonObject } from './json.ts';
import { SECRET_KINDS } from './secret-ref.ts';

/** Building blocks of event schemas. Strict: what is not described is not stored. */
/** That every value inside is JSON is checked where events are stored (the codec); here it would be checked twice. */
export const jsonObject = z.record(z.string(), z.unknown()) as unknown as z.ZodType<JsonObject>;
export const text = z.string();
export const time = z.iso.datetime({ precision: null });
export const count = z.int().min(0);
export const texts = z.record(z.string(), z.string());
export const counts = z.record(z.string(), count);
export const at = { at: time };

export const secretRef = z.strictObject({
  id: text,
  version: text,
  kind: z.enum(SECRET_KINDS),
  fingerprint: text,
  tenant: text.exactOptional(),
});

export const secrets = z.record(z.string(), secretRef);

/** Registry entries of one context, written as `[type, schema, what differs from the context]`. */
export const typesOf = (
  shared: Pick<EventType, 'context' | 'audience'> & Partial<EventType>,
  entries: readonly (readonly [type: string, shape: z.ZodRawShape, more?: Partial<EventType>])[],
): readonly EventType[] =>
  entries.map(([type, shape, more]) => ({
    type,
    version: 1,
    ...shared,
    schema: z.strictObject({ ...at, ...shape }),
    ...more,
  }));
