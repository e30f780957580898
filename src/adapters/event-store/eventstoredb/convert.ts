import type { Position as LogPosition, RecordedEvent as StoredEvent } from '@eventstore/db-client';
import { completeMetadata } from '../../../app/log/metadata.ts';
import type { EventToAppend, Position, RecordedEvent } from '../../../app/log/event-store.ts';
import { LogDamaged } from '../../../app/log/event-store.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { CAUSATION, CORRELATION, reservedNames } from '../shared/sizes.ts';

/** An event whose texts were checked and turned into bytes: nothing can fail on the way out any more. */
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

/** No log reaches this far. Servers from 24.2 to 24.10 send 2^64-1 where they mean no position. */
const FIRST_IMPOSSIBLE = 2n ** 63n;

/** Undefined for what the server calls a position but is none. */
export const knownPosition = (place: LogPosition | undefined): Position | undefined =>
  place === undefined || place.commit >= FIRST_IMPOSSIBLE || place.prepare >= FIRST_IMPOSSIBLE
    ? undefined
    : positionOf(place.commit, place.prepare);

/** Of the first record that a log can hold. */
export const FIRST_POSITION: Position = positionOf(0n, 0n);

/** Throws RangeError for text that is no position of such a store. */
export const parsePosition = (position: Position): LogPosition => {
  const place = POSITION.test(position)
    ? { commit: BigInt(position.slice(0, DIGITS)), prepare: BigInt(position.slice(DIGITS)) }
    : undefined;
  if (place === undefined || knownPosition(place) === undefined)
    throw new RangeError('not a position of an EventStoreDB log');
  return place;
};

/** An event in one of our streams that cannot be read as one of ours. Repeating the read does not help. */
export class CorruptEvent extends LogDamaged {
  override readonly name = 'CorruptEvent';
  readonly stream: string;
  readonly revision: number;
  /** What is wrong with it. */
  readonly reason: string;
  constructor({ streamId: stream, revision, position }: StoredEvent, reason: string) {
    const known = knownPosition(position);
    const place = known === undefined ? '' : ` (position ${known})`;
    super(
      `event ${revision} of stream ${stream}${place} cannot be read: ${reason}`,
      known === undefined ? undefined : { event: `${stream}@${revision}`, position: known },
    );
    this.stream = stream;
    this.revision = Number(revision);
    this.reason = reason;
  }
}

export const isSystem = (event: StoredEvent): boolean =>
  event.type.startsWith('$') || event.streamId.startsWith('$');

export const toRecorded = (event: StoredEvent): RecordedEvent => {
  const wrong = (what: string) => () => new CorruptEvent(event, what);
  if (!event.isJson) throw wrong('its content type is not application/json')();
  const data = objectOr(event.data, wrong('its data is not a JSON object'));
  const {
    [CORRELATION]: _correlation,
    [CAUSATION]: _causation,
    ...metadata
  } = objectOr(event.metadata ?? {}, wrong('its metadata is not a JSON object'));
  const position = knownPosition(event.position);
  if (position === undefined) throw wrong('it has no position')();
  return { ...envelopeOf(event, position), data, metadata: completeMetadata(metadata, data) };
};

/** What is known of an event without looking into it. */
export const envelopeOf = (
  { streamId: stream, revision, id, type, created }: StoredEvent,
  position: Position,
): Omit<RecordedEvent, 'data' | 'metadata'> => ({
  position,
  stream,
  revision: Number(revision),
  id,
  type,
  recordedAt: created.toISOString(),
});

/** JSON that does not parse comes back from the library as a string, or as bytes, without an error. */
const objectOr = (value: unknown, error: () => Error): JsonObject => {
  const isObject =
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
  if (!isObject) throw error();
  return value as JsonObject;
};

/**
 * Checks the texts and makes bytes of them. Data goes out exactly as it was given;
 * metadata gains the names reserved for correlation and causation. Throws TypeError.
 */
export const prepare = (event: EventToAppend): PreparedEvent => {
  if (event.type === '' || event.type.startsWith('$'))
    throw new TypeError(
      `"${event.type}" cannot be an event type: names beginning with $ are the store's own`,
    );
  const data = parseObject(event.data, `data of ${event.type}`);
  const metadata = parseObject(event.metadata, `metadata of ${event.type}`);
  if (CORRELATION in metadata || CAUSATION in metadata)
    throw new TypeError(`metadata of ${event.type} uses a reserved name: ${CORRELATION} or ${CAUSATION}`);
  const encoder = new TextEncoder();
  return {
    id: event.id,
    type: event.type,
    data: encoder.encode(event.data),
    metadata: encoder.encode(withReserved(event.metadata, completeMetadata(metadata, data))),
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
