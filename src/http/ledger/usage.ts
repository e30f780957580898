import type { EventStore } from '../../app/log/event-store.ts';
import type { Clock } from '../../app/ports.ts';
import { meteredKinds } from '../../domain/acting-kinds.ts';
import {
  type UsageDimension,
  type UsagePeriod,
  type UsageQuery,
  secondsOf,
  type UsageRow,
} from '../../domain/metering/usage.ts';
import type { ReadModels, ResourceReader } from '../../projections/read-models.ts';
import type { UsageReader } from '../../projections/usage/usage-reader.ts';
import { UsageRefused } from '../../projections/usage/usage-refused.ts';
import { recordLook, type LookServices, type RecordedLook, type Tell } from '../audit-reads.ts';
import { invalid, ApiError, denied, notReached, unavailable } from '../errors.ts';
import type { Principal } from '../osac/principal.ts';
import type { Positions } from '../positions.ts';
import { readQuery } from './forms.ts';
import { once, osacCall } from './osac-call.ts';
import { breathe } from './query.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from './serve.ts';
import {
  USAGE_FILTERS,
  USAGE_QUERY,
  type UsageAsked,
  columnsFor,
  DIMENSION_NAMES,
} from './usage-operations.ts';

type UsageRequest = {
  readonly query: UsageQuery;
  readonly by: readonly UsageDimension[];
  readonly format: UsageFormat;
  /** Answer although streams are parked, whose clusters are missing. */
  readonly incomplete: boolean;
};
type UsageFormat = Exclude<NonNullable<UsageAsked['format']>, ''>;
type PeriodName = Exclude<UsageAsked['period'], ''>;

const FILTERS = Object.keys(USAGE_FILTERS) as (keyof typeof USAGE_FILTERS)[];
const MAX_PERIODS = 10_000;

/** Throws ApiError 400 that names the parameter. `nowMs`: up to when what goes on is counted. */
const readUsageRequest = (
  query: URLSearchParams,
  accept: string | undefined,
  nowMs: number,
): UsageRequest => {
  const { from, to, period, by, format, incomplete, ...asked } = readQuery(query, USAGE_QUERY);
  const fromMs = from === undefined ? startOfMonth(nowMs) : Date.parse(from);
  const toMs = to === undefined ? nowMs : Date.parse(to);
  if (fromMs >= toMs)
    throw invalid(
      `query parameter 'from' must be a time before 'to', which is ${new Date(toMs).toISOString()}`,
      'from',
    );
  const only = FILTERS.flatMap((name) => (asked[name] === undefined ? [] : [[name, asked[name]]]));
  return {
    query: {
      periods: periodsOf(period || 'total', fromMs, toMs),
      by,
      only: Object.fromEntries(only),
      asOfMs: nowMs,
    },
    by,
    format: format || formatOf(accept),
    incomplete,
  };
};

const formatOf = (accept = ''): UsageFormat =>
  accept.includes('text/csv') ? 'csv' : accept.includes('application/x-ndjson') ? 'ndjson' : 'json';

const startOfMonth = (ms: number): number => {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
};

/** Periods in UTC from `from` to `to`; the first and the last are cut off there. */
const periodsOf = (name: PeriodName, fromMs: number, toMs: number): readonly UsagePeriod[] => {
  if (name === 'total') return [{ fromMs, toMs }];
  const periods: UsagePeriod[] = [];
  for (let start = fromMs; start < toMs; ) {
    const end = Math.min(nextStart(name, start), toMs);
    periods.push({ fromMs: start, toMs: end });
    if (periods.length > MAX_PERIODS)
      throw invalid(
        `query parameter 'period' cuts this time into more than ${MAX_PERIODS} parts; ask for a shorter time or longer periods`,
        'period',
      );
    start = end;
  }
  return periods;
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const nextStart = (name: Exclude<PeriodName, 'total'>, ms: number): number => {
  if (name === 'hour') return (Math.floor(ms / HOUR_MS) + 1) * HOUR_MS;
  if (name === 'day') return (Math.floor(ms / DAY_MS) + 1) * DAY_MS;
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
};

/**
 * Billed and provisioning time by tenant, project, kind, template and period, from the same intervals that metering
 * publishes. Provider admins read that of all, everybody else that of the own tenant.
 */
export type UsageServices = LookServices & {
  readonly readModels: Pick<ReadModels, 'status' | 'usage' | 'waitFor'>;
  readonly resources: Pick<ResourceReader, 'get'>;
  readonly store: Pick<EventStore, 'lastPosition'>;
  readonly positions: Positions;
  readonly clock: Clock;
};

const USAGE_VIEW = 'usage';

export const usageRoutes = (services: UsageServices): readonly LedgerRoute[] => [
  {
    verb: 'GET',
    path: 'usage',
    mayEnter: onlyWholeTenants,
    handler: (call) => answerUsage(call, services),
  },
];

/** Roles that see all of their tenant: who is limited to projects would be shown what others have used. */
const TENANT_WIDE: readonly string[] = [
  'client',
  'tenant-reader',
  'tenant-admin',
  'tenant-idp-manager',
  'auditor',
];

const onlyWholeTenants = ({ admin, roles, tenants }: Principal): void => {
  if (admin || (tenants.length > 0 && roles.some((role) => TENANT_WIDE.includes(role)))) return;
  throw denied('usage covers whole tenants: a token that is limited to projects cannot read it');
};

/**
 * Of callers of a tenant only that tenant's, the first that the token names where it names several. Another tenant is
 * refused without a look at whether it is there.
 */
const ofOwnTenant = (request: UsageRequest, { admin, tenants }: Principal): UsageRequest => {
  if (admin) return request;
  const { query } = request;
  const tenant = query.only.tenant ?? tenants[0] ?? '';
  if (!tenants.includes(tenant))
    throw invalid(`query parameter 'tenant': '${tenant.slice(0, 100)}' is not a tenant of yours`, 'tenant');
  return { ...request, query: { ...query, only: { ...query.only, tenant } } };
};

const answerUsage = async (call: LedgerCall, services: UsageServices): Promise<LedgerAnswer> => {
  const { headers = {}, query, signal } = call;
  const now = services.clock.now();
  const { admin } = call.principal;
  const request = ofOwnTenant(readUsageRequest(query, headers.accept, Date.parse(now)), call.principal);
  await services.positions.waitForMinimum(headers['x-ledger-min-position'], USAGE_VIEW);
  await waitForAll(services);
  const { usage } = services.readModels;
  const status = services.readModels.status().find(({ name }) => name === USAGE_VIEW);
  if (usage === undefined || status === undefined)
    throw new ApiError('UNIMPLEMENTED', 'this instance keeps no usage');
  if (status.parkedStreams.length > 0 && !request.incomplete)
    throw admin ? parked(status.parkedStreams.length) : partlyUnknown();
  const tell = admin ? await recordedLook(request, call, services) : undefined;
  const rows = await sum(usage, request.query, signal);
  await tell?.(await tenantsIn(rows, request, usage, signal));
  const position = status.position === undefined ? undefined : services.positions.format(status.position);
  return {
    pieces: piecesOf(request, rows, { now, position }),
    contentType: CONTENT_TYPES[request.format],
    ...(position === undefined ? {} : { headers: { 'x-ledger-position': position } }),
  };
};

/** Milliseconds that a bill waits for this instance to have applied what is stored. */
const WAIT_MS = 5_000;

/** What was stored before the question is in the answer: what has ended already would else be billed up to now. */
const waitForAll = async ({ store, readModels }: UsageServices): Promise<void> => {
  const last = await store.lastPosition();
  if (last === undefined || (await readModels.waitFor(USAGE_VIEW, last, { timeoutMs: WAIT_MS }))) return;
  throw notReached('this instance has not applied the latest events yet; try again');
};

const CONTENT_TYPES: { readonly [Format in UsageFormat]: string } = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  csv: 'text/csv; charset=utf-8; header=present',
};

const parked = (count: number): ApiError =>
  unavailable(
    `the usage of ${count} objects is not known, because an event of each could not be applied: see the projection '${USAGE_VIEW}', or ask with incomplete=true to leave them out`,
    'USAGE_INCOMPLETE',
    60,
  );

/** The same to a tenant, who need not know how many clusters there are. */
const partlyUnknown = (): ApiError =>
  unavailable(
    'the usage of some objects is not known at present; try again later, or ask with incomplete=true for the rest',
    'USAGE_INCOMPLETE',
    60,
  );

/** Admins look at what is others'; a tenant that reads its own usage looks at nobody's history. */
const recordedLook = async (
  request: UsageRequest,
  call: LedgerCall,
  services: UsageServices,
): Promise<Tell> => {
  const look = await lookOf(request, call, services);
  return (await recordLook(osacCall(once(call)), look, services)).tell;
};

/** The look as it is recorded: of what was typed only names that are there stand in it in clear. */
const lookOf = async (
  { query: { periods, only }, by }: UsageRequest,
  { principal }: LedgerCall,
  { resources, conceal }: UsageServices,
): Promise<RecordedLook> => {
  const isThere = (name: string, id: string): boolean =>
    name === 'kind' || kindsOf(name, only.kind).some((kind) => resources.get(kind, id, { all: true }));
  const filters = Object.entries(only).map(
    async ([name, value]) =>
      [
        name,
        value === '' || isThere(name, value) ? value : { ...(await conceal(principal.subjectId, value)) },
      ] as const,
  );
  const times = { from: isoOf(periods[0]?.fromMs ?? 0), to: isoOf(periods.at(-1)?.toMs ?? 0) };
  const { tenant } = only;
  return {
    what: 'usage',
    query: {
      ...times,
      by: by.map((each) => DIMENSION_NAMES[each]),
      ...Object.fromEntries(await Promise.all(filters)),
    },
    tenants: tenant !== undefined && isThere('tenant', tenant) ? [tenant] : undefined,
    asked: times,
  };
};

const kindsOf = (filter: string, kind = ''): readonly string[] => {
  if (filter === 'tenant' || filter === 'project') return [filter];
  const metered = meteredKinds.filter((each) => kind === '' || each.kind === kind);
  return filter === 'template'
    ? metered.flatMap(({ meter }) => meter.templateKind ?? [])
    : metered.map((each) => each.kind);
};

/** Dimensions whose values are somebody's: without them and without a filter a figure is everybody's, and tells of nobody. */
const SOMEBODYS: readonly UsageDimension[] = ['tenant', 'project', 'resource', 'nodeSet'];

const tenantsIn = async (
  rows: readonly UsageRow[],
  { query, by }: UsageRequest,
  usage: UsageReader,
  signal: AbortSignal,
): Promise<readonly string[]> => {
  const { project, resource } = query.only;
  const filtered = [query.only.tenant, project, resource].some((value) => value !== undefined);
  if (rows.length === 0 || !(filtered || by.some((each) => SOMEBODYS.includes(each)))) return [];
  const at = by.indexOf('tenant');
  if (at >= 0) return rows.map(({ values }) => values[at] ?? '');
  const [first, last] = [query.periods[0], query.periods.at(-1)];
  const periods = [{ fromMs: first?.fromMs ?? 0, toMs: last?.toMs ?? 0 }];
  return (await sum(usage, { ...query, periods, by: ['tenant'] }, signal)).map(
    ({ values }) => values[0] ?? '',
  );
};

const sum = async (
  usage: UsageReader,
  query: UsageQuery,
  signal: AbortSignal,
): Promise<readonly UsageRow[]> => {
  try {
    return await usage.sum(query, signal);
  } catch (error) {
    throw error instanceof UsageRefused ? refusal(error) : error;
  }
};

const refusal = (cause: UsageRefused): ApiError => {
  switch (cause.reason) {
    case 'cancelled':
      return new ApiError('CANCELLED', 'the caller went away', { cause });
    case 'busy':
      return unavailable('others wait for their usage already; try again', 'USAGE_BUSY', 5, cause);
    case 'too-long':
      return unavailable(
        'adding this up takes too long; ask for a shorter time',
        'USAGE_TOO_LONG',
        60,
        cause,
      );
    case 'too-many-rows':
      return invalid('the answer has too many rows; ask for fewer dimensions, or a shorter time', 'by');
  }
};

type Row = { readonly [column: string]: string | number };

const rowOf = (
  { period, values, names, resourceMs, nodeMs, provisioningMs, provisioningNodeMs }: UsageRow,
  { periods }: UsageQuery,
  by: readonly UsageDimension[],
): Row => ({
  period_start: isoOf(periods[period]?.fromMs ?? 0),
  period_end: isoOf(periods[period]?.toMs ?? 0),
  ...Object.fromEntries(
    by.flatMap((dimension, i) =>
      columnsFor(dimension).map((column, n) => [column, (n === 0 ? values : names)[i] ?? '']),
    ),
  ),
  resource_seconds: secondsOf(resourceMs),
  node_seconds: secondsOf(nodeMs),
  provisioning_resource_seconds: secondsOf(provisioningMs),
  provisioning_node_seconds: secondsOf(provisioningNodeMs),
});

const isoOf = (ms: number): string => new Date(ms).toISOString();

/** Rows that are written before others get their turn. */
const AT_ONCE = 200;

async function* piecesOf(
  { query, by, format }: UsageRequest,
  rows: readonly UsageRow[],
  { now, position }: { readonly now: string; readonly position: string | undefined },
): AsyncGenerator<string> {
  const text = textOf(format, by);
  if (format === 'json') {
    const [first, last] = [query.periods[0], query.periods.at(-1)];
    const head = {
      from: isoOf(first?.fromMs ?? 0),
      to: isoOf(last?.toMs ?? 0),
      as_of: now,
      ...(position === undefined ? {} : { position }),
    };
    yield `${JSON.stringify(head).slice(0, -1)},"items":[`;
  } else if (format === 'csv') yield `${columnsOf(by).join(',')}\r\n`;
  for (let start = 0; start < rows.length; start += AT_ONCE) {
    const page = rows.slice(start, start + AT_ONCE).map((row) => text(rowOf(row, query, by)));
    yield format === 'json' ? `${start === 0 ? '' : ','}${page.join(',')}` : page.join('');
    await breathe();
  }
  if (format === 'json') yield ']}';
}

const columnsOf = (by: readonly UsageDimension[]): readonly string[] => [
  'period_start',
  'period_end',
  ...by.flatMap(columnsFor),
  'resource_seconds',
  'node_seconds',
  'provisioning_resource_seconds',
  'provisioning_node_seconds',
];

const textOf = (format: UsageFormat, by: readonly UsageDimension[]): ((row: Row) => string) => {
  if (format === 'json') return (row) => JSON.stringify(row);
  if (format === 'ndjson') return (row) => `${JSON.stringify(row)}\n`;
  const columns = columnsOf(by);
  return (row) => `${columns.map((column) => cell(row[column] ?? '')).join(',')}\r\n`;
};

/** RFC 4180. What a spreadsheet would take for a formula is marked as text: names of node sets are free. */
const cell = (value: string | number): string => {
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
