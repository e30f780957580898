import type { DocumentEventOf } from '../catalog/document.ts';

/** Events of the tenancy kinds that share the document decider. */
export type ProjectEvent = DocumentEventOf<
  'ProjectOpened',
  'ProjectRevised',
  'ProjectClosureRequested',
  'ProjectClosed'
>;
/** Who is viewer or manager of a project. Users appear by id alone: their names are personal data. */
export type ProjectMembershipEvent = DocumentEventOf<
  'ProjectMembershipGranted',
  'ProjectMembershipRevised',
  'ProjectMembershipRevocationRequested',
  'ProjectMembershipRevoked'
>;
export type RoleEvent = DocumentEventOf<
  'RoleDefined',
  'RoleRevised',
  'RoleRetirementRequested',
  'RoleRetired'
>;
export type RoleBindingEvent = DocumentEventOf<
  'RoleBound',
  'RoleBindingRevised',
  'RoleUnbindingRequested',
  'RoleUnbound'
>;
export type IdentityProviderEvent = DocumentEventOf<
  'IdentityProviderConnected',
  'IdentityProviderRevised',
  'IdentityProviderDisconnectionRequested',
  'IdentityProviderDisconnected'
>;
