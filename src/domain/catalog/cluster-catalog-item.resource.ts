import { CLUSTER_SPEC } from '../clusters/spec-paths.ts';
import { catalogItemKind } from './catalog-item.ts';

export const clusterCatalogItem = catalogItemKind({
  kind: 'clusterCatalogItem',
  events: {
    created: 'ClusterCatalogItemOffered',
    revised: 'ClusterCatalogItemRevised',
    deletionRequested: 'ClusterCatalogItemWithdrawalRequested',
    retired: 'ClusterCatalogItemWithdrawn',
  },
  templateKind: 'clusterTemplate',
  governed: CLUSTER_SPEC,
  references: { version: 'clusterVersion' },
});
