import type { UsageDimension, UsagePeriod, UsageQuery } from '../../domain/metering/usage.ts';
import { invalid } from '../errors.ts';
import { readQuery } from './forms.ts';
import { USAGE_FILTERS, USAGE_QUERY, type UsageAsked } from './usage-operations.ts';

export type UsageRequest = {
  readonly query: UsageQuery;
  readonly by: readonly UsageDimension[];
  readonly format: UsageFormat;
  /** Answer although streams are parked, whose clusters are missing. */
  readonly incomplete: boolean;
};
export type UsageFormat = Exclude<NonNullable<UsageAsked['format']>, ''>;
type PeriodName = Exclude<UsageAsked['period'], ''>;

const FILTERS = Object.keys(USAGE_FILTERS) as (keyof typeof USAGE_FILTERS)[];
const MAX_PERIODS = 10_000;

/** Throws ApiError 400 that names the parameter. `nowMs`: up to when what goes on is counted. */
export const readUsageRequest = (
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
