import {
  isSpace,
  tenantSpaceDecider,
  tenantSpaceTypes,
  type TenantSpace,
  type TenantSpaceEvent,
} from '../../domain/tenancy/tenant-space.ts';

/** What a hub holds of a tenant, and since when it has been so. */
export type HubSpace = Pick<TenantSpace, 'tenant' | 'status' | 'failure'> & { readonly since: string };

export const SPACE_TYPES: readonly string[] = tenantSpaceTypes.map(({ type }) => type);

/** It was asked for, or for its removal, and that is not done yet. */
export const isWaitingSpace = ({ status }: HubSpace): boolean =>
  status === 'requested' || status === 'removing';

/** All of them in memory: one for each tenant of each hub. */
export const createTenantSpaceBook = () => {
  const spaces = new Map<string, { readonly space: TenantSpace; readonly since: string }>();
  return {
    clear: (): void => spaces.clear(),
    see: (id: string, event: TenantSpaceEvent): void => {
      const { evolve, initialState } = tenantSpaceDecider;
      const known = spaces.get(id);
      const space = evolve(known?.space ?? initialState(), event);
      if (!isSpace(space)) return;
      const { at } = event.data;
      const isSame = known?.space.status === space.status;
      if (space.status === 'removed') spaces.delete(id);
      else spaces.set(id, { space, since: isSame ? known.since : at });
    },
    on: (hub: string): readonly HubSpace[] =>
      [...spaces.values()]
        .filter(({ space }) => space.hub === hub)
        .map(({ space: { tenant, status, failure }, since }) => ({
          tenant,
          status,
          since,
          ...(failure === undefined ? {} : { failure }),
        })),
  };
};
