import { randomBytes } from 'node:crypto';
import { compile, prettifyError, type ZodType } from 'zod';
import type { DomainEvent } from '../../domain/decider.ts';
import type { EventType } from '../../domain/event-type.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isEncrypted } from '../../domain/personal.ts';
import { placesOf, valueAtPlace } from '../../domain/document-places.ts';
import { createRegistry } from '../../domain/registry.ts';
import {
  briefTextOf,
  type BriefText,
  findHidden,
  type FindHidden,
  type CommandMetadata,
} from './metadata.ts';
import type { EventToAppend, RecordedEvent } from './event-store.ts';
import { eventId } from './identifiers.ts';

/** Turns domain events into what the store keeps and back, by the registry of event types. */
export type EventCodec = {
  /** Throws InvalidEvent: an event that its own schema refuses is a bug and must never be stored. */
  encode(event: DomainEvent, id: string, metadata: CommandMetadata): EventToAppend;
  /** All events of one append, with ids derived from command id, stream and index. */
  encodeAll(events: readonly DomainEvent[], stream: string, metadata: CommandMetadata): EventToAppend[];
  /** Lifted to the current version of its type; an unknown type (of a newer release) passes as it is. */
  decode(event: Pick<RecordedEvent, 'type' | 'data' | 'metadata'>): DomainEvent<string, JsonObject>;
  typeOf(type: string): EventType | undefined;
};

export class InvalidEvent extends Error {
  override readonly name = 'InvalidEvent';
  readonly type: string;
  constructor(type: string, problem: string) {
    super(`event ${type} cannot be stored: ${problem}`);
    this.type = type;
  }
}

/** Events of one type that are checked by its schema as it is. */
const COMPILED_AFTER = 100;

/** Salts (hidden-fields.ts) of one draw: drawing one by one takes longer than all else about an event. */
const POOLED_SALTS = 256;
const SALT_BYTES = 16;

/** 128 bits that nobody can guess, as 32 hex digits. */
const randomSalts = (): (() => string) => {
  let pool = Buffer.alloc(0);
  let used = 0;
  return () => {
    if (used === pool.length) {
      pool = randomBytes(POOLED_SALTS * SALT_BYTES);
      used = 0;
    }
    used += SALT_BYTES;
    return pool.toString('hex', used - SALT_BYTES, used);
  };
};

/**
 * Throws a TypeError when a type is registered twice or lacks an upcaster for one of its older versions. `newSalt`: for
 * histories that must come out the same again.
 */
export const createEventCodec = (
  eventTypes: readonly EventType[],
  newSalt: () => string = randomSalts(),
): EventCodec => {
  const registry = createRegistry(eventTypes);
  const compiled = new Map<string, ZodType>();
  const uses = new Map<string, number>();
  /**
   * Compiled once a type has proved to be written often: that takes as long as checking a hundred events does. What
   * only reads, as projections do, needs none, and what lives shortly hardly any.
   */
  const schemaOf = ({ type, schema }: EventType): ZodType => {
    const known = compiled.get(type);
    if (known !== undefined) return known;
    const used = (uses.get(type) ?? 0) + 1;
    uses.set(type, used);
    if (used < COMPILED_AFTER) return schema;
    const made = compile(schema);
    compiled.set(type, made);
    return made;
  };
  const finders = new Map<string, FindHidden>();
  const hiddenIn = (entry: EventType): FindHidden => {
    const known = finders.get(entry.type);
    if (known !== undefined) return known;
    const made = findHidden(entry);
    finders.set(entry.type, made);
    return made;
  };

  const encodeWith = (
    event: DomainEvent,
    id: string,
    metadata: CommandMetadata,
    metadataText: BriefText,
  ): EventToAppend => {
    const entry = registry.get(event.type);
    if (entry === undefined) throw new InvalidEvent(event.type, 'its type is not registered');
    const checked = schemaOf(entry).safeParse(event.data);
    if (!checked.success) throw new InvalidEvent(event.type, prettifyError(checked.error));
    assertJson(event.type, event.data, 'data');
    const data = event.data as JsonObject;
    assertConcealed(entry, data);
    const paths = hiddenIn(entry)(data, metadata.hub);
    const hidden = paths.length === 0 ? undefined : { paths, salt: newSalt() };
    return {
      id,
      type: event.type,
      data: JSON.stringify(data),
      metadata: metadataText(data, entry.version, hidden),
    };
  };

  return {
    encode: (event, id, metadata) => encodeWith(event, id, metadata, briefTextOf(metadata)),
    encodeAll: (events, stream, metadata) => {
      const text = briefTextOf(metadata);
      return events.map((event, index) =>
        encodeWith(event, eventId(metadata.commandId, stream, index), metadata, text),
      );
    },
    decode: ({ type, data, metadata }) => {
      const stored = metadata['schemaVersion'];
      return { type, data: registry.upcast(type, typeof stored === 'number' ? stored : 1, data) };
    },
    typeOf: (type) => registry.get(type),
  };
};

/** Personal data that was once stored in clear could never be erased. */
const assertConcealed = ({ type, personal = [] }: EventType, data: JsonObject): void => {
  for (const path of personal)
    for (const place of placesOf(data, path))
      if (!isEncrypted(valueAtPlace(data, place)))
        throw new InvalidEvent(type, `${place.join('.')} is personal data in clear`);
};

/**
 * JSON as RFC 8785 knows it: what comes back from the log must be what was decided. JSON.stringify would drop
 * `undefined`, turn NaN into null and call toJSON without a word.
 */
const assertJson = (type: string, value: unknown, path: string): void => {
  switch (typeof value) {
    case 'boolean':
      return;
    case 'string':
      if (!value.isWellFormed()) throw new InvalidEvent(type, `${path} is not well-formed Unicode`);
      return;
    case 'number':
      if (!Number.isFinite(value)) throw new InvalidEvent(type, `${path} is not a finite number`);
      return;
    case 'object':
      break;
    default:
      throw new InvalidEvent(type, `${path} is ${typeof value}, which JSON does not have`);
  }
  if (value === null) return;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i += 1) assertJson(type, value[i], `${path}[${i}]`);
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null)
    throw new InvalidEvent(type, `${path} is not a plain object`);
  for (const key in value) assertJson(type, (value as Record<string, unknown>)[key], `${path}.${key}`);
};
