import { LRUCache } from 'lru-cache';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { defineFunctions } from './sql-functions.ts';

/**
 * The statements of the HTTP thread on one view, prepared once per file. All of them are registered in a list beside
 * the view, and a test reads their query plans: none may scan without a bound.
 */
export type ReadConnection = {
  /** The prepared statement for a registered text. */
  readonly statement: (sql: string) => StatementSync;
  /** The same, but its rows are arrays of their columns. */
  readonly rows: (sql: string) => StatementSync;
  /** The same for a text that callers shape, a filter for example; only those used last stay prepared. */
  readonly shaped: (sql: string) => StatementSync;
  /** What several statements read is of one moment. */
  readonly together: <Result>(read: () => Result) => Result;
  /** The file that is read, or the connection in memory; changes with `switchTo`. */
  readonly source: () => string | DatabaseSync;
  /** Grows whenever rows of this stream category may have changed: what was read at the same number is still so. */
  readonly generation: (category: string) => number;
  /** Rows of these stream categories may have changed; undefined: any. */
  readonly changed: (categories: readonly string[] | undefined) => void;
  /** Calls back whenever rows may have changed, after the generations have grown; the result ends that. */
  readonly onChanged: (listener: () => void) => () => void;
  /** Goes on with another file; statements of the old one are gone. Reads are synchronous, so none is under way. */
  readonly switchTo: (source: string | DatabaseSync) => void;
  readonly close: () => void;
};

/** `source` is the path of a file, or (in memory) the connection that the view itself writes on. */
export const openReadConnection = (source: string | DatabaseSync): ReadConnection => {
  let db: DatabaseSync;
  let owned = false;
  let statements = new Map<string, StatementSync>();
  let rowStatements = new Map<string, StatementSync>();
  const shaped = new LRUCache<string, StatementSync>({ max: SHAPED_STATEMENTS });
  let current = source;
  const generations = new Map<string, number>();
  const listeners = new Set<() => void>();
  let ofAll = 0;
  const tell = (): void => {
    for (const listener of listeners) listener();
  };
  const open = (from: string | DatabaseSync): void => {
    owned = typeof from === 'string';
    db = typeof from === 'string' ? openReadOnly(from) : from;
    defineFunctions(db);
    current = from;
    statements = new Map();
    rowStatements = new Map();
    shaped.clear();
  };
  open(source);
  const prepared = (
    known: { get(sql: string): StatementSync | undefined; set(sql: string, made: StatementSync): unknown },
    sql: string,
    asArrays: boolean,
  ): StatementSync => {
    const before = known.get(sql);
    if (before !== undefined) return before;
    const statement = db.prepare(sql);
    statement.setReturnArrays(asArrays);
    known.set(sql, statement);
    return statement;
  };
  return {
    statement: (sql) => prepared(statements, sql, false),
    rows: (sql) => prepared(rowStatements, sql, true),
    shaped: (sql) => prepared(shaped, sql, true),
    together: (read) => {
      // In memory there is one connection, and nobody writes on it while this thread reads.
      if (!owned) return read();
      db.exec('BEGIN');
      try {
        return read();
      } finally {
        db.exec('COMMIT');
      }
    },
    source: () => current,
    generation: (category) => ofAll + (generations.get(category) ?? 0),
    changed: (categories) => {
      if (categories === undefined) ofAll += 1;
      else for (const category of categories) generations.set(category, (generations.get(category) ?? 0) + 1);
      tell();
    },
    onChanged: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    switchTo: (next) => {
      ofAll += 1;
      const [before, ours] = [db, owned];
      open(next);
      if (ours) before.close();
      tell();
    },
    close: () => {
      if (owned && db.isOpen) db.close();
    },
  };
};

/** Prepared statements of shapes that callers chose. */
const SHAPED_STATEMENTS = 200;

/** Room for the inner pages of every index and the rows read last; the default of 2 MB fits neither. */
const READ_CACHE_KB = 12_000;

const openReadOnly = (path: string): DatabaseSync => {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  db.exec(`PRAGMA cache_size = -${READ_CACHE_KB}`);
  return db;
};
