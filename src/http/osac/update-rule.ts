import type { DescField, DescMessage } from '@bufbuild/protobuf';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { invalid } from '../errors.ts';
import { fieldOf, isPlainMessage } from './messages.ts';
import { own } from '../../domain/json-tools.ts';

/**
 * The one update rule of every kind (head of, OSAC). Without a mask the body
 * decides: every field present in it is taken, `null` and `{}` clear, lists and maps are replaced when named. An entry
 * of a map of messages that exists already keeps the fields that the body does not name, so `{"workers":{"size":5}}`
 * scales and leaves the host type alone. With a mask its paths are taken, siblings stay, and a path may enter a map by
 * key and a list by index.
 *
 * Works on canonical JSON documents: `stored` and `body` as decoded, `present` as the caller wrote it.
 */
export const applyBody = (
  schema: DescMessage,
  stored: JsonObject,
  body: JsonObject,
  present: JsonObject,
): JsonObject => {
  const merged: JsonObject = { ...stored };
  for (const [key, written] of Object.entries(present)) {
    const field = fieldOf(schema, key);
    if (field !== undefined) setField(merged, field, body[field.name], written, stored[field.name]);
  }
  return merged;
};

const setField = (
  target: JsonObject,
  field: DescField,
  value: JsonValue | undefined,
  written: JsonValue | undefined,
  stored: JsonValue | undefined,
): void => {
  const next = nextValue(field, value, written, stored);
  if (next === undefined) delete target[field.name];
  else target[field.name] = next;
};

const nextValue = (
  field: DescField,
  value: JsonValue | undefined,
  written: JsonValue | undefined,
  stored: JsonValue | undefined,
): JsonValue | undefined => {
  if (value === undefined || written === null || isEmptyObject(written)) return undefined;
  const entered = field.message !== undefined && isEntered(field.message) ? field.message : undefined;
  if (entered !== undefined && field.fieldKind === 'message')
    return applyBody(entered, asObject(stored), asObject(value), asObject(written));
  if (entered !== undefined && field.fieldKind === 'map') {
    const before = asObject(stored);
    return Object.fromEntries(
      Object.entries(asObject(value)).map(([key, entry]): [string, JsonValue] => [
        key,
        applyBody(
          entered,
          asObject(own(before, key)),
          asObject(entry),
          asObject(own(asObject(written), key)),
        ),
      ]),
    );
  }
  return value;
};

/** References are replaced as a whole: an id with the name of another object would be neither. */
export const isEntered = (schema: DescMessage): boolean =>
  isPlainMessage(schema) && !schema.name.endsWith('Reference');

const isEmptyObject = (value: JsonValue | undefined): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;

export const asObject = (value: JsonValue | undefined): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};

/** Takes the paths of a mask from the body. Throws ApiError 400 that names the path that does not exist. */
export const applyMask = (
  schema: DescMessage,
  stored: JsonObject,
  body: JsonObject,
  present: JsonObject,
  paths: readonly string[],
): JsonObject => {
  let merged = stored;
  for (const path of paths) {
    const segments = path.split('.');
    if (segments.includes('') || segments.includes('__proto__')) throw unknownPath(path);
    merged = takePath(schema, merged, body, present, segments, path);
  }
  return merged;
};

const unknownPath = (path: string): Error =>
  invalid(`update mask path '${shown(path)}' does not exist in this kind of object`, 'update_mask');

const noSuchItem = (path: string, position: string, items: number): Error =>
  invalid(
    `update mask path '${shown(path)}': '${position.slice(0, 20)}' is no index of the list, ` +
      (items === 0 ? 'which is empty' : `whose items are 0 to ${items - 1}`),
    'update_mask',
  );

const shown = (path: string): string => path.slice(0, 200);

const takePath = (
  schema: DescMessage,
  stored: JsonObject,
  body: JsonObject,
  present: JsonObject,
  segments: readonly string[],
  path: string,
): JsonObject => {
  const [head = '', ...rest] = segments;
  const field = fieldOf(schema, head);
  if (field === undefined) throw unknownPath(path);
  const written = present[field.name] ?? present[field.jsonName];
  const before = stored[field.name];
  const value = body[field.name];
  const target: JsonObject = { ...stored };
  if (rest.length === 0) {
    // A message that is named as a whole is replaced as a whole; a map keeps the fields its entries do not name.
    if (field.fieldKind === 'message')
      setOrClear(target, field.name, isEmptyObject(value) ? undefined : value);
    else setField(target, field, value, written, before);
    return target;
  }
  const inner = field.message !== undefined && isPlainMessage(field.message) ? field.message : undefined;
  if (field.fieldKind === 'message' && inner !== undefined) {
    setOrClear(
      target,
      field.name,
      takePath(inner, asObject(before), asObject(value), asObject(written), rest, path),
    );
    return target;
  }
  if (field.fieldKind === 'map') {
    setOrClear(target, field.name, intoMap(inner, before, value, written, rest, path));
    return target;
  }
  if (field.fieldKind === 'list') {
    setOrClear(target, field.name, intoList(inner, before, value, written, rest, path));
    return target;
  }
  throw unknownPath(path);
};

const setOrClear = (target: JsonObject, name: string, value: JsonValue | undefined): void => {
  if (value === undefined) delete target[name];
  else target[name] = value;
};

const intoMap = (
  inner: DescMessage | undefined,
  before: JsonValue | undefined,
  value: JsonValue | undefined,
  written: JsonValue | undefined,
  segments: readonly string[],
  path: string,
): JsonValue | undefined => {
  // Keys of text maps hold dots (label prefixes), so all that is left of the path is the key.
  const [key, rest] = inner === undefined ? [segments.join('.'), []] : keyOf(segments, [before, value]);
  const target: JsonObject = { ...asObject(before) };
  const sent = own(asObject(value), key);
  if (inner === undefined) setOrClear(target, key, sent);
  else if (rest.length === 0) {
    if (sent === undefined) delete target[key];
    else
      target[key] = applyBody(
        inner,
        asObject(own(target, key)),
        asObject(sent),
        asObject(own(asObject(written), key)),
      );
  } else {
    target[key] = takePath(
      inner,
      asObject(own(target, key)),
      asObject(sent),
      asObject(own(asObject(written), key)),
      rest,
      path,
    );
  }
  return Object.keys(target).length === 0 ? undefined : target;
};

/** The longest beginning of the path that is a key of the map, since keys may hold dots; else its first segment. */
const keyOf = (
  segments: readonly string[],
  maps: readonly (JsonValue | undefined)[],
): readonly [key: string, rest: readonly string[]] => {
  for (let length = segments.length; length > 1; length -= 1) {
    const key = segments.slice(0, length).join('.');
    if (maps.some((map) => Object.hasOwn(asObject(map), key))) return [key, segments.slice(length)];
  }
  return [segments[0] ?? '', segments.slice(1)];
};

const intoList = (
  inner: DescMessage | undefined,
  before: JsonValue | undefined,
  value: JsonValue | undefined,
  written: JsonValue | undefined,
  segments: readonly string[],
  path: string,
): JsonValue => {
  const [position = '', ...rest] = segments;
  const target = Array.isArray(before) ? [...before] : [];
  const index = /^\d{1,6}$/.test(position) ? Number(position) : -1;
  if (index < 0 || index >= target.length) throw noSuchItem(path, position, target.length);
  const sent = Array.isArray(value) ? value[index] : undefined;
  if (sent === undefined)
    throw invalid(
      `update mask path '${shown(path)}': the list in the request body has no item with index ${index}`,
      'update_mask',
    );
  if (rest.length === 0) target[index] = sent;
  else if (inner === undefined) throw unknownPath(path);
  else {
    const writtenItem = Array.isArray(written) ? written[index] : undefined;
    target[index] = takePath(
      inner,
      asObject(target[index]),
      asObject(sent),
      asObject(writtenItem),
      rest,
      path,
    );
  }
  return target;
};
