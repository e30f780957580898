import { placeWithParent, wokenByParent } from '../placed-with-parent.ts';
import type { PlacedCommand, PlacedState } from '../placed-document.ts';
import { documentOf, placedKind } from '../placed-workflow.ts';
import { networkEventTypes } from './event-types.ts';
import { NAT_GATEWAY } from './hub-objects.ts';
import { addressOf, natGateway, type GatewayEvent } from './nat-gateway.resource.ts';
import { IN_NETWORK, networkIn } from './virtual-network.resource.ts';

/** From the ordered gateway to its object on the hub of its network, and back. */
export const actingNatGateway = placedKind<PlacedState, PlacedCommand, GatewayEvent>(natGateway, {
  eventTypes: networkEventTypes,
  object: NAT_GATEWAY,
  wakes: wokenByParent(IN_NETWORK),
  first: [placeWithParent(IN_NETWORK, NAT_GATEWAY)],
  wanted: (run) => {
    const document = documentOf(run);
    return { spec: { virtualNetwork: networkIn(document), externalIP: addressOf(document) } };
  },
  ready: (_run, _object, at) => ({ type: 'RecordReady', at }),
  states: ['accepted', 'pending', 'ready', 'failed', 'deleting'],
  deeds: { place: 'find the hub of its virtual network' },
  sentences: { NATGatewayBecameReady: 'The NAT gateway is ready.' },
});
