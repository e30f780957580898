import { reject, type Rejection } from '../../../domain/decider.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { objectAt, stringAt, valueAt } from '../../../domain/json-tools.ts';
import { aggregateOf } from '../../../domain/kinds.ts';
import { isHeldBy } from '../../../domain/exclusive-use.ts';
import { alreadyAttached, externalIp } from '../../../domain/networks/external-ip.resource.ts';
import { addressOf, natGateway } from '../../../domain/networks/nat-gateway.resource.ts';
import { networkClass } from '../../../domain/networks/network-class.resource.ts';
import { networkIn, virtualNetwork } from '../../../domain/networks/virtual-network.resource.ts';
import { refused, type Creation, type CreateServices } from '../creates.ts';
import { poolsInReach } from './external-ip.ts';
import { inNetworkCreation } from './networks.ts';

/**
 * What lies in a network, made by its fabric: the class needs a manager for that. Its address must be there, and where the
 * network is (OSAC checks neither network nor place).
 */
export const natGatewayCreation = (
  services: Pick<CreateServices, 'runner' | 'resources'>,
): Creation<DocumentCommand> => {
  const { runner } = services;
  return {
    resolve: async (object) => {
      const planned = await inNetworkCreation(services).resolve(object);
      const { document } = object;
      if (networkIn(document) === '' || addressOf(document) === '') return planned;
      const network = (await runner.load(aggregateOf(virtualNetwork), networkIn(document))).state;
      const view = virtualNetwork.view(network);
      const id = stringAt(
        objectAt(view.exists ? objectAt(view.document, 'spec') : {}, 'network_class'),
        'id',
      );
      const found = networkClass.view((await runner.load(aggregateOf(networkClass), id)).state);
      if (!found.exists || stringAt(found.document, 'fabric_manager') === '')
        throw refused(noFabric(networkIn(document)));
      const address = (await runner.load(aggregateOf(externalIp), addressOf(document))).state;
      const shown = externalIp.view(address);
      const state = (shown.exists && stringAt(valueAt(shown.document, 'status'), 'state')) || '';
      if (state !== 'EXTERNAL_IP_STATE_ALLOCATED') throw refused(notAllocated(addressOf(document), state));
      const [here, there] = [network.place?.hub, address.place?.hub];
      if (here !== there && here !== undefined && there !== undefined)
        throw refused(outOfReach(addressOf(document), poolsInReach(services, object, here)));
      // Said before the network's other gateway is (OSAC).
      const { user } = address;
      if (user !== undefined && !isHeldBy(user, { kind: natGateway.kind, id: object.id }))
        throw refused(alreadyAttached(addressOf(document)));
      return planned;
    },
  };
};

const unmet = (code: string, field: string, message: string): Rejection =>
  reject('failed-precondition', code, message, { field: `spec.${field}` });

const noFabric = (network: string): Rejection =>
  unmet(
    'NO_FABRIC_MANAGER',
    'virtual_network',
    `the class of virtual network '${network}' has no 'fabric_manager', which NAT gateways need`,
  );

const notAllocated = (id: string, state: string): Rejection =>
  unmet(
    'ADDRESS_NOT_ALLOCATED',
    'external_ip',
    `external IP '${id}' is not allocated (its state is ${state || 'EXTERNAL_IP_STATE_UNSPECIFIED'})`,
  );

const outOfReach = (id: string, pools: string): Rejection =>
  unmet(
    'ADDRESS_OUT_OF_REACH',
    'external_ip',
    `external IP '${id}' is out of reach of the virtual network: ${pools}`,
  );
