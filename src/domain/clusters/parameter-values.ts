import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, stringAt } from '../json-tools.ts';

/** Values of template parameters: protobuf Any messages in JSON form (osac-api.md §3). */
const GOOGLE = 'type.googleapis.com/google.protobuf.';
const MIN_INT32 = -(2 ** 31);
const MAX_INT32 = 2 ** 31 - 1;
const MAX_UINT32 = 2 ** 32 - 1;

const isInteger = (value: JsonValue): value is number => Number.isSafeInteger(value);
/** 64-bit numbers are texts in JSON. */
const asText = (value: JsonValue): JsonValue => String(value as number);
const asIs = (value: JsonValue): JsonValue => value;

/** Which plain values each type takes, and how it writes them. */
const WRAPPERS: ReadonlyMap<
  string,
  readonly [(value: JsonValue) => boolean, (value: JsonValue) => JsonValue]
> = new Map([
  ['BoolValue', [(value: JsonValue) => typeof value === 'boolean', asIs]],
  ['Int32Value', [(value: JsonValue) => isInteger(value) && value >= MIN_INT32 && value <= MAX_INT32, asIs]],
  ['UInt32Value', [(value: JsonValue) => isInteger(value) && value >= 0 && value <= MAX_UINT32, asIs]],
  ['Int64Value', [isInteger, asText]],
  ['UInt64Value', [(value: JsonValue) => isInteger(value) && value >= 0, asText]],
  ['FloatValue', [(value: JsonValue) => typeof value === 'number', asIs]],
  ['DoubleValue', [(value: JsonValue) => typeof value === 'number', asIs]],
  ['StringValue', [(value: JsonValue) => typeof value === 'string', asIs]],
  ['BytesValue', [(value: JsonValue) => typeof value === 'string', asIs]],
  ['Timestamp', [(value: JsonValue) => typeof value === 'string', asIs]],
  ['Duration', [(value: JsonValue) => typeof value === 'string', asIs]],
]);

/**
 * A plain value as a parameter's value. It becomes the parameter's own type where it fits that; else bool → BoolValue,
 * whole number → Int64Value, other number → DoubleValue, everything else StringValue (osac-api.md §10). So a whole
 * number is a valid default of an Int32 parameter, which it never is in the original (osac-api-run.md §2).
 */
export const wrapped = (value: JsonValue, type: string | undefined): JsonObject => {
  if (isObject(value) && stringAt(value, '@type') !== '') return value;
  const wrapper = type?.startsWith(GOOGLE) === true ? WRAPPERS.get(type.slice(GOOGLE.length)) : undefined;
  if (type !== undefined && wrapper?.[0](value) === true) return { '@type': type, value: wrapper[1](value) };
  return { '@type': `${GOOGLE}${typeByValue(value)}`, value: plainByValue(value) };
};

const typeByValue = (value: JsonValue): string => {
  if (typeof value === 'boolean') return 'BoolValue';
  if (typeof value === 'number') return isInteger(value) ? 'Int64Value' : 'DoubleValue';
  return 'StringValue';
};

const plainByValue = (value: JsonValue): JsonValue => {
  if (isInteger(value)) return asText(value);
  return typeof value === 'object' ? JSON.stringify(value) : value;
};

const WHOLE_TEXTS = ['Int64Value', 'UInt64Value'].map((name) => `${GOOGLE}${name}`);

/** What a schema judges of a parameter's value: the plain value, 64-bit numbers as numbers where JSON can hold them. */
export const unwrapped = (value: JsonValue): JsonValue => {
  if (!isObject(value) || stringAt(value, '@type') === '') return value;
  const inner = value['value'] ?? null;
  const whole = WHOLE_TEXTS.includes(stringAt(value, '@type')) ? Number(inner) : Number.NaN;
  return Number.isSafeInteger(whole) ? whole : inner;
};
