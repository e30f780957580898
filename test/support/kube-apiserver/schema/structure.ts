import { isObject, own, sameJson } from '../../../../src/domain/json-tools.ts';
import { cause, invalidValue, type Cause } from '../errors.ts';
import type { JsonObject, JsonValue } from '../types.ts';
import { keepsUnknown, listKey, type Schema } from './schema.ts';

/** A copy without the fields that the schema does not know; their paths are reported (`fieldValidation`). */
export const prune = (value: JsonValue, schema: Schema, path: string, dropped: string[]): JsonValue => {
  if (Array.isArray(value)) {
    const items = schema.items ?? {};
    return (value as readonly JsonValue[]).map((item, index) =>
      prune(item, items, `${path}[${index}]`, dropped),
    );
  }
  if (!isObject(value)) return value;
  const kept: [string, JsonValue][] = [];
  for (const [name, entry] of Object.entries(value)) {
    const inner = propertySchema(schema, name);
    if (inner === undefined && !keepsUnknown(schema)) dropped.push(join(path, name));
    else kept.push([name, inner === undefined ? entry : prune(entry, inner, join(path, name), dropped)]);
  }
  return Object.fromEntries(kept);
};

const propertySchema = (schema: Schema, name: string): Schema | undefined => {
  const declared = own(schema.properties, name);
  if (declared !== undefined) return declared;
  if (schema.additionalProperties === true)
    return { 'x-kubernetes-preserve-unknown-fields': true } satisfies Schema;
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
};

/** A copy with the defaults of the schema filled in, also below what is there. */
export const withDefaults = (value: JsonValue, schema: Schema): JsonValue => {
  if (Array.isArray(value)) {
    const items = schema.items;
    return items === undefined
      ? value
      : (value as readonly JsonValue[]).map((item) => withDefaults(item, items));
  }
  if (!isObject(value)) return value;
  const filled: { [name: string]: JsonValue } = { ...value };
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    const present = own(filled, name);
    const nulled = present === null && inner.nullable !== true;
    if ((present === undefined || nulled) && inner.default !== undefined) filled[name] = inner.default;
    const now = own(filled, name);
    if (now !== undefined) filled[name] = withDefaults(now, inner);
  }
  return filled;
};

/** Every fault of a value against its structural schema, in the words of the real server. */
export const structuralFaults = (value: JsonValue, schema: Schema, path: string): Cause[] => {
  if (value === null && schema.nullable === true) return [];
  const type = typeFault(value, schema, path);
  if (type !== undefined) return [type];
  const faults = enumFaults(value, schema, path);
  if (typeof value === 'string') return [...faults, ...stringFaults(value, schema, path)];
  if (typeof value === 'number') return [...faults, ...numberFaults(value, schema, path)];
  if (Array.isArray(value)) return [...faults, ...listFaults(value as readonly JsonValue[], schema, path)];
  if (isObject(value)) return [...faults, ...objectFaults(value, schema, path)];
  return faults;
};

const typeFault = (value: JsonValue, schema: Schema, path: string): Cause | undefined => {
  const found = typeOf(value);
  if (schema['x-kubernetes-int-or-string'] === true) {
    if (found === 'integer' || found === 'string') return undefined;
    return typed(path, found, 'integer,string');
  }
  if (schema.type === undefined || schema.type === found) return undefined;
  if (schema.type === 'number' && found === 'integer') return undefined;
  return typed(path, found, schema.type);
};

const typed = (path: string, found: string, wanted: string): Cause =>
  cause(
    path,
    'FieldValueTypeInvalid',
    `Invalid value: "${found}": ${path} in body must be of type ${wanted}: "${found}"`,
  );

const typeOf = (value: JsonValue): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
};

const enumFaults = (value: JsonValue, schema: Schema, path: string): Cause[] => {
  const { enum: allowed } = schema;
  if (allowed === undefined || allowed.some((one) => sameJson(one, value))) return [];
  const words = allowed.map((one) => JSON.stringify(one)).join(', ');
  const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${words}`;
  return [cause(path, 'FieldValueNotSupported', message)];
};

const stringFaults = (value: string, schema: Schema, path: string): Cause[] => {
  const faults: Cause[] = [];
  const length = Array.from(value).length;
  if (schema.maxLength !== undefined && length > schema.maxLength) {
    faults.push(cause(path, 'FieldValueTooLong', `Too long: may not be more than ${schema.maxLength} bytes`));
  }
  if (schema.minLength !== undefined && length < schema.minLength) {
    faults.push(
      invalidValue(path, value, `${path} in body should be at least ${schema.minLength} chars long`),
    );
  }
  if (schema.pattern !== undefined && !compiled(schema.pattern).test(value)) {
    faults.push(invalidValue(path, value, `${path} in body should match '${schema.pattern}'`));
  }
  if (schema.format === 'date-time' && !DATE_TIME.test(value)) {
    faults.push(
      invalidValue(path, value, `${path} in body must be of type date-time: ${JSON.stringify(value)}`),
    );
  }
  return faults;
};

const compiled = (pattern: string): RegExp => {
  const known = patterns.get(pattern) ?? new RegExp(pattern, 'u');
  patterns.set(pattern, known);
  return known;
};

/** Every write is checked against the same few. */
const patterns = new Map<string, RegExp>();

const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

const numberFaults = (value: number, schema: Schema, path: string): Cause[] => {
  const faults: Cause[] = [];
  if (schema.minimum !== undefined && value < schema.minimum) {
    faults.push(
      invalidValue(path, value, `${path} in body should be greater than or equal to ${schema.minimum}`),
    );
  }
  if (schema.maximum !== undefined && value > schema.maximum) {
    faults.push(
      invalidValue(path, value, `${path} in body should be less than or equal to ${schema.maximum}`),
    );
  }
  return faults;
};

const listFaults = (items: readonly JsonValue[], schema: Schema, path: string): Cause[] => {
  const faults: Cause[] = [];
  if (schema.maxItems !== undefined && items.length > schema.maxItems) {
    const message = `Too many: ${items.length}: must have at most ${schema.maxItems} items`;
    faults.push(cause(path, 'FieldValueTooMany', message));
  }
  if (schema.minItems !== undefined && items.length < schema.minItems) {
    const message = `${path} in body should have at least ${schema.minItems} items`;
    faults.push(invalidValue(path, items.length, message));
  }
  const { items: inner } = schema;
  if (inner !== undefined) {
    faults.push(...items.flatMap((item, index) => structuralFaults(item, inner, `${path}[${index}]`)));
  }
  return [...faults, ...duplicates(items, schema, path)];
};

const duplicates = (items: readonly JsonValue[], schema: Schema, path: string): Cause[] => {
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    const key = schema['x-kubernetes-list-type'] === 'set' ? JSON.stringify(item) : listKey(schema, item);
    if (key === undefined) return [];
    if (!seen.has(key)) {
      seen.add(key);
      return [];
    }
    return [cause(`${path}[${index}]`, 'FieldValueDuplicate', `Duplicate value: ${JSON.stringify(item)}`)];
  });
};

const objectFaults = (value: JsonObject, schema: Schema, path: string): Cause[] => {
  const missing = (schema.required ?? [])
    .filter((name) => own(value, name) === undefined)
    .map((name) => cause(join(path, name), 'FieldValueRequired', 'Required value'));
  const inner = Object.entries(value).flatMap(([name, entry]) => {
    const property = propertySchema(schema, name);
    return property === undefined ? [] : structuralFaults(entry, property, join(path, name));
  });
  return [...missing, ...inner];
};

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
