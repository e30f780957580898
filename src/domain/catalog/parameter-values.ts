import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, stringAt } from '../json-tools.ts';

/** Values of template parameters: protobuf Any messages in JSON form (OSAC). */
const GOOGLE = 'type.googleapis.com/google.protobuf.';

const isInteger = (value: JsonValue): value is number => Number.isSafeInteger(value);
const isWithin =
  (least: number, most: number) =>
  (value: JsonValue): boolean =>
    isInteger(value) && value >= least && value <= most;
const isOf =
  (type: 'boolean' | 'number' | 'string') =>
  (value: JsonValue): boolean =>
    typeof value === type;

/** 64-bit numbers are texts in JSON. */
const WHOLE = '0';
/** Types in the JSON form `{"@type": …, "value": …}`: which plain values each takes, and its absent one. */
const WRAPPERS = new Map<string, { takes: (value: JsonValue) => boolean; absent: JsonValue }>([
  ['BoolValue', { takes: isOf('boolean'), absent: false }],
  ['Int32Value', { takes: isWithin(-(2 ** 31), 2 ** 31 - 1), absent: 0 }],
  ['UInt32Value', { takes: isWithin(0, 2 ** 32 - 1), absent: 0 }],
  ['Int64Value', { takes: isInteger, absent: WHOLE }],
  ['UInt64Value', { takes: isWithin(0, Number.MAX_SAFE_INTEGER), absent: WHOLE }],
  ['FloatValue', { takes: isOf('number'), absent: 0 }],
  ['DoubleValue', { takes: isOf('number'), absent: 0 }],
  ['StringValue', { takes: isOf('string'), absent: '' }],
  ['BytesValue', { takes: isOf('string'), absent: '' }],
  ['Timestamp', { takes: isOf('string'), absent: '1970-01-01T00:00:00Z' }],
  ['Duration', { takes: isOf('string'), absent: '0s' }],
]);
const nameOf = (type: string): string => (type.startsWith(GOOGLE) ? type.slice(GOOGLE.length) : '');

/** Protobuf JSON of what an Any holds: a 64-bit number stays text, a boolean a boolean. */
export const plainValue = (any: JsonObject): JsonValue => {
  const { '@type': type, ...rest } = any;
  const name = nameOf(typeof type === 'string' ? type : '');
  const wrapper = WRAPPERS.get(name);
  if (wrapper !== undefined) return rest['value'] ?? wrapper.absent;
  return name === 'Value' || name === 'Struct' || name === 'ListValue' ? (rest['value'] ?? null) : rest;
};

/**
 * A plain value as a parameter's value. It becomes the parameter's own type where it fits that; else bool → BoolValue,
 * whole number → Int64Value, other number → DoubleValue, everything else StringValue (OSAC). So a whole
 * number is a valid default of an Int32 parameter, which it never is in the original (OSAC).
 */
export const wrapped = (value: JsonValue, type: string | undefined): JsonObject => {
  if (isObject(value) && stringAt(value, '@type') !== '') return value;
  const wrapper = WRAPPERS.get(nameOf(type ?? ''));
  if (type !== undefined && wrapper?.takes(value) === true)
    return { '@type': type, value: wrapper.absent === WHOLE ? asText(value) : value };
  return { '@type': `${GOOGLE}${typeByValue(value)}`, value: plainByValue(value) };
};

const asText = (value: JsonValue): JsonValue => String(value as number);

const typeByValue = (value: JsonValue): string => {
  if (typeof value === 'boolean') return 'BoolValue';
  if (typeof value === 'number') return isInteger(value) ? 'Int64Value' : 'DoubleValue';
  return 'StringValue';
};

const plainByValue = (value: JsonValue): JsonValue => {
  if (isInteger(value)) return asText(value);
  return typeof value === 'object' ? JSON.stringify(value) : value;
};

/** What a schema judges of a parameter's value: the plain value, 64-bit numbers as numbers where JSON can hold them. */
export const unwrapped = (value: JsonValue): JsonValue => {
  if (!isObject(value) || stringAt(value, '@type') === '') return value;
  const inner = value['value'] ?? null;
  const isWhole = WRAPPERS.get(nameOf(stringAt(value, '@type')))?.absent === WHOLE;
  const whole = isWhole ? Number(inner) : Number.NaN;
  return Number.isSafeInteger(whole) ? whole : inner;
};
