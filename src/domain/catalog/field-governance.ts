import { reject, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, listAt, stringAt } from '../json-tools.ts';
import { valueAtPlace, withValueAtPlace } from '../places.ts';

/**
 * What a catalogue item lets its customers say (osac-api.md §10): which fields of a spec they may set, what the others
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

/** Every leaf that the caller set and no definition speaks of, sorted. */
const uncoveredPaths = (
  spec: JsonObject,
  definitions: readonly FieldDefinition[],
  { alwaysAllowed, leaves }: GovernedKind,
): readonly string[] =>
  leavesOf(spec, [], leaves)
    .filter(
      (leaf) =>
        !alwaysAllowed.includes(leaf[0] ?? '') && !definitions.some(({ segments }) => covers(segments, leaf)),
    )
    .map((leaf) => leaf.join('.'))
    .sort();

/** Compared key by key: a key that holds a dot is not two keys. */
const covers = (segments: readonly string[], leaf: readonly string[]): boolean =>
  segments.length <= leaf.length && segments.every((segment, index) => segment === leaf[index]);

/** Paths of everything that says something: texts, numbers, lists, and messages that are empty. */
const leavesOf = (value: JsonValue, path: readonly string[], leaves: string): (readonly string[])[] => {
  const whole = path.length === 2 && path[0] === leaves;
  if (!isObject(value) || whole || (path.length > 0 && Object.keys(value).length === 0)) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key], leaves));
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

const MAX_NAMED = 10;

const notAllowed = (item: string, paths: readonly string[]): Rejection => {
  const named = paths.slice(0, MAX_NAMED).map((path) => path.slice(0, 128));
  const more = paths.length > MAX_NAMED ? ` and ${paths.length - MAX_NAMED} more` : '';
  return refuse(
    'FIELD_NOT_ALLOWED',
    paths[0] ?? '',
    `fields not allowed by catalog item '${item}': ${named.join(', ')}${more}`,
  );
};

const refuse = (code: string, path: string, message: string): Rejection =>
  reject('invalid', code, message, { field: `spec.${path}` });
