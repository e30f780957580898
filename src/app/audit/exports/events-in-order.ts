import type { EventStore, Position, RecordedEvent } from '../../log/event-store.ts';
import { eventsOf } from '../event-source.ts';
import type { AuditLeaf } from '../tree.ts';

/** The log as exports read it; `readAll` absent: event by event out of its stream. */
export type LogToExport = Pick<EventStore, 'readStream'> & Partial<Pick<EventStore, 'readAll'>>;

/** The events of consecutive leaves, call after call; undefined for one that the log does not hold (any more). */
export type EventsInOrder = {
  readonly of: (leaves: readonly AuditLeaf[]) => Promise<readonly (RecordedEvent | undefined)[]>;
  /** Ends what is being read. */
  readonly close: () => Promise<void>;
};

/**
 * Reads the log once in its order, for leaves of which hardly any is left out: looking each up in its stream takes several
 * times as long. What does not lie at its position is looked up nevertheless. `after`: position before the first leaf.
 */
export const openEventsInOrder = (
  { readStream, readAll }: LogToExport,
  after: Position | undefined,
  signal: AbortSignal,
): EventsInOrder => {
  if (readAll === undefined)
    return { of: (leaves) => eventsOf({ readStream }, leaves, signal), close: async () => undefined };
  const from = after === undefined ? {} : { after };
  const log = readAll({ ...from, limit: Number.MAX_SAFE_INTEGER, signal })[Symbol.asyncIterator]();
  let next: RecordedEvent | undefined;
  let ended = false;

  const at = async (position: Position): Promise<RecordedEvent | undefined> => {
    while (!ended && (next === undefined || next.position < position)) {
      const read = await log.next();
      if (read.done === true) ended = true;
      next = read.done === true ? undefined : read.value;
    }
    return next?.position === position ? next : undefined;
  };
  return {
    of: async (leaves) => {
      const events: (RecordedEvent | undefined)[] = [];
      for (const { position } of leaves) events.push(await at(position));
      const isAt = (leaf: AuditLeaf, n: number): boolean => events[n]?.id === leaf.record.id;
      const elsewhere = leaves.filter((leaf, n) => !isAt(leaf, n));
      if (elsewhere.length === 0) return events;
      const found = (await eventsOf({ readStream }, elsewhere, signal)).values();
      return leaves.map((leaf, n) => (isAt(leaf, n) ? events[n] : found.next().value));
    },
    close: async () => {
      await log.return?.();
    },
  };
};
