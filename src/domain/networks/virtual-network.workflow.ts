import { BARE_METAL_INSTANCE } from '../bare-metal/hub-objects.ts';
import { COMPUTE_INSTANCE } from '../compute/hub-objects.ts';
import { HUB_NEWS } from '../hubs/health-events.ts';
import { listAt, objectAt, stringAt, textOf } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import { placeByScheduler } from '../placed-by-scheduler.ts';
import { placedMeter } from '../placed-meter.ts';
import { documentOf } from '../placed-run.ts';
import { placedKind } from '../placed-workflow.ts';
import { networkEventTypes } from './event-types.ts';
import { HUB_ANNOTATION } from './external-ip-pool.resource.ts';
import { NAT_GATEWAY, SECURITY_GROUP, SUBNET, VIRTUAL_NETWORK } from './hub-objects.ts';
import { fieldOf, rangeTexts } from './ranges-of-spec.ts';
import {
  isOfService,
  NETWORK_READY,
  virtualNetwork,
  type NetworkCommand,
  type NetworkEvent,
  type NetworkState,
} from './virtual-network.resource.ts';

const rangesText = (data: JsonObject): string => listAt(data, 'ranges').map(textOf).join(' and ');
const holderId = (data: JsonObject): string => stringAt(objectAt(data, 'holder'), 'id');

/** Ranges as a hub's object says them. */
export const cidrsOf = (spec: JsonObject): JsonObject =>
  Object.fromEntries(
    rangeTexts(spec).map(({ family, text }) => [fieldOf(family).replace('_cidr', 'Cidr'), text]),
  );

/** From the ordered network to its object on a hub, and back. */
export const actingVirtualNetwork = placedKind<NetworkState, NetworkCommand, NetworkEvent>(virtualNetwork, {
  eventTypes: networkEventTypes,
  object: VIRTUAL_NETWORK,
  wakes: { types: HUB_NEWS },
  // Its subnets are on its hub.
  first: [
    placeByScheduler<NetworkState>(
      virtualNetwork.kind,
      VIRTUAL_NETWORK,
      [VIRTUAL_NETWORK.kind, SUBNET.kind],
      {
        hubAnnotation: HUB_ANNOTATION,
        mayName: ({ subject }) => isOfService(subject),
        followers: [SECURITY_GROUP.kind, NAT_GATEWAY.kind, COMPUTE_INSTANCE.kind, BARE_METAL_INSTANCE.kind],
      },
    ),
  ],
  wanted: (run) => {
    const spec = objectAt(documentOf(run), 'spec');
    return {
      spec: {
        region: stringAt(spec, 'region'),
        networkClass: stringAt(objectAt(spec, 'network_class'), 'name'),
        implementationStrategy: stringAt(spec, 'implementation_strategy'),
        ...cidrsOf(spec),
      },
    };
  },
  ready: (_run, _object, at) => ({ type: 'RecordReady', at }),
  states: ['accepted', 'pending', 'ready', 'failed', 'deleting'],
  deeds: { place: 'find a hub for it' },
  meter: placedMeter(virtualNetwork, {
    version: 1,
    resourceType: 'virtual_network',
    templateKind: 'networkClass',
    part: 'network',
    billedState: NETWORK_READY,
    billed: (document) => {
      const found = objectAt(objectAt(document, 'spec'), 'network_class');
      const id = stringAt(found, 'id');
      return { template: { id, name: stringAt(found, 'name') }, dimensions: { network_class: id } };
    },
  }),
  sentences: {
    VirtualNetworkBecameReady: 'The virtual network is ready.',
    SubnetRangesClaimed: (data) => `Subnet ${holderId(data)} has ${rangesText(data)}.`,
    SubnetRangesReleased: (data) => `The ranges of subnet ${holderId(data)} were given back.`,
  },
});
