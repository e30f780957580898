import type { DatabaseSync } from 'node:sqlite';
import { LogDamaged, type Position, type RecordedEvent } from '../../app/event-store.ts';
import type { View } from '../view.ts';
import { readCheckpoint, readParked, type Checkpoint, type ParkedStream } from './view-file.ts';

/** A poison event in a view whose rows do not belong to one stream: nothing can be skipped, so the view stops. */
export class PoisonEvent extends Error {
  override readonly name = 'PoisonEvent';
  readonly event: Pick<RecordedEvent, 'position' | 'stream' | 'revision' | 'type'>;
  constructor(view: string, event: RecordedEvent, cause: unknown) {
    super(
      `view ${view} cannot apply ${event.type} (${event.stream}@${event.revision}, position ${event.position}): ${textOf(cause)}`,
      { cause },
    );
    this.event = event;
  }
}

export type Applier = {
  checkpoint(): Checkpoint;
  parked(): readonly ParkedStream[];
  /**
   * One transaction: the events (those at or before the checkpoint are passed over: a redelivery), then the
   * checkpoint at `position`. Throws PoisonEvent, or the LogDamaged of the view (what came before it is kept), or the
   * database's own error (nothing is kept) when the file cannot be written.
   */
  apply(events: readonly RecordedEvent[], position: Position): void;
  /** One transaction over the parked stream's events up to the checkpoint. False: still poisonous. */
  retry(stream: string, events: readonly RecordedEvent[]): boolean;
};

export const createApplier = (db: DatabaseSync, view: View): Applier => {
  const applyEvent = view.open(db);
  const setCheckpoint = db.prepare(
    'UPDATE _checkpoint SET position = ?, recorded_at = ?, events = ? WHERE one = 1',
  );
  const park = db.prepare('INSERT OR REPLACE INTO _parked VALUES (?, ?, ?, ?)');
  const unpark = db.prepare('DELETE FROM _parked WHERE stream = ?');
  let checkpoint = readCheckpoint(db);
  let parked = new Map(readParked(db).map((entry) => [entry.stream, entry]));

  const flush = (): void => applyEvent.flush?.();
  const undo = (): void => {
    if (db.isTransaction) db.exec('ROLLBACK');
    applyEvent.reset?.();
    checkpoint = readCheckpoint(db);
    parked = new Map(readParked(db).map((entry) => [entry.stream, entry]));
  };
  const commit = (position: Position | undefined, recordedAt: string | undefined, count: number): void => {
    const next = { position, recordedAt, events: checkpoint.events + count };
    setCheckpoint.run(position ?? null, recordedAt ?? null, next.events);
    db.exec('COMMIT');
    checkpoint = next;
    applyEvent.committed?.();
  };
  const isNew = (event: RecordedEvent): boolean =>
    checkpoint.position === undefined || event.position > checkpoint.position;

  const applyAtOnce = (events: readonly RecordedEvent[], position: Position): void => {
    db.exec('BEGIN IMMEDIATE');
    let count = 0;
    for (const event of events) {
      if (!isNew(event) || parked.has(event.stream)) continue;
      applyEvent(event);
      count += 1;
    }
    flush();
    commit(position, events.at(-1)?.recordedAt ?? checkpoint.recordedAt, count);
  };

  /** After a failure: event by event, each in a savepoint, so that the poisonous one shows itself. */
  const applyOneByOne = (events: readonly RecordedEvent[], position: Position): void => {
    db.exec('BEGIN IMMEDIATE');
    let count = 0;
    let last: RecordedEvent | undefined;
    for (const event of events) {
      if (!isNew(event) || parked.has(event.stream)) continue;
      db.exec('SAVEPOINT one_event');
      try {
        applyEvent(event);
        flush();
        db.exec('RELEASE one_event');
        count += 1;
        last = event;
      } catch (error) {
        if (isEnvironmental(error)) throw error;
        db.exec('ROLLBACK TO one_event; RELEASE one_event');
        applyEvent.reset?.();
        if (error instanceof LogDamaged || !view.rowsBelongToOneStream) {
          commit(last?.position ?? checkpoint.position, last?.recordedAt ?? checkpoint.recordedAt, count);
          if (error instanceof LogDamaged) throw error;
          throw new PoisonEvent(view.name, event, error);
        }
        const entry = {
          stream: event.stream,
          position: event.position,
          revision: event.revision,
          error: `${event.type}: ${textOf(error)}`,
        };
        park.run(entry.stream, entry.position, entry.revision, entry.error);
        parked.set(entry.stream, entry);
      }
    }
    commit(position, events.at(-1)?.recordedAt ?? checkpoint.recordedAt, count);
  };

  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (error instanceof PoisonEvent) throw error;
      undo();
      throw error;
    }
  };

  return {
    checkpoint: () => checkpoint,
    parked: () => [...parked.values()],
    apply: (events, position) => {
      try {
        attempt(() => applyAtOnce(events, position));
      } catch (error) {
        if (isEnvironmental(error)) throw error;
        attempt(() => applyOneByOne(events, position));
      }
    },
    retry: (stream, events) => {
      const entry = parked.get(stream);
      if (entry === undefined) return true;
      try {
        attempt(() => {
          db.exec('BEGIN IMMEDIATE');
          unpark.run(stream);
          const due = events.filter(
            ({ revision, position }) =>
              revision >= entry.revision &&
              checkpoint.position !== undefined &&
              position <= checkpoint.position,
          );
          for (const event of due) applyEvent(event);
          flush();
          commit(checkpoint.position, checkpoint.recordedAt, due.length);
          parked.delete(stream);
        });
        return true;
      } catch (error) {
        if (isEnvironmental(error)) throw error;
        park.run(entry.stream, entry.position, entry.revision, textOf(error));
        parked.set(stream, { ...entry, error: textOf(error) });
        return false;
      }
    },
  };
};

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Primary result codes that say nothing about the event: busy, locked, out of memory, read-only, I/O, corrupt, full … */
const ENVIRONMENTAL_CODES = new Set([5, 6, 7, 8, 9, 10, 11, 13, 14, 26]);

export const isEnvironmental = (error: unknown): boolean => {
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown };
  return (
    code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number' && ENVIRONMENTAL_CODES.has(errcode & 0xff)
  );
};
