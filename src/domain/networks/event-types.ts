import type { EventType } from '../event-type.ts';
import { placedTypes } from '../placed-document.ts';
import { USE } from '../exclusive-use.ts';
import { text, typesOf } from '../schemas.ts';
import { ADDRESS_EVENTS } from './address-book.ts';
import { externalIpPool, POOL_PRIVATE_ONLY } from './external-ip-pool.resource.ts';
import { externalIp, IP_PRIVATE_ONLY } from './external-ip.resource.ts';

const context = 'networks';
const ofPools = { context, audience: 'tenant', resource: externalIpPool.kind } as const;
const ofIps = { context, audience: 'tenant', resource: externalIp.kind } as const;

/** Registry entries of external IP pools and external IPs. Who has which address is the provider's to know. */
export const networkEventTypes: readonly EventType[] = [
  ...placedTypes({ ...externalIpPool, context, hidden: POOL_PRIVATE_ONLY }, 'ExternalIPPool'),
  ...typesOf(ofPools, { ExternalIPPoolBecameReady: {} }),
  ...typesOf({ ...ofPools, audience: 'provider' }, ADDRESS_EVENTS),
  ...placedTypes({ ...externalIp, context, hidden: IP_PRIVATE_ONLY }, 'ExternalIP'),
  ...typesOf(
    ofIps,
    {
      ExternalIPAddressShown: { address: text },
      ExternalIPAllocated: { address: text },
      ExternalIPAttached: USE,
      ExternalIPDetached: USE,
    },
    { ExternalIPAddressShown: { audience: 'provider' } },
  ),
];
