import { isLeafStream, leafHashOf, leafOf } from '../../../../src/app/audit/merkle/leaf.ts';
import type { RecordedEvent } from '../../../../src/app/log/event-store.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { keyOf, type History } from '../signed-history.ts';
import { signedLog } from '../signed-log.ts';
import type { Draw, Tampered } from './bundle.ts';

export type LogVictim = {
  readonly history: History;
  readonly log: readonly RecordedEvent[];
  /** Another history with heads of the same key, and this one with heads of another key. */
  readonly otherLog: readonly RecordedEvent[];
  readonly foreignLog: readonly RecordedEvent[];
};

export const logVictim = (history: History, other: History, sizes: readonly number[]): LogVictim => ({
  history,
  log: signedLog(history, sizes),
  otherLog: signedLog(other, sizes),
  foreignLog: signedLog(history, sizes, keyOf('foreign')),
});

/** Leaf hashes of the first `size` leaves: content, order and membership of what was signed. */
export const leavesOfLog = (log: readonly RecordedEvent[], size: number): string[] =>
  log
    .filter(({ stream }) => isLeafStream(stream))
    .slice(0, size)
    .map((event) => leafHashOf(leafOf(event)).toString('hex'));

export const tamperLog = (
  { log, otherLog, foreignLog }: LogVictim,
  draw: Draw,
): Tampered<RecordedEvent[]> => {
  const [i, j] = [draw.a % log.length, draw.b % log.length];
  const [event, second] = [log[i] as RecordedEvent, log[j] as RecordedEvent];
  const other = otherLog[i] as RecordedEvent;
  switch (draw.kind % 8) {
    case 0:
      return {
        what: `bit ${draw.bit} of event ${i} flipped`,
        value: log.with(i, flippedEvent(event, draw.bit)),
      };
    case 1:
      return { what: `event ${i} dropped`, value: log.toSpliced(i, 1) };
    case 2:
      return { what: `events ${i} and ${j} swapped`, value: log.with(i, second).with(j, event) };
    case 3:
      return {
        what: `event of another history at ${i}`,
        value: log.toSpliced(i, 0, { ...other, position: event.position }),
      };
    case 4:
      return { what: `cut off at ${i}`, value: log.slice(0, i) };
    case 5:
      return {
        what: 'all heads of another key',
        value: foreignLog.map((their, n) => (n >= i ? their : (log[n] as RecordedEvent))),
      };
    case 6:
      return { what: `another history from ${i} on`, value: [...log.slice(0, i), ...otherLog.slice(i)] };
    default:
      return { what: `another history up to ${i}`, value: [...otherLog.slice(0, i), ...log.slice(i)] };
  }
};

/** One bit of the event's JSON, where it is still JSON then; else its revision. */
const flippedEvent = (event: RecordedEvent, bit: number): RecordedEvent => {
  const bytes = Buffer.from(JSON.stringify(event));
  const at = Math.floor(bit / 8) % bytes.length;
  bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (bit % 8)), at);
  try {
    const changed = JSON.parse(bytes.toString('utf8')) as JsonObject;
    const { data, metadata, stream, revision, type, id } = changed;
    const whole = [data, metadata].every(
      (part) => typeof part === 'object' && part !== null && !Array.isArray(part),
    );
    const named = [stream, type, id].every((part) => typeof part === 'string');
    if (whole && named && Number.isSafeInteger(revision))
      return { ...event, ...(changed as unknown as RecordedEvent), position: event.position };
  } catch {
    // No JSON any more: a store would not hand it out.
  }
  return { ...event, revision: event.revision + 1 };
};
