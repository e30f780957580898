import { hash } from 'node:crypto';
import type { JsonObject } from '../../../domain/json.ts';
import { stringAt } from '../../../domain/json-tools.ts';
import type { RecordedEvent } from '../../log/event-store.ts';
import { splitOf } from '../../log/metadata.ts';
import { canonicalText } from './canonical.ts';
import { leafHash } from './hashing.ts';

export { canonicalText } from './canonical.ts';

/** What the tree holds of an event. `data` and `metadata` are hashes: their text may be withheld or erased. */
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
  /**
   * Of an event of which tenants may see a part (hidden-fields.ts): `data` and `metadata` are over that part alone, so
   * that it can be proven to them; `hidden` is the same kind of hash over the rest, its paths and its salt.
   */
  readonly hidden?: string;
};

/** Whether the events of a stream are leaves: the bookkeeping of the service and of the store is not. */
export const isLeafStream = (stream: string): boolean =>
  !stream.startsWith('sys-') && !stream.startsWith('$');

/** Metadata as it is hashed. */
export const hashedMetadata = (metadata: JsonObject): JsonObject =>
  Object.keys(metadata).some((key) => key.startsWith('$'))
    ? Object.fromEntries(Object.entries(metadata).filter(([key]) => !key.startsWith('$')))
    : metadata;

/** Lower-case hex SHA-256 of the canonical text. */
export const canonicalHash = (value: JsonObject): string => hash('sha256', canonicalText(value), 'hex');

/** Knows no types: which leaf an event has is decided by what is stored of it. */
export const leafOf = (
  event: Pick<RecordedEvent, 'stream' | 'revision' | 'id' | 'type' | 'data' | 'metadata'>,
): LeafRecord => {
  const { stream, revision, id, type, data } = event;
  const metadata = hashedMetadata(event.metadata);
  const split = splitOf({ data, metadata });
  const open = split ?? { data, metadata };
  return {
    v: 1,
    stream,
    revision,
    id,
    type,
    occurredAt: stringAt(metadata, 'occurredAt'),
    data: canonicalHash(open.data),
    metadata: canonicalHash(open.metadata),
    ...(split === undefined ? {} : { hidden: canonicalHash(split.hidden) }),
  };
};

/** UTF-8 of the RFC 8785 form of the record: what is hashed, and what an entry bundle holds. */
export const leafBytes = (record: LeafRecord): Buffer => Buffer.from(canonicalText({ ...record }), 'utf8');

export const leafHashOf = (record: LeafRecord): Buffer => leafHash(leafBytes(record));
