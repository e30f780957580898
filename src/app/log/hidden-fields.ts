import type { EventType } from '../../domain/event-type.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isObject, own } from '../../domain/json-tools.ts';
import { placeOfPointer, pointerOf, type Place } from '../../domain/document-places.ts';

/**
 * What of an event only the provider may see (`EventType.providerOnly`, and on which hub it happened). Its metadata says
 * so from the moment it is stored: no later change of the registry moves a field between what the audit tree proves to
 * tenants and what it keeps from them. Without the salt, whoever knows the rest could find what is hidden by guessing.
 */
export type HiddenFields = {
  /** JSON Pointers (RFC 6901) into `{data, metadata}`, ascending; none lies within another. */
  readonly paths: readonly string[];
  /** 128 random bits, 32 lower-case hex digits. */
  readonly salt: string;
};

/** An event in two parts: what tenants may see of it, and the rest. */
export type SplitEvent = {
  readonly data: JsonObject;
  /** Also without `hidden` itself. */
  readonly metadata: JsonObject;
  /** `paths` and `salt` as they are stored, and `values`: what stood at the paths, in their order. */
  readonly hidden: JsonObject;
};

/** Name of the field in metadata. */
const HIDDEN = 'hidden';
const SALT = /^[0-9a-f]{32}$/;

/** What of an event's data, and of its hub, is hidden: JSON Pointers as `HiddenFields.paths` has them, none when nothing is. */
export type FindHidden = (data: JsonObject, hub: string | undefined) => readonly string[];

/** Made once for a type: an order is stored while somebody waits for it. */
export const findHidden = ({ audience, providerOnly = [] }: EventType): FindHidden => {
  if (audience !== 'tenant') return () => NOTHING;
  const declared = providerOnly.map((path) => path.split('.'));
  const isSimple = !declared.some((place, n) =>
    declared.some((other, m) => n !== m && mayHold(other, place)),
  );
  return (data, hub) => {
    const found: string[] = [];
    for (const place of declared) collect(data, place, 0, '/data', found);
    const paths = found.length < 2 ? found : isSimple ? found.sort() : outermost(found.sort());
    if (hub !== undefined) paths.push('/metadata/hub');
    return paths;
  };
};
const NOTHING: readonly string[] = [];

/** Pointers to what a declared path names; `*` is every key. */
const collect = (node: JsonValue, place: Place, depth: number, at: string, found: string[]): void => {
  const key = place[depth];
  if (key === undefined) {
    found.push(at);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  const keys = key === '*' ? Object.keys(node) : Object.hasOwn(node, key) ? [key] : [];
  for (const each of keys)
    collect((node as JsonObject)[each] ?? null, place, depth + 1, `${at}${pointerOf([each])}`, found);
};

/** Whether what a declared path names may hold, or be, what another one names. */
const mayHold = (outer: Place, inner: Place): boolean =>
  outer.length <= inner.length &&
  outer.every((key, n) => key === '*' || inner[n] === '*' || key === inner[n]);

/** Each once, without those that lie within another. */
const outermost = (ascending: readonly string[]): string[] => {
  const kept = new Set<string>();
  for (const path of ascending) if (!ancestorsOf(path).some((outer) => kept.has(outer))) kept.add(path);
  return [...kept];
};

const ancestorsOf = (path: string): string[] =>
  Array.from(path.matchAll(/\//g), ({ index }) => path.slice(0, index));

/** The metadata as tenants may see it, whatever else is left out of it. */
export const withoutHiddenFields = (metadata: JsonObject): JsonObject => {
  if (!Object.hasOwn(metadata, HIDDEN)) return metadata;
  const { [HIDDEN]: _hidden, ...others } = metadata;
  return others;
};

/**
 * Undefined for an event that says nothing of hidden fields, or says it in another form than `hiddenFieldsOf` does: such
 * an event is one whole, whatever its metadata looks like. There is one split of an event, and one event of a split.
 */
export const splitOf = (event: {
  readonly data: JsonObject;
  readonly metadata: JsonObject;
}): SplitEvent | undefined => {
  const stated = statedIn(event.metadata);
  if (stated === undefined) return undefined;
  const whole: JsonObject = { data: event.data, metadata: withoutHiddenFields(event.metadata) };
  const values: JsonValue[] = [];
  const cuts: Cuts = new Map();
  let last = '';
  for (const path of stated.paths) {
    const place = placeOfPointer(path);
    const value = place === undefined || place.length < 2 ? undefined : valueIn(whole, place);
    if (place === undefined || value === undefined || path <= last || !addCut(cuts, place)) return undefined;
    values.push(value);
    last = path;
  }
  const { data, metadata } = withoutCuts(whole, cuts) as { data: JsonObject; metadata: JsonObject };
  return { data, metadata, hidden: { ...stated, values } };
};

const statedIn = (metadata: JsonObject): { paths: string[]; salt: string } | undefined => {
  const stated = own(metadata, HIDDEN);
  if (!isObject(stated) || Object.keys(stated).length !== 2) return undefined;
  const [paths, salt] = [own(stated, 'paths'), own(stated, 'salt')];
  if (!Array.isArray(paths) || paths.length === 0 || typeof salt !== 'string' || !SALT.test(salt))
    return undefined;
  return paths.every((path) => typeof path === 'string') ? { paths: [...paths], salt } : undefined;
};

const INDEX = /^(0|[1-9][0-9]*)$/;

/** An element of a list is named by its index in its one spelling; `length` is none. */
const valueIn = (whole: JsonObject, place: readonly string[]): JsonValue | undefined => {
  let node: JsonValue | undefined = whole;
  for (const key of place) {
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, key)) return undefined;
    if (Array.isArray(node) && !INDEX.test(key)) return undefined;
    node = (node as JsonObject)[key];
  }
  return node;
};

/** What is cut out, as a tree of keys: where a branch ends, the value is. */
type Cuts = Map<string, Cuts>;

/** False when the place lies within one that is cut out already. */
const addCut = (cuts: Cuts, place: readonly string[]): boolean => {
  let node = cuts;
  let isNew = true;
  for (const key of place) {
    if (!isNew && node.size === 0) return false;
    const next: Cuts = node.get(key) ?? new Map();
    isNew = !node.has(key);
    node.set(key, next);
    node = next;
  }
  return true;
};

/** Copied along the cuts, shared beside them. In lists null stands for what was cut out: the others keep their index. */
const withoutCuts = (node: JsonValue, cuts: Cuts): JsonValue => {
  const copy = (Array.isArray(node) ? [...(node as JsonValue[])] : { ...(node as JsonObject) }) as {
    [key: string]: JsonValue;
  };
  for (const [key, inner] of cuts) {
    if (inner.size > 0) copy[key] = withoutCuts(copy[key] ?? null, inner);
    else if (Array.isArray(node)) copy[key] = null;
    else delete copy[key];
  }
  return copy;
};
