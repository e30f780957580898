import { isStored } from '../catalog/document.ts';
import { documentKind } from '../catalog/document-kind.ts';
import { reject } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';

/** Roles (OSAC): named once for all tenants, written by admins. */
const READY = 'ROLE_STATE_READY';

/** Roles that exist from the first start and that nobody changes or deletes (OSAC). */
export const BUILT_IN_ROLES: readonly {
  readonly id: string;
  readonly name: string;
  readonly title: string;
  readonly description: string;
}[] = [
  {
    id: '019dd9f6-36cb-7000-8000-000000000001',
    name: 'cloud-provider-admin',
    title: 'Cloud provider admin',
    description: 'Manages everything of every tenant.',
  },
  {
    id: '019dd9f6-36cc-7000-8000-000000000002',
    name: 'cloud-provider-reader',
    title: 'Cloud provider reader',
    description: 'Sees everything of every tenant and changes nothing.',
  },
  {
    id: '019dd9f6-36cd-7000-8000-000000000003',
    name: 'tenant-admin',
    title: 'Tenant admin',
    description: 'Manages everything of one tenant.',
  },
  {
    id: '019dd9f6-36ce-7000-8000-000000000004',
    name: 'tenant-reader',
    title: 'Tenant reader',
    description: 'Sees everything of one tenant and changes nothing.',
  },
  {
    id: '019dd9f6-36cf-7000-8000-000000000005',
    name: 'tenant-user',
    title: 'Tenant user',
    description: 'Orders and uses the services of one tenant.',
  },
];
/** Roles over all tenants: what they give is not a tenant's to give. */
const PROVIDER_ROLES: readonly string[] = ['cloud-provider-admin', 'cloud-provider-reader'];
const PROVIDER_IDS = BUILT_IN_ROLES.flatMap(({ id, name }) => (PROVIDER_ROLES.includes(name) ? [id] : []));

/** By id, and by name for a role of this name that was there before the built-in one. */
export const isProviderRole = (role: JsonObject): boolean =>
  PROVIDER_IDS.includes(stringAt(role, 'id')) || PROVIDER_ROLES.includes(stringAt(role, 'name'));

const BUILT_IN_IDS = new Set(BUILT_IN_ROLES.map(({ id }) => id));

export const role = documentKind({
  kind: 'role',
  context: 'tenancy',
  events: {
    created: 'RoleDefined',
    revised: 'RoleRevised',
    deletionRequested: 'RoleRetirementRequested',
    retired: 'RoleRetired',
  },
  rights: 'offered',
  nameScope: 'global',
  state: 'status.state',
  normalize: (document) => ({ ...document, status: { state: READY, ...objectAt(document, 'status') } }),
  behaviour: (documents) => ({
    ...documents,
    decide: (state, command) =>
      isStored(state) &&
      BUILT_IN_IDS.has(state.id) &&
      (command.type === 'ReviseDocument' || command.type === 'DeleteDocument')
        ? reject(
            'failed-precondition',
            'BUILT_IN_ROLE',
            `role '${state.name}' is built in: it can neither be changed nor deleted`,
          )
        : documents.decide(state, command),
  }),
});
