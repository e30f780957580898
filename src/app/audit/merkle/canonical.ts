import canonicalize from 'canonicalize';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';

/**
 * RFC 8785. It has no form for a lone surrogate or a number beyond all bounds, which this service does not store
 * (event-codec.ts) but somebody else may: such a value is written with its keys sorted and everything else as
 * JSON.stringify does (an escape, null), so that there is no event that the tree cannot hold.
 */
export const canonicalText = (value: JsonValue): string => {
  const sorted = sortedCopy(value, 0);
  const text = sorted === UNSUITABLE ? canonicalOrUndefined(value) : JSON.stringify(sorted);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
};

/** Not to be had by a sorted copy. */
const UNSUITABLE = Symbol('unsuitable');
/** No event of ours is nested so deep; one that somebody else wrote must not exhaust the stack. */
const DEEPEST = 100;
const ZERO = 48;
const NINE = 57;

/**
 * The value with its keys in order, which JSON.stringify then writes as RFC 8785 wants it, in half the time that the
 * library takes to write it piece by piece. Not for keys that no object keeps where they were put: those that may be numbers come
 * first, in the order of the numbers, and `__proto__` is not put at all.
 */
const sortedCopy = (value: JsonValue, depth: number): JsonValue | typeof UNSUITABLE => {
  if (typeof value !== 'object' || value === null) return value;
  if (depth === DEEPEST) return UNSUITABLE;
  if (Array.isArray(value)) {
    const copy: JsonValue[] = [];
    for (const each of value as JsonValue[]) {
      const inner = sortedCopy(each, depth + 1);
      if (inner === UNSUITABLE) return UNSUITABLE;
      copy.push(inner);
    }
    return copy;
  }
  const copy: { [key: string]: JsonValue } = {};
  for (const key of Object.keys(value).sort()) {
    const first = key.charCodeAt(0);
    if ((first >= ZERO && first <= NINE) || key === '__proto__') return UNSUITABLE;
    const inner = sortedCopy((value as JsonObject)[key] as JsonValue, depth + 1);
    if (inner === UNSUITABLE) return UNSUITABLE;
    copy[key] = inner;
  }
  return copy;
};

const canonicalOrUndefined = (value: JsonValue): string | undefined => {
  try {
    return canonicalize(value);
  } catch {
    return sortedText(value);
  }
};

const sortedText = (value: JsonValue): string => {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(sortedText).join(',')}]`;
  const entries = Object.entries(value as JsonObject).toSorted(([left], [right]) => (left < right ? -1 : 1));
  return `{${entries.map(([key, part]) => `${JSON.stringify(key)}:${sortedText(part)}`).join(',')}}`;
};
