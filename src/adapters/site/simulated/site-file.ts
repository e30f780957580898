import type { OwnerMark } from '../../../app/site/ports.ts';
import { openSimulationFile } from '../../simulation/file.ts';

/**
 * The file of one simulated site. README.md describes its tables: tests and demos read `calls` and `items` with readers of
 * their own, so the columns are a contract.
 */
const SCHEMA = `
CREATE TABLE site (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE items (
  sequence   INTEGER PRIMARY KEY,
  sort       TEXT NOT NULL,
  name       TEXT NOT NULL,
  owner      TEXT NOT NULL,
  generation INTEGER NOT NULL,
  effect_id  TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  ready_at   INTEGER NOT NULL,
  gone_at    INTEGER,
  place      TEXT NOT NULL,
  low        TEXT NOT NULL,
  high       TEXT NOT NULL,
  spec       TEXT NOT NULL
) STRICT;
CREATE INDEX items_by_name ON items (sort, name, sequence);
CREATE INDEX items_by_owner ON items (owner, sort);
CREATE INDEX items_by_place ON items (sort, place, low, high, gone_at);
CREATE TABLE hosts (
  id       TEXT PRIMARY KEY,
  number   INTEGER NOT NULL UNIQUE,
  hub      TEXT NOT NULL,
  class    TEXT NOT NULL,
  found_at INTEGER NOT NULL,
  links    TEXT NOT NULL
) STRICT;
CREATE INDEX hosts_by_class ON hosts (hub, class);
CREATE TABLE discoveries (
  id      TEXT PRIMARY KEY,
  number  INTEGER NOT NULL UNIQUE,
  hub     TEXT NOT NULL,
  class   TEXT NOT NULL,
  at      INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  agent   TEXT
) STRICT;
CREATE TABLE task_runs (
  task       TEXT NOT NULL,
  number     INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ends_at    INTEGER NOT NULL,
  passed     INTEGER NOT NULL,
  told_to    TEXT,
  PRIMARY KEY (task, number)
) STRICT;
CREATE TABLE calls (
  number      INTEGER PRIMARY KEY,
  at          TEXT NOT NULL,
  effect_id   TEXT NOT NULL,
  operation   TEXT NOT NULL,
  object      TEXT NOT NULL,
  owner       TEXT NOT NULL,
  result      TEXT NOT NULL,
  answer      TEXT NOT NULL CHECK (answer IN ('given', 'slow', 'lost', 'none')),
  duration_ms REAL NOT NULL,
  instance    TEXT NOT NULL
) STRICT;
CREATE INDEX calls_by_object ON calls (object, operation);
`;

export type CallRow = {
  readonly at: number;
  readonly effectId: string;
  readonly operation: string;
  readonly object: string;
  readonly owner: string;
  readonly result: string;
  readonly answer: 'given' | 'slow' | 'lost' | 'none';
  readonly durationMs: number;
  readonly instance: string;
};

export type Sort = 'vlan' | 'port' | 'l3-network' | 'prefix' | 'binding' | 'nat' | 'record' | 'agent';

/** Something that carries a mark. It works from `readyAt` on, and is there until `goneAt`. */
export type Item<Spec = unknown> = {
  readonly sequence: number;
  readonly name: string;
  readonly owner: OwnerMark;
  readonly readyAt: number;
  readonly goneAt?: number;
  readonly spec: Spec;
};

export type NewItem = {
  readonly sort: Sort;
  readonly name: string;
  readonly owner: OwnerMark;
  readonly effectId: string;
  readonly createdAt: number;
  readonly readyAt: number;
  readonly spec: object;
  /** What it lies in or belongs to, and the range that it takes there. */
  readonly place?: string;
  readonly low?: string;
  readonly high?: string;
};

export type SiteFile = ReturnType<typeof openSiteFile>;

const COLUMNS = 'sequence, name, owner, generation, ready_at, gone_at, spec';
const IS_THERE = '(gone_at IS NULL OR gone_at > ?)';

/** Owner as the journal shows it. */
export const ownerText = ({ order, generation }: OwnerMark): string => `${order}/${generation}`;

export const openSiteFile = (file: string) => {
  const common = openSimulationFile(file, { schema: SCHEMA, version: 1, values: 'site' });
  const { sql, keep } = common;
  const items = <Spec>(rows: readonly Record<string, unknown>[]): Item<Spec>[] =>
    rows.map((row) => ({
      sequence: Number(row['sequence']),
      name: String(row['name']),
      owner: { order: String(row['owner']), generation: Number(row['generation']) },
      readyAt: Number(row['ready_at']),
      ...(row['gone_at'] === null ? {} : { goneAt: Number(row['gone_at']) }),
      spec: JSON.parse(String(row['spec'])) as Spec,
    }));
  return {
    ...common,
    addItem: (item: NewItem): void => {
      const { place = '', low = '', high = '' } = item;
      sql(
        `INSERT INTO items
           (sort, name, owner, generation, effect_id, created_at, ready_at, place, low, high, spec)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ).run(
        item.sort,
        item.name,
        item.owner.order,
        item.owner.generation,
        item.effectId,
        item.createdAt,
        item.readyAt,
        place,
        low,
        high,
        JSON.stringify(item.spec),
      );
    },
    changeItem: ({ sequence }: Item, change: { generation: number; readyAt: number; spec: object }): void => {
      sql('UPDATE items SET generation = ?, ready_at = ?, spec = ? WHERE sequence = ?').run(
        change.generation,
        change.readyAt,
        JSON.stringify(change.spec),
        sequence,
      );
    },
    endItem: ({ sequence }: Pick<Item, 'sequence'>, goneAt: number): void => {
      sql('UPDATE items SET gone_at = ? WHERE sequence = ?').run(goneAt, sequence);
    },
    /** That is there at `now`, also when it is about to go. */
    itemAt: <Spec>(sort: Sort, name: string, now: number): Item<Spec> | undefined =>
      items<Spec>(
        sql(
          `SELECT ${COLUMNS} FROM items WHERE sort = ? AND name = ? AND ${IS_THERE} ORDER BY sequence DESC LIMIT 1`,
        ).all(sort, name, now),
      )[0],
    /** The newest of that name, there or gone. */
    lastItem: <Spec>(sort: Sort, name: string): Item<Spec> | undefined =>
      items<Spec>(
        sql(`SELECT ${COLUMNS} FROM items WHERE sort = ? AND name = ? ORDER BY sequence DESC LIMIT 1`).all(
          sort,
          name,
        ),
      )[0],
    /** Those there at `now`, of one order or of everybody, in the order of creation. */
    itemsOf: <Spec>(sort: Sort, order: string | undefined, now: number): Item<Spec>[] =>
      items<Spec>(
        order === undefined
          ? sql(`SELECT ${COLUMNS} FROM items WHERE sort = ? AND ${IS_THERE} ORDER BY sequence`).all(
              sort,
              now,
            )
          : sql(
              `SELECT ${COLUMNS} FROM items WHERE owner = ? AND sort = ? AND ${IS_THERE} ORDER BY sequence`,
            ).all(order, sort, now),
      ),
    /** One that lies in a place, and in the range where one is given. */
    itemIn: <Spec>(
      sort: Sort,
      place: string,
      now: number,
      range: { readonly from: string; readonly to: string } = { from: '', to: '' },
    ): Item<Spec> | undefined =>
      items<Spec>(
        sql(
          `SELECT ${COLUMNS} FROM items WHERE sort = ? AND place = ? AND low <= ? AND high >= ? AND ${IS_THERE} LIMIT 1`,
        ).all(sort, place, range.to, range.from, now),
      )[0],
    /** Number of the call in the journal. */
    addCall: (row: CallRow): number => {
      keep('last call', row.at);
      return Number(
        sql(
          `INSERT INTO calls (at, effect_id, operation, object, owner, result, answer, duration_ms, instance)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ).run(
          new Date(row.at).toISOString(),
          row.effectId,
          row.operation,
          row.object,
          row.owner,
          row.result,
          row.answer,
          row.durationMs,
          row.instance,
        ).lastInsertRowid,
      );
    },
    /** Whether the removal of this object with this mark was carried out after call `number`. */
    removedAfter: (number: number, operation: string, object: string, owner: string): boolean =>
      sql(
        `SELECT 1 FROM calls WHERE object = ? AND operation = ? AND owner = ? AND number > ?
         AND result IN ('removed', 'absent') LIMIT 1`,
      ).get(object, operation, owner, number) !== undefined,
  };
};
