import { documentTypes } from '../catalog/document-types.ts';
import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { text, typesOf } from '../schemas.ts';

/** Registry entries of projects, memberships, roles, role bindings and identity providers. */
export const tenancyEventTypes: readonly EventType[] = [
  ...documentTypes(
    { context: 'tenancy', audience: 'tenant', resource: 'project' },
    {
      created: 'ProjectOpened',
      revised: 'ProjectRevised',
      deletionRequested: 'ProjectClosureRequested',
      retired: 'ProjectClosed',
    },
    ['metadata.finalizers', 'status.conditions'],
  ),
  ...typesOf({ context: 'tenancy', audience: 'internal', resource: 'project', changesDocument: false }, [
    ['ProjectEntered', { stream: text, left: z.array(text).exactOptional() }],
  ]),
  ...documentTypes(
    { context: 'tenancy', audience: 'tenant', resource: 'projectMembership' },
    {
      created: 'ProjectMembershipGranted',
      revised: 'ProjectMembershipRevised',
      deletionRequested: 'ProjectMembershipRevocationRequested',
      retired: 'ProjectMembershipRevoked',
    },
    ['metadata.finalizers', 'status.users'],
  ),
  ...documentTypes(
    { context: 'tenancy', audience: 'tenant', resource: 'role' },
    {
      created: 'RoleDefined',
      revised: 'RoleRevised',
      deletionRequested: 'RoleRetirementRequested',
      retired: 'RoleRetired',
    },
    ['metadata.finalizers'],
  ),
  ...documentTypes(
    { context: 'tenancy', audience: 'tenant', resource: 'roleBinding' },
    {
      created: 'RoleBound',
      revised: 'RoleBindingRevised',
      deletionRequested: 'RoleUnbindingRequested',
      retired: 'RoleUnbound',
    },
    ['metadata.finalizers', 'status.users'],
  ),
  ...documentTypes(
    { context: 'tenancy', audience: 'tenant', resource: 'identityProvider' },
    {
      created: 'IdentityProviderConnected',
      revised: 'IdentityProviderRevised',
      deletionRequested: 'IdentityProviderDisconnectionRequested',
      retired: 'IdentityProviderDisconnected',
    },
    ['metadata.finalizers', 'status.conditions'],
  ),
];
