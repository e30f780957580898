import type { DescMessage } from '@bufbuild/protobuf';
import { isObject } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { fieldOf, isPlainMessage } from './messages.ts';

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
