import type { EventFault, StoredEvent } from '../../../app/log/stored-event.ts';
import { formatPosition } from '../shared/position.ts';
import { createContexts, type Contexts } from './contexts.ts';
import { checksum } from './rows.ts';
import { openLogForReading } from './schema.ts';

export type StoredEventFound =
  | { readonly outcome: 'found'; readonly event: StoredEvent }
  /** Revisions of the stream that are there; undefined: there is no such stream. */
  | { readonly outcome: 'absent'; readonly revisions?: { readonly first: number; readonly last: number } };

/** One event as it lies in an embedded log, sound or not, also beside the service that writes there. Opens for reading only. */
export const readStoredEvent = (file: string, stream: string, revision: number): StoredEventFound => {
  const db = openLogForReading(file);
  try {
    const row = db
      .prepare(
        `SELECT e.position, e.recorded_at, e.checksum, e.id, e.type,
                CAST(e.data AS BLOB) AS data, CAST(e.metadata AS BLOB) AS metadata, e.context
         FROM events e JOIN streams s ON s.id = e.stream WHERE s.name = ? AND e.revision = ?`,
      )
      .get(stream, revision) as Row | undefined;
    if (row !== undefined)
      return { outcome: 'found', event: eventOf(row, stream, revision, createContexts(db)) };
    const { first, last } = (db
      .prepare(
        'SELECT min(revision) AS first, max(revision) AS last FROM events WHERE stream = (SELECT id FROM streams WHERE name = ?)',
      )
      .get(stream) ?? {}) as { first?: number | null; last?: number | null };
    return typeof first === 'number' && typeof last === 'number'
      ? { outcome: 'absent', revisions: { first, last } }
      : { outcome: 'absent' };
  } finally {
    db.close();
  }
};

type Row = {
  readonly position: number;
  readonly recorded_at: number;
  readonly checksum: number;
  readonly id: string;
  readonly type: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  readonly context: number | null;
};

const eventOf = (row: Row, stream: string, revision: number, contexts: Contexts): StoredEvent => {
  const { position, recorded_at: recordedAt, id, type, data, metadata, context } = row;
  const begin = contexts.textOf(context);
  const computed = checksum(position, stream, revision, recordedAt, id, type, data, metadata, context);
  return {
    position: formatPosition(position),
    stream,
    revision,
    id,
    type,
    recordedAt: timeOf(recordedAt),
    data,
    metadata: Buffer.concat([Buffer.from(begin ?? ''), metadata]),
    faults: [
      ...fault('checksum', computed !== row.checksum, () => {
        const sums = `stored ${hex(row.checksum)}, computed ${hex(computed)}`;
        return `${sums}: a byte of this event was changed in the file`;
      }),
      ...fault('context', begin === undefined, () => `${context} is missing or does not match its checksum`),
    ],
  };
};

const fault = (at: string, is: boolean, problem: () => string): EventFault[] =>
  is ? [{ at, problem: problem() }] : [];

/** A damaged row may hold a number that is no time. */
const timeOf = (ms: number): string => {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? `${ms} (no time)` : time.toISOString();
};

const hex = (crc: number): string => (crc >>> 0).toString(16).padStart(8, '0');
