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
  const kept: { [key: string]: JsonValue } = {};
  for (const key of Object.keys(value)) {
    const entry = value[key];
    if (entry === undefined || entry === '' || entry === null) continue;
    if (typeof entry === 'object' && Object.keys(entry).length === 0) continue;
    if (key === '__proto__') Object.defineProperty(kept, key, { ...PLAIN, value: entry });
    else kept[key] = entry;
  }
  return kept;
};
/** A property as an assignment makes it, where an assignment would mean something else. */
const PLAIN = { configurable: true, enumerable: true, writable: true } as const;

/** What lies below a key is taken out, or the key itself: undefined. */
type Cuts = Map<string, Cuts | undefined>;

/**
 * A copy without what lies at the dotted paths, made once for many values: copied along the paths, shared beside them. `*`
 * is every key and every index.
 */
export const withoutPaths = (paths: readonly string[]): (<Value>(value: Value) => Value) => {
  const cuts: Cuts = new Map();
  for (const path of paths) addCut(cuts, path.split('.'));
  return <Value>(value: Value): Value => cut(value, cuts) as Value;
};

const addCut = (cuts: Cuts, [head = '', ...rest]: readonly string[]): void => {
  // What is taken out whole has nothing below it.
  if (cuts.has(head) && cuts.get(head) === undefined) return;
  if (rest.length === 0) {
    cuts.set(head, undefined);
    return;
  }
  const below = cuts.get(head) ?? new Map<string, Cuts | undefined>();
  cuts.set(head, below);
  addCut(below, rest);
};

const cut = (node: unknown, cuts: Cuts): unknown => {
  if (typeof node !== 'object' || node === null) return node;
  let copy: { [key: string]: unknown } | undefined;
  for (const [name, below] of cuts)
    for (const key of name === '*' ? Object.keys(node) : [name]) {
      if (!Object.hasOwn(copy ?? node, key)) continue;
      copy ??= (Array.isArray(node) ? [...(node as unknown[])] : { ...node }) as { [key: string]: unknown };
      if (below === undefined) delete copy[key];
      else copy[key] = cut(copy[key], below);
    }
  return copy ?? node;
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

type Undefinable<T> = { [Key in keyof T]-?: undefined extends T[Key] ? Key : never }[keyof T];
export type Defined<T> = { [Key in Exclude<keyof T, Undefinable<T>>]: T[Key] } & {
  [Key in Undefinable<T>]?: Exclude<T[Key], undefined>;
};

/** Without what is undefined: events and answers leave out what they do not know. For fixed keys. */
export const defined = <const T extends object>(values: T): Defined<T> => {
  const kept: { [key: string]: unknown } = {};
  for (const key of Object.keys(values)) {
    const value = values[key as keyof T];
    if (value !== undefined) kept[key] = value;
  }
  return kept as Defined<T>;
};

/** Without these fixed keys; the value itself where it has none. Still a `T` where it may lack them. */
export const without = <T extends object, Key extends keyof T>(
  values: T,
  ...keys: readonly Key[]
): object extends Pick<T, Key> ? T : Omit<T, Key> => {
  if (!keys.some((key) => Object.hasOwn(values, key))) return values as never;
  const kept: Partial<T> = {};
  for (const key of Object.keys(values) as (keyof T)[])
    if (!keys.includes(key as Key)) kept[key] = values[key];
  return kept as never;
};
