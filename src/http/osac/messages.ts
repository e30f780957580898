import {
  createRegistry,
  fromJsonString,
  toBinary,
  toJson,
  fromJson,
  type DescField,
  type DescMessage,
  type JsonValue as ProtoJson,
} from '@bufbuild/protobuf';
import {
  file_google_protobuf_duration,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
} from '@bufbuild/protobuf/wkt';
import { isObject } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { kinds } from '../../domain/kinds.ts';
import { files } from '../../gen/osac/files.ts';
import {
  EventSchema as PrivateEvent,
  EventsWatchResponseSchema as PrivateWatchResponse,
} from '../../gen/osac/private/v1/events_pb.ts';
import {
  EventSchema as PublicEvent,
  EventsWatchResponseSchema as PublicWatchResponse,
} from '../../gen/osac/public/v1/events_pb.ts';
import { parseJson } from '../body.ts';
import { invalid } from '../errors.ts';

export type Surface = 'public' | 'private';

type Sides = Readonly<Partial<Record<Surface, DescMessage>>>;

const shapes = createRegistry(...files);
const sidesOf = (message: string): Sides => {
  const [shown, stored] = ['public', 'private'].map((side) =>
    shapes.getMessage(`osac.${side}.v1.${message}`),
  );
  return {
    ...(shown === undefined ? {} : { public: shown }),
    ...(stored === undefined ? {} : { private: stored }),
  };
};

/** Message shapes by the name that a kind gives (`ResourceKind.message`). */
export const MESSAGES: Readonly<Record<string, Sides>> = Object.fromEntries(
  kinds.map(({ message }) => [message, sidesOf(message)]),
);

/** What a watch tells (OSAC). */
export const EVENTS: Readonly<Record<Surface, DescMessage>> = { public: PublicEvent, private: PrivateEvent };
export const WATCH_RESPONSES: Readonly<Record<Surface, DescMessage>> = {
  public: PublicWatchResponse,
  private: PrivateWatchResponse,
};

/** Everything that a `google.protobuf.Any` may hold (OSAC). */
const registry = createRegistry(
  file_google_protobuf_wrappers,
  file_google_protobuf_timestamp,
  file_google_protobuf_duration,
);
export const READ = { registry };
export const WRITE = { registry, useProtoFieldName: true };

/** A decoded body: its canonical JSON form, and the body as it was written, which says what was present. */
export type Decoded = { readonly document: JsonObject; readonly present: JsonObject };

/**
 * Text → canonical document: snake_case names, defaults left out, enums by name, 64-bit numbers as strings
 * (OSAC). Throws ApiError 400 that names the offending field by its path.
 */
export const decodeMessage = (schema: DescMessage, text: string): Decoded => {
  const present = parseJson(text);
  if (typeof present !== 'object' || present === null || Array.isArray(present))
    throw invalid(`the request body must be a JSON object`);
  try {
    const message = fromJsonString(schema, text, READ);
    return { document: toJson(schema, message, WRITE) as JsonObject, present };
  } catch (error) {
    throw explain(schema, present, error);
  }
};

/** Canonical form of a document that was put together from parts; throws ApiError 400 as `decodeMessage` does. */
export const canonicalDocument = (schema: DescMessage, document: JsonObject): JsonObject => {
  try {
    return toJson(schema, fromJson(schema, document as ProtoJson, READ), WRITE) as JsonObject;
  } catch (error) {
    throw explain(schema, document, error);
  }
};

/** A document as protobuf. It was rendered here, so that what its message does not have is left out, not refused. */
export const binaryOf = (schema: DescMessage, document: JsonObject): Uint8Array =>
  toBinary(schema, fromJson(schema, document as ProtoJson, { ...READ, ignoreUnknownFields: true }));

/** Field of a message by its proto name or its camelCase name. */
export const fieldOf = (schema: DescMessage, name: string): DescField | undefined =>
  FIELD_TABLES.get(schema)?.get(name) ??
  schema.fields.find((field) => field.name === name || field.jsonName === name);

type FieldTable = ReadonlyMap<string, DescField>;

/** Fields of every message that can be reached, by proto name and by camelCase name. */
const buildFieldTables = (roots: readonly DescMessage[]): ReadonlyMap<DescMessage, FieldTable> => {
  const tables = new Map<DescMessage, FieldTable>();
  const add = (schema: DescMessage): void => {
    if (tables.has(schema)) return;
    tables.set(
      schema,
      new Map(
        schema.fields.flatMap((field) => [[field.name, field] as const, [field.jsonName, field] as const]),
      ),
    );
    for (const field of schema.fields) if (field.message !== undefined) add(field.message);
  };
  for (const root of roots) add(root);
  return tables;
};
const FIELD_TABLES = buildFieldTables(
  Object.values(MESSAGES)
    .flatMap((sides) => Object.values(sides))
    .filter((schema) => schema !== undefined),
);

/** Messages with a JSON form of their own (Any, Timestamp …) have no fields that a path could enter. */
export const isPlainMessage = (schema: DescMessage): boolean =>
  !schema.typeName.startsWith('google.protobuf.');

/** Finds the first place where a body does not fit its message; only runs once decoding has failed. */
const explain = (schema: DescMessage, body: JsonObject, cause: unknown): Error => {
  const found = findFault(schema, body, []);
  if (found !== undefined) return invalid(found.problem, found.path);
  const duplicate = /key "([^"]{1,64})"|set multiple times/.exec(cause instanceof Error ? cause.message : '');
  return invalid(
    duplicate?.[1] === undefined
      ? `the request body does not fit ${schema.typeName}`
      : `key "${duplicate[1]}" appears more than once`,
  );
};

type Fault = { readonly path: string; readonly problem: string };

const findFault = (schema: DescMessage, value: JsonValue, path: readonly string[]): Fault | undefined => {
  const here = path.join('.');
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { path: here, problem: `field '${here}' must be a JSON object` };
  const seen = new Set<string>();
  for (const [key, inner] of Object.entries(value)) {
    const field = fieldOf(schema, key);
    const at = [...path, field?.name ?? key];
    if (field === undefined) {
      const shown = at.map((part) => clip(part)).join('.');
      return { path: shown, problem: `unknown field "${shown}"` };
    }
    if (seen.has(field.name))
      return { path: at.join('.'), problem: `field '${at.join('.')}' is set more than once` };
    seen.add(field.name);
    if (inner === null) continue;
    const fault = faultOfField(schema, field, key, inner, at);
    if (fault !== undefined) return fault;
  }
  return undefined;
};

const faultOfField = (
  schema: DescMessage,
  field: DescField,
  key: string,
  value: JsonValue,
  at: readonly string[],
): Fault | undefined => {
  if (field.message !== undefined && isPlainMessage(field.message)) {
    if (field.fieldKind === 'message') return findFault(field.message, value, at);
    const entries =
      field.fieldKind === 'list'
        ? Array.isArray(value) && value.map((item, i): [string, JsonValue] => [String(i), item])
        : typeof value === 'object' && value !== null && !Array.isArray(value) && Object.entries(value);
    if (entries === false)
      return {
        path: at.join('.'),
        problem: `field '${at.join('.')}' must be a JSON ${field.fieldKind === 'list' ? 'list' : 'object'}`,
      };
    for (const [name, item] of entries) {
      const fault = findFault(field.message, item, [...at, clip(name)]);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }
  if (fits(schema, key, value)) return undefined;
  const entry = isTypedMap(field) && isObject(value) ? unfitEntry(schema, key, value) : undefined;
  const path = [...at, ...(entry === undefined ? [] : [clip(entry.name)])].join('.');
  const expected = entry === undefined ? expectation(field) : typedExample(entry.value);
  const problem = holdsHalfCharacter(value) ? HALF_CHARACTER : expected;
  return { path, problem: `invalid value for field '${path}': ${problem}` };
};

const fits = (schema: DescMessage, key: string, value: JsonValue): boolean => {
  try {
    fromJson(schema, { [key]: value } as ProtoJson, READ);
    return true;
  } catch {
    return false;
  }
};

/** A map of values that each say their own type, for example `spec.template_parameters`. */
const isTypedMap = (field: DescField): boolean =>
  field.fieldKind === 'map' && field.message?.typeName === 'google.protobuf.Any';

const unfitEntry = (schema: DescMessage, key: string, map: JsonObject) =>
  Object.entries(map)
    .map(([name, value]) => ({ name, value }))
    .find(({ name, value }) => !fits(schema, key, { [name]: value }));

/** The form of a value that says its type, by an example of the kind of what was sent. */
const typedExample = (sent: JsonValue): string => {
  const [type, value] =
    typeof sent === 'boolean'
      ? ['BoolValue', true]
      : typeof sent === 'number'
        ? ['Int32Value', 3]
        : ['StringValue', 'text'];
  const example = { '@type': `type.googleapis.com/google.protobuf.${type}`, value };
  return `an object with "@type" and a fitting "value" is expected, for example ${JSON.stringify(example)}`;
};

const HALF_CHARACTER = 'it holds a lone surrogate, one half of a character, which is not valid Unicode';

const holdsHalfCharacter = (value: JsonValue): boolean => {
  if (typeof value === 'string') return !value.isWellFormed();
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inner]) => !key.isWellFormed() || holdsHalfCharacter(inner));
};

const clip = (text: string): string => (text.length > 64 ? `${text.slice(0, 61)}...` : text);

/** What a field takes, in words; the value itself is never repeated, since it may be a secret. */
const expectation = (field: DescField): string => {
  const one = (): string => {
    if (field.enum !== undefined)
      return `one of ${field.enum.values.map((value) => value.name).join(', ')} is expected`;
    if (field.message !== undefined)
      return WELL_KNOWN[field.message.typeName] ?? `a ${field.message.name} is expected`;
    return SCALARS[field.scalar ?? 0] ?? 'another type is expected';
  };
  if (field.fieldKind === 'list') return `a list is expected; of each item ${one()}`;
  if (field.fieldKind === 'map') return `a JSON object is expected; of each value ${one()}`;
  return one();
};

const WELL_KNOWN: Readonly<Record<string, string>> = {
  'google.protobuf.Timestamp': 'an RFC 3339 time is expected',
  'google.protobuf.Any':
    'an object with "@type" (a wrapper type of google.protobuf) and a fitting "value" is expected',
};

/** By the number of `ScalarType`. */
const SCALARS: Readonly<Record<number, string>> = {
  1: 'a number is expected',
  2: 'a number is expected',
  3: 'a whole number of 64 bits is expected, as a string',
  4: 'a whole number of 64 bits that is not negative is expected, as a string',
  5: 'a whole number from -2147483648 to 2147483647 is expected',
  8: 'true or false is expected',
  9: 'a string is expected',
  12: 'base64 text is expected',
  13: 'a whole number from 0 to 4294967295 is expected',
};

/**
 * Names of the fields that a body sets, two levels deep, as the message calls them. Keys of maps are the caller's own words,
 * and so is what the message does not know: neither is told.
 */
export const fieldNames = (schema: DescMessage, body: JsonObject): readonly string[] =>
  Object.entries(body).flatMap(([key, value]) => {
    const field = fieldOf(schema, key);
    if (field === undefined) return [];
    const { message } = field;
    if (
      field.fieldKind !== 'message' ||
      message === undefined ||
      !isPlainMessage(message) ||
      !isObject(value)
    )
      return [field.name];
    const inner = Object.keys(value).flatMap((name) => fieldOf(message, name)?.name ?? []);
    return inner.length === 0 ? [field.name] : inner.map((name) => `${field.name}.${name}`);
  });
