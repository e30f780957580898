import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { pointerOf } from '../../../src/domain/document-places.ts';

/** An event as it is stored: any data, and metadata that says what of both is hidden. */
export type HidingEvent = {
  readonly data: JsonObject;
  readonly metadata: JsonObject;
  readonly paths: readonly string[];
};

const keys = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('a', 'b', 'hub', '0', '1', 'length') },
  fc.constantFrom('__proto__', 'constructor', '', 'a/b', 'a~b', '~1', '/', 'hidden', '$x'),
  fc.string({ maxLength: 4 }),
);
const values = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.oneof(fc.integer(), fc.string({ maxLength: 4 }), fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(keys, tie('value'), { maxKeys: 3 }),
  ),
})).value;
const objects = fc.dictionary(keys, values, { minKeys: 1, maxKeys: 4 });

/** As a store hands it out: keys like `__proto__` are the object's own. */
const stored = (value: unknown): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject;

/** Pointers to everything in a value, itself left out, in the order of the value. */
export function* pointersOf(value: JsonValue, place: readonly string[] = []): Generator<string> {
  if (place.length > 0) yield pointerOf(place);
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) yield* pointersOf(inner as JsonValue, [...place, key]);
}

const isWithin = (path: string, outer: string): boolean => path.startsWith(`${outer}/`);

/** Events of which something is hidden: at least one place, none within another. */
export const hidingEvents: fc.Arbitrary<HidingEvent> = fc
  .record({
    data: objects,
    metadata: fc.dictionary(
      keys.filter((key) => key !== 'hidden' && !key.startsWith('$')),
      values,
      { maxKeys: 3 },
    ),
    chosen: fc.array(fc.boolean(), { minLength: 16, maxLength: 16 }),
    salt: fc.uint8Array({ minLength: 16, maxLength: 16 }),
  })
  .map(({ data, metadata, chosen, salt }) => {
    const whole = stored({ data, metadata });
    const all = [...pointersOf(whole)].filter((path) => path.lastIndexOf('/') > 0);
    const some = all.filter((_, n) => chosen[n % chosen.length]);
    const picked = [...new Set(some.length === 0 ? all.slice(0, 1) : some)].toSorted();
    const paths = picked.filter((path) => !picked.some((outer) => isWithin(path, outer)));
    const hidden = { paths, salt: Buffer.from(salt).toString('hex') };
    return {
      data: whole['data'] as JsonObject,
      metadata: { ...(whole['metadata'] as JsonObject), hidden },
      paths,
    };
  });

/** What is left of a value: written down once more, so that the service's own is held against something. */
export const redactedBy = (value: JsonValue, paths: readonly string[], at = ''): JsonValue => {
  if (typeof value !== 'object' || value === null) return value;
  const inner = (key: string, each: JsonValue): JsonValue =>
    redactedBy(each, paths, `${at}${pointerOf([key])}`);
  const isHidden = (key: string): boolean => paths.includes(`${at}${pointerOf([key])}`);
  if (Array.isArray(value))
    return value.map((each: JsonValue, n) => (isHidden(String(n)) ? null : inner(String(n), each)));
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) =>
      isHidden(key) ? [] : [[key, inner(key, each as JsonValue)] as const],
    ),
  );
};
