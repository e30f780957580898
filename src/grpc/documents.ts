import {
  fromBinary,
  fromJson,
  fromJsonString,
  toBinary,
  toJson,
  type DescMessage,
  type Message,
} from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { JsonObject } from '../domain/json.ts';
import { invalid } from '../http/errors.ts';
import { READ, WRITE } from '../http/osac/messages.ts';

/** What a stored document holds beyond its message is not shown. */
const STORED = { ...READ, ignoreUnknownFields: true };

/** Throws ApiError 400. */
export const decode = (schema: DescMessage, bytes: Uint8Array): Message => {
  try {
    return fromBinary(schema, bytes);
  } catch (error) {
    throw invalid(`the request is no valid ${schema.typeName}: ${reasonOf(error)}`);
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

/** Without a value: it may be a secret. */
const reasonOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : '';
  const type = /cannot encode message (\S+) to JSON: "([\w./-]{1,100})" is not in the type registry/.exec(
    text,
  );
  if (type !== null) return `type '${type[2]}' is not known`;
  if (/utf-?8|encoded data was not valid/i.test(text)) return 'a text is not valid UTF-8';
  return 'it is cut off, nested too deeply or has a field of another type';
};

/** A stored document as bytes of its message. */
export const encodeText = (schema: DescMessage, text: string): Uint8Array =>
  toBinary(schema, fromJsonString(schema, text, STORED));

export const encodeDocument = (schema: DescMessage, document: JsonObject): Uint8Array =>
  toBinary(schema, fromJson(schema, document, STORED));

/** Number of a field that every message of this form has. */
export const numberOf = (schema: DescMessage, name: string): number => {
  const field = schema.fields.find((one) => one.name === name);
  if (field === undefined) throw new TypeError(`${schema.typeName} has no field ${name}`);
  return field.number;
};

/** A message with one field that holds an encoded message or a text. */
export const wrapped = (number: number, content: Uint8Array): Uint8Array =>
  new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(content).finish();
