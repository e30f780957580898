import type { KindRoute } from '../acting-kind.ts';
import { actingKinds } from '../acting-kinds.ts';
import { kinds } from '../kinds.ts';
import type { Method, ResourceKind } from '../resource.ts';

/**
 * Who may call what (OSAC): the whole table, as data, with what kinds say themselves. Admins may everything on both
 * surfaces; on the
 * private one only the CSI driver has a right besides. What is not listed is refused with 403. Services of kinds that
 * are not declared yet stand here too, so that declaring one opens it to those whom the table names.
 *
 * Rights of a project role hold inside its project only; all others hold for the caller's own tenants (and reading
 * `shared`), of a `project-member` for the projects that the token names. Which objects a caller sees and may write is
 * decided beside this table: see `http/osac/authorization.ts`.
 */
export type Role =
  | 'admin'
  /** Every user whose token names neither a realm role of this table nor a project. */
  | 'client'
  /** A user whose token names projects and no realm role: sees these projects and nothing else of the tenant. */
  | 'project-member'
  /** Reads all of the own tenants, changes nothing and is shown no credentials. */
  | 'tenant-reader'
  | 'tenant-admin'
  | 'tenant-idp-manager'
  | 'project-viewer'
  | 'project-manager'
  | 'csi-driver'
  /** Reads the history of the own tenants (`/api/audit/v1`); on OSAC's surfaces it is a `tenant-reader`. */
  | 'auditor';

/** Roles that a caller has in some project of a tenant. */
export type ProjectRole = 'project-viewer' | 'project-manager';

/** Methods beside the standard five; `Signal` of controllers is gRPC only and no right of anybody here. */
export type ExtraMethod = KindRoute['method'] | 'Watch';
export type AnyMethod = Method | ExtraMethod;

type Rights = { readonly [service: string]: readonly AnyMethod[] };

const ALL: readonly Method[] = ['List', 'Get', 'Create', 'Update', 'Delete'];
const READ: readonly Method[] = ['List', 'Get'];

const each = (services: readonly string[], methods: readonly AnyMethod[]): Rights =>
  Object.fromEntries(services.map((service) => [service, methods]));

const together = (...parts: readonly Rights[]): Rights => {
  const union: Record<string, readonly AnyMethod[]> = {};
  for (const part of parts)
    for (const [service, methods] of Object.entries(part))
      union[service] = [...new Set([...(union[service] ?? []), ...methods])];
  return union;
};

const CATALOG_ITEMS = [
  'ClusterCatalogItems',
  'ComputeInstanceCatalogItems',
  'BareMetalInstanceCatalogItems',
] as const;

const declared = (rights: ResourceKind['rights']): readonly string[] =>
  kinds.filter((kind) => kind.rights === rights).map(({ service }) => service);

/** What tenants order and own. */
const ORDERS = [
  ...declared('owned'),
  'BareMetalInstances',
  'ComputeInstances',
  'Subnets',
  'VirtualNetworks',
  'SecurityGroups',
  'ExternalIPs',
  'ExternalIPAttachments',
  'NATGateways',
];

/** Those of which a workflow has something to tell. */
const TIMED_ORDERS = actingKinds.map(({ service }) => service).filter((service) => ORDERS.includes(service));

const catalogue: Rights = each(
  [
    ...declared('offered'),
    ...CATALOG_ITEMS,
    'ComputeInstanceTemplates',
    'BareMetalInstanceTemplates',
    'BareMetalInstanceTypes',
    'ExternalIPPools',
  ],
  READ,
);

/** Orders are read and their timelines, our addition; nothing is changed, and nothing opens a machine. */
const member: Rights = {
  ...each(ORDERS, READ),
  ...each(TIMED_ORDERS, [...READ, 'GetTimeline']),
  ...catalogue,
  Projects: ['List'],
  ProjectMemberships: ['List'],
  Events: ['Watch'],
};

/** Orders are changed, and the keys to them handed out. */
const owner: Rights = together(
  each([...ORDERS, 'Secrets'], ALL),
  ...actingKinds.map(({ service, routes = [] }) => ({ [service]: routes.map(({ method }) => method) })),
  { ConsoleSessions: ['Create'] },
);

const client: Rights = together(member, owner);

const reader: Rights = together(member, {
  ...each(['IdentityProviders', 'Users', 'Projects', 'ProjectMemberships'], READ),
});

/** On the public surface. */
export const RIGHTS: { readonly [R in Exclude<Role, 'admin'>]: Rights } = {
  client,
  'project-member': member,
  'tenant-reader': reader,
  'tenant-admin': together(client, {
    ...each(CATALOG_ITEMS, ALL),
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
  'project-manager': together(owner, {
    Projects: ['Get', 'Update', 'Delete'],
    ProjectMemberships: ['Get', 'Create', 'Update', 'Delete'],
  }),
  'csi-driver': {},
  auditor: reader,
};

/** On the private surface, besides admins. */
export const PRIVATE_RIGHTS: { readonly [R in Exclude<Role, 'admin'>]: Rights } = {
  client: {},
  'project-member': {},
  'tenant-reader': {},
  'tenant-admin': {},
  'tenant-idp-manager': {},
  'project-viewer': {},
  'project-manager': {},
  'csi-driver': { Volumes: ['Create', 'Get', 'Delete', 'List'] },
  auditor: {},
};

/** True when one of these roles lists the method on this surface. `admin` lists everything. */
export const allows = (
  roles: Iterable<Role>,
  service: string,
  method: AnyMethod,
  surface: 'public' | 'private' = 'public',
): boolean => {
  const table = surface === 'public' ? RIGHTS : PRIVATE_RIGHTS;
  for (const role of roles) {
    if (role === 'admin') return true;
    const rights = table[role];
    if (Object.hasOwn(rights, service) && rights[service]?.includes(method) === true) return true;
  }
  return false;
};
