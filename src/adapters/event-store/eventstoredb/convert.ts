import type { RecordedEvent as StoredEvent } from '@eventstore/db-client';
import type { EventToAppend, Position, RecordedEvent } from '../../../app/event-store.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { CAUSATION, CORRELATION, reservedNames } from '../shared/sizes.ts';

/** An event whose texts were checked and turned into bytes: nothing can fail on the way out any more (§3.3 B3). */
export type PreparedEvent = {
  readonly id: string;
  readonly type: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
};

/** Commit position, then prepare position, 20 digits each: enough for 64 bits, and sorts as text. */
const DIGITS = 20;
const POSITION = /^\d{40}$/;

export const positionOf = (commit: bigint, prepare: bigint): Position =>
  String(commit).padStart(DIGITS, '0') + String(prepare).padStart(DIGITS, '0');

/** Of the first record that a log can hold. */
export const FIRST_POSITION: Position = positionOf(0n, 0n);

/** Throws RangeError for text that is no position of such a store. */
export const parsePosition = (position: Position): { commit: bigint; prepare: bigint } => {
  if (!POSITION.test(position)) throw new RangeError('not a position of an EventStoreDB log');
  return { commit: BigInt(position.slice(0, DIGITS)), prepare: BigInt(position.slice(DIGITS)) };
};

/** An event that cannot be read as one of ours. Repeating the read does not help. */
export class CorruptEvent extends Error {
  override readonly name = 'CorruptEvent';
  readonly stream: string;
  readonly revision: number;
  constructor(stream: string, revision: number, what: string) {
    super(`event ${revision} of stream ${stream} cannot be read: ${what}`);
    this.stream = stream;
    this.revision = revision;
  }
}

export const isSystem = (event: StoredEvent): boolean =>
  event.type.startsWith('$') || event.streamId.startsWith('$');

export const toRecorded = (event: StoredEvent): RecordedEvent => {
  const { streamId: stream, type, id } = event;
  const revision = Number(event.revision);
  if (!event.isJson) throw new CorruptEvent(stream, revision, 'its content type is not application/json');
  const data = objectOr(
    event.data,
    () => new CorruptEvent(stream, revision, 'its data is not a JSON object'),
  );
  const {
    [CORRELATION]: _correlation,
    [CAUSATION]: _causation,
    ...metadata
  } = objectOr(
    event.metadata ?? {},
    () => new CorruptEvent(stream, revision, 'its metadata is not a JSON object'),
  );
  if (event.position === undefined) throw new CorruptEvent(stream, revision, 'it has no position');
  return {
    position: positionOf(event.position.commit, event.position.prepare),
    stream,
    revision,
    id,
    type,
    data,
    metadata,
    recordedAt: event.created.toISOString(),
  };
};

/** JSON that does not parse comes back from the library as a string, or as bytes, without an error. */
const objectOr = (value: unknown, error: () => Error): JsonObject => {
  const isObject =
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
  if (!isObject) throw error();
  return value as JsonObject;
};

/**
 * Checks the texts and makes bytes of them (eventstore-client.md §3.3 B3). Data goes out exactly as it was given;
 * metadata gains the names reserved for correlation and causation. Throws TypeError.
 */
export const prepare = (event: EventToAppend): PreparedEvent => {
  if (event.type === '' || event.type.startsWith('$'))
    throw new TypeError(
      `"${event.type}" cannot be an event type: names beginning with $ are the store's own`,
    );
  parseObject(event.data, `data of ${event.type}`);
  const metadata = parseObject(event.metadata, `metadata of ${event.type}`);
  if (CORRELATION in metadata || CAUSATION in metadata)
    throw new TypeError(`metadata of ${event.type} uses a reserved name: ${CORRELATION} or ${CAUSATION}`);
  const encoder = new TextEncoder();
  return {
    id: event.id,
    type: event.type,
    data: encoder.encode(event.data),
    metadata: encoder.encode(withReserved(event.metadata, metadata)),
  };
};

const parseObject = (text: string, what: string): JsonObject => {
  const refuse = (): Error => new TypeError(`${what} is not the text of a JSON object`);
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    throw refuse();
  }
  return objectOr(value, refuse);
};

/** Puts the reserved names in front; the given text stays as it is behind them. */
const withReserved = (text: string, metadata: JsonObject): string => {
  const added = reservedNames(metadata);
  return added === '' ? text : `{${added}${text.slice(text.indexOf('{') + 1)}`;
};
