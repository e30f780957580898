import type { PastAppend } from '../../app/commands/loaded-streams.ts';
import { streamName } from '../../domain/stream-name.ts';
import type { ResourceReader, ResourceRow, Visibility } from '../read-models.ts';
import { LENT_MARK } from './fold.ts';
import { sees } from '../visibility.ts';
import type { ReadConnection } from '../runner/read-connection.ts';
import { commandBytes } from './commands.ts';
import { listReader, type ListBounds } from './list-reader.ts';
import type { Scans } from './scans.ts';

const NAMES = 'kind id tenant project name revision version position deleting public_json private_json';
const COLUMNS = (table: string): string =>
  NAMES.split(' ')
    .map((column) => `${table}.${column}`)
    .join(', ');

/**
 * Statements of the HTTP thread on the view `resources`; their query plans are tested. Lists walk a covering index
 * to their offset and only then fetch rows; those over several tenants merge one ordered walk per tenant.
 */
export const RESOURCE_STATEMENTS = {
  getOfAll: `SELECT ${COLUMNS('r')} FROM resources AS r WHERE kind = ?1 AND id = ?2`,
  stateOf: 'SELECT state FROM states WHERE stream = ?1',
  byNameOfAll: `SELECT ${COLUMNS('r')} FROM resources AS r WHERE kind = ?1 AND name = ?2`,
  byNameOfTenant: `SELECT ${COLUMNS('r')} FROM resources AS r
    WHERE kind = ?1 AND tenant = ?3 AND name = ?2`,
  pageOfAll: `SELECT ${COLUMNS('r')}
    FROM (SELECT created FROM resources INDEXED BY resources_by_created
      WHERE kind = ?1 ORDER BY created LIMIT ?2 OFFSET ?3) AS page
    CROSS JOIN resources AS r INDEXED BY resources_by_created ON r.kind = ?1 AND r.created = page.created`,
  pageBehind: `SELECT ${COLUMNS('r')}, r.created FROM resources AS r INDEXED BY resources_by_created
    WHERE kind = ?1 AND created > ?2 ORDER BY created LIMIT ?3`,
  newestOfAll: `SELECT ${COLUMNS('r')}, r.created FROM resources AS r INDEXED BY resources_by_created
    WHERE kind = ?1 AND created < ?2 ORDER BY created DESC LIMIT ?3`,
  newestOfTenant: `SELECT ${COLUMNS('r')}, r.created FROM resources AS r INDEXED BY resources_by_tenant
    WHERE kind = ?1 AND tenant = ?4 AND created < ?2 ORDER BY created DESC LIMIT ?3`,
  totalOfAll: 'SELECT total FROM totals WHERE kind = ?1',
  totalOfTenant: 'SELECT total FROM counts WHERE kind = ?1 AND tenant = ?2',
  markedOfAll: `SELECT ${COLUMNS('r')} FROM marks AS m
    CROSS JOIN resources AS r ON r.kind = m.kind AND r.id = m.id WHERE m.kind = ?1 AND m.mark = ?2`,
  markedOfTenant: `SELECT ${COLUMNS('r')} FROM marks AS m
    CROSS JOIN resources AS r ON r.kind = m.kind AND r.id = m.id
    WHERE m.kind = ?1 AND m.mark = ?2 AND m.tenant = ?3`,
  markedBehind: `SELECT r.id, r.tenant, r.project FROM marks AS m
    CROSS JOIN resources AS r ON r.kind = m.kind AND r.id = m.id
    WHERE m.kind = ?1 AND m.mark = ?2 AND (m.tenant, m.id) > (?3, ?4) ORDER BY m.tenant, m.id LIMIT ?5`,
  countMarked: `SELECT count(*) AS total FROM
    (SELECT 1 FROM marks WHERE kind = ?1 AND mark = ?2 LIMIT 10000) AS page`,
  isReferenced: 'SELECT 1 FROM refs WHERE to_kind = ?1 AND to_id = ?2 LIMIT 1',
  isReferencedByTenant: 'SELECT 1 FROM refs WHERE to_kind = ?1 AND to_id = ?2 AND tenant = ?3 LIMIT 1',
  publicDocumentAt: `SELECT public_json FROM resources INDEXED BY resources_by_created
    WHERE kind = ?1 AND created = ?2`,
  privateDocumentAt: `SELECT private_json FROM resources INDEXED BY resources_by_created
    WHERE kind = ?1 AND created = ?2`,
  referencedBy: `SELECT from_kind AS kind, from_id AS id FROM refs WHERE to_kind = ?1 AND to_id = ?2
    ORDER BY tenant, from_kind, from_id LIMIT ?3`,
  referringAfter: `SELECT tenant, from_kind AS kind, from_id AS id FROM refs
    WHERE to_kind = ?1 AND to_id = ?2 AND (tenant, from_kind, from_id) > (?3, ?4, ?5)
    ORDER BY tenant, from_kind, from_id LIMIT ?6`,
  announcedTo: `SELECT from_kind AS kind, from_id AS id, revision FROM announced
    WHERE to_kind = ?1 AND to_id = ?2 AND position < ?3 LIMIT ?4`,
  nextReferred: `SELECT to_kind AS kind, to_id AS id FROM refs WHERE (to_kind, to_id) > (?1, ?2)
    ORDER BY to_kind, to_id LIMIT 1`,
  nextOwner: `SELECT kind, tenant FROM counts WHERE (kind, tenant) > (?1, ?2) AND total > 0
    ORDER BY kind, tenant LIMIT 1`,
  findCommand: `SELECT stream, revision, request_hash AS requestHash FROM commands
    WHERE command_id = ?1 ORDER BY stream LIMIT 1`,
  findAppend: `SELECT first, revision AS last, position, request_hash AS requestHash FROM commands
    WHERE command_id = ?1 AND stream = ?2`,
} as const;

const { byNameOfAll, byNameOfTenant, markedOfAll, markedOfTenant } = RESOURCE_STATEMENTS;
const BY_NAME = [byNameOfAll, byNameOfTenant] as const;
const MARKED = [markedOfAll, markedOfTenant] as const;

/**
 * One object for a caller who sees `tenants` tenants: parameters kind, id, then the tenants. A foreign id and an absent
 * one run the same statement.
 */
export const getOfTenants = (tenants: number): string =>
  `${RESOURCE_STATEMENTS.getOfAll} AND tenant IN (${Array.from({ length: tenants }, (_, i) => `?${i + 3}`).join(', ')})`;

/** The list statement for a caller who sees `tenants` tenants: parameters kind, limit, offset, then the tenants. */
export const pageOfTenants = (tenants: number): string => {
  const walks = Array.from(
    { length: tenants },
    (_, i) =>
      `SELECT created FROM resources INDEXED BY resources_by_tenant WHERE kind = ?1 AND tenant = ?${i + 4}`,
  );
  return `SELECT ${COLUMNS('r')}
    FROM (${walks.join(' UNION ALL ')} ORDER BY created LIMIT ?2 OFFSET ?3) AS page
    CROSS JOIN resources AS r INDEXED BY resources_by_created ON r.kind = ?1 AND r.created = page.created`;
};

/** Reads on the HTTP thread: point lookups and pages, each one indexed and bounded; what is not goes to `scans`. */
export const resourceReader = (
  connection: ReadConnection,
  scans: Scans,
  bounds?: ListBounds,
): ResourceReader => {
  /** By number of tenants: every GET of a tenant asks for the same few texts. */
  const getOf: string[] = [];
  const all = (sql: string, ...values: (string | number)[]): ResourceRow[] =>
    (connection.rows(sql).all(...values) as unknown as StoredRow[]).map(asRow);
  const rowsOf = <Row>(sql: string, ...values: (string | number | Buffer)[]): Row[] =>
    connection
      .statement(sql)
      .all(...values)
      .map((row) => ({ ...row }) as Row);
  const firstOf = <Row>(sql: string, ...values: (string | Buffer)[]): Row | undefined => {
    const row = connection.statement(sql).get(...values);
    return row === undefined ? undefined : ({ ...row } as Row);
  };
  const tenantsOf = (visibility: Visibility): readonly string[] | undefined =>
    'all' in visibility ? undefined : [...new Set(visibility.tenants)];
  /** Rows that a caller sees, by a statement for all tenants or one for each of the caller's. */
  const seen = (
    [ofAll, ofTenant]: readonly [ofAll: string, ofTenant: string],
    kind: string,
    value: string,
    visibility: Visibility,
  ): ResourceRow[] => {
    const tenants = tenantsOf(visibility);
    const rows =
      tenants === undefined
        ? all(ofAll, kind, value)
        : tenants.flatMap((tenant) => all(ofTenant, kind, value, tenant));
    return rows.filter((row) => sees(visibility, kind, row)).toSorted(byId);
  };
  const total = (sql: string, ...values: string[]): number =>
    firstOf<{ total: number }>(sql, ...values)?.total ?? 0;
  const totalOf = (kind: string, tenants: readonly string[] | undefined): number =>
    tenants === undefined
      ? total(RESOURCE_STATEMENTS.totalOfAll, kind)
      : tenants.reduce((sum, tenant) => sum + total(RESOURCE_STATEMENTS.totalOfTenant, kind, tenant), 0);

  function* pages(kind: string, limit: number): Generator<readonly ResourceRow[]> {
    for (let place: string | undefined = ''; place !== undefined; ) {
      const rows = connection.rows(RESOURCE_STATEMENTS.pageBehind).all(kind, place, limit);
      const stored: readonly PlacedRow[] = rows as unknown as PlacedRow[];
      if (stored.length > 0) yield stored.map(asRow);
      place = stored.length < limit ? undefined : stored.at(-1)?.[11];
    }
  }

  function* lent(kind: string, limit: number): Generator<readonly Place[]> {
    for (let last: Pick<Place, 'tenant' | 'id'> | undefined = { tenant: '', id: '' }; last !== undefined; ) {
      const places: readonly Place[] = rowsOf<Place>(
        RESOURCE_STATEMENTS.markedBehind,
        kind,
        LENT_MARK,
        last.tenant,
        last.id,
        limit,
      );
      if (places.length > 0) yield places;
      last = places.length < limit ? undefined : places.at(-1);
    }
  }

  return {
    pages,
    lent,
    newest: (kind, { tenant, before = BEHIND_ALL, limit }) => {
      const rows =
        tenant === undefined
          ? connection.rows(RESOURCE_STATEMENTS.newestOfAll).all(kind, before, limit)
          : connection.rows(RESOURCE_STATEMENTS.newestOfTenant).all(kind, before, limit, tenant);
      return (rows as unknown as PlacedRow[]).map((row) => ({ ...asRow(row), created: row[11] }));
    },
    stateOf: (kind, id) => {
      const row = connection.statement(RESOURCE_STATEMENTS.stateOf).get(streamName(kind, id));
      return row === undefined ? undefined : (JSON.parse(String(row['state'])) as unknown);
    },
    get: (kind, id, visibility) => {
      const tenants = tenantsOf(visibility);
      if (tenants?.length === 0) return undefined;
      const row =
        tenants === undefined
          ? connection.rows(RESOURCE_STATEMENTS.getOfAll).get(kind, id)
          : connection
              .rows((getOf[tenants.length] ??= getOfTenants(tenants.length)))
              .get(kind, id, ...tenants);
      const found = row === undefined ? undefined : asRow(row as unknown as StoredRow);
      return found === undefined || sees(visibility, kind, found) ? found : undefined;
    },
    findByName: (kind, name, visibility) => seen(BY_NAME, kind, name, visibility),
    list: (kind, visibility, { offset, limit }) => {
      const tenants = tenantsOf(visibility);
      const total = totalOf(kind, tenants);
      if (limit === 0 || offset >= total) return { rows: [], total };
      const rows =
        tenants === undefined
          ? all(RESOURCE_STATEMENTS.pageOfAll, kind, limit, offset)
          : all(pageOfTenants(tenants.length), kind, limit, offset, ...tenants);
      return { rows, total };
    },
    query: listReader(connection, totalOf, scans, bounds),
    documentAt: (kind, place, surface) => {
      const { publicDocumentAt, privateDocumentAt } = RESOURCE_STATEMENTS;
      const statement = connection.rows(surface === 'public' ? publicDocumentAt : privateDocumentAt);
      return (statement.get(kind, place) as unknown as [string] | undefined)?.[0];
    },
    marked: (kind, mark, visibility) => seen(MARKED, kind, mark, visibility),
    generation: connection.generation,
    countMarked: (kind, mark) => total(RESOURCE_STATEMENTS.countMarked, kind, mark),
    isReferenced: (kind, id, visibility) => {
      const { isReferenced, isReferencedByTenant } = RESOURCE_STATEMENTS;
      const tenants = tenantsOf(visibility);
      return tenants === undefined
        ? connection.statement(isReferenced).get(kind, id) !== undefined
        : tenants.some((tenant) => connection.statement(isReferencedByTenant).get(kind, id, tenant));
    },
    referencedBy: (kind, id, { limit }) =>
      rowsOf<{ kind: string; id: string }>(RESOURCE_STATEMENTS.referencedBy, kind, id, limit).toSorted(
        (one, other) => byText(one.kind, other.kind) || byText(one.id, other.id),
      ),
    referring: (kind, id, { after = { tenant: '', kind: '', id: '' }, limit }) =>
      rowsOf(RESOURCE_STATEMENTS.referringAfter, kind, id, after.tenant, after.kind, after.id, limit),
    announcedTo: (kind, id, { before, limit }) =>
      rowsOf(RESOURCE_STATEMENTS.announcedTo, kind, id, before, limit),
    nextReferred: ({ kind, id }) => firstOf(RESOURCE_STATEMENTS.nextReferred, kind, id),
    nextOwner: ({ kind, tenant }) => firstOf(RESOURCE_STATEMENTS.nextOwner, kind, tenant),
    findCommand: (commandId) => firstOf(RESOURCE_STATEMENTS.findCommand, commandBytes(commandId)),
    findAppend: (stream, commandId) => {
      const found = firstOf<Omit<PastAppend, 'commandId'>>(
        RESOURCE_STATEMENTS.findAppend,
        commandBytes(commandId),
        stream,
      );
      return found === undefined ? undefined : { ...found, commandId };
    },
  };
};

type Place = Pick<ResourceRow, 'id' | 'tenant' | 'project'>;
/** In the order of `COLUMNS`: an array is much cheaper to make than an object with eleven names. */
type StoredRow = [
  kind: string,
  id: string,
  tenant: string,
  project: string,
  name: string,
  revision: number,
  version: number,
  position: string,
  deleting: number,
  publicJson: string,
  privateJson: string,
];
type PlacedRow = [...StoredRow, created: string];
/** Sorts behind every position, which is digits. */
const BEHIND_ALL = '~';

const asRow = (row: StoredRow | PlacedRow): ResourceRow => ({
  kind: row[0],
  id: row[1],
  tenant: row[2],
  project: row[3],
  name: row[4],
  revision: row[5],
  version: row[6],
  position: row[7],
  deleting: row[8] === 1,
  publicJson: row[9],
  privateJson: row[10],
});
/** Ids as SQLite orders them: by their UTF-8 bytes, which for plain ASCII is the order of the text. */
const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const byId = (a: ResourceRow, b: ResourceRow): number =>
  a.id === b.id ? 0 : Buffer.compare(Buffer.from(a.id), Buffer.from(b.id));
