import { ScalarType, type DescEnum, type DescField, type DescMessage } from '@bufbuild/protobuf';
import type { FieldPath, FieldType, Literal } from '../../../projections/filter/ast.ts';
import { quoted } from './parse.ts';

export type FilterTarget = {
  /** Name of the variable: `this` of lists, `event` of watches. */
  readonly root: 'this' | 'event';
  /** Message of the API side called: what only the other side has is unknown. */
  readonly schema: DescMessage;
  /** Paths of write-only values, as the declarations name them (`*` matches any key): never to be asked about. */
  readonly hidden?: readonly string[];
};

/** One step of a path: a field's name or, in brackets, the key of a map. */
export type Step = { readonly name: string; readonly at: number; readonly bracket: boolean };

/** A resolved path; `enum` where the value (or the item) is one. */
export type ResolvedField = { readonly field: FieldPath; readonly enum?: DescEnum };

/** Where resolving stopped and why; the caller knows the text that the offset is of. */
export type FieldProblem = { readonly at: number; readonly problem: string };

/** Metadata that lists cannot ask about (OSAC). */
const NOT_FILTERABLE = ['annotations', 'version', 'finalizers', 'display_name', 'description'];
/** Kept as texts that are always there (OSAC). */
const NEVER_NULL = ['id', 'metadata.name', 'metadata.project', 'metadata.tenant', 'metadata.creator'];

/** Resolves a path against the message that it is about (OSAC). */
export const resolveField = (target: FilterTarget, steps: readonly Step[]): ResolvedField | FieldProblem => {
  let place: Place = { kind: 'message', schema: target.schema };
  const path: string[] = [];
  for (const step of steps) {
    const next = enter(place, step, path, target);
    if ('problem' in next) return next;
    path.push(step.name);
    const refused = refusal(target, path);
    if (refused !== undefined) return { at: step.at, problem: refused };
    place = next;
  }
  const declared = enumOf(place);
  const field = fieldPath(target, place, path);
  return declared === undefined ? { field } : { field, enum: declared };
};

export const isProblem = (resolved: ResolvedField | FieldProblem): resolved is FieldProblem =>
  'problem' in resolved;

type Place =
  | { readonly kind: 'message'; readonly schema: DescMessage }
  | { readonly kind: 'value'; readonly field: DescField }
  | { readonly kind: 'entry'; readonly map: MapField };
type MapField = DescField & { readonly fieldKind: 'map' };

const enter = (
  place: Place,
  step: Step,
  path: readonly string[],
  { root }: FilterTarget,
): Place | FieldProblem => {
  const here = path.join('.');
  const inside = contentOf(place);
  if (inside === 'map') return { kind: 'entry', map: (place as { readonly field: MapField }).field };
  if (inside === undefined) {
    const problem =
      place.kind === 'value' && place.field.fieldKind === 'list'
        ? `items of the list ${quoted(here)} cannot be picked; use 'in'`
        : `${quoted(here)} has no fields`;
    return { at: step.at, problem };
  }
  if (step.bracket)
    return {
      at: step.at,
      problem: `${quoted(here === '' ? root : here)} is not a map; write .name instead of ['name']`,
    };
  const field = inside.fields.find(({ name }) => name === step.name);
  if (field === undefined)
    return { at: step.at, problem: `unknown field ${quoted([...path, step.name].join('.'))}` };
  return field.fieldKind === 'message'
    ? { kind: 'message', schema: field.message }
    : { kind: 'value', field };
};

/** The message whose fields can be named next, `map` when a key can, undefined when nothing can. */
const contentOf = (place: Place): DescMessage | 'map' | undefined => {
  if (place.kind === 'message') return isPlain(place.schema) ? place.schema : undefined;
  if (place.kind === 'entry') {
    const { message } = place.map;
    return message !== undefined && isPlain(message) ? message : undefined;
  }
  return place.field.fieldKind === 'map' ? 'map' : undefined;
};

const isPlain = (schema: DescMessage): boolean => !schema.typeName.startsWith('google.protobuf.');

const refusal = (target: FilterTarget, path: readonly string[]): string | undefined => {
  const here = path.join('.');
  if (
    target.root === 'this' &&
    path.length === 2 &&
    path[0] === 'metadata' &&
    NOT_FILTERABLE.includes(path[1] ?? '')
  )
    return `'${here}' cannot be asked about in lists`;
  const isHidden = (hidden: string): boolean => {
    const keys = hidden.split('.');
    const compared = keys.at(-1) === '*' ? keys.slice(0, -1) : keys;
    return path.length >= compared.length && compared.every((key, i) => key === '*' || key === path[i]);
  };
  return target.hidden?.some(isHidden) === true
    ? `${quoted(here)} is write-only and cannot be asked about`
    : undefined;
};

const fieldPath = (target: FilterTarget, place: Place, path: readonly string[]): FieldPath => {
  const type = typeOf(place);
  const declared = enumOf(place);
  const isMapValue = place.kind === 'entry';
  const absent = isMapValue ? undefined : absentValue(target, type, path.join('.'));
  return {
    path,
    type,
    ...(declared === undefined
      ? {}
      : { enumNumbers: Object.fromEntries(declared.values.map(({ name, number }) => [name, number])) }),
    ...(place.kind === 'value' && (type === 'list' || type === 'map')
      ? { items: itemType(place.field) }
      : {}),
    ...(absent === undefined ? {} : { absent }),
    ...(isMapValue ? { mapValue: true as const } : {}),
    ...(path.join('.').endsWith('metadata.project') ? { dotted: true as const } : {}),
  };
};

/**
 * Lists read an absent bool as false and any other absent scalar as null; watches are standard CEL, where a field that
 * is not set reads as its default (OSAC).
 */
const absentValue = ({ root }: FilterTarget, type: FieldType, path: string): Literal | undefined => {
  if (type === 'bool') return false;
  if (root === 'this') return NEVER_NULL.includes(path) ? '' : undefined;
  if (type === 'string') return '';
  return type === 'enum' || type === 'int32' || type === 'int64' || type === 'double' ? 0 : undefined;
};

const typeOf = (place: Place): FieldType => {
  if (place.kind === 'message') return messageType(place.schema);
  if (place.kind === 'entry') return itemType(place.map);
  const { field } = place;
  if (field.fieldKind === 'list') return 'list';
  if (field.fieldKind === 'map') return 'map';
  return itemType(field);
};

const itemType = (field: DescField): FieldType => {
  if (field.enum !== undefined) return 'enum';
  if (field.message !== undefined) return messageType(field.message);
  return SCALARS[field.scalar ?? ScalarType.BYTES] ?? 'message';
};
const messageType = (schema: DescMessage): FieldType =>
  schema.typeName === 'google.protobuf.Timestamp' ? 'timestamp' : 'message';

const enumOf = (place: Place): DescEnum | undefined =>
  place.kind === 'message' ? undefined : place.kind === 'entry' ? place.map.enum : place.field.enum;

/** Bytes have no order and are never compared: like a message, they are there or not. */
const SCALARS: Readonly<Partial<Record<ScalarType, FieldType>>> = {
  [ScalarType.STRING]: 'string',
  [ScalarType.BOOL]: 'bool',
  [ScalarType.DOUBLE]: 'double',
  [ScalarType.FLOAT]: 'double',
  [ScalarType.INT32]: 'int32',
  [ScalarType.SINT32]: 'int32',
  [ScalarType.UINT32]: 'int32',
  [ScalarType.FIXED32]: 'int32',
  [ScalarType.SFIXED32]: 'int32',
  [ScalarType.INT64]: 'int64',
  [ScalarType.SINT64]: 'int64',
  [ScalarType.UINT64]: 'int64',
  [ScalarType.FIXED64]: 'int64',
  [ScalarType.SFIXED64]: 'int64',
};
