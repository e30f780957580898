import { catalogItemKind } from '../catalog/catalog-item.ts';
import { BARE_METAL_SPEC } from './bare-metal-spec.ts';

export const bareMetalInstanceCatalogItem = catalogItemKind({
  kind: 'bareMetalInstanceCatalogItem',
  collection: 'baremetal_instance_catalog_items',
  events: {
    created: 'BareMetalInstanceCatalogItemOffered',
    revised: 'BareMetalInstanceCatalogItemRevised',
    deletionRequested: 'BareMetalInstanceCatalogItemWithdrawalRequested',
    retired: 'BareMetalInstanceCatalogItemWithdrawn',
  },
  templateKind: 'bareMetalInstanceTemplate',
  governed: BARE_METAL_SPEC,
  references: {},
});
