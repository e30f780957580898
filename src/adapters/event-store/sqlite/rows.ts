import { crc32 } from 'node:zlib';
import { completeMetadata } from '../../../app/log/metadata.ts';
import type { RecordedEvent } from '../../../app/log/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { formatPosition } from '../shared/position.ts';
import type { Contexts } from './contexts.ts';
import { StoreDamaged } from './errors.ts';

/** Columns of a read event in the order of `EventRow`; `streams` is joined as `s`, `events` as `e`. */
export const EVENT_COLUMNS =
  'e.position, s.name, e.revision, e.recorded_at, e.checksum, e.id, e.type, e.data, e.metadata, e.context';

export type EventRow = [
  position: number,
  stream: string,
  revision: number,
  recordedAt: number,
  checksum: number,
  id: string,
  type: string,
  data: string,
  /** What follows the text of the context. */
  metadata: string,
  context: number | null,
];

/** CRC-32 over everything in the row: detects what SQLite does not, a flipped bit inside a value. */
export const checksum = (
  position: number,
  stream: string,
  revision: number,
  recordedAt: number,
  id: string,
  type: string,
  data: string | Uint8Array,
  metadata: string | Uint8Array,
  context: number | null = null,
): number => {
  const head = `${position}\n${stream}\n${revision}\n${recordedAt}\n${id}\n${type}\n`;
  return crc32(metadata, crc32(data, crc32(context === null ? head : `${head}${context}\n`)));
};

/** What is wrong with a row, undefined when nothing is. */
export const rowFinding = (row: EventRow): string | undefined => {
  const [position, stream, revision, recordedAt, stored, id, type, data, metadata, context] = row;
  return stored === checksum(position, stream, revision, recordedAt, id, type, data, metadata, context)
    ? undefined
    : `event ${stream}@${revision} at position ${position} does not match its checksum`;
};

/** What is wrong with the context of a row, undefined when nothing is. */
export const contextFinding = (
  [position, stream, revision, , , , , , , context]: EventRow,
  contexts: Contexts,
): string | undefined =>
  contexts.textOf(context) === undefined
    ? `context ${context} of event ${stream}@${revision} at position ${position} is missing or does not match its checksum`
    : undefined;

/** Throws StoreDamaged instead of handing out an event that is not what was stored. */
export const toEvent = (file: string, row: EventRow, contexts: Contexts): RecordedEvent => {
  const finding = rowFinding(row);
  const metadata = finding === undefined ? contexts.metadataOf(row[9], row[8]) : undefined;
  if (metadata === undefined)
    throw new StoreDamaged(file, finding ?? contextFinding(row, contexts) ?? '', {
      at: { event: `${row[1]}@${row[2]}`, position: formatPosition(row[0]) },
    });
  const data = JSON.parse(row[7]) as JsonObject;
  return {
    position: formatPosition(row[0]),
    stream: row[1],
    revision: row[2],
    id: row[5],
    type: row[6],
    data,
    metadata: completeMetadata(metadata, data),
    recordedAt: new Date(row[3]).toISOString(),
  };
};

/** Bytes of text in a row, near enough to bound a page. */
export const rowSize = (row: EventRow): number => row[7].length + row[8].length;
