import { meteredKinds } from '../../domain/acting-kinds.ts';
import {
  isNamed,
  USAGE_DIMENSIONS,
  type UsageDimension,
  type UsagePeriod,
  type UsageQuery,
} from '../../domain/metering/usage.ts';
import { invalid, mustNotBeEmpty } from '../errors.ts';
import { onlyOne } from '../osac/query.ts';
import { flag } from './query.ts';
import { readRfc3339 } from '../times.ts';

/** What `GET usage` is asked for. */
export type UsageRequest = {
  readonly query: UsageQuery;
  readonly by: readonly UsageDimension[];
  readonly format: UsageFormat;
  /** Answer although streams are parked, whose clusters are missing. */
  readonly incomplete: boolean;
};
export type UsageFormat = 'json' | 'ndjson' | 'csv';

/** Dimensions as the surface writes them. */
export const DIMENSION_NAMES: { readonly [Dimension in UsageDimension]: string } = {
  tenant: 'tenant',
  project: 'project',
  kind: 'kind',
  template: 'template',
  resource: 'resource',
  nodeSet: 'node_set',
  hostType: 'host_type',
};
/** Its column, and beside an id that of the name. */
export const columnsFor = (dimension: UsageDimension): readonly string[] => {
  const column = DIMENSION_NAMES[dimension];
  return isNamed(dimension) ? [column, `${column}_name`] : [column];
};

export const USAGE_PERIODS = ['total', 'hour', 'day', 'month'] as const;
type PeriodName = (typeof USAGE_PERIODS)[number];
export const USAGE_FORMATS = ['json', 'ndjson', 'csv'] as const;

const DEFAULT_BY: readonly UsageDimension[] = ['tenant', 'project', 'kind', 'template'];
const FILTERS = ['tenant', 'project', 'kind', 'template', 'resource'] as const;
const PARAMETERS: readonly string[] = ['from', 'to', 'period', 'by', ...FILTERS, 'format', 'incomplete'];
const MAX_PERIODS = 10_000;

/** Throws ApiError 400 that names the parameter. `nowMs`: up to when what goes on is counted. */
export const readUsageRequest = (
  query: URLSearchParams,
  accept: string | undefined,
  nowMs: number,
): UsageRequest => {
  refuseUnknown(query);
  const fromMs = time(query, 'from') ?? startOfMonth(nowMs);
  const toMs = time(query, 'to') ?? nowMs;
  if (fromMs >= toMs)
    throw invalid(
      `query parameter 'from' must be a time before 'to', which is ${new Date(toMs).toISOString()}`,
      'from',
    );
  const by = dimensions(query);
  return {
    query: {
      periods: periodsOf(oneOf(query, 'period', USAGE_PERIODS) ?? 'total', fromMs, toMs),
      by,
      only: Object.fromEntries(
        FILTERS.flatMap((name) => {
          const value = filterOf(query, name);
          return value === null ? [] : [[name, value]];
        }),
      ),
      asOfMs: nowMs,
    },
    by,
    format: oneOf(query, 'format', USAGE_FORMATS) ?? formatOf(accept),
    incomplete: flag(query, 'incomplete'),
  };
};

/** A filter that is misspelt would be everybody's bill. */
const refuseUnknown = (query: URLSearchParams): void => {
  for (const name of query.keys())
    if (!PARAMETERS.includes(name))
      throw invalid(
        `there is no query parameter '${name.slice(0, 64)}'; there are ${PARAMETERS.join(', ')}`,
        name,
      );
};

/** An empty value is most often a variable that was not set; only projects may have none. */
const filterOf = (query: URLSearchParams, name: (typeof FILTERS)[number]): string | null => {
  const value = onlyOne(query, name);
  if (value === '' && name !== 'project')
    throw mustNotBeEmpty(`query parameter '${name}'`, name, `every ${name}`);
  if (value !== null && name === 'kind' && !meteredKinds.some(({ kind }) => kind === value))
    throw invalid(
      `query parameter 'kind' must be ${meteredKinds.map(({ kind }) => kind).join(' or ')}: nothing else is metered`,
      'kind',
    );
  return value;
};

const time = (query: URLSearchParams, name: string): number | undefined => {
  const text = onlyOne(query, name);
  if (text === null || text === '') return undefined;
  const ms = readRfc3339(text);
  if (ms === undefined)
    throw invalid(`query parameter '${name}' must be a time such as 2026-11-01T00:00:00Z`, name);
  return ms;
};

const oneOf = <Name extends string>(
  query: URLSearchParams,
  name: string,
  known: readonly Name[],
): Name | undefined => {
  const text = onlyOne(query, name);
  if (text === null || text === '') return undefined;
  const found = known.find((candidate) => candidate === text);
  if (found === undefined)
    throw invalid(`query parameter '${name}' must be one of ${known.join(', ')}`, name);
  return found;
};

const dimensions = (query: URLSearchParams): readonly UsageDimension[] => {
  const text = onlyOne(query, 'by');
  if (text === null) return DEFAULT_BY;
  const named = text === '' ? [] : text.split(',');
  const found = USAGE_DIMENSIONS.filter((dimension) => named.includes(DIMENSION_NAMES[dimension]));
  if (found.length !== named.length) {
    const known = USAGE_DIMENSIONS.map((dimension) => DIMENSION_NAMES[dimension]).join(', ');
    throw invalid(`query parameter 'by' must be a list of different ones of ${known}`, 'by');
  }
  return found;
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
