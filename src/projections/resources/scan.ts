import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { orderOfTexts } from '../filter/evaluate.ts';
import { bound, join, raw, type Sql } from '../filter/to-sql.ts';
import { ListRefused, type ListPage } from '../read-models.ts';
import { fillAsOf, type AsOfRequest } from './as-of-table.ts';
import { documentsAt, textsWithin, type Surface } from './list-statements.ts';

/** A list that no index bounds, as plain values: it crosses to a worker thread. */
export type ScanRequest = {
  readonly kind: string;
  /** Undefined: all. */
  readonly tenants: readonly string[] | undefined;
  readonly condition: Sql;
  /** An indexed value (or one of several) that all matches have: only such rows are looked at. */
  readonly term?: { readonly field: string; readonly values: readonly string[] };
  readonly order: readonly { readonly key: Sql; readonly descending: boolean }[];
  /** Equals follow in the order of creation, or against it. */
  readonly backwards: boolean;
  readonly offset: number;
  readonly limit: number;
  readonly surface: Surface;
  /** As `ListQuery.atOnce`. */
  readonly atOnce?: number;
  /** The objects as they were; `term` is of no use then. */
  readonly asOf?: AsOfRequest;
};

export type ScanControl = {
  readonly isCancelled: () => boolean;
  /** Lets everything else on this thread go on. */
  readonly pause: () => Promise<void>;
  readonly nowMs: () => number;
  /** Longest run, milliseconds. */
  readonly timeLimitMs: number;
};

/** Rows looked at before others get their turn: about a millisecond's work. */
const SLICE = 500;
/** Most matches that are put in another order than that of creation: what is kept of them is some 100 bytes each. */
const MAX_SORTED = 500_000;
/** After every position: those are digits. */
const END = '~';

type Key = string | number | bigint | null;
type Match = { readonly created: string; readonly keys: readonly Key[] };

/** Looks at every row of the tenants, in slices. Rejects with ListRefused when it is cancelled or takes too long. */
export const scanList = async (
  db: DatabaseSync,
  request: ScanRequest,
  control: ScanControl,
): Promise<ListPage> => {
  if (request.asOf === undefined) return scanTable(db, request, control, undefined);
  const turn = turnsOf(control);
  const past = await fillAsOf(db, request.kind, request.tenants, request.asOf, { turn });
  try {
    if (past.unknown.length > 0) return { documents: [], total: 0, unknown: past.unknown };
    return await scanTable(db, request, control, past.table);
  } finally {
    past.drop();
  }
};

/** Lets others go on; throws ListRefused once the scan is cancelled or takes too long. */
const turnsOf = ({ isCancelled, pause, nowMs, timeLimitMs }: ScanControl): (() => Promise<void>) => {
  const started = nowMs();
  return async () => {
    if (isCancelled()) throw new ListRefused('cancelled');
    if (nowMs() - started > timeLimitMs) throw new ListRefused('too-long');
    await pause();
  };
};

/** `past`: a table that stands for `resources`; its rows are found without an index. */
const scanTable = async (
  db: DatabaseSync,
  request: ScanRequest,
  control: ScanControl,
  past: string | undefined,
): Promise<ListPage> => {
  const { offset, limit } = request;
  const sorted = request.order.length > 0 || request.backwards || waysOf(request).length > 1;
  const page: Match[] = [];
  let total = 0;
  for await (const match of matchesOf(db, request, control, past)) {
    if (sorted || (total >= offset && total < offset + limit)) page.push(match);
    total += 1;
    if (sorted && total > MAX_SORTED) throw new ListRefused('too-long');
  }
  const shown = sorted ? page.toSorted(orderOfMatches(request)).slice(offset, offset + limit) : page;
  const places = shown.map(({ created }) => created);
  const { sql, values } = documentsAt(request.kind, places, request.surface, past);
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  const documents = textsWithin(statement, values, request.atOnce);
  return documents === undefined ? { documents: [], total, places } : { documents, total };
};

type Way = { readonly tenant: string | undefined; readonly value: string | undefined };

const waysOf = ({ tenants, term }: ScanRequest): readonly Way[] =>
  (tenants ?? [undefined]).flatMap((tenant) =>
    (term?.values ?? [undefined]).map((value) => ({ tenant, value })),
  );

/** Statements of one way: where a slice that begins after a place ends, and the matches in between. */
const statementsOf = (
  { kind, condition, order, term }: ScanRequest,
  { tenant, value }: Way,
  past: string | undefined,
): { readonly boundary: Sql; readonly slice: Sql } => {
  const keys = order.map(({ key }) => join`, ${key}`).reduce((all, key) => join`${all}${key}`, raw(''));
  const ofTenant = (alias: string): Sql =>
    tenant === undefined ? raw('') : join` AND ${raw(alias)}.tenant = ${bound(tenant)}`;
  const end = bound(BigInt(SLICE - 1));
  if (term === undefined || value === undefined) {
    const index = tenant === undefined ? 'resources_by_created' : 'resources_by_tenant';
    const rows = raw(past === undefined ? `resources AS r INDEXED BY ${index}` : `${past} AS r`);
    const from = join`FROM ${rows} WHERE r.kind = ${bound(kind)}${ofTenant('r')}`;
    return {
      boundary: join`SELECT r.created ${from} AND r.created > ${AFTER} ORDER BY r.created LIMIT 1 OFFSET ${end}`,
      slice: join`SELECT r.created${keys} ${from} AND r.created > ${AFTER} AND r.created <= ${UP_TO} AND ${condition} ORDER BY r.created`,
    };
  }
  const those = join`c.kind = ${bound(kind)} AND c.field = ${bound(term.field)} AND c.value = ${bound(value)}${ofTenant('c')}`;
  return {
    boundary: join`SELECT c.created FROM terms AS c WHERE ${those} AND c.created > ${AFTER} ORDER BY c.created LIMIT 1 OFFSET ${end}`,
    slice: join`SELECT r.created${keys} FROM terms AS c
      CROSS JOIN resources AS r INDEXED BY resources_by_created ON r.kind = ${bound(kind)} AND r.created = c.created
      WHERE ${those} AND c.created > ${AFTER} AND c.created <= ${UP_TO} AND ${condition} ORDER BY c.created`,
  };
};

async function* matchesOf(
  db: DatabaseSync,
  request: ScanRequest,
  control: ScanControl,
  past: string | undefined,
): AsyncGenerator<Match> {
  const turn = turnsOf(control);
  for (const way of waysOf(request)) {
    const { boundary, slice } = statementsOf(request, way, past);
    const [findBoundary, findMatches] = [prepare(db, boundary), prepare(db, slice)];
    for (let after = ''; after !== END; ) {
      const [upTo = END] = (findBoundary(after, END)[0] ?? []) as [string?];
      for (const [created, ...found] of findMatches(after, upTo) as [string, ...Key[]][])
        yield { created, keys: found };
      after = upTo;
      await turn();
    }
  }
}

/** Where a slice begins and ends; all other values stay the same. */
const AFTER = raw('$after');
const UP_TO = raw('$upTo');

const prepare = (db: DatabaseSync, { sql, values }: Sql): ((after: string, upTo: string) => unknown[][]) => {
  const statement: StatementSync = db.prepare(sql);
  statement.setReturnArrays(true);
  statement.setReadBigInts(true);
  statement.setAllowUnknownNamedParameters(true);
  return (after, upTo) => statement.all({ after, upTo }, ...values) as unknown as unknown[][];
};

const orderOfMatches =
  ({ order, backwards }: ScanRequest) =>
  (a: Match, b: Match): number => {
    for (const [i, { descending }] of order.entries()) {
      const by = orderOfKeys(a.keys[i] ?? null, b.keys[i] ?? null);
      if (by !== 0) return descending ? -by : by;
    }
    const byCreation = orderOfTexts(a.created, b.created);
    return backwards ? -byCreation : byCreation;
  };

/** As SQLite orders: null, then numbers, then texts by their bytes. */
const orderOfKeys = (a: Key, b: Key): number => {
  const rank = (key: Key): number => (key === null ? 0 : typeof key === 'string' ? 2 : 1);
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  if (a === null || b === null) return 0;
  if (typeof a === 'string' && typeof b === 'string') return orderOfTexts(a, b);
  return a < b ? -1 : a > b ? 1 : 0;
};
