import { reject, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, listAt, own, sameJson, stringAt } from '../json-tools.ts';
import { valueAtPlace, withValueAtPlace } from '../document-places.ts';

/**
 * What a catalogue item lets its customers say (OSAC): which fields of a spec they may set, what the others
 * are, and what a value must fulfil. Pure, and the same for every kind that is ordered from a catalogue.
 */
export type FieldDefinition = {
  readonly path: string;
  /** The keys that the path walks through. */
  readonly segments: readonly string[];
  readonly editable: boolean;
  readonly fallback: JsonValue | undefined;
  /** JSON Schema as text; empty: any value. */
  readonly schema: string;
};

/** What the kind behind an item knows of its spec. */
export type GovernedKind = {
  /** Of its objects, and how people call them. */
  readonly message: string;
  readonly words: string;
  /** Write-only fields: a default would lie in the open in every item. */
  readonly secrets: readonly string[];
  /** Maps of the spec whose keys the template names, with the word for one entry; parameters aside. */
  readonly templateParts: { readonly [field: string]: string };
  /** Undefined: its spec has no such field. */
  readonly segmentsOf: (path: string) => readonly string[] | undefined;
  /** Top-level fields that every caller may set. */
  readonly alwaysAllowed: readonly string[];
  /** Field whose entries are one leaf each, whatever they look like. */
  readonly leaves: string;
};

/** Why a value does not fit a schema, as one clause that does not repeat the value; undefined: it fits. */
export type CheckValue = (schema: string, value: JsonValue) => string | undefined;

export type Governance = {
  readonly kind: GovernedKind;
  readonly item: { readonly name: string; readonly definitions: readonly FieldDefinition[] };
  readonly misfit: CheckValue;
  /** A default as it stands in the spec, for example a plain parameter value as Any. */
  readonly asStored: (segments: readonly string[], fallback: JsonValue) => JsonValue;
  /** A value of the spec as schemas speak of it. */
  readonly asJudged: (segments: readonly string[], value: JsonValue) => JsonValue;
};

/** Definitions of an item's document; those whose path does not exist (any more) govern nothing. */
export const definitionsOf = (
  document: JsonObject,
  { segmentsOf }: Pick<GovernedKind, 'segmentsOf'>,
): FieldDefinition[] =>
  listAt(document, 'field_definitions').flatMap((definition) => {
    const path = stringAt(definition, 'path');
    const segments = segmentsOf(path);
    if (segments === undefined || !isObject(definition)) return [];
    const fallback = definition['default'] ?? undefined;
    const editable = definition['editable'] === true;
    return [{ path, segments, editable, fallback, schema: stringAt(definition, 'validation_schema') }];
  });

/** The spec with the item's defaults, or why the caller may not order this. */
export const governedSpec = (spec: JsonObject, governance: Governance): JsonObject | Rejection => {
  const { item, kind } = governance;
  const uncovered = uncoveredPaths(spec, item.definitions, kind);
  if (uncovered.length > 0) return notAllowed(item.name, uncovered);
  let governed = spec;
  for (const definition of item.definitions) {
    const sent = valueAtPlace(spec, definition.segments);
    const wrong = sent === undefined ? missing(definition, item.name) : judged(definition, sent, governance);
    if (wrong !== undefined) return wrong;
    if (sent === undefined && definition.fallback !== undefined) {
      const { segments, fallback } = definition;
      governed = withValueAtPlace(governed, segments, governance.asStored(segments, fallback)) as JsonObject;
    }
  }
  return governed;
};

/** Why an ordered spec may not be changed this way: what stays as it was is not judged, whatever the item says of it now. */
export const changeRejection = (
  before: JsonObject,
  after: JsonObject,
  governance: Governance,
): Rejection | undefined => {
  const { item, kind } = governance;
  const uncovered = uncoveredPaths(changedPart(before, after), item.definitions, kind);
  if (uncovered.length > 0) return notAllowed(item.name, uncovered);
  for (const definition of item.definitions) {
    const value = valueAtPlace(after, definition.segments);
    if (sameJson(valueAtPlace(before, definition.segments), value)) continue;
    const wrong =
      value === undefined && definition.editable
        ? missing(definition, item.name)
        : judged(definition, value ?? null, governance);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
};

/** What differs, as `after` has it; null: it is gone. */
const changedPart = (before: JsonObject, after: JsonObject): JsonObject => {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed: [string, JsonValue][] = [];
  for (const key of keys) {
    const [was, is] = [own(before, key), own(after, key)];
    if (sameJson(was, is)) continue;
    changed.push([key, isObject(was) && isObject(is) ? changedPart(was, is) : (is ?? null)]);
  }
  return Object.fromEntries(changed);
};

/** Paths of definitions as a tree of keys: compared key by key, since a key that holds a dot is not two keys. */
type Cover = { whole: boolean; readonly below: Map<string, Cover> };

const coverOf = (paths: readonly (readonly string[])[]): Cover => {
  const root: Cover = { whole: false, below: new Map() };
  for (const path of paths) {
    let node = root;
    for (const key of path) {
      const next = node.below.get(key) ?? { whole: false, below: new Map() };
      node.below.set(key, next);
      node = next;
    }
    node.whole = true;
  }
  return root;
};

const MAX_NAMED = 10;

/**
 * The first leaves that the caller set and no definition speaks of: texts, numbers, lists, and messages that are empty.
 * What is covered is not walked through, and a few are enough, so that a large spec costs no more than a small one.
 */
const uncoveredPaths = (
  spec: JsonObject,
  definitions: readonly FieldDefinition[],
  { alwaysAllowed, leaves }: GovernedKind,
): readonly string[] => {
  const found: string[] = [];
  const walk = (value: JsonValue, path: readonly string[], cover: Cover | undefined): void => {
    if (cover?.whole === true) return;
    const entry = path.length === 2 && path[0] === leaves;
    if (!isObject(value) || entry || (path.length > 0 && Object.keys(value).length === 0)) {
      found.push(path.join('.'));
      return;
    }
    for (const key in value) {
      if (found.length > MAX_NAMED) return;
      if (!Object.hasOwn(value, key) || (path.length === 0 && alwaysAllowed.includes(key))) continue;
      walk(value[key] ?? null, [...path, key], cover?.below.get(key));
    }
  };
  walk(spec, [], coverOf(definitions.map(({ segments }) => segments)));
  return found;
};

const judged = (
  { path, segments, editable, schema }: FieldDefinition,
  sent: JsonValue,
  { item, misfit, asJudged }: Governance,
): Rejection | undefined => {
  if (!editable)
    return refuse(
      'FIELD_NOT_EDITABLE',
      path,
      `field '${path}' is not editable in catalog item '${item.name}'`,
    );
  const problem = schema === '' ? undefined : misfit(schema, asJudged(segments, sent));
  return problem === undefined
    ? undefined
    : refuse('FIELD_INVALID', path, `validation failed for field '${path}': ${problem}`);
};

const missing = ({ path, fallback }: FieldDefinition, item: string): Rejection | undefined =>
  fallback === undefined
    ? refuse(
        'FIELD_REQUIRED',
        path,
        `field '${path}' is required: no value was given and catalog item '${item}' has no default for it`,
      )
    : undefined;

const notAllowed = (item: string, paths: readonly string[]): Rejection => {
  const named = paths
    .slice(0, MAX_NAMED)
    .map((path) => path.slice(0, 128))
    .sort();
  const more = paths.length > MAX_NAMED ? ' and others' : '';
  return refuse(
    'FIELD_NOT_ALLOWED',
    named[0] ?? '',
    `fields not allowed by catalog item '${item}': ${named.join(', ')}${more}`,
  );
};

const refuse = (code: string, path: string, message: string): Rejection =>
  reject('invalid', code, message, { field: `spec.${path}` });
