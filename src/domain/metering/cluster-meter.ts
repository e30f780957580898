import { evolveCluster } from '../clusters/cluster.ts';
import type { ClusterEvent } from '../clusters/events.ts';
import { effectiveState } from '../clusters/shown-status.ts';
import {
  initialCluster,
  isLiveCluster,
  isStoredCluster,
  type ClusterState,
  type StoredCluster,
} from '../clusters/state.ts';
import { byKey } from '../json-tools.ts';
import { componentKey, componentsOf, sameComponent, type Component } from './components.ts';

/**
 * What a cluster's own events say of its billable time (metering-events.md §7): pure, and the only place that knows. The
 * metering topics, the usage view and the audit of both fold the same events with it.
 *
 * Times are those of the events. A clock that was set back lengthens no interval and opens none before another ended:
 * time stands still until it is reached again.
 */
export type ClusterMeter = {
  readonly cluster: ClusterState;
  /** Latest time of an event so far, milliseconds since 1970. */
  readonly atMs: number;
  /** It has been billable before: the next time is `resumed`, not `started`. */
  readonly started: boolean;
  /** Time of the first READY: bills of `usage` begin there, while OSAC's metering bills the installation too. */
  readonly deliveredMs?: number;
  /** Components that are billed at present, in their order; empty while nothing is. */
  readonly open: readonly OpenInterval[];
};

/** Raised with every change of what the fold gives: whoever stores meters builds them anew. */
export const METER_VERSION = 2;

export type OpenInterval = { readonly component: Component; readonly sinceMs: number };
export type ClosedInterval = OpenInterval & { readonly untilMs: number };

export type Change = {
  readonly type: 'created' | 'started' | 'resumed' | 'suspended' | 'updated' | 'deleted';
  /** Undefined: of the cluster as a whole (`created`, `deleted`). */
  readonly component?: Component;
  /** Length of the interval that ends with it; undefined: none does. */
  readonly durationMs?: number;
  readonly previousState?: string;
  readonly currentState: string;
};

export type Metered = {
  readonly meter: ClusterMeter;
  /** In the order in which they are published; empty: nothing that is billed changed. */
  readonly changes: readonly Change[];
  readonly closed: readonly ClosedInterval[];
  readonly opened: readonly OpenInterval[];
};

export const initialMeter = (): ClusterMeter => ({
  cluster: initialCluster(),
  atMs: 0,
  started: false,
  open: [],
});

/** Folds one event of the cluster's stream. Total, as every fold is: what makes no sense in this state changes nothing. */
export const meterEvent = (before: ClusterMeter, event: ClusterEvent): Metered => {
  const cluster = evolveCluster(before.cluster, event);
  const atMs = Math.max(before.atMs, Date.parse(event.data.at) || 0);
  const meter: ClusterMeter = { ...before, cluster, atMs, ...deliveredBy(before, cluster, atMs) };
  if (cluster === before.cluster || !isStoredCluster(cluster)) return unchanged(meter);
  if (!isStoredCluster(before.cluster)) return created(meter, cluster);
  if (!isLiveCluster(cluster)) return deleted(meter, before.cluster);
  return transition(meter, before.cluster, cluster);
};

/** Delivery is final: what happens to a cluster later does not take it back. */
const deliveredBy = (
  { deliveredMs }: ClusterMeter,
  cluster: ClusterState,
  atMs: number,
): Pick<ClusterMeter, 'deliveredMs'> =>
  deliveredMs === undefined && isLiveCluster(cluster) && stateOf(cluster) === 'READY'
    ? { deliveredMs: atMs }
    : {};

const BILLABLE: ReadonlySet<string> = new Set(['PROGRESSING', 'READY']);
const DELETING = 'DELETING';

/** State as the reads show it, without OSAC's prefix. */
export const stateOf = (cluster: StoredCluster): string =>
  effectiveState(cluster).replace(/^CLUSTER_STATE_/, '') || 'UNSPECIFIED';

const unchanged = (meter: ClusterMeter): Metered => ({ meter, changes: [], closed: [], opened: [] });

/** An order is progressing from its first moment, so that its billing by OSAC's rule starts with its creation. */
const created = (meter: ClusterMeter, cluster: StoredCluster): Metered => {
  const currentState = stateOf(cluster);
  const started = begun(meter, cluster, { currentState });
  return { ...started, changes: [{ type: 'created', currentState }, ...started.changes] };
};

/** What was still billed ends first, component by component; the deletion itself then ends nothing more. */
const deleted = (meter: ClusterMeter, before: StoredCluster): Metered => {
  const previousState = stateOf(before);
  const ended = suspended(meter, { previousState, currentState: DELETING });
  const last: Change = { type: 'deleted', previousState, currentState: DELETING };
  return { ...ended, changes: [...ended.changes, last] };
};

const transition = (meter: ClusterMeter, before: StoredCluster, after: StoredCluster): Metered => {
  const states = { previousState: stateOf(before), currentState: stateOf(after) };
  const was = BILLABLE.has(states.previousState);
  const is = BILLABLE.has(states.currentState);
  if (was && !is) return suspended(meter, states);
  if (!was && is) return begun(meter, after, states);
  return revised(meter, before, after, states);
};

type States = Pick<Change, 'previousState' | 'currentState'>;

const begun = (meter: ClusterMeter, cluster: StoredCluster, states: States): Metered => {
  const opened = componentsOf(cluster).map((component) => ({ component, sinceMs: meter.atMs }));
  const type = meter.started ? 'resumed' : 'started';
  return {
    meter: { ...meter, started: true, open: opened },
    changes: opened.map(({ component }) => ({ type, component, ...states })),
    closed: [],
    opened,
  };
};

const suspended = (meter: ClusterMeter, states: States): Metered => {
  const closed = meter.open.map((interval) => ({ ...interval, untilMs: meter.atMs }));
  return {
    meter: { ...meter, open: [] },
    changes: closed.map(({ component, sinceMs, untilMs }) => ({
      type: 'suspended',
      component,
      durationMs: untilMs - sinceMs,
      ...states,
    })),
    closed,
    opened: [],
  };
};

/** Billed before and after, or neither: only components that are not what they were are told of. */
const revised = (
  meter: ClusterMeter,
  before: StoredCluster,
  after: StoredCluster,
  states: States,
): Metered => {
  // Most events tell of progress: components are made of these alone.
  const { nodeSets, template, version } = after;
  if (before.nodeSets === nodeSets && before.template === template && before.version === version)
    return unchanged(meter);
  const former = new Map(componentsOf(before).map((component) => [componentKey(component), component]));
  const present = componentsOf(after);
  const changed = present.filter((component) => {
    const known = former.get(componentKey(component));
    return known === undefined || !sameComponent(known, component);
  });
  for (const component of present) former.delete(componentKey(component));
  const removed = [...former.values()].map((component) => ({ ...component, nodeCount: 0 }));
  const told = [...changed, ...removed];
  if (told.length === 0) return unchanged(meter);
  const touched = new Set(told.map(componentKey));
  const closed = meter.open
    .filter(({ component }) => touched.has(componentKey(component)))
    .map((interval) => ({ ...interval, untilMs: meter.atMs }));
  const isBilled = meter.open.length > 0;
  const opened = isBilled ? changed.map((component) => ({ component, sinceMs: meter.atMs })) : [];
  return {
    meter: { ...meter, open: stillOpen(meter.open, touched, opened) },
    changes: told.map((component) => updated(component, closed, states)),
    closed,
    opened,
  };
};

/** In the order of the components: the control plane's key sorts before those of workers. */
const stillOpen = (
  open: readonly OpenInterval[],
  touched: ReadonlySet<string>,
  opened: readonly OpenInterval[],
): readonly OpenInterval[] =>
  [...open.filter(({ component }) => !touched.has(componentKey(component))), ...opened]
    .map((interval) => [componentKey(interval.component), interval] as const)
    .sort(byKey)
    .map(([, interval]) => interval);

const updated = (component: Component, closed: readonly ClosedInterval[], states: States): Change => {
  const ended = closed.find((interval) => componentKey(interval.component) === componentKey(component));
  return {
    type: 'updated',
    component,
    ...(ended === undefined ? {} : { durationMs: ended.untilMs - ended.sinceMs }),
    ...states,
  };
};
