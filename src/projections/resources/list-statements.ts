import type { StatementSync } from 'node:sqlite';
import { conditionOf, join, raw, sortKeyOf, type Sql, bound } from '../filter/to-sql.ts';
import type { FilterNode, OrderTerm } from '../filter/ast.ts';
import { LISTED_PROBE, type Probe, type TermProbe } from './list-plan.ts';

/** Statements that lists are made of. What callers send is only ever among the values. */

export type Surface = 'public' | 'private';
const DOCUMENTS: Readonly<Record<Surface, string>> = { public: 'r.public_json', private: 'r.private_json' };

/** What an index keeps in order beside the order of creation. */
export type WalkKey = 'created' | 'name' | 'creation_time';
/** One ordered way through an index; several are merged. */
export type Walk = {
  readonly kind: string;
  readonly tenant?: string;
  readonly term?: { readonly field: string; readonly value: string };
};

const INDEXES: Readonly<Record<WalkKey, { readonly ofAll: string; readonly ofTenant: string }>> = {
  created: { ofAll: 'resources_by_created', ofTenant: 'resources_by_tenant' },
  name: { ofAll: 'resources_by_name', ofTenant: 'resources_by_tenant_and_name' },
  creation_time: { ofAll: 'resources_by_time', ofTenant: 'resources_by_tenant_and_time' },
};

const walkSql = ({ kind, tenant, term }: Walk, key: WalkKey): Sql => {
  const ofTenant = tenant === undefined ? raw('') : join` AND tenant = ${bound(tenant)}`;
  if (term !== undefined)
    return join`SELECT created FROM terms WHERE kind = ${bound(kind)} AND field = ${bound(term.field)} AND value = ${bound(term.value)}${ofTenant}`;
  const index = raw(tenant === undefined ? INDEXES[key].ofAll : INDEXES[key].ofTenant);
  const columns = raw(key === 'created' ? 'created' : `created, ${key}`);
  return join`SELECT ${columns} FROM resources INDEXED BY ${index} WHERE kind = ${bound(kind)}${ofTenant}`;
};

export type WalkedPage = {
  readonly key: WalkKey;
  readonly backwards: boolean;
  readonly offset: number;
  readonly limit: number;
};

/** A page of documents on the way through indexes, which are only left for the rows of the page. */
export const walkedPage = (walks: readonly Walk[], page: WalkedPage, surface: Surface): Sql => {
  const [kind = ''] = walks.map((walk) => walk.kind);
  return join`SELECT ${raw(DOCUMENTS[surface])}
    FROM (${walkedPlaces(walks, page)}) AS page
    CROSS JOIN resources AS r INDEXED BY resources_by_created ON r.kind = ${bound(kind)} AND r.created = page.created`;
};

/** The places of such a page in the order of creation; no row is read. */
export const walkedPlaces = (walks: readonly Walk[], page: WalkedPage): Sql => {
  const way = raw(page.backwards ? ' DESC' : '');
  const order = page.key === 'created' ? join`created${way}` : join`${raw(page.key)}${way}, created${way}`;
  const union = walks
    .map((walk) => walkSql(walk, page.key))
    .reduce((left, right) => join`${left} UNION ALL ${right}`);
  return join`${union} ORDER BY ${order} LIMIT ${bound(BigInt(page.limit))} OFFSET ${bound(BigInt(page.offset))}`;
};

/** First columns of all rows, or undefined once they are longer together than `most` characters. */
export const textsWithin = (
  statement: StatementSync,
  values: Sql['values'],
  most: number | undefined,
): string[] | undefined => {
  if (most === undefined) return (statement.all(...values) as unknown as [string][]).map(([text]) => text);
  const texts: string[] = [];
  let length = 0;
  for (const [text] of statement.iterate(...values) as unknown as Iterable<[string]>) {
    length += text.length;
    if (length > most) return undefined;
    texts.push(text);
  }
  return texts;
};

export type Conditions = {
  readonly kind: string;
  /** Undefined: all. */
  readonly tenants: readonly string[] | undefined;
  readonly filters: readonly FilterNode[];
  /** What else a row must have, looked up without its document. */
  readonly terms: readonly TermProbe[];
  readonly listedOnly: boolean;
  readonly nowMs: number;
};

/** Everything that a row must meet, but for its tenant. */
export const filterSql = ({ kind, filters, terms, listedOnly, nowMs }: Omit<Conditions, 'tenants'>): Sql =>
  [
    ...terms.map((term) => hasTerm(kind, term)),
    ...filters.map((filter) => conditionOf(filter, nowMs)),
  ].reduce((left, right) => join`${left} AND ${right}`, raw(listedOnly ? 'r.listed = 1' : '1'));

const oneOf = (column: string, values: readonly string[]): Sql =>
  join`${raw(column)} IN (SELECT value FROM json_each(${bound(JSON.stringify(values))}))`;

/** The rows that probes lead to, a row perhaps more than once. */
const probed = (probes: readonly Probe[], kind: string, tenants: readonly string[] | undefined): Sql =>
  probes
    .map((probe): Sql => {
      if (probe.by !== 'term')
        return join`SELECT created FROM resources WHERE kind = ${bound(kind)} AND ${oneOf(probe.by, probe.values)}`;
      const ofTenants = tenants === undefined ? raw('') : join` AND ${oneOf('tenant', tenants)}`;
      return join`SELECT created FROM terms WHERE kind = ${bound(kind)} AND field = ${bound(probe.field)} AND ${oneOf('value', probe.values)}${ofTenants}`;
    })
    .reduce((left, right) => join`${left} UNION ALL ${right}`);

/**
 * Places in the order of creation of all matches among few rows: those that probes lead to, or (none) all of the
 * tenants. The caller has counted them.
 */
export const matchesAmong = (
  probes: readonly Probe[] | undefined,
  conditions: Conditions,
  order: readonly OrderTerm[] | undefined,
): Sql => {
  const fromTerms = order === undefined ? matchesInTerms(probes, conditions) : undefined;
  if (fromTerms !== undefined) return fromTerms;
  return join`SELECT r.created ${rowsAmong(probes, conditions)} AND ${filterSql(conditions)} ORDER BY ${orderSql(order)}`;
};

/** How many bytes the documents of those rows have together. */
export const sizeAmong = (
  probes: readonly Probe[] | undefined,
  of: Pick<Conditions, 'kind' | 'tenants'>,
): Sql => join`SELECT sum(octet_length(r.private_json)) ${rowsAmong(probes, of)}`;

const rowsAmong = (
  probes: readonly Probe[] | undefined,
  { kind, tenants }: Pick<Conditions, 'kind' | 'tenants'>,
): Sql => {
  const byTenant = probes === undefined && tenants !== undefined;
  const index = raw(byTenant ? 'resources_by_tenant' : 'resources_by_created');
  const among = probes === undefined ? raw('') : join` AND r.created IN (${probed(probes, kind, tenants)})`;
  const visible = tenants === undefined ? raw('') : join` AND ${oneOf('r.tenant', tenants)}`;
  return join`FROM resources AS r INDEXED BY ${index} WHERE r.kind = ${bound(kind)}${visible}${among}`;
};

/** Where indexed values decide alone, no row of `resources` is read: each would be a page of a large file. */
const matchesInTerms = (
  probes: readonly Probe[] | undefined,
  { kind, tenants, filters, terms, listedOnly }: Conditions,
): Sql | undefined => {
  const [probe, ...others] = probes ?? [];
  if (probe?.by !== 'term' || others.length > 0 || filters.length > 0) return undefined;
  const visible = tenants === undefined ? raw('') : join` AND ${oneOf('r.tenant', tenants)}`;
  const further = [...terms, ...(listedOnly ? [LISTED_PROBE] : [])]
    .map((term) => join` AND ${hasTerm(kind, term)}`)
    .reduce((left, right) => join`${left}${right}`, raw(''));
  return join`SELECT r.created FROM terms AS r
    WHERE r.kind = ${bound(kind)} AND r.field = ${bound(probe.field)} AND ${oneOf('r.value', probe.values)}${visible}${further}
    ORDER BY r.created`;
};

const hasTerm = (kind: string, { field, values }: TermProbe): Sql =>
  join`EXISTS (SELECT 1 FROM terms AS t WHERE t.kind = ${bound(kind)} AND t.field = ${bound(field)} AND ${oneOf('t.value', values)} AND t.created = r.created)`;

const orderSql = (order: readonly OrderTerm[] | undefined): Sql => {
  const terms = (order ?? []).map((term) => join`${sortKeyOf(term)}${wayOf(term.descending)}`);
  const last = join`r.created${wayOf(isBackwards(order))}`;
  return [...terms, last].reduce((left, right) => join`${left}, ${right}`);
};
const wayOf = (descending: boolean): Sql => raw(descending ? ' DESC' : '');

/** Which way the order of creation decides between equals. */
export const isBackwards = (order: readonly OrderTerm[] | undefined): boolean =>
  order?.at(-1)?.descending ?? false;

/** Documents by their places in the order of creation, in the order given. */
export const documentsAt = (
  kind: string,
  places: readonly string[],
  surface: Surface,
  /** Another table that stands for `resources`. */
  past?: string,
): Sql => {
  const rows = past === undefined ? 'resources AS r INDEXED BY resources_by_created' : `${past} AS r`;
  return join`SELECT ${raw(DOCUMENTS[surface])} FROM json_each(${bound(JSON.stringify(places))}) AS page
    CROSS JOIN ${raw(rows)} ON r.kind = ${bound(kind)} AND r.created = page.value`;
};

/** How many rows have one of these names, as far as `most`. */
export const countByName = (kind: string, names: readonly string[], most: number): Sql =>
  join`SELECT count(*) FROM (SELECT 1 FROM resources WHERE kind = ${bound(kind)} AND ${oneOf('name', names)} LIMIT ${bound(BigInt(most))})`;

/** How many documents have one of these values, of all tenants or of some. */
export const countByTerm = (
  kind: string,
  field: string,
  values: readonly string[],
  tenants: readonly string[] | undefined,
): Sql => {
  const [table, ofTenants] =
    tenants === undefined
      ? ['term_totals', raw('')]
      : ['term_counts', join` AND ${oneOf('tenant', tenants)}`];
  return join`SELECT coalesce(sum(total), 0) FROM ${raw(table)} WHERE kind = ${bound(kind)} AND field = ${bound(field)} AND ${oneOf('value', values)}${ofTenants}`;
};
