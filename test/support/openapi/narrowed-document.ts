import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { isObject, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { openApi } from './document.ts';

/** Ids of objects that exist, by collection: `clusters` → ids. */
export type KnownIds = ReadonlyMap<string, readonly string[]>;

/** Headers that refuse nearly every call when their text is random. */
const STEERING = ['X-Ledger-Min-Position', 'X-Ledger-Command-Id', 'If-Match', 'Last-Event-ID'];

/**
 * The document for a caller who knows what is there: ids and references are of existing objects, the tenant is the
 * own one. Random calls then get past the first checks.
 */
export const narrowed = (document: JsonObject, known: KnownIds, tenant: string): JsonObject => {
  const api = openApi(document);
  const copy = JSON.parse(JSON.stringify(document)) as JsonObject;
  for (const [path, item] of Object.entries(objectAt(copy, 'paths'))) {
    const ids = known.get(/\/([a-z_]+)\/\{id\}/.exec(path)?.[1] ?? '') ?? [];
    for (const operation of Object.values(item as JsonObject)) {
      if (!isObject(operation) || !Array.isArray(operation['parameters'])) continue;
      operation['parameters'] = operation['parameters']
        .map((parameter) => api.resolve(parameter))
        .filter((parameter) => !STEERING.includes(stringAt(parameter, 'name')))
        .map((parameter) => withIds(parameter, ids));
    }
  }
  const schemas = objectAt(objectAt(copy, 'components'), 'schemas');
  for (const [name, schema] of Object.entries(schemas)) {
    const ids = known.get(collectionOf(name)) ?? [];
    if (ids.length > 0) schemas[name] = referenceTo(ids);
    const properties = objectAt(schema, 'properties');
    if (name.endsWith('.MetadataInput')) {
      properties['tenant'] = { const: tenant };
      delete properties['project'];
    }
  }
  return copy;
};

const withIds = (parameter: JsonObject, ids: readonly string[]): JsonObject =>
  parameter['in'] === 'path' && parameter['name'] === 'id' && ids.length > 0
    ? { ...parameter, schema: { type: 'string', enum: [...ids] } }
    : parameter;

/** `osac.public.v1.HostTypeReferenceInput` → `host_types`. */
const collectionOf = (component: string): string => {
  const [, message] = /\.([A-Za-z]+?)(?:Local)?ReferenceInput$/.exec(component) ?? [];
  return message === undefined ? '' : `${message.replaceAll(/(?<!^)([A-Z])/g, '_$1').toLowerCase()}s`;
};

const referenceTo = (ids: readonly string[]): JsonObject => ({
  type: 'object',
  properties: { id: { type: 'string', enum: [...ids] } satisfies JsonValue },
  required: ['id'],
  additionalProperties: false,
});
