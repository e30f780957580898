import type { DatabaseSync } from 'node:sqlite';
import {
  LogDamaged,
  type Position,
  type RecordedEvent,
  type UnreadableEvent,
} from '../../app/log/event-store.ts';
import { anchorOf } from '../../app/log/resume-point.ts';
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

/**
 * An event could not be applied, and with it everything since the last COMMIT was undone: from there on the events have to
 * come again, for `apply`, which finds out which one it was.
 */
export class Undone extends Error {
  override readonly name = 'Undone';
}

/** What a subscription yields of the events of the log. */
export type LoggedEvent = RecordedEvent | UnreadableEvent;

export type Applier = {
  checkpoint(): Checkpoint;
  parked(): readonly ParkedStream[];
  /** Back to the anchor: what lies behind it is not passed over when it comes again. */
  rewind(): void;
  /**
   * One transaction: the events (those at or before the checkpoint are passed over: a redelivery), then the
   * checkpoint at `position`. An unreadable event parks its stream, in every view: no
   * aggregate folds over it, so that nothing of ours follows it. Throws PoisonEvent, or the LogDamaged of the view (what
   * came before it is kept), or the database's own error (nothing is kept) when the file cannot be written.
   *
   * @param forMs milliseconds after which it ends in front of the rest; absent: all at once
   * @returns how many of the events were taken; fewer than all: the checkpoint is at the last of them
   */
  apply(events: readonly LoggedEvent[], position: Position, forMs?: number): number;
  /**
   * The same in a transaction that stays open until the next `apply`. Throws Undone, or the database's own error: then nothing
   * since the last COMMIT is kept.
   */
  applyOn(events: readonly LoggedEvent[], position: Position, forMs?: number): number;
  /** One transaction over the parked stream's events up to the checkpoint. False: still poisonous. */
  retry(stream: string, events: readonly RecordedEvent[]): boolean;
};

export const createApplier = (db: DatabaseSync, view: View): Applier => {
  const applyEvent = view.open(db);
  const setCheckpoint = db.prepare(
    `UPDATE _checkpoint SET position = ?, recorded_at = ?, events = ?, anchor_position = ?, anchor_id = ?
     WHERE one = 1`,
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
  const write = (next: Checkpoint): void => {
    const { position = null, recordedAt = null, events, anchor } = next;
    setCheckpoint.run(position, recordedAt, events, anchor?.position ?? null, anchor?.id ?? null);
  };
  /** In memory: the next COMMIT stores it. `taken`: what the checkpoint passes over. */
  const advance = (position: Position | undefined, taken: readonly LoggedEvent[], count: number): void => {
    const last = taken.findLast((event) => anchorOf(event) !== undefined);
    checkpoint = {
      position,
      recordedAt: taken.at(-1)?.recordedAt ?? checkpoint.recordedAt,
      events: checkpoint.events + count,
      anchor: last === undefined ? checkpoint.anchor : anchorOf(last),
    };
  };
  const commit = (position: Position | undefined, taken: readonly LoggedEvent[], count: number): void => {
    advance(position, taken, count);
    write(checkpoint);
    db.exec('COMMIT');
    applyEvent.committed?.();
  };
  const isNew = (event: LoggedEvent): boolean =>
    checkpoint.position === undefined || event.position > checkpoint.position;
  const parkAt = ({ stream, position, revision, type }: LoggedEvent, reason: string): void => {
    const entry = { stream, position, revision, error: `${type}: ${reason}` };
    park.run(entry.stream, entry.position, entry.revision, entry.error);
    parked.set(entry.stream, entry);
  };

  /** Returns how many were passed over or applied, and how many were applied. */
  const applyEach = (events: readonly LoggedEvent[], forMs?: number): { taken: number; count: number } => {
    const started = forMs === undefined ? 0 : performance.now();
    if (!db.isTransaction) db.exec('BEGIN IMMEDIATE');
    let count = 0;
    let taken = 0;
    for (const event of events) {
      taken += 1;
      if (isNew(event) && !parked.has(event.stream)) {
        if ('reason' in event) parkAt(event, event.reason);
        else {
          applyEvent(event);
          count += 1;
        }
      }
      if (forMs !== undefined && performance.now() - started >= forMs) break;
    }
    return { taken, count };
  };

  const applyAtOnce = (events: readonly LoggedEvent[], position: Position, forMs?: number): number => {
    const { taken, count } = applyEach(events, forMs);
    flush();
    if (taken === events.length) commit(position, events, count);
    else commit(events[taken - 1]?.position, events.slice(0, taken), count);
    return taken;
  };

  /** After a failure: event by event, each in a savepoint, so that the poisonous one shows itself. */
  const applyOneByOne = (events: readonly LoggedEvent[], position: Position): void => {
    db.exec('BEGIN IMMEDIATE');
    let count = 0;
    const applied: LoggedEvent[] = [];
    for (const event of events) {
      if (!isNew(event) || parked.has(event.stream)) continue;
      if ('reason' in event) {
        parkAt(event, event.reason);
        continue;
      }
      db.exec('SAVEPOINT one_event');
      try {
        applyEvent(event);
        flush();
        db.exec('RELEASE one_event');
        count += 1;
        applied.push(event);
      } catch (error) {
        if (isEnvironmental(error)) throw error;
        db.exec('ROLLBACK TO one_event; RELEASE one_event');
        applyEvent.reset?.();
        if (error instanceof LogDamaged || !view.rowsBelongToOneStream) {
          commit(applied.at(-1)?.position ?? checkpoint.position, applied, count);
          if (error instanceof LogDamaged) throw error;
          throw new PoisonEvent(view.name, event, error);
        }
        parkAt(event, textOf(error));
      }
    }
    commit(position, events, count);
  };

  const attempt = <Result>(work: () => Result): Result => {
    try {
      return work();
    } catch (error) {
      if (error instanceof PoisonEvent) throw error;
      undo();
      throw error;
    }
  };

  return {
    checkpoint: () => checkpoint,
    parked: () => [...parked.values()],
    rewind: () => {
      const { anchor } = checkpoint;
      if (checkpoint.position === anchor?.position) return;
      checkpoint = { ...checkpoint, position: anchor?.position };
      write(checkpoint);
    },
    apply: (events, position, forMs) => {
      const wasOpen = db.isTransaction;
      try {
        return attempt(() => applyAtOnce(events, position, forMs));
      } catch (error) {
        if (isEnvironmental(error)) throw error;
        if (wasOpen) throw new Undone(textOf(error), { cause: error });
        attempt(() => applyOneByOne(events, position));
        return events.length;
      }
    },
    applyOn: (events, position, forMs) => {
      try {
        return attempt(() => {
          const { taken, count } = applyEach(events, forMs);
          if (taken === events.length) advance(position, events, count);
          else advance(events[taken - 1]?.position, events.slice(0, taken), count);
          return taken;
        });
      } catch (error) {
        throw isEnvironmental(error) ? error : new Undone(textOf(error), { cause: error });
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
          commit(checkpoint.position, [], due.length);
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
