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
    const { names, rows: found } = openTable(db, table);
    const heads = names.map((name, at) => `${at === 0 ? '{' : ','}${JSON.stringify(name)}:`);
    for (const row of found) {
      let line = '';
      // A flat object whose keys come sorted is canonical as JSON.stringify writes its values.
      for (const [at, value] of row.entries()) line += heads[at] + JSON.stringify(value);
      hash.update(`${line}}\n`);
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
    for (const difference of differencesOfTable(openTable(live, table), openTable(rebuilt, table))) {
      if (differences.length === most) return differences;
      differences.push(`${table} ${difference}`);
    }
  }
  return differences;
};

type SqlValue = string | number | null;
/** Values in the order of the columns' names; blobs as hexadecimal text. */
type Row = readonly SqlValue[];
/** `key`: where in a row its primary key is; the rows are in its order. */
type Table = {
  readonly names: readonly string[];
  readonly key: readonly number[];
  readonly rows: IterableIterator<Row>;
};

function* differencesOfTable({ names, key, rows: live }: Table, { rows: rebuilt }: Table): Generator<string> {
  const keyText = (row: Row): string => JSON.stringify(key.map((at) => row[at]));
  let [a, b] = [live.next(), rebuilt.next()];
  while (a.done !== true || b.done !== true) {
    const order = a.done === true ? 1 : b.done === true ? -1 : compareKeys(a.value, b.value, key);
    if (order < 0) yield `${keyText(a.value as Row)}: only in the live copy`;
    else if (order > 0) yield `${keyText(b.value as Row)}: only in the rebuilt copy`;
    else {
      const [inLive, inRebuilt] = [a.value as Row, b.value as Row];
      const differing = names.flatMap((name, at) =>
        inLive[at] === inRebuilt[at]
          ? []
          : `${name} (live ${shorten(inLive[at])}, rebuilt ${shorten(inRebuilt[at])})`,
      );
      if (differing.length > 0) yield `${keyText(inLive)}: differs in ${differing.join(', ')}`;
    }
    if (order <= 0) a = live.next();
    if (order >= 0) b = rebuilt.next();
  }
}

const shorten = (value: SqlValue | undefined): string => {
  const text = JSON.stringify(value ?? null);
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
};

/** Texts in the order of SQLite's BINARY collation, which is that of UTF-8 bytes. */
const compareKeys = (a: Row, b: Row, key: readonly number[]): number => {
  for (const at of key) {
    const [x = null, y = null] = [a[at], b[at]];
    if (x === y) continue;
    if (typeof x === 'string' && typeof y === 'string')
      return Buffer.compare(Buffer.from(x, 'utf8'), Buffer.from(y, 'utf8'));
    return (x ?? 0) < (y ?? 0) ? -1 : 1;
  }
  return 0;
};

const openTable = (db: DatabaseSync, table: string): Table => {
  const columns = db.prepare(`SELECT name, pk, type FROM pragma_table_info(?)`).all(table) as unknown as {
    name: string;
    pk: number;
    type: string;
  }[];
  columns.sort((x, y) => (x.name < y.name ? -1 : 1));
  const key = columns.filter(({ pk }) => pk > 0).toSorted((x, y) => x.pk - y.pk);
  if (key.length === 0) throw new TypeError(`table ${table} has no primary key`);
  const selected = columns.map(({ name, type }) => (type === 'BLOB' ? `hex("${name}")` : `"${name}"`));
  const order = key.map(({ name }) => `t."${name}"`).join(', ');
  const statement = db.prepare(`SELECT ${selected.join(', ')} FROM "${table}" AS t ORDER BY ${order}`);
  statement.setReturnArrays(true);
  return {
    names: columns.map(({ name }) => name),
    key: key.map((column) => columns.indexOf(column)),
    rows: statement.iterate() as IterableIterator<unknown> as IterableIterator<Row>,
  };
};
