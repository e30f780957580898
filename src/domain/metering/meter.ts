import type { DomainEvent } from '../decider.ts';
import { byKey, sameJson } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';

/**
 * What the events of an object say of its billable time (OSAC): pure, and the only place that knows. The
 * metering topics, the usage view and the audit of both fold the same events with it.
 *
 * Times are those of the events. A clock that was set back lengthens no interval and opens none before another ended:
 * time stands still until it is reached again. Where the far side tells the times (`timesAreTold`), it may be asked late:
 * what was recorded in between and bills nothing moves no time.
 */
export type Metering<State = unknown> = {
  readonly state: State;
  /** Undefined: there is nothing yet. */
  readonly facts?: MeteredFacts;
  /** Latest time of an event so far that counts, milliseconds since 1970. */
  readonly atMs: number;
  /** It has been billable before: the next time is `resumed`, not `started`. */
  readonly started: boolean;
  /** When it was first delivered: bills of `usage` begin there, while OSAC's metering bills the installation too. */
  readonly deliveredMs?: number;
  /** Components that are billed at present, in their order; empty while nothing is. */
  readonly open: readonly OpenInterval[];
};

/** Whose it is and what it is, as records and bills tell it. */
export type MeteredFacts = {
  /** `resource_type` of its records. */
  readonly resourceType: string;
  readonly isOurs?: true;
  readonly id: string;
  readonly tenant: string;
  readonly project: string;
  readonly name: string;
  readonly template: { readonly id: string; readonly name: string };
  /** As records name it; default: by its id. */
  readonly templateRecord?: string;
  readonly catalogItem?: string;
  /** Its state as reads show it, without OSAC's prefix. */
  readonly state: string;
  readonly isBillable: boolean;
  readonly isDelivered: boolean;
  readonly isGone: boolean;
  /** Billing dimensions of the object as a whole. */
  readonly dimensions: JsonObject;
};

/** Names, not ids, as the order resolved them: a later change of the catalogue changes no bill. */
export type Component = {
  /** `worker` is counted by nodes, everything else by itself. */
  readonly component: string;
  readonly nodeSet: string;
  readonly hostType: string;
  readonly nodeCount: number;
  readonly dimensions: JsonObject;
};

/** What tells the components of one object apart: a node set may bear any name. */
const componentKey = ({ component, nodeSet }: Component): string => `${component}/${nodeSet}`;

/** How a kind is metered. */
export type MeterRules<State> = {
  /** Raised with every change of what the fold gives: whoever stores meters builds them anew. */
  readonly version: number;
  readonly resourceType: string;
  /** OSAC does not meter it: its records go to a topic of their own, without heartbeats. */
  readonly isOurs?: true;
  /** Its hub tells when what is billed began and ended, perhaps long after. Default: events are recorded as they happen. */
  readonly timesAreTold?: true;
  /** Kind of what `template` names in bills. */
  readonly templateKind?: string;
  readonly facts: (state: State) => Omit<MeteredFacts, 'resourceType' | 'isOurs'> | undefined;
  readonly components: (state: State) => readonly Component[];
  /** True only where the components cannot differ; most events tell of progress. */
  readonly sameComponents: (before: State, after: State) => boolean;
};

export type Meter<State = unknown> = MeterRules<State> & {
  readonly initial: () => Metering<State>;
  /** Folds one event of the object's stream. Total: what makes no sense in this state changes nothing. */
  readonly fold: (before: Metering<State>, event: DomainEvent) => Metered<State>;
};

/** The version of the fold itself, beside those of the rules. */
export const METER_VERSION = 3;

export type OpenInterval = { readonly component: Component; readonly sinceMs: number };
export type ClosedInterval = OpenInterval & { readonly untilMs: number };

export type Change = {
  readonly type: 'created' | 'started' | 'resumed' | 'suspended' | 'updated' | 'deleted';
  /** Undefined: of the object as a whole (`created`, `deleted`). */
  readonly component?: Component;
  /** Length of the interval that ends with it; undefined: none does. */
  readonly durationMs?: number;
  readonly previousState?: string;
  readonly currentState: string;
};

export type Metered<State = unknown> = {
  readonly meter: Metering<State>;
  /** In the order in which they are published; empty: nothing that is billed changed. */
  readonly changes: readonly Change[];
  readonly closed: readonly ClosedInterval[];
  readonly opened: readonly OpenInterval[];
};

/** `fold`: of the kind's decider. */
export const meterOf = <State, Event extends DomainEvent>(
  rules: MeterRules<State>,
  decider: { readonly initialState: () => State; readonly evolve: (state: State, event: Event) => State },
): Meter<State> => ({
  ...rules,
  initial: () => ({ state: decider.initialState(), atMs: 0, started: false, open: [] }),
  fold: (before, event) => {
    // A fold passes types that it does not know.
    const state = decider.evolve(before.state, event as Event);
    const atMs = Math.max(before.atMs, Date.parse(String((event.data as { at?: unknown }).at)) || 0);
    const idleMs = rules.timesAreTold === true ? before.atMs : atMs;
    if (state === before.state) return unchanged({ ...before, atMs: idleMs });
    const facts = rules.facts(state);
    if (facts === undefined) return unchanged({ ...before, state, atMs: idleMs });
    const { resourceType, isOurs } = rules;
    const told = { ...facts, resourceType, ...(isOurs && { isOurs }) };
    const meter = { ...before, state, facts: told, atMs, ...deliveredBy(before, told, atMs) };
    if (before.facts === undefined) return created(rules, meter, told);
    if (told.isGone) return deleted(meter, before.facts);
    const metered = transition(rules, before, meter, { before: before.facts, after: told });
    return metered.changes.length > 0 ? metered : { ...metered, meter: { ...metered.meter, atMs: idleMs } };
  },
});

/** Delivery is final: what happens later does not take it back. */
const deliveredBy = (
  { deliveredMs }: Metering,
  { isDelivered, isGone }: MeteredFacts,
  atMs: number,
): Pick<Metering, 'deliveredMs'> =>
  deliveredMs === undefined && isDelivered && !isGone ? { deliveredMs: atMs } : {};

const DELETING = 'DELETING';

const unchanged = <State>(meter: Metering<State>): Metered<State> => ({
  meter,
  changes: [],
  closed: [],
  opened: [],
});

/** An order is progressing from its first moment, so that its billing by OSAC's rule starts with its creation. */
const created = <State>(
  rules: MeterRules<State>,
  meter: Metering<State>,
  { state: currentState, isBillable }: MeteredFacts,
): Metered<State> => {
  const started = isBillable ? begun(rules, meter, { currentState }) : unchanged(meter);
  return { ...started, changes: [{ type: 'created', currentState }, ...started.changes] };
};

/** What was still billed ends first, component by component; the deletion itself then ends nothing more. */
const deleted = <State>(meter: Metering<State>, { state: previousState }: MeteredFacts): Metered<State> => {
  const ended = suspended(meter, { previousState, currentState: DELETING });
  const last: Change = { type: 'deleted', previousState, currentState: DELETING };
  return { ...ended, changes: [...ended.changes, last] };
};

const transition = <State>(
  rules: MeterRules<State>,
  before: Metering<State>,
  meter: Metering<State>,
  facts: { readonly before: MeteredFacts; readonly after: MeteredFacts },
): Metered<State> => {
  const states = { previousState: facts.before.state, currentState: facts.after.state };
  const [was, is] = [facts.before.isBillable, facts.after.isBillable];
  if (was && !is) return suspended(meter, states);
  if (!was && is) return begun(rules, meter, states);
  return revised(rules, before.state, meter, states);
};

type States = Pick<Change, 'previousState' | 'currentState'>;

const begun = <State>(rules: MeterRules<State>, meter: Metering<State>, states: States): Metered<State> => {
  const opened = rules.components(meter.state).map((component) => ({ component, sinceMs: meter.atMs }));
  const type = meter.started ? 'resumed' : 'started';
  return {
    meter: { ...meter, started: true, open: opened },
    changes: opened.map(({ component }) => ({ type, component, ...states })),
    closed: [],
    opened,
  };
};

const suspended = <State>(meter: Metering<State>, states: States): Metered<State> => {
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
const revised = <State>(
  rules: MeterRules<State>,
  before: State,
  meter: Metering<State>,
  states: States,
): Metered<State> => {
  if (rules.sameComponents(before, meter.state)) return unchanged(meter);
  const former = new Map(rules.components(before).map((component) => [componentKey(component), component]));
  const present = rules.components(meter.state);
  const changed = present.filter((component) => {
    const known = former.get(componentKey(component));
    return known === undefined || !sameJson(known.dimensions, component.dimensions);
  });
  for (const component of present) former.delete(componentKey(component));
  const removed = [...former.values()].map((component) => ({
    ...component,
    nodeCount: 0,
    dimensions: { ...component.dimensions, node_count: 0 },
  }));
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
