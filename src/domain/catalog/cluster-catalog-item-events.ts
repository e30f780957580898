import type { EventType } from '../event-type.ts';
import { documentTypes } from './document-types.ts';
import type {
  CreationAbandoned,
  DocumentCreated,
  DocumentDeletionRequested,
  DocumentRetired,
  DocumentRevised,
} from './events.ts';

/** Events of a catalogue item's stream `clusterCatalogItem-<id>`. */
export type ClusterCatalogItemEvent =
  | DocumentCreated<'ClusterCatalogItemOffered'>
  | DocumentRevised<'ClusterCatalogItemRevised'>
  | DocumentDeletionRequested<'ClusterCatalogItemWithdrawalRequested'>
  | DocumentRetired<'ClusterCatalogItemWithdrawn'>
  | CreationAbandoned;

export const catalogItemEventTypes: readonly EventType[] = documentTypes(
  { context: 'catalog', audience: 'tenant', resource: 'clusterCatalogItem' },
  {
    created: 'ClusterCatalogItemOffered',
    revised: 'ClusterCatalogItemRevised',
    deletionRequested: 'ClusterCatalogItemWithdrawalRequested',
    retired: 'ClusterCatalogItemWithdrawn',
  },
  ['metadata.finalizers', 'tenant'],
);
