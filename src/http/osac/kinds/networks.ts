import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { isRefused } from '../../../domain/decider.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { objectAt, own, stringAt, textsAt, valueAt } from '../../../domain/json-tools.ts';
import { ZONE_ANNOTATION } from '../../../domain/hubs/placement.ts';
import { aggregateOf } from '../../../domain/kinds.ts';
import { DEFAULT_CLASS_MARK, networkClass } from '../../../domain/networks/network-class.resource.ts';
import {
  IN_NETWORK,
  noClass,
  parentRejection,
  virtualNetwork,
  withClass,
} from '../../../domain/networks/virtual-network.resource.ts';
import type { RoomCheck } from '../clusters.ts';
import { refused, type Creation, type CreateServices } from '../creates.ts';
import { documentCreation } from '../documents.ts';

/** A network is made as its class says, which is the default one where none is named (OSAC). */
export const virtualNetworkCreation = (
  { runner, resources }: Pick<CreateServices, 'runner' | 'resources'>,
  room: RoomCheck,
): Creation<DocumentCommand> => ({
  resolve: async (object) => {
    const zone = own(textsAt(objectAt(object.document, 'metadata'), 'annotations'), ZONE_ANNOTATION) ?? '';
    if (zone !== '') room.zone(zone);
    const named = object.found.get('spec.network_class')?.id;
    const id = named ?? resources.marked(networkClass.kind, DEFAULT_CLASS_MARK, { all: true })[0]?.id;
    if (id === undefined) throw refused(noClass());
    const view = networkClass.view((await runner.load(aggregateOf(networkClass), id)).state);
    if (!view.exists || view.archived) throw refused(noClass());
    const made = withClass(object.document, view, object.surface === 'public');
    if (isRefused(made)) throw refused(made);
    return documentCreation.resolve({ ...object, document: made as JsonObject });
  },
});

/** Of what lies in a network, which must be ready for it (OSAC). */
export const inNetworkCreation = ({ runner }: Pick<CreateServices, 'runner'>): Creation<DocumentCommand> => ({
  resolve: async (object) => {
    const id = stringAt(valueAt(object.document, IN_NETWORK.path), 'id');
    if (id !== '') {
      const view = virtualNetwork.view((await runner.load(aggregateOf(virtualNetwork), id)).state);
      const rejection = parentRejection(id, (view.exists && view.state) || '');
      if (rejection !== undefined) throw refused(rejection);
    }
    return documentCreation.resolve(object);
  },
});
