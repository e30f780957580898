import type { Decider, DomainEvent } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { externalIp } from '../networks/external-ip.resource.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import type { ResourceView } from '../resource.ts';
import type { Change } from './cluster-meter.ts';

/**
 * Billable time of kinds that are billed as a whole while they show certain states: pure, folded from their
 * own events. OSAC does not meter them, so that they have a topic of their own (design §7). As for clusters,
 * a clock that was set back lengthens no interval.
 */
export type StateRule = {
  readonly kind: {
    readonly kind: string;
    readonly decider: Pick<Decider<unknown, never, DomainEvent>, 'initialState' | 'evolve'>;
    readonly view: (state: unknown) => ResourceView;
  };
  readonly resourceType: string;
  /** Shown states, without the kind's prefix. */
  readonly billable: readonly string[];
  readonly dimensions: (document: JsonObject) => JsonObject;
};

export const STATE_RULES: readonly StateRule[] = [
  {
    kind: externalIp as unknown as StateRule['kind'],
    resourceType: 'external_ip',
    billable: ['ALLOCATED'],
    dimensions: (document) => ({
      external_ip_pool: stringAt(objectAt(objectAt(document, 'spec'), 'pool'), 'name'),
    }),
  },
];

export type StateMeter = {
  readonly state: unknown;
  /** Latest time of an event so far, milliseconds since 1970. */
  readonly atMs: number;
  readonly started: boolean;
  /** Since when it is billed, while it is. */
  readonly sinceMs?: number;
};

export type MeteredResource = {
  readonly id: string;
  readonly tenant: string;
  readonly project: string;
};

export type MeteredWhole = {
  readonly atMs: number;
  readonly resourceType: string;
  /** Absent: there is nothing yet. */
  readonly resource?: MeteredResource;
  readonly dimensions: JsonObject;
  readonly changes: readonly Change[];
};

export const initialStateMeter = ({ kind }: StateRule): StateMeter => ({
  state: kind.decider.initialState(),
  atMs: 0,
  started: false,
});

/** Folds one event of the stream, and says what changed with it. */
export const meterState = (
  rule: StateRule,
  before: StateMeter,
  event: DomainEvent<string, { readonly at: string }>,
): { readonly meter: StateMeter; readonly metered: MeteredWhole } => {
  const state = rule.kind.decider.evolve(before.state, event);
  const atMs = Math.max(before.atMs, Date.parse(event.data.at) || 0);
  const was = rule.kind.view(before.state);
  const is = rule.kind.view(state);
  const { sinceMs, ...known } = before;
  const metered = { atMs, resourceType: rule.resourceType, dimensions: {}, changes: [] };
  if (!is.exists) return { meter: { ...known, state, atMs }, metered };
  const existed = was.exists && !was.archived;
  const previousState = existed ? shown(was.state) : undefined;
  const currentState = is.archived ? 'DELETING' : shown(is.state);
  const states = { currentState, ...(previousState === undefined ? {} : { previousState }) };
  const billed = !is.archived && rule.billable.includes(currentState);
  const changes: Change[] = [];
  if (!existed && !is.archived) changes.push({ type: 'created', currentState });
  if (billed && sinceMs === undefined)
    changes.push({ type: before.started ? 'resumed' : 'started', ...states });
  if (!billed && sinceMs !== undefined)
    changes.push({ type: 'suspended', durationMs: atMs - sinceMs, ...states });
  if (existed && is.archived) changes.push({ type: 'deleted', ...states });
  const { id, tenant, project } = is;
  return {
    meter: {
      state,
      atMs,
      started: before.started || billed,
      ...(billed ? { sinceMs: sinceMs ?? atMs } : {}),
    },
    metered: {
      ...metered,
      resource: { id, tenant, project },
      dimensions: rule.dimensions(is.document),
      changes,
    },
  };
};

const shown = (state: string | undefined): string => state?.replace(/^.*_STATE_/, '') || 'UNSPECIFIED';
