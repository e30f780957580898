import type { EventType } from '../../domain/event-type.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Registry } from '../../domain/registry.ts';
import { completeMetadata } from './metadata.ts';
import type { RecordedEvent } from './event-store.ts';

/** An event as the store keeps it: bytes, whatever they say. For a person who looks at one that cannot be read. */
export type StoredEvent = Omit<RecordedEvent, 'data' | 'metadata'> & {
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  /** What the store itself finds wrong with it. */
  readonly faults: readonly EventFault[];
};

export type EventFault = {
  /** `checksum`, `content type`, `type`, `leaf`; `data` or `metadata`, with the path of a field where it is about one. */
  readonly at: string;
  readonly problem: string;
};

export type EventLook = {
  readonly faults: readonly EventFault[];
  /** Both texts, where they are JSON objects. */
  readonly read: { readonly data: JsonObject; readonly metadata: JsonObject } | undefined;
};

/** Everything that is wrong with a stored event by this release's registry; an event that is sound has no faults. */
export const lookAtEvent = (event: StoredEvent, { get, upcast }: Registry): EventLook => {
  const faults = [...event.faults];
  const objectIn = (at: 'data' | 'metadata'): JsonObject | undefined => {
    const parsed = objectOf(event[at]);
    if ('problem' in parsed) faults.push({ at, problem: parsed.problem });
    return 'value' in parsed ? parsed.value : undefined;
  };
  const data = objectIn('data');
  const stored = objectIn('metadata');
  const metadata = data && stored && completeMetadata(stored, data);
  const entry = get(event.type);
  if (entry === undefined)
    faults.push({ at: 'type', problem: `this release knows no type '${event.type}': a newer one may` });
  if (data === undefined || metadata === undefined) return { faults, read: undefined };
  if (entry !== undefined) faults.push(...faultsByType(entry, data, metadata, upcast));
  return { faults, read: { data, metadata } };
};

const faultsByType = (
  { type, version, schema }: EventType,
  data: JsonObject,
  metadata: JsonObject,
  upcast: Registry['upcast'],
): EventFault[] => {
  const stored = metadata['schemaVersion'];
  if (typeof stored !== 'number' || !Number.isSafeInteger(stored) || stored < 1)
    return [{ at: 'metadata.schemaVersion', problem: `not a version: ${JSON.stringify(stored)}` }];
  if (stored > version)
    return [
      {
        at: 'metadata.schemaVersion',
        problem: `version ${stored} of ${type}; this release knows up to version ${version}`,
      },
    ];
  const checked = schema.safeParse(upcast(type, stored, data));
  return checked.success
    ? []
    : checked.error.issues.map(({ path, message }) => ({
        at: ['data', ...path.map(String)].join('.'),
        problem: message,
      }));
};

const objectOf = (bytes: Uint8Array): { readonly value: JsonObject } | { readonly problem: string } => {
  const wrong = firstNonUtf8(bytes);
  if (wrong !== undefined) return { problem: `byte ${wrong} is not UTF-8` };
  try {
    const value: unknown = JSON.parse(textOf(bytes));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? { value: value as JsonObject }
      : { problem: 'not a JSON object' };
  } catch (error) {
    return { problem: `not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
};

/** Where a text stops being UTF-8; undefined: it is. */
export const firstNonUtf8 = (bytes: Uint8Array): number | undefined => {
  const again = Buffer.from(textOf(bytes), 'utf8');
  if (again.equals(bytes)) return undefined;
  const at = bytes.findIndex((byte, index) => again[index] !== byte);
  return at < 0 ? bytes.length : at;
};

/** What is not UTF-8 reads as U+FFFD. */
export const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
