import type { EventType } from '../event-type.ts';
import { text, typesOf } from '../schemas.ts';
import { documentTypes } from './document-types.ts';

/** Registry entries of the catalogue-like kinds: the same four events each, in the kind's own words. */
export const catalogEventTypes: readonly EventType[] = [
  ...documentTypes(
    { context: 'catalog', audience: 'tenant', resource: 'hostType' },
    {
      created: 'HostTypeDefined',
      revised: 'HostTypeRevised',
      deletionRequested: 'HostTypeRetirementRequested',
      retired: 'HostTypeRetired',
    },
    ['metadata.finalizers'],
  ),
  ...documentTypes(
    { context: 'catalog', audience: 'tenant', resource: 'clusterTemplate' },
    {
      created: 'ClusterTemplatePublished',
      revised: 'ClusterTemplateRevised',
      deletionRequested: 'ClusterTemplateRetirementRequested',
      retired: 'ClusterTemplateRetired',
    },
    ['metadata.finalizers', 'spec_defaults.pull_secret'],
  ),
  ...documentTypes(
    { context: 'catalog', audience: 'tenant', resource: 'clusterVersion' },
    {
      created: 'ClusterVersionAdded',
      revised: 'ClusterVersionRevised',
      deletionRequested: 'ClusterVersionRetirementRequested',
      retired: 'ClusterVersionRetired',
    },
    ['metadata.finalizers', 'spec.image'],
  ),
  ...documentTypes(
    { context: 'tenancy', audience: 'tenant', resource: 'tenant' },
    {
      created: 'TenantOnboarded',
      revised: 'TenantRevised',
      deletionRequested: 'TenantOffboardingRequested',
      retired: 'TenantOffboarded',
    },
    ['metadata.finalizers', 'status'],
  ),
  // One type for every kind: it says that an id stays unused, whatever it was meant for.
  ...typesOf({ context: 'naming', audience: 'internal', changesDocument: false }, [
    ['CreationAbandoned', { commandId: text }],
  ]),
];
