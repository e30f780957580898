import type { EventType } from '../event-type.ts';
import { placedTypes } from '../placed-document.ts';
import { USE } from '../exclusive-use.ts';
import { mayBe, text, typesOf } from '../schemas.ts';
import { addressSpaceTypes } from './address-space.ts';
import { ADDRESS_EVENTS } from './address-book.ts';
import { ATTACHMENT_PRIVATE_ONLY, externalIpAttachment } from './external-ip-attachment.resource.ts';
import { externalIpPool, POOL_PRIVATE_ONLY } from './external-ip-pool.resource.ts';
import { externalIp, IP_PRIVATE_ONLY } from './external-ip.resource.ts';
import { PLAN_EVENTS } from './subnet-plan.ts';
import { GATEWAY_PRIVATE_ONLY, natGateway } from './nat-gateway.resource.ts';
import { GROUP_PRIVATE_ONLY, securityGroup } from './security-group.resource.ts';
import { subnet, SUBNET_PRIVATE_ONLY } from './subnet.resource.ts';
import { NETWORK_PRIVATE_ONLY, PINNED, virtualNetwork } from './virtual-network.resource.ts';

const context = 'networks';
const ofPools = { context, audience: 'tenant', resource: externalIpPool.kind } as const;
const ofIps = { context, audience: 'tenant', resource: externalIp.kind } as const;
const ofAttachments = { context, audience: 'tenant', resource: externalIpAttachment.kind } as const;
const ofNetworks = { context, audience: 'tenant', resource: virtualNetwork.kind } as const;
const ofGroups = { context, audience: 'tenant', resource: securityGroup.kind } as const;
const ofGateways = { context, audience: 'tenant', resource: natGateway.kind } as const;
const ofSubnets = { context, audience: 'tenant', resource: subnet.kind } as const;

/** Registry entries of all kinds of networks that act. Who has which address is the provider's to know. */
export const networkEventTypes: readonly EventType[] = [
  ...placedTypes({ ...externalIpPool, context, hidden: POOL_PRIVATE_ONLY }, 'ExternalIPPool'),
  ...typesOf(ofPools, { ExternalIPPoolBecameReady: {} }),
  ...typesOf({ ...ofPools, audience: 'provider' }, ADDRESS_EVENTS),
  ...addressSpaceTypes,
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
  ...placedTypes(
    { ...externalIpAttachment, context, hidden: ATTACHMENT_PRIVATE_ONLY },
    'ExternalIPAttachment',
  ),
  ...typesOf(ofAttachments, { ExternalIPAttachmentBecameReady: { address: text } }),
  ...placedTypes({ ...virtualNetwork, context, hidden: [...NETWORK_PRIVATE_ONLY, PINNED] }, 'VirtualNetwork'),
  ...typesOf(ofNetworks, { VirtualNetworkBecameReady: {} }),
  ...typesOf({ ...ofNetworks, changesDocument: false }, PLAN_EVENTS),
  ...placedTypes({ ...subnet, context, hidden: SUBNET_PRIVATE_ONLY }, 'Subnet'),
  ...typesOf(ofSubnets, { SubnetBecameReady: {} }),
  ...placedTypes({ ...securityGroup, context, hidden: GROUP_PRIVATE_ONLY }, 'SecurityGroup'),
  ...typesOf(
    ofGroups,
    { SecurityGroupBecameReady: { version: mayBe } },
    { SecurityGroupBecameReady: { providerOnly: ['version'] } },
  ),
  ...placedTypes({ ...natGateway, context, hidden: GATEWAY_PRIVATE_ONLY }, 'NATGateway'),
  ...typesOf(ofGateways, { NATGatewayBecameReady: {} }),
];
