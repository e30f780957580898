import type { JsonObject, JsonValue } from './json.ts';

/** Equality of two JSON values; the order of object keys does not matter. */
export const sameJson = (left: unknown, right: unknown): boolean => {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const a = left as Record<string, unknown>;
  const b = right as Record<string, unknown>;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
  );
};

/**
 * The value that a record itself holds under a key. Callers choose ids and names, and `constructor` is a valid one:
 * indexing a plain object with it finds what every object inherits.
 */
export const own = <T>(record: { readonly [key: string]: T } | undefined, key: string): T | undefined =>
  record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;

/** The object at a key, or an empty one: documents leave out what is empty. */
export const objectAt = (value: JsonValue | undefined, key: string): JsonObject => {
  const found = isObject(value) ? own(value, key) : undefined;
  return isObject(found) ? found : {};
};

export const stringAt = (value: JsonValue | undefined, key: string): string => {
  const found = isObject(value) ? own(value, key) : undefined;
  return typeof found === 'string' ? found : '';
};

export const numberAt = (value: JsonValue | undefined, key: string): number => {
  const found = isObject(value) ? own(value, key) : undefined;
  return typeof found === 'number' ? found : 0;
};

export const listAt = (value: JsonValue | undefined, key: string): readonly JsonValue[] => {
  const found = isObject(value) ? own(value, key) : undefined;
  return Array.isArray(found) ? found : [];
};

/** A JSON value as one text: a text as it is, anything else as JSON. */
export const textOf = (value: JsonValue | undefined): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);

/** The map of texts at a key, or an empty one. */
export const textsAt = (value: JsonValue | undefined, key: string): { [key: string]: string } =>
  Object.fromEntries(Object.entries(objectAt(value, key)).map(([name, text]) => [name, textOf(text)]));

export const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value at a dotted path, undefined when there is none. */
export const valueAt = (value: JsonValue | undefined, path: string): JsonValue | undefined => {
  let node = value;
  for (const key of path.split('.')) {
    if (!isObject(node) || !Object.hasOwn(node, key)) return undefined;
    node = node[key];
  }
  return node;
};

/** A copy with one more value at a dotted path. */
export const withValueAt = (value: JsonObject, path: string, added: JsonValue): JsonObject => {
  const [head = '', ...rest] = path.split('.');
  if (rest.length === 0) return { ...value, [head]: added };
  return { ...value, [head]: withValueAt(objectAt(value, head), rest.join('.'), added) };
};

/** A copy without keys whose value is undefined, an empty text, list or object: as documents are shown. */
export const withoutEmpty = (value: { readonly [key: string]: JsonValue | undefined }): JsonObject => {
  const kept: [string, JsonValue][] = [];
  for (const [key, entry] of Object.entries(value)) {
    if (entry === undefined || entry === '' || entry === null) continue;
    if (typeof entry === 'object' && Object.keys(entry).length === 0) continue;
    kept.push([key, entry]);
  }
  return Object.fromEntries(kept);
};

/** A copy without the value at a dotted path. */
export const withoutValueAt = (value: JsonObject, path: string): JsonObject => {
  const [head = '', ...rest] = path.split('.');
  if (!Object.hasOwn(value, head)) return value;
  const copy = { ...value };
  if (rest.length === 0) delete copy[head];
  else copy[head] = withoutValueAt(objectAt(value, head), rest.join('.'));
  return copy;
};

/** A copy of `current` in which each path has the value that `incoming` has there (none: it is removed). */
export const mergePaths = (current: JsonObject, incoming: JsonObject, paths: readonly string[]): JsonObject =>
  paths.reduce((merged, path) => {
    const value = valueAt(incoming, path);
    return value === undefined ? withoutValueAt(merged, path) : withValueAt(merged, path, value);
  }, current);

/** Order of entries by their keys, the same in every locale. */
export const byKey = ([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number =>
  left < right ? -1 : left > right ? 1 : 0;

/** A text as Unicode code points, as protobuf validation counts them. */
export const codePoints = (text: string): readonly string[] => Array.from(text);
