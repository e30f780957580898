import { hubCapacity } from '../../app/hubs/scheduler.ts';
import {
  grows,
  limitsWhenEmpty,
  neverGrown,
  neverServed,
  neverThere,
  type NodeSets,
  type StandingHub,
  type StandingHubs,
  type Wish,
} from '../../domain/clusters/servable.ts';
import type { Rejection } from '../../domain/decider.ts';
import type { CapacityLimits } from '../../domain/hubs/capacity-events.ts';
import { capacityLimitsOf, limitsWithHosts, nodeLimit } from '../../domain/hubs/capacity.ts';
import { hub } from '../../domain/hubs/hub.resource.ts';
import { hubFacts } from '../../domain/hubs/hub-facts.ts';
import type { HubHealth } from '../../domain/hubs/health.ts';
import { own } from '../../domain/json-tools.ts';
import type { ResourceRow } from '../../projections/read-models.ts';
import type { CatalogueReader } from './catalogue.ts';
import type { HubAdapters } from './credentials.ts';
import { refused } from './creates.ts';
import type { WriteServices } from './write-context.ts';

/**
 * Refuses what can never be served, before anything is stored, and for a dry run alike. What a hub declares is read from
 * the read model, so that an order that follows a registration or a change of capacity meets it; what was seen of the hub
 * comes from the registry, which may be a moment behind.
 */
export type RoomCheck = {
  /** Why it can never be served, if so. */
  readonly never: (wish: Wish) => Rejection | undefined;
  /** The others throw ApiError 400. */
  readonly order: (wish: Wish) => void;
  readonly zone: (zone: string) => void;
  /** `hub`: where the cluster is; undefined: it has no place yet. */
  readonly change: (wish: Wish, before: NodeSets, hub: string | undefined) => Promise<void>;
};

type Services = Pick<WriteServices, 'resources' | 'runner'> & { readonly hubs: HubAdapters };

const PAGE = 100;

export const createRoomCheck = (
  { resources, runner, hubs }: Services,
  catalogue: Pick<CatalogueReader, 'object'>,
): RoomCheck => {
  let known: { readonly generation: number; readonly rows: readonly ResourceRow[] } | undefined;

  const rows = (): readonly ResourceRow[] => {
    const generation = resources.generation(hub.kind);
    if (known?.generation !== generation)
      known = { generation, rows: [...resources.pages(hub.kind, PAGE)].flat() };
    return known.rows;
  };

  /** What a hub declares, taken out of its row once. */
  const declared = new WeakMap<ResourceRow, Pick<StandingHub, 'hub'> & { readonly limits: CapacityLimits }>();
  const declaredBy = (row: ResourceRow) => {
    const before = declared.get(row);
    if (before !== undefined) return before;
    const { id, document } = catalogue.object(row);
    const facts = { hub: hubFacts({ id, document }), limits: capacityLimitsOf(document) };
    declared.set(row, facts);
    return facts;
  };

  const healthOf = (id: string): HubHealth => hubs.healthOf?.(id) ?? {};

  const standing = (row: ResourceRow): StandingHub => {
    const { hub: facts, limits } = declaredBy(row);
    const health = healthOf(row.id);
    return {
      hub: facts,
      deleting: row.deleting,
      adapter: hubs.adapterOf(row.id) !== undefined,
      health,
      limits: limitsWhenEmpty(limits, health.hosts),
    };
  };

  const all = (): StandingHubs => ({
    hubs: rows().map(standing),
    ...(hubs.refusesSimulated === undefined ? {} : { refusesSimulated: hubs.refusesSimulated }),
  });

  const orThrow = (wrong: Rejection | undefined): void => {
    if (wrong !== undefined) throw refused(wrong);
  };

  return {
    never: (wish) => neverServed(wish, all()),
    order: (wish) => orThrow(neverServed(wish, all())),
    zone: (zone) => orThrow(neverThere(zone, all())),
    change: async (wish, before, id) => {
      if (!grows(before, wish.nodeSets)) return;
      if (id === undefined) return orThrow(neverServed(wish, all()));
      const row = rows().find((each) => each.id === id);
      if (row === undefined) return;
      const { limits } = standing(row);
      if (neverGrown(before, wish.nodeSets, { limits, free: () => 0 }) === undefined) return;
      const { used } = (await runner.load(hubCapacity, id)).state;
      const now = limitsWithHosts(declaredBy(row).limits, healthOf(id).hosts?.counts);
      const free = (hostType: string): number =>
        (nodeLimit(now, hostType) ?? 0) - (own(used.nodes, hostType) ?? 0);
      orThrow(neverGrown(before, wish.nodeSets, { limits, free }));
    },
  };
};
