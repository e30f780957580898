import { documentTypes } from '../catalog/document-types.ts';
import type { EventType } from '../event-type.ts';

/** Registry entries of disk images. */
export const imageEventTypes: readonly EventType[] = documentTypes(
  { context: 'catalog', audience: 'tenant', resource: 'diskImage' },
  {
    created: 'DiskImageRegistered',
    revised: 'DiskImageRevised',
    deletionRequested: 'DiskImageRetirementRequested',
    retired: 'DiskImageRetired',
  },
  ['metadata.finalizers'],
);
