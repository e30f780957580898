import type { AnyKind } from '../../domain/kinds.ts';
import { isObject, objectAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { record, TEXT } from '../openapi/ledger-schemas.ts';

const SCHEMAS = '#/components/schemas/';
export const ENCRYPTED = 'Encrypted';

/** Personal data as the log and the topics hold it; nobody can read it once its subject's key was destroyed. */
export const ENCRYPTED_SCHEMA = record({
  alg: { const: 'A256GCM' },
  keyId: TEXT,
  nonce: TEXT,
  ct: TEXT,
  tag: TEXT,
});

/** The public document of a kind, with ciphertext where its personal data stands. Schemas on the way there are copied. */
export const documentSchema = (
  { personal = [] }: Pick<AnyKind, 'personal'>,
  schema: JsonObject,
  components: { readonly [name: string]: JsonObject },
): JsonObject =>
  personal.reduce<JsonObject>((shown, path) => sealed(shown, path.split('.'), components), schema);

const sealed = (
  schema: JsonObject,
  [head, ...rest]: readonly string[],
  components: { readonly [name: string]: JsonObject },
): JsonObject => {
  if (head === undefined) return { $ref: `${SCHEMAS}${ENCRYPTED}` };
  const resolved = resolve(schema, components);
  const properties = objectAt(resolved, 'properties');
  const inner = (value: JsonValue | undefined): JsonObject =>
    sealed(isObject(value) ? value : {}, rest, components);
  if (head !== '*') return { ...resolved, properties: { ...properties, [head]: inner(properties[head]) } };
  return Array.isArray(resolved['items']) || resolved['items'] !== undefined
    ? { ...resolved, items: inner(resolved['items']) }
    : { ...resolved, additionalProperties: inner(resolved['additionalProperties']) };
};

const resolve = (schema: JsonObject, components: { readonly [name: string]: JsonObject }): JsonObject => {
  const reference = schema['$ref'];
  if (typeof reference !== 'string') return schema;
  return components[reference.slice(SCHEMAS.length)] ?? {};
};
