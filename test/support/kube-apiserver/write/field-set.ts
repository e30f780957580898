import { isObject, own } from '../../../../src/domain/json-tools.ts';
import type { Schema } from '../schema/schema.ts';
import type { JsonObject, JsonValue, Kind, KubeObject } from '../types.ts';

/**
 * The fields of an object as server-side apply counts them: leaves, each under a path of elements `f:<field>`,
 * `k:<keys>` (element of a map list) and `v:<value>` (element of a set). Lists without a type are one leaf.
 */
export type Leaves = ReadonlyMap<string, JsonValue>;

const SEPARATOR = '\u0000';

const METADATA: Schema = {
  properties: {
    finalizers: { type: 'array', 'x-kubernetes-list-type': 'set' },
    ownerReferences: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
    },
  },
};

/** The part of an object that managers own: everything that a caller may write, by one subresource. */
export const ownedLeaves = (kind: Kind, object: KubeObject | JsonObject, status: boolean): Leaves => {
  const { apiVersion: _version, kind: _kind, metadata, status: state, ...rest } = object as JsonObject;
  const schema = kind.schema?.schema;
  const leaves = new Map<string, JsonValue>();
  if (status) {
    if (state !== undefined) walk(state, own(schema?.properties, 'status'), ['f:status'], leaves);
    return leaves;
  }
  for (const [name, value] of Object.entries(rest)) {
    walk(value, own(schema?.properties, name), [`f:${name}`], leaves);
  }
  if (state !== undefined && !kind.statusSubresource) walk(state, undefined, ['f:status'], leaves);
  const { labels, annotations, finalizers, ownerReferences } = isObject(metadata) ? metadata : {};
  for (const [name, value] of Object.entries({ labels, annotations, finalizers, ownerReferences })) {
    if (value !== undefined) walk(value, own(METADATA.properties, name), ['f:metadata', `f:${name}`], leaves);
  }
  return leaves;
};

const walk = (
  value: JsonValue,
  schema: Schema | undefined,
  path: readonly string[],
  leaves: Map<string, JsonValue>,
): void => {
  const inner = children(value, schema);
  if (inner === undefined || inner.length === 0) leaves.set(path.join(SEPARATOR), value);
  else
    for (const { element, child, childSchema } of inner) walk(child, childSchema, [...path, element], leaves);
};

type Child = { element: string; child: JsonValue; childSchema: Schema | undefined };

/** What is inside a value, element by element; undefined: it is owned as a whole. */
const children = (value: JsonValue, schema: Schema | undefined): Child[] | undefined => {
  if (isObject(value)) {
    if (schema?.['x-kubernetes-map-type'] === 'atomic') return undefined;
    return Object.entries(value).map(([name, child]) => ({
      element: `f:${name}`,
      child,
      childSchema: own(schema?.properties, name),
    }));
  }
  if (!Array.isArray(value)) return undefined;
  const items = value as readonly JsonValue[];
  switch (schema?.['x-kubernetes-list-type']) {
    case 'set':
      return items.map((child) => ({ element: `v:${JSON.stringify(child)}`, child, childSchema: undefined }));
    case 'map':
      return items.map((child) => ({ element: elementOf(schema, child), child, childSchema: schema.items }));
    default:
      return undefined;
  }
};

const elementOf = (schema: Schema, item: JsonValue): string => {
  const keys = [...(schema['x-kubernetes-list-map-keys'] ?? [])].sort();
  const entries = keys.map((key) => [key, isObject(item) ? (own(item, key) ?? null) : null]);
  return `k:${JSON.stringify(Object.fromEntries(entries))}`;
};

/** The `fieldsV1` document of a set of paths. */
export const toFieldsV1 = (paths: Iterable<string>): JsonObject => {
  const root: JsonObject = {};
  for (const path of paths) {
    let node = root;
    for (const element of path.split(SEPARATOR)) {
      if (node !== root && !element.startsWith('v:') && Object.keys(node).length === 0) node['.'] = {};
      const next = own(node, element) ?? {};
      node[element] = next;
      node = next as JsonObject;
    }
  }
  const metadata = own(root, 'f:metadata') as JsonObject | undefined;
  if (metadata !== undefined) delete metadata['.'];
  return root;
};

export const fromFieldsV1 = (fields: JsonObject): Set<string> => {
  const paths = new Set<string>();
  const visit = (node: JsonObject, path: readonly string[]): void => {
    const inner = Object.entries(node).filter(([element]) => element !== '.');
    if (inner.length === 0 && path.length > 0) paths.add(path.join(SEPARATOR));
    for (const [element, child] of inner) visit(child as JsonObject, [...path, element]);
  };
  visit(fields, []);
  return paths;
};

/** `.spec.nodeRequests`, `.status.nodeSets[name="a"].agents`: how error texts write a path. */
export const pathText = (path: string): string =>
  path
    .split(SEPARATOR)
    .map((element) => {
      if (element.startsWith('f:')) return `.${element.slice(2)}`;
      if (element.startsWith('v:')) return `[=${element.slice(2)}]`;
      const keys = Object.entries(JSON.parse(element.slice(2)) as JsonObject);
      return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
    })
    .join('');

const schemaFor = (kind: Kind): Schema => ({
  ...kind.schema?.schema,
  properties: { ...kind.schema?.schema.properties, metadata: METADATA },
});

/** What is applied, laid over what there is: maps and map lists by key, sets united, everything else replaced. */
export const layOver = (kind: Kind, current: JsonObject, applied: JsonObject): JsonObject =>
  lay(current, applied, schemaFor(kind)) as JsonObject;

const lay = (current: JsonValue | undefined, applied: JsonValue, schema: Schema | undefined): JsonValue => {
  if (isObject(applied) && isObject(current) && schema?.['x-kubernetes-map-type'] !== 'atomic') {
    const merged = new Map(Object.entries(current));
    for (const [name, value] of Object.entries(applied)) {
      merged.set(name, lay(own(current, name), value, own(schema?.properties, name)));
    }
    return Object.fromEntries(merged);
  }
  const type = schema?.['x-kubernetes-list-type'];
  if (!Array.isArray(applied) || !Array.isArray(current) || schema === undefined) return applied;
  if (type === 'set') {
    const texts = new Set(current.map((one) => JSON.stringify(one)));
    return [...current, ...applied.filter((one) => !texts.has(JSON.stringify(one)))];
  }
  if (type !== 'map') return applied;
  const added = applied.filter(
    (one) => !current.some((old) => elementOf(schema, old) === elementOf(schema, one)),
  );
  const kept = current.map((old) => {
    const wanted = applied.find((one) => elementOf(schema, one) === elementOf(schema, old));
    return wanted === undefined ? old : lay(old, wanted, schema.items);
  });
  return [...kept, ...added];
};

/** A copy without one leaf; a parent that is empty then goes, too. */
export const withoutLeaf = (kind: Kind, object: JsonObject, path: string): JsonObject =>
  (dropLeaf(object, path.split(SEPARATOR), schemaFor(kind)) ?? {}) as JsonObject;

const dropLeaf = (
  node: JsonValue,
  [element, ...rest]: readonly string[],
  schema: Schema | undefined,
): JsonValue | undefined => {
  if (element === undefined) return undefined;
  const inner = children(node, schema);
  const found = inner?.find((one) => one.element === element);
  if (inner === undefined || found === undefined) return node;
  const left = dropLeaf(found.child, rest, found.childSchema);
  if (isObject(node)) {
    const { [element.slice(2)]: _dropped, ...others } = node;
    const kept = left === undefined ? others : { ...node, [element.slice(2)]: left };
    return Object.keys(kept).length === 0 ? undefined : kept;
  }
  const items = inner.flatMap((one) => (one === found ? (left === undefined ? [] : [left]) : [one.child]));
  return items.length === 0 ? undefined : items;
};
