import { isObject, numberAt, objectAt, own, stringAt, textOf } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { printable } from '../output.ts';
import type { Column } from './columns.ts';

/** The text of one column for one document; empty when the document has nothing there. `now` is in ms since 1970. */
export const cellOf = (document: JsonObject, { path, as }: Column, now: number): string => {
  const values = valuesAt(document, path.split('.'));
  if (as === 'nodes') return nodes(document);
  if (as === 'count') return String(values.flatMap((value) => (Array.isArray(value) ? value : [])).length);
  return values
    .map((value) => (as === undefined ? plain(value) : SHOWN[as](value, now)))
    .filter((text) => text !== '')
    .join(', ');
};

/** Every value on a path; `*` goes through the entries of a list or map. */
const valuesAt = (node: JsonValue | undefined, [head, ...rest]: readonly string[]): readonly JsonValue[] => {
  if (head === undefined) return node === undefined || node === null ? [] : [node];
  if (head === '*') {
    const entries = Array.isArray(node) ? node : isObject(node) ? Object.values(node) : [];
    return entries.flatMap((entry) => valuesAt(entry, rest));
  }
  return valuesAt(isObject(node) ? own(node, head) : undefined, rest);
};

/** A value on one line. What steers a terminal goes: titles are what tenants write, and admins read them. */
const plain = (value: JsonValue): string => printable(textOf(value).replaceAll(/\s+/g, ' '));

const SHOWN: Readonly<
  Record<Exclude<Column['as'], undefined | 'nodes' | 'count'>, (value: JsonValue, now: number) => string>
> = {
  state: (value) => withoutPrefix(textOf(value)),
  age: (value, now) => ageOf(textOf(value), now),
  reference: (value) => referenceText(value),
  entries: (value) =>
    entriesOf(value)
      .map(([key, text]) => `${key}=${plain(text)}`)
      .join(','),
  keys: (value) =>
    entriesOf(value)
      .map(([key]) => key)
      .join(','),
  sizes: (value) =>
    entriesOf(value)
      .map(([key, set]) => `${key}=${numberAt(set, 'size')}`)
      .join(','),
  'yes-no': (value) => (value === true ? 'yes' : 'no'),
};

const entriesOf = (value: JsonValue): [string, JsonValue][] => (isObject(value) ? Object.entries(value) : []);

export const referenceText = (value: JsonValue): string => stringAt(value, 'name') || stringAt(value, 'id');

/** Ready of wanted nodes of a cluster: `2/3`; only the wanted ones while nothing was observed. */
const nodes = (document: JsonObject): string => {
  const wanted = sum(objectAt(objectAt(document, 'spec'), 'node_sets'));
  const observed = objectAt(objectAt(document, 'status'), 'node_sets');
  return Object.keys(observed).length === 0 ? String(wanted) : `${sum(observed)}/${wanted}`;
};

const sum = (sets: JsonObject): number =>
  Object.values(sets).reduce<number>((all, set) => all + numberAt(set, 'size'), 0);

/** Prefixes of the enums of OSAC's API: `CLUSTER_STATE_`, `GUEST_OS_FAMILY_`, `CONDITION_STATUS_` and their like. */
const PREFIX =
  /^(?:[A-Z0-9]+_)*(?:STATE|LIFECYCLE|PHASE|STATUS|ROLE|CONDITION_TYPE|EVENT_TYPE|SOURCE_TYPE|GUEST_OS_FAMILY|ARCHITECTURE|SECRET_BACKEND)_/;

/** `READY` of `CLUSTER_STATE_READY`. */
export const withoutPrefix = (name: string): string => name.replace(PREFIX, '');

const UNITS = [
  ['d', 86_400, 2],
  ['h', 3600, 2],
  ['m', 60, 2],
] as const;

/** How long ago a moment is: `45s`, `90m`, `30h`, `12d`; `-` in front of one that is still to come. */
export const ageOf = (timestamp: string, now: number): string => {
  const then = Date.parse(timestamp);
  if (Number.isNaN(then)) return timestamp;
  const seconds = Math.round((now - then) / 1000);
  // Clocks of two machines differ a little: what just happened is not in the future.
  if (seconds < -5) return `-${span(-seconds)}`;
  return span(Math.max(0, seconds));
};

const span = (seconds: number): string => {
  const unit = UNITS.find(([, length, atLeast]) => seconds >= length * atLeast);
  return unit === undefined ? `${seconds}s` : `${Math.floor(seconds / unit[1])}${unit[0]}`;
};
