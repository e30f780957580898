import { unusableReason } from '../../../domain/catalog/cluster-version.resource.ts';
import type { CatalogueObject } from '../../../domain/clusters/catalogue.ts';
import { trialRejection } from '../../../domain/clusters/item-trial.ts';
import { CLUSTER_SPEC } from '../../../domain/clusters/spec-paths.ts';
import { objectAt } from '../../../domain/json-tools.ts';
import type { Reference } from '../../../domain/references.ts';
import type { RoomCheck } from '../clusters.ts';
import type { CreateServices } from '../creates.ts';
import { find } from '../references.ts';
import { objectOf, type Offered } from './catalog-item.ts';

/** Clusters as they are offered. */
export const offeredClusters = ({
  resources,
  room,
}: Pick<CreateServices, 'resources'> & { readonly room: RoomCheck }): Offered => ({
  governed: CLUSTER_SPEC,
  templateKind: 'clusterTemplate',
  references: {
    version: {
      kind: 'clusterVersion',
      words: 'cluster version',
      unusable: (document) => unusableReason(objectAt(document, 'spec')),
    },
  },
  trial: (document, template, home) => {
    const hostType = (reference: Reference): CatalogueObject | undefined => {
      const found = find({ kind: 'hostType', local: false }, reference, home, resources, { all: true });
      return 'row' in found ? objectOf(found.row) : undefined;
    };
    return trialRejection(document, template, { hostType }, (nodeSets) =>
      room.never({ tenant: home.tenant, template: template.id, nodeSets }),
    );
  },
});
