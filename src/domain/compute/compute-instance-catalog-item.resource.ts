import { catalogItemKind } from '../catalog/catalog-item.ts';
import { INSTANCE_SPEC } from './instance-spec.ts';

export const computeInstanceCatalogItem = catalogItemKind({
  kind: 'computeInstanceCatalogItem',
  events: {
    created: 'ComputeInstanceCatalogItemOffered',
    revised: 'ComputeInstanceCatalogItemRevised',
    deletionRequested: 'ComputeInstanceCatalogItemWithdrawalRequested',
    retired: 'ComputeInstanceCatalogItemWithdrawn',
  },
  templateKind: 'computeInstanceTemplate',
  governed: INSTANCE_SPEC,
  references: { instance_type: 'instanceType', disk_image: 'diskImage' },
});
