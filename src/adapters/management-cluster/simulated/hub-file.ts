import type { ObjectPlace } from '../../../domain/hubs/hub-object.ts';
import { openSimulationFile } from '../../simulation/file.ts';
import type { ObjectRecord } from './record.ts';

/**
 * The file of one simulated hub. README.md describes its tables: tests and demos read `calls` and `objects` with
 * readers of their own, so the columns are a contract.
 */
const SCHEMA = `
CREATE TABLE hub (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE objects (
  sequence    INTEGER PRIMARY KEY,
  kind        TEXT NOT NULL,
  uid         TEXT NOT NULL UNIQUE,
  namespace   TEXT NOT NULL,
  name        TEXT NOT NULL,
  object_id   TEXT,
  effect_id   TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  deletion_at INTEGER,
  gone_at     INTEGER,
  changed     INTEGER NOT NULL,
  record      TEXT NOT NULL
) STRICT;
CREATE INDEX objects_by_name ON objects (name, kind, namespace, sequence);
CREATE INDEX objects_by_id ON objects (object_id, kind, sequence);
CREATE UNIQUE INDEX objects_by_change ON objects (changed);
CREATE TABLE calls (
  number      INTEGER PRIMARY KEY,
  at          TEXT NOT NULL,
  effect_id   TEXT NOT NULL,
  operation   TEXT NOT NULL,
  kind        TEXT NOT NULL,
  namespace   TEXT NOT NULL,
  object      TEXT NOT NULL,
  result      TEXT NOT NULL,
  answer      TEXT NOT NULL CHECK (answer IN ('given', 'slow', 'lost', 'none')),
  duration_ms REAL NOT NULL,
  instance    TEXT NOT NULL
) STRICT;
`;
const SCHEMA_VERSION = 2;

export type CallRow = {
  readonly at: number;
  readonly effectId: string;
  readonly operation: string;
  readonly kind: string;
  readonly namespace: string;
  readonly object: string;
  readonly result: string;
  readonly answer: 'given' | 'slow' | 'lost' | 'none';
  readonly durationMs: number;
  readonly instance: string;
};

export type HubFile = ReturnType<typeof openHubFile>;

/** Opens or creates the file. Throws when it cannot, or when the file has another form. */
export const openHubFile = (file: string) => {
  const common = openSimulationFile(file, { schema: SCHEMA, version: SCHEMA_VERSION, values: 'hub' });
  const { sql, hold, keep } = common;
  const lastChange = (): number =>
    hold('last change', () =>
      Number(sql('SELECT coalesce(max(changed), 0) AS last FROM objects').get()?.['last']),
    );
  const nextChange = (): number => {
    const next = lastChange() + 1;
    keep('last change');
    return next;
  };

  return {
    ...common,
    nextSequence: (): number =>
      Number(sql('SELECT coalesce(max(sequence), 0) + 1 AS next FROM objects').get()?.['next']),
    insertObject: (record: ObjectRecord, effectId: string): void => {
      sql(
        `INSERT INTO objects (sequence, kind, uid, namespace, name, object_id, effect_id, created_at, changed, record)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ).run(
        record.sequence,
        record.kind,
        record.uid,
        record.namespace,
        record.name,
        record.id ?? null,
        effectId,
        record.createdAt,
        nextChange(),
        JSON.stringify(record),
      );
    },
    updateObject: (record: ObjectRecord): void => {
      const deletion = record.writes.find((write) => write.kind === 'delete');
      sql('UPDATE objects SET record = ?, changed = ?, deletion_at = ? WHERE sequence = ?').run(
        JSON.stringify(record),
        nextChange(),
        deletion?.at ?? null,
        record.sequence,
      );
    },
    /** Notes what a read showed; later ones need not look at this object any more. */
    markGone: (sequence: number, goneAt: number): void => {
      sql('UPDATE objects SET gone_at = ? WHERE sequence = ?').run(goneAt, sequence);
    },
    /** The newest object of that name that is not known to be gone. */
    objectByName: (kind: string, namespace: string, name: string): string | undefined =>
      textsOf(
        sql(
          `SELECT record FROM objects WHERE name = ? AND kind = ? AND namespace = ? AND gone_at IS NULL
           ORDER BY sequence DESC LIMIT 1`,
        ).all(name, kind, namespace),
      )[0],
    /** What identifies the newest object of that name and its last write, without reading it. */
    writeOf: (
      kind: string,
      { namespace, name }: ObjectPlace,
    ): { readonly sequence: number; readonly changed: number } | undefined =>
      sql(
        `SELECT sequence, changed FROM objects WHERE name = ? AND kind = ? AND namespace = ? AND gone_at IS NULL
         ORDER BY sequence DESC LIMIT 1`,
      ).get(name, kind, namespace) as { sequence: number; changed: number } | undefined,
    objectsByName: (kind: string, name: string): string[] =>
      textsOf(
        sql(
          'SELECT record FROM objects WHERE name = ? AND kind = ? AND gone_at IS NULL ORDER BY sequence',
        ).all(name, kind),
      ),
    objectsById: (kind: string, id: string): string[] =>
      textsOf(
        sql(
          'SELECT record FROM objects WHERE object_id = ? AND kind = ? AND gone_at IS NULL ORDER BY sequence',
        ).all(id, kind),
      ),
    /** Those that are not known to be gone, in the order of creation. */
    objectsOfKind: (kind: string): ObjectRecord[] =>
      textsOf(
        sql('SELECT record FROM objects WHERE kind = ? AND gone_at IS NULL ORDER BY sequence').all(kind),
      ).map((text) => JSON.parse(text) as ObjectRecord),
    /** Number of the last write to an object; 0 before the first. */
    lastChange,
    /** Objects written after change `after`, oldest change first; those known to be gone only when asked for. */
    objectsChangedAfter: (
      after: number,
      withGone: boolean,
      limit: number,
    ): { readonly record: ObjectRecord; readonly changed: number }[] =>
      sql(
        `SELECT record, changed FROM objects WHERE changed > ? AND (gone_at IS NULL OR ?) ORDER BY changed LIMIT ?`,
      )
        .all(after, withGone ? 1 : 0, limit)
        .map((row) => ({
          record: JSON.parse(String(row['record'])) as ObjectRecord,
          changed: Number(row['changed']),
        })),
    addCall: (row: CallRow): void => {
      keep('last call', row.at);
      sql(
        `INSERT INTO calls (at, effect_id, operation, kind, namespace, object, result, answer, duration_ms, instance)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ).run(
        new Date(row.at).toISOString(),
        row.effectId,
        row.operation,
        row.kind,
        row.namespace,
        row.object,
        row.result,
        row.answer,
        row.durationMs,
        row.instance,
      );
    },
  };
};

/** Not parsed yet: who knows an object by its text needs no other form of it. */
const textsOf = (rows: readonly Record<string, unknown>[]): string[] =>
  rows.map((row) => String(row['record']));
