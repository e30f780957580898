import {
  definitionsOf,
  type CheckValue,
  type GovernedKind,
  type Governance,
} from '../catalog/field-governance.ts';
import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, listAt, objectAt, own, stringAt } from '../json-tools.ts';
import { unwrapped, wrapped } from './parameter-values.ts';
import { ALWAYS_ALLOWED, PARAMETERS, specSegments } from './spec-paths.ts';

/** How catalogue items govern the specs of clusters. */
const GOVERNED: GovernedKind = {
  segmentsOf: specSegments,
  alwaysAllowed: ALWAYS_ALLOWED,
  leaves: PARAMETERS,
};
const NODE_SETS = 'node_sets';

type Named = { readonly name: string; readonly document: JsonObject };

/** `template`: the item's; its parameters say what type a plain default becomes. */
export const clusterGovernance = (
  item: Named,
  template: Pick<Named, 'document'>,
  misfit: CheckValue,
): Governance => {
  const types = parameterTypes(template.document);
  return {
    kind: GOVERNED,
    item: { name: item.name, definitions: definitionsOf(item.document, GOVERNED) },
    misfit,
    asStored: (segments, fallback) =>
      onParameters(segments, fallback, (value, name) => wrapped(value, types.get(name))),
    asJudged: (segments, value) => onParameters(segments, value, unwrapped),
  };
};

const parameterTypes = (template: JsonObject): ReadonlyMap<string, string> =>
  new Map(listAt(template, 'parameters').map((entry) => [stringAt(entry, 'name'), stringAt(entry, 'type')]));

/** Values of parameters are Any messages, of which definitions and schemas know only the plain value. */
const onParameters = (
  [head, name]: readonly string[],
  value: JsonValue,
  change: (value: JsonValue, name: string) => JsonValue,
): JsonValue => {
  if (head !== PARAMETERS) return value;
  if (name !== undefined) return change(value, name);
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, change(inner, key)]))
    : value;
};

/** What an item's definitions say that its template cannot keep; undefined when all is well. */
export const templateMisfit = (
  item: JsonObject,
  template: { readonly id: string; readonly document: JsonObject },
): Rejection | undefined => {
  const types = parameterTypes(template.document);
  const sets = objectAt(template.document, NODE_SETS);
  for (const [index, definition] of listAt(item, 'field_definitions').entries()) {
    const path = stringAt(definition, 'path');
    const [head, name] = specSegments(path) ?? [];
    const known = head === PARAMETERS ? types.has(name ?? '') : own(sets, name ?? '') !== undefined;
    if (name === undefined || (head !== PARAMETERS && head !== NODE_SETS)) continue;
    if (!known) {
      const what = head === PARAMETERS ? 'parameter' : 'node set';
      return refuse(
        index,
        'path',
        `template '${template.id}' has no ${what} '${name}' for field definition '${path}'`,
      );
    }
    const fallback = own(definition as JsonObject, 'default');
    const type = types.get(name) ?? '';
    if (head === PARAMETERS && fallback !== undefined && stringAt(wrapped(fallback, type), '@type') !== type)
      return refuse(
        index,
        'default',
        `the default of field definition '${path}' does not fit the parameter's type '${type}'`,
      );
  }
  return undefined;
};

/** Definitions whose own default does not fulfil their schema. */
export const defaultMisfit = (item: JsonObject, misfit: CheckValue): Rejection | undefined => {
  for (const [index, { path, schema, fallback, segments }] of definitionsOf(item, GOVERNED).entries()) {
    if (schema === '' || fallback === undefined) continue;
    const problem = misfit(schema, onParameters(segments, fallback, unwrapped));
    if (problem !== undefined)
      return refuse(
        index,
        'default',
        `the default of field definition '${path}' does not fit its validation_schema: ${problem}`,
      );
  }
  return undefined;
};

const refuse = (index: number, field: string, message: string): Rejection =>
  invalid('INVALID_DEFINITION', `field_definitions.${index}.${field}`, message);
