import {
  fromBinary,
  fromJson,
  toBinary,
  toJson,
  type DescMessage,
  type JsonValue,
  type Message,
} from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';
import { LRUCache } from 'lru-cache';
import { isObject } from '../domain/json-tools.ts';
import type { JsonObject } from '../domain/json.ts';
import { ApiError, invalid } from '../http/errors.ts';
import { READ, WRITE } from '../http/osac/messages.ts';
import { assertFewValues } from './values.ts';

/** What a stored document holds beyond its message is not shown. */
const STORED = { ...READ, ignoreUnknownFields: true };

/** Throws ApiError 400. */
export const decode = (schema: DescMessage, bytes: Uint8Array): Message => {
  try {
    assertFewValues(schema, bytes);
    return fromBinary(schema, bytes);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw invalid(`the request is not a valid ${schema.typeName}: ${reasonOf(error)}`);
  }
};

/** The canonical document of a message, as REST's codec makes it of a body. Throws ApiError 400. */
export const documentOf = (schema: DescMessage, message: Message): JsonObject => {
  try {
    return toJson(schema, message, WRITE) as JsonObject;
  } catch (error) {
    throw invalid(`the object does not fit ${schema.typeName}: ${reasonOf(error)}`);
  }
};

/**
 * What a message with a mask sets: its document, and of the entries of its maps of messages the zeros, too, which protobuf
 * leaves out. Such an entry is sent whole.
 */
export const withZerosOfEntries = (
  schema: DescMessage,
  message: Message,
  document: JsonObject,
): JsonObject => {
  const whole = toJson(schema, message, { ...WRITE, alwaysEmitImplicit: true }) as JsonObject;
  return ofEntries(schema, document, whole);
};

const ofEntries = (schema: DescMessage, document: JsonObject, whole: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(document).map(([name, value]) => {
      const field = schema.fields.find((one) => one.name === name);
      const full = whole[name];
      if (field?.fieldKind === 'map' && field.message !== undefined) return [name, full ?? value];
      if (field?.fieldKind !== 'message' || !isObject(value) || !isObject(full)) return [name, value];
      return [name, ofEntries(field.message, value, full)];
    }),
  );

/** Without a value: it may be a secret. */
const reasonOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : '';
  const type = /"(?:[^"]*\/)?([\w.-]{1,100})" is not in the type registry/.exec(text);
  if (type !== null) return `type '${type[1]}' is not known`;
  if (/utf-?8|encoded data was not valid/i.test(text)) return 'a text is not valid UTF-8';
  return 'it is cut off, nested too deeply or has a field of another type';
};

/** Characters and bytes of stored texts that are remembered as messages: the same few are read again and again. */
const REMEMBERED = 16 * 1024 * 1024;
const remembered = new LRUCache<string, { readonly schema: DescMessage; readonly bytes: Uint8Array }>({
  maxSize: REMEMBERED,
  sizeCalculation: ({ bytes }, text) => text.length + bytes.byteLength + 1,
});

/** A document that this service wrote, as bytes of its message: nothing has to look for a key that comes twice. */
export const encodeText = (schema: DescMessage, text: string): Uint8Array =>
  toBinary(schema, fromJson(schema, JSON.parse(text) as JsonValue, STORED));

/** The same of what is stored, remembered; what a write answers may hold a secret, and is not. */
export const encodeStored = (schema: DescMessage, text: string): Uint8Array => {
  const known = remembered.get(text);
  if (known?.schema === schema) return known.bytes;
  const bytes = encodeText(schema, text);
  remembered.set(text, { schema, bytes });
  return bytes;
};

/** Number of a field that every message of this form has. */
export const numberOf = (schema: DescMessage, name: string): number => {
  const field = schema.fields.find((one) => one.name === name);
  if (field === undefined) throw new TypeError(`${schema.typeName} has no field ${name}`);
  return field.number;
};

/** A message with one field that holds an encoded message or a text. */
export const wrapped = (number: number, content: Uint8Array): Uint8Array => {
  const head = [...varint((number << 3) | WireType.LengthDelimited), ...varint(content.byteLength)];
  const message = Buffer.allocUnsafe(head.length + content.byteLength);
  message.set(head);
  message.set(content, head.length);
  return message;
};

const varint = (value: number): readonly number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
