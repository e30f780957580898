import { definitionsOf, type CheckValue, type GovernedKind, type Governance } from './field-governance.ts';
import { PARAMETERS } from './spec-shape.ts';
import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, listAt, objectAt, own, stringAt } from '../json-tools.ts';
import { unwrapped, wrapped } from './parameter-values.ts';

type Named = { readonly name: string; readonly document: JsonObject };

/** How a catalogue item governs specs. `template`: the item's; its parameters say what type a plain default becomes. */
export const itemGovernance = (
  kind: GovernedKind,
  item: Named,
  template: Pick<Named, 'document'>,
  misfit: CheckValue,
): Governance => {
  const types = parameterTypes(template.document);
  return {
    kind,
    item: { name: item.name, definitions: definitionsOf(item.document, kind) },
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
  { segmentsOf, templateParts }: GovernedKind,
  item: JsonObject,
  template: { readonly id: string; readonly document: JsonObject },
): Rejection | undefined => {
  const types = parameterTypes(template.document);
  for (const [index, definition] of listAt(item, 'field_definitions').entries()) {
    const path = stringAt(definition, 'path');
    const [head = '', name] = segmentsOf(path) ?? [];
    const what = head === PARAMETERS ? 'parameter' : own(templateParts, head);
    if (name === undefined || what === undefined) continue;
    const known =
      head === PARAMETERS ? types.has(name) : own(objectAt(template.document, head), name) !== undefined;
    if (!known)
      return refuse(
        index,
        'path',
        `template '${template.id}' has no ${what} '${name}' for field definition '${path}'`,
      );
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
export const defaultMisfit = (
  kind: GovernedKind,
  item: JsonObject,
  misfit: CheckValue,
): Rejection | undefined => {
  for (const [index, { path, schema, fallback, segments }] of definitionsOf(item, kind).entries()) {
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
