import { isObject, listAt, objectAt, stringAt, textOf, textsAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { printable, table } from '../output.ts';
import { ageOf, withoutPrefix } from './cells.ts';
import type { NamedKind } from './kind-names.ts';

export type DescribeOptions = {
  /** Ms since 1970, for ages. */
  readonly now: number;
  /** The last entries of its timeline, oldest first, if the kind has one. */
  readonly timeline?: readonly JsonValue[];
};

/** Everything about one object for a reader: who and when, then spec and status, conditions and history as tables. */
export const describeText = (
  { kind }: NamedKind,
  object: JsonObject,
  { now, timeline = [] }: DescribeOptions,
): string => {
  const { id: _id, metadata: _metadata, status: _status, ...body } = object;
  const { conditions: _conditions, ...status } = objectAt(object, 'status');
  const parts = [
    [
      `${kind.words} ${stringAt(objectAt(object, 'metadata'), 'name') || stringAt(object, 'id')}`,
      ...head(object, now),
    ].join('\n'),
    short(body, now),
    ...Object.entries(body).map(([key, value]) => (isNested(value) ? section(key, value, now) : '')),
    ...(Object.keys(status).length === 0 ? [] : [section('status', status, now)]),
    conditionTable(listAt(objectAt(object, 'status'), 'conditions'), now),
    timelineTable(timeline, now),
  ];
  return printable(parts.filter((part) => part !== '').join('\n\n'));
};

const head = (object: JsonObject, now: number): string[] => {
  const metadata = objectAt(object, 'metadata');
  const rows: [string, string][] = [
    ['id', stringAt(object, 'id')],
    ['display name', stringAt(metadata, 'display_name')],
    ['description', stringAt(metadata, 'description')],
    ['tenant', stringAt(metadata, 'tenant')],
    ['project', stringAt(metadata, 'project')],
    ['creator', stringAt(metadata, 'creator')],
    ['created', moment(stringAt(metadata, 'creation_timestamp'), now)],
    ['deletion asked', moment(stringAt(metadata, 'deletion_timestamp'), now)],
    ['finalizers', listAt(metadata, 'finalizers').map(textOf).join(', ')],
    ['version', textOf(metadata['version'])],
    ['labels', pairs(metadata, 'labels')],
    ['annotations', pairs(metadata, 'annotations')],
  ];
  const shown = rows.filter(([, value]) => value !== '');
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(
    ([name, value]) => `  ${name}:${' '.repeat(width - name.length)} ${value.replaceAll(/\s+/g, ' ')}`,
  );
};

const pairs = (metadata: JsonObject, key: string): string =>
  Object.entries(textsAt(metadata, key))
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

const moment = (timestamp: string, now: number): string => {
  if (timestamp === '') return '';
  const age = ageOf(timestamp, now);
  return `${timestamp} (${age.startsWith('-') ? `in ${age.slice(1)}` : `${age} ago`})`;
};

const short = (body: JsonObject, now: number): string =>
  Object.entries(body)
    .filter(([, value]) => !isNested(value))
    .map(([key, value]) => `${key.replaceAll('_', ' ')}: ${scalar(value, now)}`)
    .join('\n');

const section = (title: string, value: JsonValue, now: number): string =>
  [`${title.replaceAll('_', ' ')}:`, ...linesOf(value, '  ', now)].join('\n');

/** A value as indented lines: names of fields with spaces, entries of lists with a dash. */
const linesOf = (value: JsonValue, indent: string, now: number): string[] => {
  if (Array.isArray(value))
    return value.flatMap((item) => {
      if (!isNested(item)) return [`${indent}- ${scalar(item, now)}`];
      const [first = '', ...rest] = linesOf(item, `${indent}  `, now);
      return [`${indent}- ${first.trimStart()}`, ...rest];
    });
  if (!isObject(value)) return [`${indent}${scalar(value, now)}`];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (isReference(inner)) return [`${indent}${key}: ${referenceLine(inner)}`];
    return isNested(inner)
      ? [`${indent}${key}:`, ...linesOf(inner, `${indent}  `, now)]
      : [`${indent}${key}: ${scalar(inner, now)}`];
  });
};

const isNested = (value: JsonValue): value is JsonObject | JsonValue[] =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0;

/** `{id, name}` and nothing but what selects it. */
const isReference = (value: JsonValue): value is JsonObject =>
  isObject(value) &&
  (stringAt(value, 'id') !== '' || stringAt(value, 'name') !== '') &&
  Object.keys(value).every((key) => ['id', 'name', 'project', 'shared'].includes(key));

const referenceLine = (reference: JsonObject): string => {
  const [id, name] = [stringAt(reference, 'id'), stringAt(reference, 'name')];
  return name === '' || name === id ? id : id === '' ? name : `${name} (${id})`;
};

const scalar = (value: JsonValue, now: number): string => {
  if (typeof value !== 'string') return isNested(value) ? '' : JSON.stringify(value);
  if (TIMESTAMP.test(value)) return moment(value, now);
  if (/^[A-Z][A-Z0-9_]+$/.test(value)) return withoutPrefix(value);
  return value.replaceAll(/\s*[\r\n]\s*/g, ' ');
};

const conditionTable = (conditions: readonly JsonValue[], now: number): string =>
  conditions.length === 0
    ? ''
    : table(
        ['condition', 'status', 'since', 'reason', 'message'],
        conditions.map((condition) => [
          withoutPrefix(stringAt(condition, 'type')),
          withoutPrefix(stringAt(condition, 'status')),
          stringAt(condition, 'last_transition_time') &&
            ageOf(stringAt(condition, 'last_transition_time'), now),
          stringAt(condition, 'reason'),
          stringAt(condition, 'message'),
        ]),
      );

const timelineTable = (entries: readonly JsonValue[], now: number): string =>
  entries.length === 0
    ? ''
    : table(
        ['ago', 'event', 'what'],
        entries.map((entry) => [
          ageOf(stringAt(entry, 'at'), now),
          stringAt(entry, 'type'),
          stringAt(entry, 'summary'),
        ]),
      );
