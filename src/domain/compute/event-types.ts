import { documentTypes } from '../catalog/document-types.ts';
import type { EventType } from '../event-type.ts';

/** Registry entries of what compute instances are made of. */
export const computeEventTypes: readonly EventType[] = documentTypes(
  { context: 'catalog', audience: 'tenant', resource: 'instanceType' },
  {
    created: 'InstanceTypeDefined',
    revised: 'InstanceTypeRevised',
    deletionRequested: 'InstanceTypeRetirementRequested',
    retired: 'InstanceTypeRetired',
  },
  ['metadata.finalizers'],
);
