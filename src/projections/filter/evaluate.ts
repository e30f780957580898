import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { own } from '../../domain/json-tools.ts';
import type { FieldPath, FieldType, FilterNode, FilterValue } from './ast.ts';

/** Values as they are compared; `null`: there is none. A message, list or map that is there reads as `true`. */
type Value = string | number | bigint | boolean | null;
/** `null`: neither true nor false, as in SQL. */
type Truth = boolean | null;
type Context = { readonly document: JsonObject; readonly nowMs: number };

/**
 * Whether a canonical JSON document (snake_case, defaults left out) matches; of an event filter the document is the
 * event. `nowMs` is what `now` reads as, in milliseconds since 1970. Pure; never throws.
 */
export const evaluate = (node: FilterNode, document: JsonObject, nowMs: number): boolean =>
  truthOf(node, { document, nowMs }) === true;

const truthOf = (node: FilterNode, context: Context): Truth => {
  switch (node.op) {
    case 'constant':
      return node.value;
    case 'and':
      return both(truthOf(node.left, context), () => truthOf(node.right, context));
    case 'or':
      return not(both(not(truthOf(node.left, context)), () => not(truthOf(node.right, context))));
    case 'not':
      return not(truthOf(node.of, context));
    case 'truth': {
      const value = valueOf(node.of, context);
      return typeof value === 'boolean' ? value : null;
    }
    case 'has':
      return nodeAt(node.field, context.document) !== undefined;
    case 'in':
      return isListed(node, context);
    case 'in-field':
      return isHeld(valueOf(node.value, context), node.field, context.document);
    case 'contains':
    case 'startsWith':
    case 'endsWith': {
      const value = valueOf(node.of, context);
      return typeof value === 'string' ? TEXT_TESTS[node.op](value, node.text) : null;
    }
    default:
      return compare(node, context);
  }
};

const both = (left: Truth, right: () => Truth): Truth => {
  if (left === false) return false;
  const other = right();
  return other === false ? false : left === null ? null : other;
};
const not = (truth: Truth): Truth => (truth === null ? null : !truth);

const TEXT_TESTS = {
  contains: (value: string, text: string) => value.includes(text),
  startsWith: (value: string, text: string) => value.startsWith(text),
  endsWith: (value: string, text: string) => value.endsWith(text),
};

export type Comparison = Extract<FilterNode, { op: '==' | '!=' | '<' | '<=' | '>' | '>=' }>;

const compare = (node: Comparison, context: Context): Truth => {
  const left = valueOf(node.left, context);
  const right = valueOf(node.right, context);
  if (isNull(node.left) || isNull(node.right)) {
    const bothNull = left === null && right === null;
    return node.op === '==' ? bothNull : node.op === '!=' ? !bothNull : null;
  }
  if (left === null || right === null) {
    const ofMap = isMapValue(node.left) || isMapValue(node.right);
    if (ofMap && node.op === '==') return false;
    return ofMap && node.op === '!=' ? true : null;
  }
  const order =
    isDotted(node.left) || isDotted(node.right) ? orderOfDotted(left, right) : orderOf(left, right);
  return order === undefined ? null : ORDERS[node.op](order);
};

const ORDERS: Readonly<Record<Comparison['op'], (order: number) => boolean>> = {
  '==': (order) => order === 0,
  '!=': (order) => order !== 0,
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
};

export const isNull = (value: FilterValue): boolean => value.kind === 'literal' && value.value === null;
export const isMapValue = (value: FilterValue): boolean =>
  value.kind === 'field' && value.field.mapValue === true;
export const isDotted = (value: FilterValue): boolean =>
  value.kind === 'field' && value.field.dotted === true;

/** Negative, 0, positive; undefined when the two are of different types, which a checked filter never asks. */
const orderOf = (left: Value, right: Value): number | undefined => {
  if (typeof left === 'string' && typeof right === 'string') return orderOfTexts(left, right);
  if (typeof left === 'boolean' && typeof right === 'boolean') return Number(left) - Number(right);
  if (!isNumber(left) || !isNumber(right)) return undefined;
  return left < right ? -1 : left > right ? 1 : 0;
};
const isNumber = (value: Value): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint';

const SURROGATE = /[\ud800-\udfff]/;

/** By code points, as SQLite's bytes of UTF-8 are ordered; JavaScript orders by the halves of a code point. */
export const orderOfTexts = (left: string, right: string): number => {
  if (left === right) return 0;
  if (SURROGATE.test(left) || SURROGATE.test(right))
    return Buffer.compare(Buffer.from(left), Buffer.from(right));
  return left < right ? -1 : 1;
};

/** What dots become before dotted names are compared: less than any character that a name may hold. */
export const DOT_FOR_ORDER = '\u0001';
const orderOfDotted = (left: Value, right: Value): number | undefined =>
  typeof left === 'string' && typeof right === 'string'
    ? orderOfTexts(left.replaceAll('.', DOT_FOR_ORDER), right.replaceAll('.', DOT_FOR_ORDER))
    : undefined;

const isListed = (node: Extract<FilterNode, { op: 'in' }>, context: Context): Truth => {
  if (node.list.length === 0) return false;
  const value = valueOf(node.value, context);
  if (value === null) return isMapValue(node.value) ? false : null;
  return node.list.some((literal) => orderOf(value, literal) === 0);
};

/** `x in` a list or a map; what is left out is empty. */
const isHeld = (value: Value, field: FieldPath, document: JsonObject): Truth => {
  const container = nodeAt(field, document);
  if (value === null) return null;
  if (typeof container !== 'object' || container === null) return false;
  if (field.type === 'map')
    return typeof value === 'string' && !Array.isArray(container) && Object.hasOwn(container, value);
  if (!Array.isArray(container)) return false;
  const items = field.items ?? 'message';
  return container.some((item) => {
    const read = scalarOf(item, items, field);
    return read !== null && orderOf(value, read) === 0;
  });
};

const valueOf = (value: FilterValue, context: Context): Value => {
  switch (value.kind) {
    case 'literal':
      return value.value;
    case 'now':
      return nowText(context.nowMs);
    case 'field': {
      const node = nodeAt(value.field, context.document);
      return (
        (node === undefined ? null : scalarOf(node, value.field.type, value.field)) ??
        value.field.absent ??
        null
      );
    }
    case 'arithmetic':
      return calculate(value.op, valueOf(value.left, context), valueOf(value.right, context));
  }
};

const nodeAt = ({ path }: FieldPath, document: JsonObject): JsonValue | undefined => {
  let node: JsonValue | undefined = document;
  for (const key of path) {
    if (typeof node !== 'object' || node === null || Array.isArray(node)) return undefined;
    node = own(node, key);
  }
  return node ?? undefined;
};

const scalarOf = (node: JsonValue, type: FieldType, { enumNumbers }: FieldPath): Value => {
  switch (type) {
    case 'string':
      return typeof node === 'string' ? node : null;
    case 'bool':
      return typeof node === 'boolean' ? node : null;
    case 'int32':
      return Number.isSafeInteger(node) ? (node as number) : null;
    case 'double':
      return typeof node === 'number' ? node : null;
    case 'int64':
      return int64Of(node);
    case 'enum':
      return typeof node === 'number'
        ? node
        : typeof node === 'string'
          ? (own(enumNumbers, node) ?? null)
          : null;
    case 'timestamp':
      return typeof node === 'string' ? timeText(node) : null;
    default:
      return true;
  }
};

const int64Of = (node: JsonValue): bigint | null => {
  if (typeof node === 'number') return Number.isSafeInteger(node) ? BigInt(node) : null;
  return typeof node === 'string' && /^-?\d{1,19}$/.test(node) ? BigInt(node) : null;
};

/**
 * A canonical UTC timestamp in a form whose order as text is the order in time: fractions of 3, 6 or 9 digits compare
 * with each other once the `Z` is gone; one of zeros only, which JavaScript's own ISO form has, is no fraction.
 */
export const timeText = (timestamp: string): string => timestamp.replace('.000Z', 'Z').replace(/Z$/, '');
export const nowText = (nowMs: number): string => timeText(new Date(nowMs).toISOString());

const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;

/** Whole numbers of 64 bits; what does not fit, and division by zero, is null. */
const calculate = (op: '+' | '-' | '*' | '/' | '%', left: Value, right: Value): Value => {
  if (!isNumber(left) || !isNumber(right)) return null;
  const [a, b] = [BigInt(left), BigInt(right)];
  if (b === 0n && (op === '/' || op === '%')) return null;
  const result = CALCULATIONS[op](a, b);
  return result < MIN_INT64 || result > MAX_INT64 ? null : result;
};

const CALCULATIONS = {
  '+': (a: bigint, b: bigint) => a + b,
  '-': (a: bigint, b: bigint) => a - b,
  '*': (a: bigint, b: bigint) => a * b,
  '/': (a: bigint, b: bigint) => a / b,
  '%': (a: bigint, b: bigint) => a % b,
};
