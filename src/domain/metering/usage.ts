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
  readonly resourceMs: number;
  /** The same of nodes: each interval times the number of nodes that were ordered. */
  readonly nodeMs: number;
};

export type UsageSum = {
  readonly add: (interval: UsageInterval) => void;
  /** How many rows there are by now. */
  readonly size: () => number;
  /** By period, then by the values. Nothing of no length. */
  readonly rows: () => readonly UsageRow[];
};

export const createUsageSum = ({ periods, by, only, asOfMs }: UsageQuery): UsageSum => {
  type Sum = {
    readonly period: number;
    readonly values: readonly string[];
    resourceMs: number;
    nodeMs: number;
  };
  const sums = new Map<string, Sum>();
  const wanted = Object.entries(only) as [keyof typeof only, string][];

  const add = (interval: UsageInterval): void => {
    if (!wanted.every(([dimension, value]) => interval[dimension] === value)) return;
    const until = Math.min(interval.untilMs ?? asOfMs, asOfMs);
    const values = by.map((dimension) => interval[dimension]);
    for (let i = firstAfter(periods, interval.sinceMs); i < periods.length; i += 1) {
      const period = periods[i];
      if (period === undefined || period.fromMs >= until) return;
      const ms = Math.min(until, period.toMs) - Math.max(interval.sinceMs, period.fromMs);
      if (ms <= 0) continue;
      const key = JSON.stringify([i, ...values]);
      const sum = sums.get(key) ?? { period: i, values, resourceMs: 0, nodeMs: 0 };
      if (interval.component === 'control_plane') sum.resourceMs += ms;
      else sum.nodeMs += ms * interval.nodeCount;
      sums.set(key, sum);
    }
  };

  return {
    add,
    size: () => sums.size,
    rows: () =>
      [...sums.values()].filter(({ resourceMs, nodeMs }) => resourceMs > 0 || nodeMs > 0).sort(inOrder),
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
