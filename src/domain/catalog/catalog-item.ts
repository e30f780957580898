import { reject, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, listAt, objectAt, stringAt, withoutValueAt } from '../json-tools.ts';
import { referenceOf } from '../references.ts';
import { regularNames } from '../resource.ts';
import { documentKind } from './document-kind.ts';
import type { DocumentEventNames } from './events.ts';
import type { GovernedKind } from './field-governance.ts';

/** Templates as they are offered: which fields a customer sets, and within which bounds (OSAC). */
export const MAX_FIELD_DEFINITIONS = 100;
const MAX_PATH = 253;
/** Characters of a default as JSON; it stands in every list of items. */
const MAX_DEFAULT = 16_384;

/** A kind of catalogue items. `references`: fields of the spec whose default is a reference, and of which kind. */
export const catalogItemKind = <const Names extends DocumentEventNames>({
  kind,
  collection = regularNames(kind).collection,
  events,
  templateKind,
  governed,
  references,
}: {
  readonly kind: string;
  readonly collection?: string;
  readonly events: Names;
  readonly templateKind: string;
  readonly governed: GovernedKind;
  readonly references: { readonly [path: string]: string };
}) =>
  documentKind({
    kind,
    collection,
    context: 'catalog',
    events,
    inCatalogue: true,
    outsideProjectsForAll: true,
    untold: true,
    publicList: [{ path: 'published', is: [true], always: true }],
    published: (document) => isPublished(document),
    privateOnly: ['tenant'],
    references: [{ path: 'template', kind: templateKind, scope: 'full' }],
    alsoPointsAt: (document) =>
      listAt(document, 'field_definitions').flatMap((definition) => {
        const target = references[stringAt(definition, 'path')];
        const id = stringAt(objectAt(definition, 'default'), 'id');
        return target === undefined ? [] : [{ kind: target, id }];
      }),
    normalize: (document) => withoutNullDefaults(document),
    check: (document) =>
      titleRejection(document) ??
      offerRejection(document) ??
      definitionsRejection(listAt(document, 'field_definitions'), governed),
  });

/** Tenants may order from it. */
export const isPublished = (document: JsonObject): boolean => document['published'] === true;

/** `null` as a default says that there is none. */
const withoutNullDefaults = (document: JsonObject): JsonObject => {
  const definitions = listAt(document, 'field_definitions');
  return definitions.length === 0
    ? document
    : {
        ...document,
        field_definitions: definitions.map((definition) =>
          isObject(definition) && definition['default'] === null
            ? withoutValueAt(definition, 'default')
            : definition,
        ),
      };
};

const titleRejection = (document: JsonObject): Rejection | undefined =>
  stringAt(document, 'title') === ''
    ? refuse('FIELD_REQUIRED', 'title', "field 'title' is required")
    : undefined;

const offerRejection = (document: JsonObject): Rejection | undefined =>
  isPublished(document) && referenceOf(document['template']) === undefined
    ? refuse(
        'FIELD_REQUIRED',
        'template',
        "field 'template' is required: an item without a template can be kept, but not published",
      )
    : undefined;

const definitionsRejection = (
  definitions: readonly JsonValue[],
  governed: GovernedKind,
): Rejection | undefined => {
  if (definitions.length > MAX_FIELD_DEFINITIONS)
    return refuse(
      'TOO_MANY_DEFINITIONS',
      'field_definitions',
      `an item has at most ${MAX_FIELD_DEFINITIONS} field definitions`,
    );
  const paths: (readonly string[])[] = [];
  for (const [index, definition] of definitions.entries()) {
    const wrong = definitionProblem(definition, paths, governed);
    if (wrong !== undefined)
      return refuse('INVALID_DEFINITION', `field_definitions.${index}.${wrong.field}`, wrong.problem);
    paths.push(governed.segmentsOf(stringAt(definition, 'path')) ?? []);
  }
  return undefined;
};

const definitionProblem = (
  definition: JsonValue,
  before: readonly (readonly string[])[],
  { segmentsOf, words, secrets }: GovernedKind,
): { readonly field: string; readonly problem: string } | undefined => {
  const path = stringAt(definition, 'path');
  if (path === '') return { field: 'path', problem: 'every field definition needs a path' };
  const segments = path.length > MAX_PATH ? undefined : segmentsOf(path);
  if (segments === undefined)
    return {
      field: 'path',
      problem: `the spec of a ${words} has no field '${path.slice(0, MAX_PATH)}' to define`,
    };
  const other = before.find((known) => overlaps(known, segments));
  if (other !== undefined)
    return {
      field: 'path',
      problem: `field definitions '${other.join('.')}' and '${path}' speak of the same field`,
    };
  const { default: fallback, editable } = definition as JsonObject;
  if (fallback === undefined)
    return editable === true
      ? undefined
      : { field: 'default', problem: `field '${path}' is not editable, so it needs a default` };
  if (JSON.stringify(fallback).length > MAX_DEFAULT)
    return { field: 'default', problem: `the default of '${path}' has more than ${MAX_DEFAULT} characters` };
  // An empty one says that it may be left out.
  return secrets.includes(path) && fallback !== ''
    ? {
        field: 'default',
        problem: `a secret cannot be the default of '${path}': give the template one instead`,
      }
    : undefined;
};

/** One path lies at or below the other. */
const overlaps = (left: readonly string[], right: readonly string[]): boolean =>
  left.slice(0, right.length).every((segment, index) => segment === right[index]);

const refuse = (code: string, field: string, message: string): Rejection =>
  reject('invalid', code, message, { field });
