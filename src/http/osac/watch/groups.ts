import type { FilterNode } from '../../../projections/filter/ast.ts';
import type { Audience } from './audience.ts';
import type { Framing, RenderedChange } from './rendered-change.ts';
import type { Group, Watcher } from './watcher.ts';

export type GroupRequest = {
  readonly audience: Audience;
  readonly filter: FilterNode | undefined;
  /** Equal for equal filters. */
  readonly filterText: string;
  readonly framing: Framing;
};

export type Groups = {
  readonly join: (request: GroupRequest) => Group;
  readonly leave: (watcher: Watcher) => void;
  /** Those that one of these changes may concern, by its tenant. */
  readonly concernedBy: (rows: readonly RenderedChange[]) => Iterable<Group>;
  readonly count: () => number;
};

/** Groups by tenant, so that a change of one tenant costs nothing for the watchers of others. */
export const createGroups = (): Groups => {
  const byKey = new Map<string, Group>();
  const byTenant = new Map<string, Set<Group>>();
  const ofAllTenants = new Set<Group>();

  const enlist = (group: Group): void => {
    byKey.set(group.key, group);
    if (group.audience.tenants === undefined) ofAllTenants.add(group);
    for (const tenant of group.audience.tenants ?? []) {
      const set = byTenant.get(tenant) ?? new Set<Group>();
      byTenant.set(tenant, set.add(group));
    }
  };
  const strike = (group: Group): void => {
    byKey.delete(group.key);
    ofAllTenants.delete(group);
    for (const tenant of group.audience.tenants ?? []) {
      byTenant.get(tenant)?.delete(group);
      if (byTenant.get(tenant)?.size === 0) byTenant.delete(tenant);
    }
  };
  return {
    join: ({ audience, filter, filterText, framing }) => {
      const key = `${framing} ${audience.key} ${filterText}`;
      const group = byKey.get(key) ?? { key, audience, filter, framing, live: new Set<Watcher>(), size: 0 };
      if (group.size === 0) enlist(group);
      group.size += 1;
      return group;
    },
    leave: (watcher) => {
      const { group } = watcher;
      group.live.delete(watcher);
      group.size -= 1;
      if (group.size === 0) strike(group);
    },
    concernedBy: (rows) => {
      const found = new Set(ofAllTenants);
      for (const tenant of new Set(rows.map((row) => row.tenant)))
        for (const group of byTenant.get(tenant) ?? []) found.add(group);
      return found;
    },
    count: () => byKey.size,
  };
};
