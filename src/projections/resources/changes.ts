import type { DatabaseSync } from 'node:sqlite';
import type { Position } from '../../app/log/event-store.ts';
import { CHANGES_BY_OBJECT } from './schema.ts';

/** `created`, `updated`, `deleted`: what a watch tells about a document. */
export type ChangeType = 'created' | 'updated' | 'deleted';

/**
 * `parting`: an update of a document whose deletion had been requested before. Its row stays beside that of a
 * deletion in
 * the same append, since watchers are told of both (OSAC).
 */
export type AppendType = ChangeType | 'parting';

export type NewChange = {
  readonly position: Position;
  readonly kind: string;
  readonly id: string;
  readonly tenant: string;
  readonly type: ChangeType;
  /** Recorded time of the event, ISO. */
  readonly at: string;
  readonly document: string;
};

/** The table `changes` and its retention, written in batches. */
export type ChangeLog = {
  readonly add: (change: NewChange) => void;
  /** Takes back the row of a position: a later event of the same append replaces it. */
  readonly takeBack: (position: Position) => void;
  /** Replaces the document of every change of an object. */
  readonly rewrite: (kind: string, id: string, rewrite: (document: string) => string) => void;
  /** Notes the recorded time of an event; retention counts from the newest one seen. */
  readonly saw: (recordedAt: string) => void;
  readonly flush: () => void;
  readonly reset: () => void;
};

/**
 * Rows removed per row added, at most. Retention proceeds in steps that depend on the events alone, so that every
 * instance and every rebuild holds the same rows at the same position; more than one, so that it catches up.
 */
const PRUNED_PER_CHANGE = 4;
const DAY_MS = 86_400_000;

type Key = { readonly position: Position; readonly n: number };
type Oldest = Key & { readonly at: string };
const NOTHING_PRUNED: Key = { position: '', n: 0 };

export const openChangeLog = (db: DatabaseSync, retentionDays: number): ChangeLog => {
  const insert = db.prepare('INSERT INTO changes VALUES (?, 0, ?, ?, ?, ?, ?, ?)');
  const remove = db.prepare('DELETE FROM changes WHERE position = ? AND n = ?');
  const first = db.prepare('SELECT position, n, at FROM changes ORDER BY position, n LIMIT 1');
  const ofObject = db.prepare('SELECT position, n, document FROM changes WHERE kind = ? AND id = ?');
  const rewriteOne = db.prepare('UPDATE changes SET document = ? WHERE position = ? AND n = ?');
  const readNewest = db.prepare('SELECT at, pruned_position AS position, pruned_n AS n FROM newest');
  const writeNewest = db.prepare('INSERT OR REPLACE INTO newest VALUES (1, ?, ?, ?)');

  const pending = new Map<Position, NewChange>();
  let oldest: Oldest | undefined;
  let pruned: Key = NOTHING_PRUNED;
  let newest = '';
  let stored = { at: '', pruned };
  let cutoff = '';

  const setNewest = (at: string): void => {
    newest = at;
    const time = Date.parse(at);
    cutoff = Number.isNaN(time) ? '' : new Date(time - retentionDays * DAY_MS).toISOString();
  };
  const reset = (): void => {
    pending.clear();
    oldest = undefined;
    const row = readNewest.get() as unknown as Oldest | undefined;
    pruned = row === undefined ? NOTHING_PRUNED : { position: row.position, n: row.n };
    stored = { at: row?.at ?? '', pruned };
    setNewest(stored.at);
  };
  reset();

  const findOldest = (): Oldest | undefined => {
    const stored = first.get() as unknown as Oldest | undefined;
    if (stored !== undefined) return stored;
    const [waiting] = pending.values();
    return waiting === undefined ? undefined : { position: waiting.position, n: 0, at: waiting.at };
  };
  const drop = ({ position, n }: Key): void => {
    if (oldest?.position === position) oldest = undefined;
    if (!pending.delete(position)) remove.run(position, n);
  };
  const prune = (): void => {
    for (let step = 0; step < PRUNED_PER_CHANGE; step += 1) {
      oldest ??= findOldest();
      if (oldest === undefined || oldest.at >= cutoff) return;
      pruned = { position: oldest.position, n: oldest.n };
      drop(oldest);
    }
  };

  return {
    add: (change) => {
      pending.set(change.position, change);
      prune();
    },
    takeBack: (position) => drop({ position, n: 0 }),
    rewrite: (kind, id, rewrite) => {
      // A copy that is being built has no index yet.
      db.exec(`CREATE INDEX IF NOT EXISTS ${CHANGES_BY_OBJECT}`);
      for (const row of ofObject.all(kind, id) as unknown as (Key & { document: string })[])
        rewriteOne.run(rewrite(row.document), row.position, row.n);
      for (const [position, change] of pending)
        if (change.kind === kind && change.id === id)
          pending.set(position, { ...change, document: rewrite(change.document) });
    },
    saw: (recordedAt) => {
      if (recordedAt > newest) setNewest(recordedAt);
    },
    flush: () => {
      for (const { position, kind, id, tenant, type, at, document } of pending.values())
        insert.run(position, kind, id, tenant, type, at, document);
      pending.clear();
      if (newest !== stored.at || pruned !== stored.pruned) {
        writeNewest.run(newest, pruned.position, pruned.n);
        stored = { at: newest, pruned };
      }
    },
    reset,
  };
};
