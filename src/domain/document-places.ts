import type { JsonObject, JsonValue } from './json.ts';
import { isObject } from './json-tools.ts';

/**
 * Places in a document. A declared path may hold `*`, which stands for every index of a list and every key of a map
 * (`ResourceKind.references`, `.secrets`); keys of maps may hold dots and may be `__proto__`, so a place is a list of
 * segments and never a text that would be split again.
 */
export type Place = readonly string[];

/** Every place of the document that a declared path names and that holds a value, in the document's order. */
export const placesOf = (document: JsonValue | undefined, path: string): readonly Place[] => {
  const segments = path.split('.');
  if (!segments.includes('*')) return valueAtPlace(document, segments) === undefined ? [] : [segments];
  return segments.reduce<readonly Place[]>(
    (places, segment) =>
      places.flatMap((place) => {
        const keys = segment === '*' ? keysOf(valueAtPlace(document, place)) : [segment];
        return keys
          .map((key) => [...place, key])
          .filter((inner) => valueAtPlace(document, inner) !== undefined);
      }),
    [[]],
  );
};

const keysOf = (node: JsonValue | undefined): readonly string[] =>
  typeof node === 'object' && node !== null ? Object.keys(node) : [];

/** What stands at a place; undefined when nothing does. */
export const valueAtPlace = (document: JsonValue | undefined, place: Place): JsonValue | undefined => {
  let node = document;
  for (const key of place) {
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, key)) return undefined;
    node = (node as JsonObject)[key];
  }
  return node;
};

/** A copy with one more value at a place; maps on the way are made, lists must be long enough. */
export const withValueAtPlace = (
  document: JsonValue | undefined,
  place: Place,
  added: JsonValue,
): JsonValue => {
  const [head, ...rest] = place;
  if (head === undefined) return added;
  const inner = withValueAtPlace(valueAtPlace(document, [head]), rest, added);
  if (Array.isArray(document)) return document.map((item, i) => (String(i) === head ? inner : item));
  return { ...(isObject(document) ? document : {}), [head]: inner };
};

/** A copy without the entry of a map at a place; everything else stays. */
export const withoutValueAtPlace = (document: JsonObject, place: Place): JsonObject => {
  const [head = '', ...rest] = place;
  if (!Object.hasOwn(document, head)) return document;
  const { [head]: inner, ...others } = document;
  if (rest.length === 0) return others;
  return isObject(inner) ? { ...document, [head]: withoutValueAtPlace(inner, rest) } : document;
};

/** A place as a JSON Pointer (RFC 6901). */
export const pointerOf = (place: Place): string =>
  place.map((key) => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** Undefined for a text that `pointerOf` does not write. */
export const placeOfPointer = (pointer: string): Place | undefined => {
  const place = pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  return pointerOf(place) === pointer ? place : undefined;
};
