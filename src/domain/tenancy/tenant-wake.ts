/** How what waits for its tenant's place on a hub hears that it is there: a timer `tenant-ready:<id of the space>`. */
export const TENANT_READY = 'tenant-ready';
export const TENANT_WAKE = {
  types: ['TenantSpaceBecameReady', 'TenantSpaceFailed', 'TenantSpaceRemoved'],
  timerId: TENANT_READY,
  perStream: 1_000,
} as const;

/** And of what waits until its hub carries its kind: a timer `hub-carries:<id of the hub>`. */
export const HUB_CARRIES = 'hub-carries';
export const HUB_WAKE = { types: ['HubKindsSeen'], timerId: HUB_CARRIES, perStream: 1_000 } as const;
