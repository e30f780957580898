import { documentTypes } from '../catalog/document-types.ts';
import type { EventType } from '../event-type.ts';
import { USER_PERSONAL } from './user.resource.ts';

const personal = USER_PERSONAL.map((path) => `document.${path}`);

/** Registry entries of users: personal fields hold `Encrypted` values, and the name is a keyed hash. */
export const userEventTypes: readonly EventType[] = documentTypes(
  { context: 'tenancy', audience: 'tenant', resource: 'user' },
  {
    created: 'UserAdmitted',
    revised: 'UserRevised',
    deletionRequested: 'UserRemovalRequested',
    retired: 'UserRemoved',
  },
  ['metadata.finalizers', 'status.keycloak_user_id', 'spec.credentials'],
).map((type) => (type.type === 'UserAdmitted' || type.type === 'UserRevised' ? { ...type, personal } : type));
