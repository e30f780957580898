import type { OpenInterval } from './cluster-meter.ts';

/**
 * Billable time of a period, added up from intervals (issue-wide rule: exact, in milliseconds, and the same as what the
 * history says). Pure: whoever has the intervals can recompute any bill.
 */
export type UsageInterval = {
  readonly kind: string;
  readonly resource: string;
  readonly tenant: string;
  readonly project: string;
  /** Template id. */
  readonly template: string;
  readonly component: OpenInterval['component']['component'];
  readonly nodeSet: string;
  readonly hostType: string;
  readonly nodeCount: number;
  readonly sinceMs: number;
  /** Undefined: it goes on. */
  readonly untilMs: number | undefined;
};

/** What usage may be told apart by, beside the periods. */
export const USAGE_DIMENSIONS = [
  'tenant',
  'project',
  'kind',
  'template',
  'resource',
  'nodeSet',
  'hostType',
] as const;
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number];

/** Kinds that are metered in this release. */
export const METERED_KINDS = ['cluster'] as const;

export type UsagePeriod = { readonly fromMs: number; readonly toMs: number };

export type UsageQuery = {
  /** In order, without gaps or overlaps; at least one. */
  readonly periods: readonly UsagePeriod[];
  readonly by: readonly UsageDimension[];
  /** Only these; absent: all. */
  readonly only: { readonly [Dimension in 'tenant' | 'project' | 'kind' | 'template' | 'resource']?: string };
  /** Up to when intervals that go on are counted, milliseconds since 1970. */
  readonly asOfMs: number;
};

export type UsageRow = {
  /** Index in `periods`. */
  readonly period: number;
  /** The values of `by`, in its order. */
  readonly values: readonly string[];
  /** Time for which resources existed billably: of a cluster, its control plane's. */
  readonly resourceMs: Milliseconds;
  /** The same of nodes: each interval times the number of nodes that were ordered. */
  readonly nodeMs: Milliseconds;
};

/** A bigint where a number would not be exact any more: a year of 300,000 nodes. */
export type Milliseconds = number | bigint;

/** The number nearest to it: exact to the second up to 280 million years. */
export const secondsOf = (ms: Milliseconds): number =>
  typeof ms === 'number' ? ms / 1000 : Number(ms / 1000n) + Number(ms % 1000n) / 1000;

const plus = (sum: Milliseconds, ms: number, times: number): Milliseconds => {
  if (typeof sum === 'number') {
    const more = sum + ms * times;
    if (Number.isSafeInteger(more)) return more;
  }
  return BigInt(sum) + BigInt(ms) * BigInt(times);
};

export type UsageSum = {
  readonly add: (interval: UsageInterval) => void;
  /** How many rows there are by now. */
  readonly size: () => number;
  /** By period, then by the values. Nothing of no length. */
  readonly rows: () => readonly UsageRow[];
};

export const createUsageSum = ({ periods, by, only, asOfMs }: UsageQuery): UsageSum => {
  type Sum = { resourceMs: Milliseconds; nodeMs: Milliseconds };
  /** By the values first: most intervals reach over many periods, and a text for each would take most of the time. */
  type Group = { readonly values: readonly string[]; readonly sums: Map<number, Sum> };
  const groups = new Map<string, Group>();
  const wanted = Object.entries(only) as [keyof typeof only, string][];
  let size = 0;

  const groupOf = (values: readonly string[]): Group => {
    const key = JSON.stringify(values);
    const known = groups.get(key);
    if (known !== undefined) return known;
    const group: Group = { values, sums: new Map() };
    groups.set(key, group);
    return group;
  };
  const sumOf = ({ sums }: Group, period: number): Sum => {
    const known = sums.get(period);
    if (known !== undefined) return known;
    const sum: Sum = { resourceMs: 0, nodeMs: 0 };
    sums.set(period, sum);
    size += 1;
    return sum;
  };

  const add = (interval: UsageInterval): void => {
    if (!wanted.every(([dimension, value]) => interval[dimension] === value)) return;
    const until = Math.min(interval.untilMs ?? asOfMs, asOfMs);
    const group = groupOf(by.map((dimension) => interval[dimension]));
    for (let i = firstAfter(periods, interval.sinceMs); i < periods.length; i += 1) {
      const period = periods[i];
      if (period === undefined || period.fromMs >= until) return;
      const ms = Math.min(until, period.toMs) - Math.max(interval.sinceMs, period.fromMs);
      if (ms <= 0) continue;
      const sum = sumOf(group, i);
      if (interval.component === 'control_plane') sum.resourceMs = plus(sum.resourceMs, ms, 1);
      else sum.nodeMs = plus(sum.nodeMs, ms, interval.nodeCount);
    }
  };

  return {
    add,
    size: () => size,
    rows: () =>
      [...groups.values()]
        .flatMap(({ values, sums }) =>
          [...sums].map(([period, { resourceMs, nodeMs }]) => ({ period, values, resourceMs, nodeMs })),
        )
        .filter(({ resourceMs, nodeMs }) => resourceMs > 0 || nodeMs > 0)
        .sort(inOrder),
  };
};

const inOrder = (left: UsageRow, right: UsageRow): number => {
  if (left.period !== right.period) return left.period - right.period;
  for (const [i, value] of left.values.entries()) {
    const other = right.values[i] ?? '';
    if (value !== other) return value < other ? -1 : 1;
  }
  return 0;
};

/** Index of the first period that ends after this moment. */
const firstAfter = (periods: readonly UsagePeriod[], ms: number): number => {
  let [low, high] = [0, periods.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((periods[middle]?.toMs ?? 0) > ms) high = middle;
    else low = middle + 1;
  }
  return low;
};
