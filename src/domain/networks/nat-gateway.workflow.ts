import { placeWithParent, wokenByParent } from '../placed-with-parent.ts';
import type { PlacedCommand, PlacedState } from '../placed-document.ts';
import { stringAt } from '../json-tools.ts';
import { documentOf, type PlacedRun } from '../placed-run.ts';
import { placedKind } from '../placed-workflow.ts';
import { ADDRESS_NEWS, attachAddress, awaitedBy } from './attached-address.ts';
import { networkEventTypes } from './event-types.ts';
import { externalIp } from './external-ip.resource.ts';
import { NAT_GATEWAY } from './hub-objects.ts';
import { addressOf, natGateway, type GatewayEvent } from './nat-gateway.resource.ts';
import { IN_NETWORK, networkIn } from './virtual-network.resource.ts';

const byNetwork = wokenByParent(IN_NETWORK);
/** An address serves networks of its own hub alone. */
const ADDRESS = {
  words: externalIp.words,
  hub: ({ done }: PlacedRun): string => stringAt(done['attach']?.result, 'hub'),
};

/** From the ordered gateway to its object on the hub of its network, and back. */
export const actingNatGateway = placedKind<PlacedState, PlacedCommand, GatewayEvent>(natGateway, {
  eventTypes: networkEventTypes,
  object: NAT_GATEWAY,
  wakes: {
    ...byNetwork,
    types: [...byNetwork.types, ...ADDRESS_NEWS],
    of: (run) => awaitedBy(run, 'attach') || byNetwork.of(run),
  },
  first: [attachAddress(natGateway), placeWithParent(IN_NETWORK, NAT_GATEWAY, ['attach'], ADDRESS)],
  wanted: (run) => {
    const document = documentOf(run);
    return { spec: { virtualNetwork: networkIn(document), externalIP: addressOf(document) } };
  },
  ready: (_run, _object, at) => ({ type: 'RecordReady', at }),
  states: ['accepted', 'pending', 'ready', 'failed', 'deleting'],
  deeds: {
    attach: 'claim its address',
    'undo-attach': 'give its address back',
    place: 'find the hub of its virtual network',
  },
  sentences: { NATGatewayBecameReady: 'The NAT gateway is ready.' },
});
