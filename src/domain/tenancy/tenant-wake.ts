/** How what waits for its tenant's place on a hub hears that it is there: a timer `tenant-ready:<id of the space>`. */
export const TENANT_READY = 'tenant-ready';
export const TENANT_WAKE = {
  types: ['TenantSpaceBecameReady', 'TenantSpaceRemoved'],
  timerId: TENANT_READY,
  perStream: 1_000,
} as const;
