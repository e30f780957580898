import { completeMetadata } from '../../../app/log/metadata.ts';
import { EventTooLarge, MAX_APPEND_BYTES, type EventToAppend } from '../../../app/log/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';

/** The names under which projections on an EventStoreDB server look for correlation and causation. */
export const CORRELATION = '$correlationId';
export const CAUSATION = '$causationId';

/** What is put in front of the metadata of an event in an EventStoreDB: the reserved names. Empty: nothing. */
export const reservedNames = (metadata: {
  readonly correlationId?: unknown;
  readonly causationId?: unknown;
}): string =>
  [
    [CORRELATION, metadata.correlationId],
    [CAUSATION, metadata.causationId],
  ]
    .flatMap(([name, id]) => (typeof id === 'string' ? [`"${name as string}":${JSON.stringify(id)},`] : []))
    .join('');

type Sized = {
  readonly type: string;
  readonly data: { readonly length: number };
  readonly metadata: { readonly length: number };
};

/** What an event counts against the limit where a server counts most: text is in bytes of UTF-8. */
export const sizeOf = ({ type, data, metadata }: Sized): number =>
  data.length + metadata.length + 2 * type.length;

/** Throws EventTooLarge, which names the event or the append that is too large. */
export const checkSizes = (stream: string, events: readonly Sized[]): void => {
  let sum = 0;
  for (const event of events) {
    const bytes = sizeOf(event);
    if (bytes > MAX_APPEND_BYTES) throw new EventTooLarge(`event ${event.type}`, bytes);
    sum += bytes;
  }
  if (sum > MAX_APPEND_BYTES) throw new EventTooLarge(`append of ${events.length} events to ${stream}`, sum);
};

/** The same for events whose texts were not made into bytes yet: what one store takes, every store takes. */
export const checkTextSizes = (stream: string, events: readonly EventToAppend[]): void => {
  // A UTF-16 unit is at most 3 bytes of UTF-8, and the reserved names repeat at most twice what is in the metadata.
  const most = events.reduce(
    (sum, e) => sum + 3 * e.data.length + 9 * e.metadata.length + 2 * e.type.length + 40,
    0,
  );
  if (most <= MAX_APPEND_BYTES) return;
  checkSizes(
    stream,
    events.map(({ type, data, metadata }) => ({
      type,
      data: { length: Buffer.byteLength(data) },
      metadata: { length: Buffer.byteLength(metadata) + Buffer.byteLength(reservedNames(parsed(metadata))) },
    })),
  );
};

const parsed = (text: string): object => {
  try {
    return completeMetadata(Object(JSON.parse(text)) as JsonObject, {});
  } catch {
    return {};
  }
};
