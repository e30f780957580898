/**
 * Provisioning and billed time of a period, added up from intervals (issue-wide rule: exact, in milliseconds, and the same as what the
 * history says). Pure: whoever has the intervals can recompute any bill.
 */
export type UsageInterval = {
  readonly kind: string;
  readonly resource: string;
  readonly tenant: string;
  readonly project: string;
  /** Template id. */
  readonly template: string;
  readonly resourceName: string;
  readonly templateName: string;
  readonly component: string;
  readonly nodeSet: string;
  readonly hostType: string;
  readonly nodeCount: number;
  readonly sinceMs: number;
  /** Undefined: it goes on. */
  readonly untilMs: number | undefined;
  /** When its resource was first READY: from then on it is billed. Undefined: it never was. */
  readonly deliveredMs: number | undefined;
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

/** True where values are ids, so that rows carry names beside them. */
export const isNamed = (dimension: UsageDimension): boolean => NAME_OF[dimension] !== undefined;

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
  /** Names of what the values are ids of; undefined where a value is a name itself. */
  readonly names: readonly (string | undefined)[];
  /** Billed time of resources, which begins with their first READY: of a cluster, its control plane's. */
  readonly resourceMs: Milliseconds;
  /** The same of nodes: each interval times the number of nodes that were ordered. */
  readonly nodeMs: Milliseconds;
  /** Time before the first READY, of resources and of nodes: nobody is billed for it. */
  readonly provisioningMs: Milliseconds;
  readonly provisioningNodeMs: Milliseconds;
};

/** Dimensions whose values are ids, and what names them. */
const NAME_OF: { readonly [Dimension in UsageDimension]?: 'resourceName' | 'templateName' } = {
  resource: 'resourceName',
  template: 'templateName',
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
  type Sum = { -readonly [Amount in keyof typeof NO_TIME]: Milliseconds };
  /** By the values first: most intervals reach over many periods, and a text for each would take most of the time. */
  type Group = Pick<UsageRow, 'values' | 'names'> & { readonly sums: Map<number, Sum> };
  const groups = new Map<string, Group>();
  const wanted = Object.entries(only) as [keyof typeof only, string][];
  let size = 0;

  const groupOf = (interval: UsageInterval): Group => {
    const values = by.map((dimension) => interval[dimension]);
    const key = JSON.stringify(values);
    const known = groups.get(key);
    if (known !== undefined) return known;
    const names = by.map((dimension) => {
      const name = NAME_OF[dimension];
      return name === undefined ? undefined : interval[name];
    });
    const group: Group = { values, names, sums: new Map() };
    groups.set(key, group);
    return group;
  };
  const sumOf = ({ sums }: Group, period: number): Sum => {
    const known = sums.get(period);
    if (known !== undefined) return known;
    const sum: Sum = { ...NO_TIME };
    sums.set(period, sum);
    size += 1;
    return sum;
  };

  const add = (interval: UsageInterval): void => {
    if (!wanted.every(([dimension, value]) => interval[dimension] === value)) return;
    const until = Math.min(interval.untilMs ?? asOfMs, asOfMs);
    const delivered = interval.deliveredMs ?? Infinity;
    const group = groupOf(interval);
    for (let i = firstAfter(periods, interval.sinceMs); i < periods.length; i += 1) {
      const period = periods[i];
      if (period === undefined || period.fromMs >= until) return;
      const [start, end] = [Math.max(interval.sinceMs, period.fromMs), Math.min(until, period.toMs)];
      if (end <= start) continue;
      const sum = sumOf(group, i);
      const billed = Math.max(0, end - Math.max(start, delivered));
      const provisioning = end - start - billed;
      if (interval.component === 'worker') {
        sum.nodeMs = plus(sum.nodeMs, billed, interval.nodeCount);
        sum.provisioningNodeMs = plus(sum.provisioningNodeMs, provisioning, interval.nodeCount);
      } else {
        sum.resourceMs = plus(sum.resourceMs, billed, 1);
        sum.provisioningMs = plus(sum.provisioningMs, provisioning, 1);
      }
    }
  };

  return {
    add,
    size: () => size,
    rows: () =>
      [...groups.values()]
        .flatMap(({ values, names, sums }) =>
          [...sums].flatMap(([period, sum]) =>
            Object.values(sum).some((ms) => ms > 0) ? [{ period, values, names, ...sum }] : [],
          ),
        )
        .sort(inOrder),
  };
};

const NO_TIME = { resourceMs: 0, nodeMs: 0, provisioningMs: 0, provisioningNodeMs: 0 };

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
