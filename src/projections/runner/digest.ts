import { createHash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Position } from '../../app/log/event-store.ts';
import type { View } from '../view.ts';
import { readCheckpoint } from './view-file.ts';

export type Digest = {
  readonly position: Position | undefined;
  readonly digest: string;
  readonly rows: number;
};

/**
 * SHA-256 over every table's rows, tables by name, rows by primary key, each row one line of canonical JSON.
 * The connection must show one state throughout: a snapshot, or nobody writes meanwhile.
 */
export const digestOf = (db: DatabaseSync, view: View): Digest => {
  const hash = createHash('sha256');
  let rows = 0;
  for (const table of view.tables.toSorted()) {
    hash.update(`${table}\n`);
    for (const { text } of rowsOf(db, table)) {
      hash.update(text);
      hash.update('\n');
      rows += 1;
    }
  }
  return { position: readCheckpoint(db).position, digest: hash.digest('hex'), rows };
};

/** The first `most` differences between two files of one view: rows of one only, or with other columns. */
export const differencesBetween = (
  live: DatabaseSync,
  rebuilt: DatabaseSync,
  view: View,
  most: number,
): string[] => {
  const differences: string[] = [];
  for (const table of view.tables.toSorted()) {
    for (const difference of differencesOfTable(rowsOf(live, table), rowsOf(rebuilt, table))) {
      if (differences.length === most) return differences;
      differences.push(`${table} ${difference}`);
    }
  }
  return differences;
};

type Row = {
  /** The primary key as canonical JSON, for people. */
  readonly keyText: string;
  readonly key: readonly SqlValue[];
  /** The whole row as canonical JSON. */
  readonly text: string;
  readonly columns: { readonly [name: string]: SqlValue };
};
type SqlValue = string | number | null;

function* differencesOfTable(live: Iterator<Row>, rebuilt: Iterator<Row>): Generator<string> {
  let [a, b] = [live.next(), rebuilt.next()];
  while (a.done !== true || b.done !== true) {
    const order = a.done === true ? 1 : b.done === true ? -1 : compareKeys(a.value.key, b.value.key);
    if (order < 0) yield `${(a.value as Row).keyText}: only in the live copy`;
    else if (order > 0) yield `${(b.value as Row).keyText}: only in the rebuilt copy`;
    else if ((a.value as Row).text !== (b.value as Row).text)
      yield `${(a.value as Row).keyText}: differs in ${differingColumns(a.value as Row, b.value as Row)}`;
    if (order <= 0) a = live.next();
    if (order >= 0) b = rebuilt.next();
  }
}

const differingColumns = (a: Row, b: Row): string =>
  Object.keys(a.columns)
    .filter((name) => a.columns[name] !== b.columns[name])
    .map((name) => `${name} (live ${shorten(a.columns[name])}, rebuilt ${shorten(b.columns[name])})`)
    .join(', ');

const shorten = (value: SqlValue | undefined): string => {
  const text = JSON.stringify(value ?? null);
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
};

/** Texts in the order of SQLite's BINARY collation, which is that of UTF-8 bytes. */
const compareKeys = (a: readonly SqlValue[], b: readonly SqlValue[]): number => {
  for (const [i, x] of a.entries()) {
    const y = b[i] ?? null;
    if (x === y) continue;
    if (typeof x === 'string' && typeof y === 'string')
      return Buffer.compare(Buffer.from(x, 'utf8'), Buffer.from(y, 'utf8'));
    return (x ?? 0) < (y ?? 0) ? -1 : 1;
  }
  return 0;
};

/**
 * A flat row whose columns come sorted by name is canonical JSON (RFC 8785) as JSON.stringify writes it: numbers and
 * strings are written alike, and there is nothing nested. Blobs appear as hexadecimal text.
 */
function* rowsOf(db: DatabaseSync, table: string): Generator<Row> {
  const columns = db.prepare(`SELECT name, pk, type FROM pragma_table_info(?)`).all(table) as unknown as {
    name: string;
    pk: number;
    type: string;
  }[];
  const key = columns.filter(({ pk }) => pk > 0).toSorted((x, y) => x.pk - y.pk);
  if (key.length === 0) throw new TypeError(`table ${table} has no primary key`);
  const selected = columns
    .toSorted((x, y) => (x.name < y.name ? -1 : 1))
    .map(({ name, type }) => (type === 'BLOB' ? `hex("${name}") AS "${name}"` : `"${name}"`));
  const order = key.map(({ name }) => `t."${name}"`).join(', ');
  const statement = db.prepare(`SELECT ${selected.join(', ')} FROM "${table}" AS t ORDER BY ${order}`);
  for (const row of statement.iterate() as Iterable<Record<string, SqlValue>>) {
    const keyValues = key.map(({ name }) => row[name] ?? null);
    yield { key: keyValues, keyText: JSON.stringify(keyValues), text: JSON.stringify(row), columns: row };
  }
}
