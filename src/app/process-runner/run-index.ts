import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { LRUCache } from 'lru-cache';
import type { Anchor } from '../log/resume-point.ts';

/** One run as the index keeps it. `key` is the name of the run's stream. */
export type RunRow = {
  readonly key: string;
  readonly workflow: string;
  readonly runId: string;
  /** Revisions that `memory` was folded to, of the run's stream and of its subject's; -1: no event. */
  readonly revision: number;
  readonly subjectRevision: number;
  readonly closed: boolean;
  /** True when something is outstanding or not yet decided, so that a restart looks at it at once. */
  readonly work: boolean;
  /** JSON of everything else (see run.ts); empty for closed runs. */
  readonly memory: string;
};

/** A moment at which a run wants to be looked at. */
export type Alarm = {
  readonly key: string;
  /** Wall-clock milliseconds as recorded in the log. */
  readonly due: number;
  /** Monotonic milliseconds of this process; Infinity: not before the next start. */
  readonly dueMono: number;
};

export type StoredAlarm = Alarm & { readonly fired: number };

export type Revisions = Pick<RunRow, 'revision' | 'subjectRevision'>;

export type RunIndex = {
  load(key: string): RunRow | undefined;
  /** The revisions alone, without parsing; undefined: unknown run. */
  revisionsOf(key: string): Revisions | undefined;
  save(row: RunRow): void;
  alarmsOf(run: string): readonly StoredAlarm[];
  /** Replaces the alarms of a run; one that stays the same (key and due) keeps its monotonic time. */
  setAlarms(run: string, alarms: readonly Alarm[]): void;
  /** Alarms due by `mono`, at most `limit`; each is marked as fired. */
  takeDue(mono: number, limit: number): readonly { readonly run: string; readonly key: string }[];
  /**
   * Monotonic times of an earlier process mean nothing: after a restart the wall clock counts. To be called
   * before anything else, until it says false. Stored is what the wall clock would show at the monotonic time if it
   * were never set, so that only what was woken, fired, asleep or set beside the wall clock has to be written anew: at
   * most `limit` alarms a call. Those that slept until this start ring within the next ten seconds. `offsetMs`: wall
   * clock minus monotonic clock, the same in every call.
   */
  reanchor(offsetMs: number, limit: number, monotonicMs: number): boolean;
  /** Monotonic time of the next alarm. */
  nextAlarm(): number | undefined;
  /** Counts to MAX_COUNTED at most. */
  countDue(mono: number): number;
  /** Makes this alarm due for the oldest `limit` runs that keep it for later. Returns how many. */
  wake(alarm: string, mono: number, limit: number): number;
  /** Open runs with outstanding commands or effects after `key`, in order of keys. */
  withWork(after: string, limit: number): readonly string[];
  park(run: string, error: string): void;
  parked(): readonly { readonly run: string; readonly error: string }[];
  unpark(run: string): void;
  /** The last event that was taken in: what to resume after. */
  anchor(): Anchor | undefined;
  setAnchor(anchor: Anchor): void;
  counts(): { readonly open: number; readonly closed: number };
  /** Makes everything so far survive a restart. A lost index is rebuilt from the log, so nothing here is synchronous. */
  commit(): void;
  /** What was not committed is lost. */
  close(): void;
};

const FORMAT = 5;
/** More due alarms than this are not counted: whoever asks only wants to know that there are too many. */
export const MAX_COUNTED = 10_000;
/** Not where its wall-clock time has it; a few milliseconds come from rounding and do not matter. */
const MOVED = 'fired <> 0 OR abs(mono - due) > 50 OR abs(due_mono - due) > 50';
export const RUN_INDEX_SCHEMA = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE runs (
    key TEXT PRIMARY KEY, workflow TEXT NOT NULL, run_id TEXT NOT NULL, revision INTEGER NOT NULL,
    subject_revision INTEGER NOT NULL, closed INTEGER NOT NULL, work INTEGER NOT NULL, memory TEXT NOT NULL
  ) STRICT;
  CREATE INDEX runs_with_work ON runs (key) WHERE work = 1;
  CREATE TABLE alarms (
    run TEXT NOT NULL, key TEXT NOT NULL, due REAL NOT NULL, due_mono REAL NOT NULL,
    mono REAL, fired INTEGER NOT NULL, age INTEGER, PRIMARY KEY (run, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX alarms_by_time ON alarms (mono) WHERE mono IS NOT NULL;
  CREATE INDEX alarms_by_key ON alarms (key, age, run, mono);
  CREATE INDEX alarms_moved ON alarms (run, key) WHERE ${MOVED};
  CREATE TABLE parked (run TEXT PRIMARY KEY, error TEXT NOT NULL) STRICT;
  CREATE TABLE counts (closed INTEGER PRIMARY KEY, runs INTEGER NOT NULL) STRICT;
  INSERT INTO counts (closed, runs) VALUES (0, 0), (1, 0);
`;
/** Run on the HTTP thread: each walks an index (a spec looks at the plans). */
export const RUN_INDEX_STATEMENTS = {
  load: `SELECT key, workflow, run_id AS runId, revision, subject_revision AS subjectRevision,
       closed, work, memory FROM runs WHERE key = ?`,
  closed: 'SELECT closed FROM runs WHERE key = ?',
  revisions: 'SELECT revision, subject_revision AS subjectRevision FROM runs WHERE key = ?',
  save: `INSERT INTO runs (key, workflow, run_id, revision, subject_revision, closed, work, memory)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET revision = excluded.revision,
         subject_revision = excluded.subject_revision, closed = excluded.closed,
         work = excluded.work, memory = excluded.memory`,
  alarms: 'SELECT key, due, due_mono AS dueMono, fired FROM alarms WHERE run = ?',
  // Runs are numbered in the order in which they were first heard of.
  setAlarm: `INSERT INTO alarms (run, key, due, due_mono, mono, fired, age)
       VALUES (?1, ?2, ?3, ?4, ?4, 0, (SELECT rowid FROM runs WHERE key = ?1))
       ON CONFLICT (run, key) DO UPDATE SET due = excluded.due, due_mono = excluded.due_mono,
         mono = excluded.mono, fired = 0
         WHERE due <> excluded.due OR (due_mono = 9e999) <> (excluded.due_mono = 9e999)`,
  dropAlarm: 'DELETE FROM alarms WHERE run = ? AND key = ?',
  due: `SELECT run, key, due_mono AS dueMono, fired FROM alarms
       WHERE mono IS NOT NULL AND mono <= ? ORDER BY mono LIMIT ?`,
  fire: 'UPDATE alarms SET mono = ?, fired = ? WHERE run = ? AND key = ?',
  moved: `SELECT run, key, due, due_mono AS dueMono FROM alarms WHERE ${MOVED} LIMIT ?`,
  reanchor: 'UPDATE alarms SET due = ?3, due_mono = ?3, mono = ?3, fired = 0 WHERE run = ?1 AND key = ?2',
  next: 'SELECT min(mono) AS mono FROM alarms WHERE mono IS NOT NULL',
  countDue: `SELECT count(*) AS n FROM
       (SELECT 1 FROM alarms WHERE mono IS NOT NULL AND mono <= ? LIMIT ${MAX_COUNTED})`,
  wake: `UPDATE alarms SET mono = ?2 WHERE key = ?1 AND run IN
       (SELECT run FROM alarms WHERE key = ?1 AND mono > ?2 ORDER BY age, run LIMIT ?3)`,
  work: 'SELECT key FROM runs WHERE work = 1 AND key > ? ORDER BY key LIMIT ?',
  park: 'INSERT OR REPLACE INTO parked (run, error) VALUES (?, ?)',
  parked: 'SELECT run, error FROM parked ORDER BY run',
  unpark: 'DELETE FROM parked WHERE run = ?',
  anchor: "SELECT value FROM meta WHERE key = 'anchor'",
  counts: 'SELECT runs FROM counts WHERE closed = ?',
  setCounts: 'UPDATE counts SET runs = ? WHERE closed = ?',
  setAnchor: "INSERT OR REPLACE INTO meta (key, value) VALUES ('anchor', ?)",
} as const;

/** Runs whose alarms are kept at hand. */
const ALARMS_HELD = 2_000;
/** Milliseconds after a start in which alarms ring that slept before it. */
const AWAKE_WITHIN_MS = 10_000;
/** Milliseconds until a fired timer that its run still keeps fires again: a guard against a busy loop. */
const REFIRE_FIRST_MS = 1_000;
const REFIRE_MAX_MS = 60_000;

/**
 * The runner's disposable memory: which runs are open, what they were folded to, when they want to be looked at, and
 * up to where the log was taken in. It may be deleted at any time; the log holds everything.
 *
 * `identity` names what the content depends on (store, workflows and their state versions): another identity, an
 * older format or a damaged file start an empty index.
 */
export const openRunIndex = (file: string, identity: string): RunIndex => {
  const db = openFresh(file, identity);
  let inTransaction = false;
  const write = (): void => {
    if (inTransaction) return;
    db.exec('BEGIN');
    inTransaction = true;
  };
  const sql = prepared(db);
  const countOf = (closed: 0 | 1): number => (sql.counts.get(closed) as { runs: number }).runs;
  // Kept beside the rows and written with them: counting hundreds of thousands would hold the thread.
  const counts = { open: countOf(0), closed: countOf(1) };
  /** Stored minus monotonic time. */
  let base = 0;
  /** By run: each step of a run asks for its alarms and sets them, nearly always as they were. */
  const alarmsHeld = new LRUCache<string, readonly StoredAlarm[]>({ max: ALARMS_HELD });
  const storedAlarms = (run: string): readonly StoredAlarm[] => {
    const held = alarmsHeld.get(run);
    if (held !== undefined) return held;
    const alarms = sql.alarms.all(run) as StoredAlarm[];
    alarmsHeld.set(run, alarms);
    return alarms;
  };

  return {
    load: (key) => {
      const row = sql.load.get(key) as (Omit<RunRow, 'closed' | 'work'> & Flags) | undefined;
      return row === undefined ? undefined : { ...row, closed: row.closed === 1, work: row.work === 1 };
    },
    revisionsOf: (key) => sql.revisions.get(key) as Revisions | undefined,
    save: (row) => {
      write();
      const before = sql.closed.get(row.key) as { closed: number } | undefined;
      if (before !== undefined) counts[before.closed === 1 ? 'closed' : 'open'] -= 1;
      counts[row.closed ? 'closed' : 'open'] += 1;
      sql.save.run(
        row.key,
        row.workflow,
        row.runId,
        row.revision,
        row.subjectRevision,
        Number(row.closed),
        Number(row.work),
        row.memory,
      );
    },
    alarmsOf: (run) => storedAlarms(run).map((alarm) => ({ ...alarm, dueMono: alarm.dueMono - base })),
    setAlarms: (run, alarms) => {
      const keep = new Set(alarms.map((alarm) => alarm.key));
      const stored = new Map(storedAlarms(run).map((alarm) => [alarm.key, alarm]));
      const gone = [...stored.keys()].filter((key) => !keep.has(key));
      const moved = alarms.filter((alarm) => !isSame(stored.get(alarm.key), alarm));
      if (gone.length + moved.length === 0) return;
      write();
      for (const key of gone) sql.dropAlarm.run(run, key);
      for (const { key, due, dueMono } of moved) {
        sql.setAlarm.run(run, key, due, dueMono + base);
        stored.set(key, { key, due, dueMono: dueMono + base, fired: 0 });
      }
      alarmsHeld.set(
        run,
        [...stored.values()].filter(({ key }) => keep.has(key)),
      );
    },
    takeDue: (mono, limit) => {
      const now = mono + base;
      const due = sql.due.all(now, limit) as { run: string; key: string; dueMono: number; fired: number }[];
      if (due.length > 0) write();
      for (const { run, key, dueMono, fired } of due) {
        alarmsHeld.delete(run);
        // Woken early: its own time still stands. Otherwise its run must replace it; until then it fires less and less.
        const early = dueMono > now;
        const again = early ? dueMono : now + Math.min(REFIRE_MAX_MS, REFIRE_FIRST_MS * 2 ** fired);
        sql.fire.run(again, early ? fired : fired + 1, run, key);
      }
      return due.map(({ run, key }) => ({ run, key }));
    },
    reanchor: (offsetMs, limit, monotonicMs) => {
      base = offsetMs;
      const moved = sql.moved.all(limit) as { run: string; key: string; due: number; dueMono: number }[];
      if (moved.length > 0) write();
      alarmsHeld.clear();
      const now = monotonicMs + offsetMs;
      for (const { run, key, due, dueMono } of moved)
        sql.reanchor.run(run, key, dueMono === Infinity ? now + AWAKE_WITHIN_MS * fractionOf(run) : due);
      return moved.length === limit;
    },
    nextAlarm: () => {
      const { mono } = sql.next.get() as { mono: number | null };
      return mono === null ? undefined : mono - base;
    },
    countDue: (mono) => (sql.countDue.get(mono + base) as { n: number }).n,
    wake: (alarm, mono, limit) => {
      write();
      return Number(sql.wake.run(alarm, mono + base, limit).changes);
    },
    withWork: (after, limit) => (sql.work.all(after, limit) as { key: string }[]).map(({ key }) => key),
    park: (run, error) => {
      write();
      sql.park.run(run, error);
    },
    parked: () => sql.parked.all() as { run: string; error: string }[],
    unpark: (run) => {
      write();
      sql.unpark.run(run);
    },
    anchor: () => {
      const row = sql.anchor.get() as { value: string } | undefined;
      return row === undefined ? undefined : (JSON.parse(row.value) as Anchor);
    },
    setAnchor: ({ position, id }) => {
      write();
      sql.setAnchor.run(JSON.stringify({ position, id }));
    },
    counts: () => ({ ...counts }),
    commit: () => {
      if (!inTransaction) return;
      sql.setCounts.run(counts.open, 0);
      sql.setCounts.run(counts.closed, 1);
      db.exec('COMMIT');
      inTransaction = false;
    },
    close: () => db.close(),
  };
};

const isSame = (stored: StoredAlarm | undefined, { due, dueMono }: Alarm): boolean =>
  stored?.due === due && (stored.dueMono === Infinity) === (dueMono === Infinity);

/** A number from 0 to 1 that only depends on the text. */
export const fractionOf = (text: string): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;

type Flags = { readonly closed: number; readonly work: number };
type Statements = { readonly [Name in keyof typeof RUN_INDEX_STATEMENTS]: StatementSync };
const prepared = (db: DatabaseSync): Statements =>
  Object.fromEntries(
    Object.entries(RUN_INDEX_STATEMENTS).map(([name, text]) => [name, db.prepare(text)]),
  ) as Statements;

/** SQLite itself failed: a full disk, a damaged file. Nothing that a run did wrong. */
export const isIndexError = (error: unknown): boolean =>
  error instanceof Error && (error as { code?: unknown }).code === 'ERR_SQLITE_ERROR';

const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
/** The file holds nonsense: it is to be discarded, since everything in it follows from the log. */
export const isDamage = (error: unknown): boolean => {
  const errcode = isIndexError(error) ? (error as { errcode?: unknown }).errcode : undefined;
  // Extended codes carry the plain one in their low byte.
  return typeof errcode === 'number' && [SQLITE_CORRUPT, SQLITE_NOTADB].includes(errcode & 0xff);
};

export const discardRunIndex = (file: string): void => {
  if (file === ':memory:') return;
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
};

const openFresh = (file: string, identity: string): DatabaseSync => {
  try {
    const db = new DatabaseSync(file);
    if (usable(db, identity)) return db;
    db.close();
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
  discardRunIndex(file);
  const db = new DatabaseSync(file);
  // Disposable: after a power loss it is rebuilt, so it never waits for the disk.
  db.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA user_version = ${FORMAT}; ${RUN_INDEX_SCHEMA}`,
  );
  db.prepare("INSERT INTO meta (key, value) VALUES ('identity', ?)").run(identity);
  return db;
};

const usable = (db: DatabaseSync, identity: string): boolean => {
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;');
  const { user_version: format } = db.prepare('PRAGMA user_version').get() as { user_version: number };
  if (format !== FORMAT) return false;
  const row = db.prepare("SELECT value FROM meta WHERE key = 'identity'").get() as
    | { value: string }
    | undefined;
  return row?.value === identity;
};
