import type { Method } from '../resource.ts';

/**
 * Who may call what on the public surface (osac-api.md §7 Roles): the whole table, as data. Admins may everything on
 * both surfaces; nobody else may call the private one. What is not listed is refused with 403.
 *
 * Rights of a project role hold inside its project only; all others hold for the caller's own tenants (and reading
 * `shared`). Which objects a caller sees and may write is decided beside this table: see `http/osac/authorization.ts`.
 */
export type Role =
  | 'admin'
  | 'client'
  | 'tenant-admin'
  | 'tenant-idp-manager'
  | 'project-viewer'
  | 'project-manager'
  | 'csi-driver';

/** Methods beside the standard five; `Signal` of controllers is gRPC only and no right of anybody here. */
export type ExtraMethod = 'GetKubeconfig' | 'GetPassword' | 'GetTimeline' | 'Watch';
export type AnyMethod = Method | ExtraMethod;

type Rights = { readonly [service: string]: readonly AnyMethod[] };

const ALL: readonly Method[] = ['List', 'Get', 'Create', 'Update', 'Delete'];
const READ: readonly Method[] = ['List', 'Get'];

const client: Rights = {
  Clusters: [...ALL, 'GetKubeconfig', 'GetPassword', 'GetTimeline'],
  DiskImages: ALL,
  Secrets: ALL,
  ClusterCatalogItems: READ,
  ClusterTemplates: READ,
  ClusterVersions: READ,
  HostTypes: READ,
  InstanceTypes: READ,
  Roles: READ,
  RoleBindings: READ,
  Projects: ['List'],
  ProjectMemberships: ['List'],
  Events: ['Watch'],
};

const together = (...parts: readonly Rights[]): Rights => {
  const union: Record<string, readonly AnyMethod[]> = {};
  for (const part of parts)
    for (const [service, methods] of Object.entries(part))
      union[service] = [...new Set([...(union[service] ?? []), ...methods])];
  return union;
};

export const RIGHTS: { readonly [R in Exclude<Role, 'admin'>]: Rights } = {
  client,
  'tenant-admin': together(client, {
    ClusterCatalogItems: ALL,
    IdentityProviders: ALL,
    Users: ALL,
    Projects: ALL,
    ProjectMemberships: ALL,
    RoleBindings: ALL,
    Roles: READ,
  }),
  'tenant-idp-manager': together(client, {
    IdentityProviders: ALL,
    Users: READ,
    Roles: READ,
    RoleBindings: ALL,
  }),
  'project-viewer': { Projects: ['Get'] },
  'project-manager': {
    Projects: ['Get', 'Update', 'Delete'],
    ProjectMemberships: ['Get', 'Create', 'Update', 'Delete'],
  },
  // Its only right is on the private surface: volumes, which come with the storage kinds.
  'csi-driver': {},
};

/** True when one of these roles lists the method. `admin` lists everything. */
export const allows = (roles: Iterable<Role>, service: string, method: AnyMethod): boolean => {
  for (const role of roles) {
    if (role === 'admin') return true;
    if (Object.hasOwn(RIGHTS[role], service) && RIGHTS[role][service]?.includes(method) === true) return true;
  }
  return false;
};
