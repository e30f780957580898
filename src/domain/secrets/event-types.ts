import { documentTypes } from '../catalog/document-types.ts';
import type { EventType } from '../event-type.ts';

/** Registry entries of the kind `secret`. */
export const secretEventTypes: readonly EventType[] = documentTypes(
  { context: 'secrets', audience: 'tenant', resource: 'secret' },
  {
    created: 'SecretDeposited',
    revised: 'SecretRevised',
    deletionRequested: 'SecretRemovalRequested',
    retired: 'SecretRemoved',
  },
  ['metadata.finalizers', 'backend', 'coordinates'],
);
