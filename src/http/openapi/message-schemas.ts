import { ScalarType, type DescEnum, type DescField, type DescMessage } from '@bufbuild/protobuf';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { FieldNotes } from './field-notes.ts';

/**
 * Protobuf messages as JSON Schema 2020-12, in the JSON form of OSAC's surfaces. Answers and requests
 * differ: requests may give an enum by number, a 64-bit number as a number, and null for what is to be cleared.
 */
export type Side = 'answer' | 'request';

export type MessageSchemas = {
  /** `{"$ref": …}` of the message's component, which is made on first use with everything that it holds. */
  readonly ref: (message: DescMessage, side: Side) => JsonObject;
  readonly components: () => { readonly [name: string]: JsonObject };
};

/** `osac.public.v1.Cluster` of answers, `osac.public.v1.ClusterInput` of requests. */
export const componentName = (message: DescMessage, side: Side): string =>
  side === 'answer' ? message.typeName : `${message.typeName}Input`;

export const componentRef = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` });

export const createMessageSchemas = (notes: FieldNotes): MessageSchemas => {
  const made = new Map<string, JsonObject>();

  const ref = (message: DescMessage, side: Side): JsonObject => {
    const known = WELL_KNOWN[message.typeName];
    if (known !== undefined) return known(side);
    const name = componentName(message, side);
    if (!made.has(name)) {
      // Entered first, since messages may hold each other.
      made.set(name, {});
      made.set(name, objectSchema(message, side));
    }
    return componentRef(name);
  };

  const objectSchema = (message: DescMessage, side: Side): JsonObject => {
    const fields = message.fields.filter((field) => !hidden(message, field, side));
    const properties = fields.map((field): [string, JsonValue] => [
      field.name,
      propertySchema(message, field, side),
    ]);
    return {
      type: 'object',
      ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties) }),
      additionalProperties: false,
      ...oneOfRules(message, side),
    };
  };

  const hidden = (message: DescMessage, field: DescField, side: Side): boolean =>
    side === 'answer' && notes.of(message, field)?.answers === 'absent';

  const propertySchema = (message: DescMessage, field: DescField, side: Side): JsonObject => {
    const note = notes.of(message, field);
    if (side === 'answer' && note?.answers === '***')
      return { ...(field.fieldKind === 'map' ? MASKED_ENTRIES : MASKED), ...describe(note.description) };
    const form = fieldSchema(field, side);
    const stated = side === 'request' ? { ...nullable(form), ...note?.request } : form;
    return {
      ...stated,
      ...describe(note?.description),
      ...(note?.readOnly === true ? { readOnly: true } : {}),
      ...(side === 'request' && note?.answers !== undefined ? { writeOnly: true } : {}),
    };
  };

  const fieldSchema = (field: DescField, side: Side): JsonObject => {
    switch (field.fieldKind) {
      case 'list':
        return { type: 'array', items: valueSchema(field, side) };
      case 'map':
        return { type: 'object', additionalProperties: valueSchema(field, side) };
      default:
        return valueSchema(field, side);
    }
  };

  const valueSchema = (field: DescField, side: Side): JsonObject => {
    if (field.message !== undefined) return ref(field.message, side);
    if (field.enum !== undefined) return enumSchema(field.enum, side);
    return scalarSchema(field.scalar ?? ScalarType.STRING, side);
  };

  return { ref, components: () => Object.fromEntries([...made].toSorted(byName)) };
};

const MASKED: JsonObject = { type: 'string', const: '***' };
const MASKED_ENTRIES: JsonObject = { type: 'object', additionalProperties: MASKED };

const byName = ([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number =>
  left < right ? -1 : 1;

const describe = (description: string | undefined): JsonObject =>
  description === undefined ? {} : { description };

/** A null says that a field is not set; in a PATCH it clears (OSAC). */
const nullable = (schema: JsonObject): JsonObject => {
  const { type } = schema;
  if (typeof type === 'string' && schema['enum'] === undefined) return { ...schema, type: [type, 'null'] };
  if (Object.keys(schema).length === 0) return schema;
  return { anyOf: [...(Array.isArray(schema['anyOf']) ? schema['anyOf'] : [schema]), { type: 'null' }] };
};

/** At most one member of a oneof may be there; one that has a single member rules nothing out. */
const oneOfRules = (message: DescMessage, side: Side): JsonObject => {
  const rules = message.oneofs
    .filter(({ fields }) => fields.length > 1)
    .map(({ fields }): JsonObject => {
      const present = fields.map(
        ({ name }): JsonObject => ({
          required: [name],
          // In a request null means that the member is not there.
          ...(side === 'request' ? { properties: { [name]: { not: { type: 'null' } } } } : {}),
        }),
      );
      return { oneOf: [...present, { not: { anyOf: present } }] };
    });
  return rules.length === 0 ? {} : { allOf: rules };
};

const enumSchema = ({ values }: DescEnum, side: Side): JsonObject => {
  const names: JsonObject = { type: 'string', enum: values.map(({ name }) => name) };
  if (side === 'answer') return names;
  return { anyOf: [names, { type: 'integer', enum: values.map(({ number }) => number) }] };
};

const INT32: JsonObject = { type: 'integer', format: 'int32', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
const UINT32: JsonObject = { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 };
const BASE64 = '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$';
const BYTES: JsonObject = { type: 'string', contentEncoding: 'base64', pattern: BASE64 };
const NUMBER: JsonObject = { type: 'number' };

/** 64-bit numbers are decimal text, because JSON readers round them (OSAC). */
const int64 = (side: Side): JsonObject => {
  const text: JsonObject = { type: 'string', format: 'int64', pattern: '^-?[0-9]{1,19}$' };
  const number: JsonObject = {
    type: 'integer',
    minimum: Number.MIN_SAFE_INTEGER,
    maximum: Number.MAX_SAFE_INTEGER,
  };
  return side === 'answer' ? text : { anyOf: [text, number] };
};
const uint64 = (side: Side): JsonObject => {
  const text: JsonObject = { type: 'string', pattern: '^[0-9]{1,20}$' };
  const number: JsonObject = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
  return side === 'answer' ? text : { anyOf: [text, number] };
};

const scalarSchema = (scalar: ScalarType, side: Side): JsonObject => {
  switch (scalar) {
    case ScalarType.BOOL:
      return { type: 'boolean' };
    case ScalarType.STRING:
      return { type: 'string' };
    case ScalarType.BYTES:
      return BYTES;
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return INT32;
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return UINT32;
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return int64(side);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return uint64(side);
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return { anyOf: [NUMBER, { type: 'string', enum: ['NaN', 'Infinity', '-Infinity'] }] };
  }
};

const TIMESTAMP: JsonObject = { type: 'string', format: 'date-time' };
const DURATION: JsonObject = { type: 'string', pattern: '^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$' };

/** What a template parameter may be: type names are compared literally (OSAC). */
const wrapped = (side: Side): readonly (readonly [type: string, value: JsonObject])[] => [
  ['BoolValue', { type: 'boolean' }],
  ['Int32Value', INT32],
  ['Int64Value', int64(side)],
  ['UInt32Value', UINT32],
  ['UInt64Value', uint64(side)],
  ['FloatValue', scalarSchema(ScalarType.FLOAT, side)],
  ['DoubleValue', scalarSchema(ScalarType.DOUBLE, side)],
  ['StringValue', { type: 'string' }],
  ['BytesValue', BYTES],
  ['Timestamp', TIMESTAMP],
  ['Duration', DURATION],
];

const anySchema = (side: Side): JsonObject => ({
  oneOf: wrapped(side).map(([type, value]) => ({
    type: 'object',
    properties: { '@type': { const: `type.googleapis.com/google.protobuf.${type}` }, value },
    required: ['@type', 'value'],
    additionalProperties: false,
  })),
});

/** Messages with a JSON form of their own. The two large ones are components, see `sharedComponents`. */
const WELL_KNOWN: { readonly [typeName: string]: ((side: Side) => JsonObject) | undefined } = {
  'google.protobuf.Timestamp': () => TIMESTAMP,
  'google.protobuf.Duration': () => DURATION,
  'google.protobuf.Any': (side) => componentRef(side === 'answer' ? 'Any' : 'AnyInput'),
  'google.protobuf.Value': () => ({}),
  'google.protobuf.Struct': () => ({ type: 'object' }),
};

export const sharedComponents = (): { readonly [name: string]: JsonObject } => ({
  Any: anySchema('answer'),
  AnyInput: anySchema('request'),
});
