import { objectAt, stringAt } from '../json-tools.ts';
import { claimFromParent, placeWithParent, wokenByParent } from '../placed-with-parent.ts';
import type { PlacedCommand, PlacedState } from '../placed-document.ts';
import { placedMeter } from '../placed-meter.ts';
import { documentOf } from '../placed-run.ts';
import { placedKind } from '../placed-workflow.ts';
import { networkEventTypes } from './event-types.ts';
import { SUBNET } from './hub-objects.ts';
import { subnet, type SubnetEvent } from './subnet.resource.ts';
import { IN_NETWORK, networkIn } from './virtual-network.resource.ts';
import { cidrsOf } from './virtual-network.workflow.ts';

/** From the ordered subnet to its object on the hub of its network, and back. */
export const actingSubnet = placedKind<PlacedState, PlacedCommand, SubnetEvent>(subnet, {
  eventTypes: networkEventTypes,
  object: SUBNET,
  wakes: wokenByParent(IN_NETWORK),
  first: [claimFromParent(subnet, IN_NETWORK), placeWithParent(IN_NETWORK, SUBNET, ['claim'])],
  wanted: (run) => {
    const document = documentOf(run);
    return { spec: { virtualNetwork: networkIn(document), ...cidrsOf(objectAt(document, 'spec')) } };
  },
  ready: (_run, _object, at) => ({ type: 'RecordReady', at }),
  states: ['accepted', 'pending', 'ready', 'failed', 'deleting', 'delete_failed'],
  deeds: {
    claim: 'claim its ranges',
    'undo-claim': 'give its ranges back',
    place: 'find the hub of its virtual network',
  },
  meter: placedMeter(subnet, {
    version: 1,
    resourceType: 'subnet',
    templateKind: IN_NETWORK.kind,
    part: 'subnet',
    billedState: 'SUBNET_STATE_READY',
    billed: (document) => {
      const id = networkIn(document);
      const name = stringAt(objectAt(objectAt(document, 'spec'), 'virtual_network'), 'name');
      return { template: { id, name }, dimensions: { virtual_network: id } };
    },
  }),
  sentences: { SubnetBecameReady: 'The subnet is ready.' },
});
