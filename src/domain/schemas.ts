import { z } from 'zod';
import type { DomainEvent } from './decider.ts';
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
export const mayBe = text.exactOptional();
export const yes = z.literal(true).exactOptional();
export const listOf = <Item>(item: z.ZodType<Item>): z.ZodType<readonly Item[]> => z.array(item);
export const list = listOf(text);

export const secretRef = z.strictObject({
  id: text,
  version: text,
  kind: z.enum(SECRET_KINDS),
  fingerprint: text,
  tenant: text.exactOptional(),
});

export const secrets = z.record(z.string(), secretRef);

/** What each event of a context holds besides its time, by its type. */
export type Shapes = { readonly [type: string]: z.ZodRawShape };

/** The events of these shapes. */
export type EventOf<Some extends Shapes> = {
  [Type in keyof Some & string]: DomainEvent<Type, EventData<Some[Type]>>;
}[keyof Some & string];
export type EventData<Shape extends z.ZodRawShape> = Readonly<
  z.infer<z.ZodObject<typeof at & Shape, z.core.$strict>>
>;

/** Registry entries of one context; `about`: what differs from the context. */
export const typesOf = (
  shared: Pick<EventType, 'context' | 'audience'> & Partial<EventType>,
  shapes: Shapes,
  about: { readonly [type: string]: Partial<EventType> } = {},
): readonly EventType[] =>
  Object.entries(shapes).map(([type, shape]) => ({
    type,
    version: 1,
    ...shared,
    schema: z.strictObject({ ...at, ...shape }),
    ...about[type],
  }));
