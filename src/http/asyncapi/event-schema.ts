import { z } from 'zod';
import type { EventType } from '../../domain/event-type.ts';
import { isObject, listAt, objectAt, own } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';

/**
 * `data` of an event type as JSON Schema draft 07, made of the schema that guards what is stored. Fields that only the
 * provider may see are optional: whether a topic shows them is a setting of the publisher.
 */
export const eventDataSchema = ({ schema, providerOnly = [] }: EventType): JsonObject => {
  const { $schema: _draft, ...plain } = z.toJSONSchema(schema, { target: 'draft-7' }) as JsonObject;
  return providerOnly.reduce<JsonObject>(
    (shown, path) => withOptional(shown, path.split('.')),
    readable(plain) as JsonObject,
  );
};

/** Without what says nothing: keys of JSON are text, and the format of a time is enough. */
const readable = (value: JsonValue): JsonValue => {
  if (Array.isArray(value)) return value.map(readable);
  if (!isObject(value)) return value;
  const dropped = value['format'] === 'date-time' ? ['propertyNames', 'pattern'] : ['propertyNames'];
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (dropped.includes(key) ? [] : [[key, readable(inner)]])),
  );
};

/** The schema in which the field at the path need not be there; `*` is every key of a map or index of a list. */
const withOptional = (schema: JsonObject, [head = '', ...rest]: readonly string[]): JsonObject => {
  const choices = ['anyOf', 'oneOf'].filter((name) => Array.isArray(schema[name]));
  const chosen = choices.map((name) => [
    name,
    listAt(schema, name).map((choice) => withOptional(choice as JsonObject, [head, ...rest])),
  ]);
  return {
    ...schema,
    ...Object.fromEntries(chosen),
    ...inProperties(schema, head, rest),
    ...inItems(schema, head, rest),
  };
};

const inProperties = (schema: JsonObject, head: string, rest: readonly string[]): JsonObject => {
  const properties = objectAt(schema, 'properties');
  const property = own(properties, head);
  if (!isObject(property)) return {};
  if (rest.length > 0) return { properties: { ...properties, [head]: withOptional(property, rest) } };
  const required = listAt(schema, 'required').filter((name) => name !== head);
  return {
    properties: {
      ...properties,
      [head]: { ...property, description: "Only where the topic is the provider's." },
    },
    ...(required.length === 0 ? { required: [] } : { required }),
  };
};

const inItems = (schema: JsonObject, head: string, rest: readonly string[]): JsonObject => {
  if (head !== '*' || rest.length === 0) return {};
  return Object.fromEntries(
    ['additionalProperties', 'items'].flatMap((name) => {
      const inner = schema[name];
      return isObject(inner) ? [[name, withOptional(inner, rest)]] : [];
    }),
  );
};
