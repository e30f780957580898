import canonicalize from 'canonicalize';
import { hash } from 'node:crypto';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { stringAt } from '../../../domain/json-tools.ts';
import type { RecordedEvent } from '../../event-store.ts';
import { leafHash } from './hashing.ts';

/** What the tree holds of an event (design §7). `data` and `metadata` are hashes: their text may be withheld or erased. */
export type LeafRecord = {
  readonly v: 1;
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  /** As the event's metadata says; empty when it does not. */
  readonly occurredAt: string;
  /** Lower-case hex SHA-256 over the RFC 8785 form of the data as stored: never lifted to a newer version. */
  readonly data: string;
  /** The same over the metadata, without what a single store adds (keys that begin with `$`). */
  readonly metadata: string;
};

/** Whether the events of a stream are leaves: the bookkeeping of the service and of the store is not. */
export const isLeafStream = (stream: string): boolean =>
  !stream.startsWith('sys-') && !stream.startsWith('$');

/**
 * RFC 8785. It has no form for a lone surrogate or a number beyond all bounds, which this service does not store
 * (event-codec.ts) but somebody else may: such a value is written with its keys sorted and everything else as
 * JSON.stringify does (an escape, null), so that there is no event that the tree cannot hold.
 */
export const canonicalText = (value: JsonValue): string => {
  const text = canonicalOrUndefined(value);
  if (text === undefined) throw new TypeError('this is no JSON value');
  return text;
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

/** Metadata as it is hashed. */
export const hashedMetadata = (metadata: JsonObject): JsonObject =>
  Object.keys(metadata).some((key) => key.startsWith('$'))
    ? Object.fromEntries(Object.entries(metadata).filter(([key]) => !key.startsWith('$')))
    : metadata;

/** Lower-case hex SHA-256 of the canonical text. */
export const canonicalHash = (value: JsonObject): string => hash('sha256', canonicalText(value), 'hex');

export const leafOf = (
  event: Pick<RecordedEvent, 'stream' | 'revision' | 'id' | 'type' | 'data' | 'metadata'>,
): LeafRecord => ({
  v: 1,
  stream: event.stream,
  revision: event.revision,
  id: event.id,
  type: event.type,
  occurredAt: stringAt(event.metadata, 'occurredAt'),
  data: canonicalHash(event.data),
  metadata: canonicalHash(hashedMetadata(event.metadata)),
});

/** UTF-8 of the RFC 8785 form of the record: what is hashed, and what an entry bundle holds. */
export const leafBytes = (record: LeafRecord): Buffer => Buffer.from(canonicalText({ ...record }), 'utf8');

export const leafHashOf = (record: LeafRecord): Buffer => leafHash(leafBytes(record));
