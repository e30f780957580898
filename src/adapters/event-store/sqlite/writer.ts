import type { DatabaseSync } from 'node:sqlite';
import { LRUCache } from 'lru-cache';
import { createContextWriter } from './contexts.ts';
import { isDamage, isNoSpace, messageOf } from './errors.ts';
import type { CommitFault } from './faults.ts';
import { checksum } from './rows.ts';
import { lastNumber } from './schema.ts';
import {
  CONFLICT,
  DUPLICATE,
  EVENT_FIELDS,
  HEAD_FIELDS,
  NO_STREAM,
  STORED,
  type Batch,
  type BatchAnswer,
} from './writer-protocol.ts';

/** Streams whose last revision is remembered; others are looked up. */
const CACHED_STREAMS = 50_000;

/** Larger than a few pages. */
const PROBE = 'x'.repeat(16 * 1024);

/** `last` is the revision of the last event, -1 when there is none. */
type StreamState = { readonly id: number; last: number; readonly maxCount: number | undefined };

export type Writer = {
  /** Stores a batch in one transaction; each append succeeds or is refused on its own. Throws only when not even ROLLBACK works. */
  readonly write: (batch: Batch) => BatchAnswer;
  readonly setMaxCount: (stream: string, maxCount: number) => void;
  /** Takes space, commits and leaves the space free for the next append: throws when there is none. */
  readonly probe: () => void;
  readonly last: () => number;
};

export type WriterOptions = {
  readonly nowMs?: () => number;
  /** Test only: how the next COMMIT fails. */
  readonly takeCommitFault?: () => CommitFault;
};

/** The one writer of a log, on a connection of its own; runs in the writer thread. */
export const createWriter = (db: DatabaseSync, options: WriterOptions = {}): Writer => {
  const nowMs = options.nowMs ?? Date.now;
  const takeCommitFault = options.takeCommitFault ?? ((): CommitFault => 'none');
  const streams = new LRUCache<string, StreamState>({ maxSize: CACHED_STREAMS, sizeCalculation: () => 1 });
  const sql = {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    rollback: db.prepare('ROLLBACK'),
    stream: db.prepare('SELECT id, max_count FROM streams WHERE name = ?'),
    addStream: db.prepare('INSERT INTO streams (name) VALUES (?)'),
    bound: db.prepare(
      'INSERT INTO streams (name, max_count) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET max_count = excluded.max_count',
    ),
    lastRevision: db.prepare('SELECT max(revision) AS last FROM events WHERE stream = ?'),
    from: db.prepare(
      'SELECT id, position FROM events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?',
    ),
    add: db.prepare(
      `INSERT INTO events (position, stream, revision, recorded_at, checksum, id, type, data, metadata, context)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    trim: db.prepare('DELETE FROM events WHERE stream = ? AND revision <= ?'),
    addProbe: db.prepare("INSERT INTO meta (key, value) VALUES ('probe', ?)"),
    removeProbe: db.prepare("DELETE FROM meta WHERE key = 'probe'"),
  };
  const contexts = createContextWriter(db);
  let last = lastNumber(db);

  const stateOf = (name: string): StreamState | undefined => {
    const cached = streams.get(name);
    if (cached !== undefined) return cached;
    const row = sql.stream.get(name);
    if (row === undefined) return undefined;
    const id = Number(row['id']);
    const revision = sql.lastRevision.get(id)?.['last'];
    const state: StreamState = {
      id,
      last: typeof revision === 'number' ? revision : NO_STREAM,
      maxCount: typeof row['max_count'] === 'number' ? row['max_count'] : undefined,
    };
    streams.set(name, state);
    return state;
  };

  const addStream = (name: string): StreamState => {
    const state = {
      id: Number(sql.addStream.run(name).lastInsertRowid),
      last: NO_STREAM,
      maxCount: undefined,
    };
    streams.set(name, state);
    return state;
  };

  /** Answers one append of the batch, which begins at `at`. */
  const appendOne = (batch: Batch, at: number, recordedAt: number, answers: number[]): void => {
    const stream = batch[at] as string;
    const expected = batch[at + 1] as number;
    const after = batch[at + 2] as number;
    const count = batch[at + 3] as number;
    if (answers[3 * after] === CONFLICT) {
      answers.push(CONFLICT, NO_STREAM, 0);
      return;
    }
    const known = stateOf(stream);
    if ((known?.last ?? NO_STREAM) !== expected) {
      answerRepeated(batch, at, known, answers);
      return;
    }
    const state = known ?? addStream(stream);
    // Of what is trimmed away again nothing is left behind.
    const share = stream.startsWith('sys-') ? undefined : contexts.ofAppend();
    for (let i = 0; i < count; i += 1) {
      const from = at + HEAD_FIELDS + EVENT_FIELDS * i;
      const id = batch[from] as string;
      const type = batch[from + 1] as string;
      const data = batch[from + 2] as string;
      const metadata = batch[from + 3] as string;
      const next = i + 1 < count ? (batch[from + 7] as string) : undefined;
      const { context, own } = share?.(metadata, next) ?? { context: null, own: metadata };
      const position = last + 1;
      const revision = expected + 1 + i;
      const sum = checksum(position, stream, revision, recordedAt, id, type, data, own, context);
      sql.add.run(position, state.id, revision, recordedAt, sum, id, type, data, own, context);
      last = position;
      state.last = revision;
    }
    if (state.maxCount !== undefined) sql.trim.run(state.id, state.last - state.maxCount);
    answers.push(STORED, state.last, last);
  };

  /** The stream is not where the append expects it: the same ids there mean an earlier attempt succeeded. */
  const answerRepeated = (
    batch: Batch,
    at: number,
    state: StreamState | undefined,
    answers: number[],
  ): void => {
    const expected = batch[at + 1] as number;
    const count = batch[at + 3] as number;
    const stored = state === undefined ? [] : sql.from.all(state.id, expected + 1, count);
    const idAt = (i: number): unknown => batch[at + HEAD_FIELDS + EVENT_FIELDS * i];
    const same = stored.length === count && stored.every((row, i) => row['id'] === idAt(i));
    if (same) answers.push(DUPLICATE, expected + count, Number(stored.at(-1)?.['position']));
    else answers.push(CONFLICT, state?.last ?? NO_STREAM, 0);
  };

  const write = (batch: Batch): BatchAnswer => {
    const answers: number[] = [];
    const before = last;
    try {
      sql.begin.run();
      const recordedAt = nowMs();
      for (let at = 0; at < batch.length; at += HEAD_FIELDS + EVENT_FIELDS * (batch[at + 3] as number))
        appendOne(batch, at, recordedAt, answers);
    } catch (error) {
      forget();
      last = before;
      return refused(error);
    }
    const reached = last;
    try {
      commit();
    } catch (error) {
      forget();
      return settle(error, answers, before, reached);
    }
    return { kind: 'settled', answers, last };
  };

  const commit = (): void => {
    const fault = takeCommitFault();
    if (fault === 'fails-unstored') throw new Error('fault: COMMIT failed');
    if (fault === 'stays-unknown') throw new UnsettledFault();
    sql.commit.run();
    if (fault === 'fails-stored') throw new Error('fault: COMMIT failed after it took effect');
  };

  /** After any failure: no transaction stays open and nothing remembered from inside it. */
  const forget = (): void => {
    streams.clear();
    contexts.forget();
    if (db.isTransaction) sql.rollback.run();
  };

  /**
   * COMMIT failed. When a write was refused for lack of space, nothing was stored. Otherwise the log is read again.
   * Not found there is not enough: a complete commit frame may stand in the WAL behind the valid part (a failed
   * sync), and a recovery after a crash would bring it to life. A commit of our own overwrites it, so only then
   * is the batch known not to be stored.
   */
  const settle = (error: unknown, answers: number[], before: number, reached: number): BatchAnswer => {
    try {
      if (error instanceof UnsettledFault) throw error;
      last = lastNumber(db);
      if (last === reached && reached > before) return { kind: 'settled', answers, last };
      if (!isNoSpace(error)) probe();
      return refused(error);
    } catch (again) {
      return { kind: 'unknown', message: `${messageOf(error)}; then ${messageOf(again)}` };
    }
  };

  const probe = (): void => {
    try {
      sql.begin.run();
      sql.addProbe.run(PROBE);
      sql.removeProbe.run();
      sql.commit.run();
    } catch (error) {
      forget();
      throw error;
    }
  };

  return {
    write,
    probe,
    last: () => last,
    setMaxCount: (stream, maxCount) => {
      try {
        sql.begin.run();
        sql.bound.run(stream, maxCount);
        streams.delete(stream);
        const state = stateOf(stream);
        if (state !== undefined) sql.trim.run(state.id, state.last - maxCount);
        sql.commit.run();
      } catch (error) {
        forget();
        throw error;
      }
    },
  };
};

/** Test only: a failed COMMIT whose outcome cannot be found out. */
class UnsettledFault extends Error {}

const refused = (error: unknown): BatchAnswer => ({
  kind: 'refused',
  reason: isNoSpace(error) ? 'full' : 'down',
  message: isDamage(error)
    ? `the event log is damaged: ${messageOf(error)}; run \`ledgerctl store check\``
    : messageOf(error),
});
