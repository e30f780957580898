import { hubObjectOf } from '../../domain/hub-objects.ts';
import { defined } from '../../domain/json-tools.ts';
import type { HubWatchStatus } from './hub-observer.ts';

/** How a hub is watched, over all the namespaces of it that are. */
export type HubWatch = Pick<HubWatchStatus, 'synced' | 'orders' | 'unknown' | 'orphans' | 'failures'> & {
  readonly namespaces: number;
  /** Those whose watch is broken or has not listed everything yet. Of kinds that every hub must have, as all but the next. */
  readonly notSynced: readonly string[];
  /** The same of other kinds, each with its namespace and why. */
  readonly kindsNotSynced?: readonly string[];
  readonly lastError?: string;
  /** ISO time. */
  readonly lastErrorAt?: string;
};

/** By hub. A hub that nobody watches here is absent: it has no adapter, or another instance runs the processes. */
export const watchesByHub = (statuses: readonly HubWatchStatus[]): ReadonlyMap<string, HubWatch> =>
  new Map(
    [...Map.groupBy(statuses, ({ hub }) => hub)].map(([hub, watches]) => [hub, watchOf(watches)] as const),
  );

const watchOf = (watches: readonly HubWatchStatus[]): HubWatch => {
  const sum = (of: 'orders' | 'unknown' | 'orphans' | 'failures'): number =>
    watches.reduce((total, watch) => total + watch[of], 0);
  const isNeeded = ({ kind }: HubWatchStatus): boolean => hubObjectOf(kind).required === true;
  const needed = watches.filter(isNeeded);
  const broken = [...new Set(needed.filter(({ synced }) => !synced).map(({ namespace }) => namespace))];
  const others = watches
    .filter((watch) => !isNeeded(watch) && !watch.synced)
    .map(({ kind, namespace, lastError = 'not listed yet' }) => `${kind} in ${namespace}: ${lastError}`);
  const timeOf = ({ lastErrorAt = '' }: HubWatchStatus): string => lastErrorAt;
  const last = needed.toSorted((left, right) => (timeOf(left) < timeOf(right) ? -1 : 1)).at(-1);
  return {
    namespaces: new Set(watches.map(({ namespace }) => namespace)).size,
    synced: broken.length === 0,
    notSynced: broken.toSorted(),
    ...(others.length === 0 ? {} : { kindsNotSynced: others.toSorted() }),
    orders: sum('orders'),
    unknown: sum('unknown'),
    orphans: sum('orphans'),
    failures: sum('failures'),
    ...defined({ lastError: last?.lastError, lastErrorAt: last?.lastErrorAt }),
  };
};
