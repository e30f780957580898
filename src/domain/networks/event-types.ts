import type { EventType } from '../event-type.ts';
import { count, text, time, typesOf } from '../schemas.ts';
import { z } from 'zod';
import { POOL_PRIVATE_ONLY } from './external-ip-pool.resource.ts';
import { IP_PRIVATE_ONLY } from './external-ip.resource.ts';
import { placedTypes } from '../placed-document.ts';

const ofPools = { context: 'networks', audience: 'tenant', resource: 'externalIpPool' } as const;
const ofIps = { context: 'networks', audience: 'tenant', resource: 'externalIp' } as const;
const holder = z.strictObject({ kind: text, id: text });
const held = { holder, generation: count };

/**
 * Registry entries of external IP pools and external IPs. Who has which address is the provider's to know.
 */
export const networkEventTypes: readonly EventType[] = [
  ...placedTypes(ofPools, 'ExternalIPPool', POOL_PRIVATE_ONLY),
  ...typesOf(ofPools, [['ExternalIPPoolBecameReady', {}]]),
  ...typesOf({ ...ofPools, audience: 'provider' }, [
    ['AddressAssigned', { ...held, address: text }],
    ['AddressRequested', held],
    ['AddressObserved', { ...held, address: text }],
    ['AddressShownTwice', { holder, other: holder, address: text }],
    ['AddressReleased', { ...held, address: text.exactOptional(), restsUntil: time.exactOptional() }],
  ]),
  ...placedTypes(ofIps, 'ExternalIP', IP_PRIVATE_ONLY),
  ...typesOf(ofIps, [['ExternalIPAllocated', { address: text }]]),
];
