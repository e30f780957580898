import type { FilterNode, OrderTerm } from '../filter/ast.ts';
import { sortKeyOf, type Sql } from '../filter/to-sql.ts';
import { fieldsOf } from '../filter/walk.ts';
import type { ListPage, ListQuery } from '../read-models.ts';
import { limitOf } from '../visibility.ts';
import type { ReadConnection } from '../runner/read-connection.ts';
import {
  accessOf,
  LISTED_PROBE,
  narrow,
  onlyTermOf,
  rowsOf,
  type Access,
  type Probe,
  type TermProbe,
} from './list-plan.ts';
import {
  countByName,
  countByTerm,
  documentsAt,
  filterSql,
  isBackwards,
  matchesAmong,
  sizeAmong,
  textsWithin,
  walkedPage,
  walkedPlaces,
  type Walk,
  type WalkKey,
} from './list-statements.ts';
import type { Scans } from './scans.ts';

/** What the HTTP thread does itself. */
export type ListBounds = {
  /**
   * Most documents looked at one by one, fewer when many fields of each are compared; four times as many where indexed
   * values decide alone. Default 250, some 2 ms.
   */
  readonly rows: number;
  /** Most entries of an index that are stepped over to reach a page. Default 50,000, some 3 ms. */
  readonly steps: number;
};
export const LIST_BOUNDS: ListBounds = { rows: 250, steps: 50_000 };
/** Rows of an index that are looked at in the time which reading a document takes. */
const ROWS_WITHOUT_DOCUMENT = 4;
/** Fields per row that are compared in the time which reading the row takes. */
const FIELDS_PER_ROW = 6;
/** Bytes of documents that are looked at one by one; more is scanned elsewhere. Some 5 ms. */
const MAX_BYTES_LOOKED_AT = 1024 * 1024;
/** Ways through an index that are merged; one per tenant and value. */
const MAX_WALKS = 16;

/** How many live documents a tenant has, or all have. */
export type TotalOf = (kind: string, tenants: readonly string[] | undefined) => number;

/**
 * Lists on the HTTP thread wherever an index bounds the work: pages of all objects, pages of those with an indexed
 * value, and whatever is among a few candidates. Everything else is a scan.
 */
export const listReader =
  (connection: ReadConnection, totalOf: TotalOf, scans: Scans, bounds: ListBounds = LIST_BOUNDS) =>
  (query: ListQuery): ListPage | Promise<ListPage> => {
    const { tenants, conditions } = narrow(query.filter, query.visibility);
    if (tenants?.length === 0) return { documents: [], total: 0 };
    // Tenants without such objects are no way to go: nearly always that is `shared`.
    const present = connection.together(() => tenants?.filter((tenant) => totalOf(query.kind, [tenant]) > 0));
    const limited = (of: readonly string[] | undefined): Asked => {
      const limit = limitOf(query.visibility, query.kind, of);
      const all = limit === undefined ? conditions : [...conditions, limit];
      return { query, tenants: of, conditions: all, bounds };
    };
    // Who has such objects now says nothing about then.
    if (query.asOf !== undefined) return scan(connection, scans, limited(tenants));
    const asked = limited(present);
    return (
      connection.together(() => answerFromIndex(connection, totalOf, asked)) ?? scan(connection, scans, asked)
    );
  };

type Asked = {
  readonly query: ListQuery;
  readonly tenants: readonly string[] | undefined;
  readonly conditions: readonly FilterNode[];
  readonly bounds: ListBounds;
};

const answerFromIndex = (
  connection: ReadConnection,
  totalOf: TotalOf,
  asked: Asked,
): ListPage | undefined => {
  const { query, tenants, conditions } = asked;
  const { kind, listedOnly = false } = query;
  const visible = totalOf(kind, tenants);
  if (visible === 0) return { documents: [], total: 0 };
  const rows = rowCounter(connection, asked);
  if (conditions.length === 0)
    return listedOnly
      ? walkTerms(connection, asked, LISTED_PROBE, rows)
      : walkAll(connection, asked, visible);

  const accesses = conditions.map((condition) => accessOf(condition, query.indexed, rows));
  if (conditions.length === 1 && !listedOnly) {
    const walked = walkOnly(connection, asked, accesses[0], rows);
    if (walked !== undefined) return walked;
  }
  const ways: readonly Way[] = [
    { rows: visible },
    ...(listedOnly ? [{ probes: [LISTED_PROBE], rows: rows(LISTED_PROBE) }] : []),
    ...accesses.flatMap((access, condition) =>
      access === undefined ? [] : { probes: access.probes, rows: rowsOf(access.probes, rows), condition },
    ),
  ];
  const way = ways.reduce((best, other) => (other.rows < best.rows ? other : best));
  return way.rows > mostRows(asked, way, accesses) ? undefined : pageAmong(connection, asked, way, accesses);
};

/** Rows of a way that this thread may look at, by what it has to read of each. */
const mostRows = (
  { query, conditions, bounds }: Asked,
  way: Way,
  accesses: readonly (Access | undefined)[],
): number => {
  const read = conditions.filter((_, i) => {
    const access = accesses[i];
    return (
      access === undefined || !((i === way.condition && access.exact) || onlyTermOf(access) !== undefined)
    );
  });
  const fields = read.flatMap(fieldsOf).length + (query.order?.length ?? 0);
  if (fields === 0) return bounds.rows * ROWS_WITHOUT_DOCUMENT;
  return Math.floor(bounds.rows / Math.max(1, fields / FIELDS_PER_ROW));
};

/** Few rows among which all matches are. */
type Way = {
  readonly rows: number;
  /** Undefined: all rows of the tenants. */
  readonly probes?: readonly Probe[];
  /** Which condition leads there. */
  readonly condition?: number;
};

/** Counted where it is known, else only as far as it matters. */
const rowCounter = (
  connection: ReadConnection,
  { query: { kind }, tenants, bounds }: Asked,
): ((probe: Probe) => number) => {
  const known = new Map<Probe, number>();
  const count = (probe: Probe): number => {
    if (probe.by === 'id') return probe.values.length;
    const { sql, values } =
      probe.by === 'term'
        ? countByTerm(kind, probe.field, probe.values, tenants)
        : countByName(kind, probe.values, bounds.rows * ROWS_WITHOUT_DOCUMENT + 1);
    const [total] = connection.shaped(sql).get(...values) as unknown as [number];
    return total;
  };
  return (probe) => {
    const rows = known.get(probe) ?? count(probe);
    known.set(probe, rows);
    return rows;
  };
};

const walkOnly = (
  connection: ReadConnection,
  asked: Asked,
  access: Access | undefined,
  rows: (probe: Probe) => number,
): ListPage | undefined => {
  const probe = access === undefined ? undefined : onlyTermOf(access);
  return probe === undefined ? undefined : walkTerms(connection, asked, probe, rows);
};

/** Which index keeps an order, if one does. */
const walkKeyOf = (order: readonly OrderTerm[] | undefined): WalkKey | undefined => {
  if (order === undefined || order.length === 0) return 'created';
  if (order.length > 1) return undefined;
  return WALK_KEYS.get(order[0]?.field.path.join('.') ?? '');
};
const WALK_KEYS: ReadonlyMap<string, WalkKey> = new Map([
  ['metadata.name', 'name'],
  ['metadata.creation_timestamp', 'creation_time'],
]);

const walkAll = (connection: ReadConnection, asked: Asked, total: number): ListPage | undefined =>
  walkOrLook(connection, asked, [{ kind: asked.query.kind }], { rows: total });

const walkTerms = (
  connection: ReadConnection,
  asked: Asked,
  probe: TermProbe,
  rows: (probe: Probe) => number,
): ListPage | undefined => {
  const { kind } = asked.query;
  const walks = probe.values.map((value): Walk => ({ kind, term: { field: probe.field, value } }));
  return walkOrLook(connection, asked, walks, { rows: rows(probe), probes: [probe] });
};

/** `walks`: through an index of all tenants. Indexes of values keep the order of creation only. */
const walkOrLook = (
  connection: ReadConnection,
  asked: Asked,
  walks: readonly Walk[],
  way: Way,
): ListPage | undefined => {
  const { query, tenants, bounds } = asked;
  const key = walkKeyOf(query.order);
  if (key !== undefined && (key === 'created' || way.probes === undefined)) {
    const ofTenants = walks.flatMap((each) => tenants?.map((tenant) => ({ ...each, tenant })) ?? [each]);
    const walked = walk(connection, asked, ofTenants, key, way.rows);
    if (walked !== undefined) return walked;
  }
  return way.rows > bounds.rows ? undefined : pageAmong(connection, asked, way, []);
};

/** From whichever end of the list is nearer; undefined when the page is far from both. */
const walk = (
  connection: ReadConnection,
  { query, bounds }: Asked,
  walks: readonly Walk[],
  key: WalkKey,
  total: number,
): ListPage | undefined => {
  const offset = query.offset;
  const limit = Math.min(query.limit, Math.max(0, total - offset));
  if (limit === 0 || walks.length === 0) return { documents: [], total };
  const fromEnd = total - offset - limit;
  const steps = Math.min(offset, fromEnd);
  if (walks.length > MAX_WALKS || steps > bounds.steps) return undefined;
  const reverse = fromEnd < offset;
  const page = { key, backwards: isBackwards(query.order) !== reverse, offset: steps, limit };
  const inOrder = (found: readonly string[]): readonly string[] => (reverse ? found.toReversed() : found);
  const { sql, values } = walkedPage(walks, page, query.surface);
  const documents = textsWithin(connection.shaped(sql), values, query.atOnce);
  if (documents !== undefined) return { documents: inOrder(documents), total };
  return { documents: [], total, places: inOrder(texts(connection, walkedPlaces(walks, page))) };
};

const pageAmong = (
  connection: ReadConnection,
  { query, tenants, conditions }: Asked,
  way: Way,
  accesses: readonly (Access | undefined)[],
): ListPage | undefined => {
  const { kind, offset, limit, nowMs, atOnce, listedOnly = false } = query;
  const filters: FilterNode[] = [];
  const terms: TermProbe[] = [];
  for (const [i, condition] of conditions.entries()) {
    const access = accesses[i];
    if (i === way.condition && access?.exact === true) continue;
    const term = access === undefined ? undefined : onlyTermOf(access);
    if (term === undefined) filters.push(condition);
    else terms.push(term);
  }
  const readsDocuments = filters.length > 0 || (query.order ?? []).length > 0;
  if (readsDocuments && bytesAmong(connection, way, { kind, tenants }) > MAX_BYTES_LOOKED_AT)
    return undefined;
  const found = matchesAmong(way.probes, { kind, tenants, filters, terms, listedOnly, nowMs }, query.order);
  const places = texts(connection, found);
  const page = places.slice(offset, offset + limit);
  if (page.length === 0) return { documents: [], total: places.length };
  const { sql, values } = documentsAt(kind, page, query.surface);
  const documents = textsWithin(connection.shaped(sql), values, atOnce);
  return documents === undefined
    ? { documents: [], total: places.length, places: page }
    : { documents, total: places.length };
};

/** Documents of the rows of a way together; how long one is stands before it, so that none is read. */
const bytesAmong = (
  connection: ReadConnection,
  { probes }: Way,
  among: { readonly kind: string; readonly tenants: readonly string[] | undefined },
): number => {
  const { sql, values } = sizeAmong(probes, among);
  const [bytes] = connection.shaped(sql).get(...values) as unknown as [number | null];
  return bytes ?? 0;
};

const texts = (connection: ReadConnection, { sql, values }: Sql): string[] =>
  (connection.shaped(sql).all(...values) as unknown as [string][]).map(([text]) => text);

/** The indexed value that the fewest rows have among those which every match has. */
const scannedTerm = (connection: ReadConnection, asked: Asked): TermProbe | undefined => {
  const { query, conditions } = asked;
  const rows = rowCounter(connection, asked);
  const probes = conditions.flatMap((condition) => {
    const [probe, ...others] = accessOf(condition, query.indexed, rows)?.probes ?? [];
    return probe?.by === 'term' && others.length === 0 ? probe : [];
  });
  if (query.listedOnly === true) probes.push(LISTED_PROBE);
  return probes.toSorted((a, b) => rows(a) - rows(b))[0];
};

const scan = (connection: ReadConnection, scans: Scans, asked: Asked): Promise<ListPage> => {
  const { query, tenants, conditions } = asked;
  const { kind, surface, offset, limit, nowMs, atOnce, asOf, order = [], listedOnly = false } = query;
  const term = asOf === undefined ? connection.together(() => scannedTerm(connection, asked)) : undefined;
  return scans.run(
    {
      kind,
      tenants,
      ...(term === undefined ? {} : { term: { field: term.field, values: term.values } }),
      condition: filterSql({ kind, filters: conditions, terms: [], listedOnly, nowMs }),
      order: order.map((term) => ({ key: sortKeyOf(term), descending: term.descending })),
      backwards: isBackwards(order),
      offset,
      limit,
      surface,
      // What was cannot be read again a document at a time: the table is gone by then.
      ...(atOnce === undefined || asOf !== undefined ? {} : { atOnce }),
      ...(asOf === undefined ? {} : { asOf }),
    },
    query.signal,
    query.caller,
  );
};
