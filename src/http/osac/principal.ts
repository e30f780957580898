import { subjectIdOf, vouchedSubjectIdOf } from '../../app/log/identifiers.ts';
import type { Actor, PersonalData } from '../../app/log/metadata.ts';
import { LEEWAY_S, type VerifiedToken } from '../../app/tenancy/identity.ts';
import { PROVIDER_CLIENTS } from '../../domain/tenancy/provider-clients.ts';
import type { Role } from '../../domain/tenancy/rights.ts';
import type { IssuerScope } from '../../domain/tenancy/trusted-issuers.ts';
import type { Visibility } from '../../projections/read-models.ts';

/** Built-in tenants: they exist without having been created; `system` is never visible to tenants (OSAC). */
export const SHARED_TENANT = 'shared';
const SYSTEM_TENANT = 'system';
export const BUILT_IN_TENANTS: readonly string[] = [SHARED_TENANT, SYSTEM_TENANT];

/** Who calls, after OSAC's rules of identity. Tokens become principals here; everything behind sees only these. */
export type Principal = {
  /** UUIDv5 of tenant, issuer and subject: the User's id and `metadata.creator`. */
  readonly subjectId: string;
  readonly userName: string;
  readonly email?: string;
  /** Who acts on behalf of this subject: whom the history names, and nobody whose rights count. Absent: itself. */
  readonly actingParty?: { readonly subjectId: string } & PersonalData & Pick<Actor, 'vouchedBy'>;
  /** Provider staff: every tenant, the private surface, our own admin routes. */
  readonly admin: boolean;
  /** Roles whose rights hold everywhere in the own tenants; see `domain/tenancy/rights.ts`. */
  readonly roles: readonly Role[];
  /** Roles inside projects of the own tenants: `projects.get(tenant)?.managers` holds dotted project names. */
  readonly projects: ReadonlyMap<string, ProjectRoles>;
  readonly tenants: readonly string[];
  /** On whose behalf this caller acts where no object says otherwise: the first own tenant; of an admin `shared`. */
  readonly homeTenant: string | undefined;
  readonly visibility: Visibility;
  readonly authMethod: 'jwt' | 'service-account';
  /** Empty: there was no token. */
  readonly tokenIdHash: string;
  /** When the token is no longer accepted. */
  readonly tokenUntil: string;
  /** Where its calls come in, for the history. Default `http`. */
  readonly via?: string;
};

/** The caller as events name it, without what is personal. */
export const namelessActor = (principal: Principal): Actor => {
  const { subjectId, actingParty, roles, authMethod, tokenIdHash, via } = principal;
  return {
    subjectId: actingParty?.subjectId ?? subjectId,
    roles,
    authMethod,
    ...(tokenIdHash === '' ? {} : { tokenIdHash }),
    ...(actingParty === undefined ? {} : { onBehalfOf: subjectId }),
    ...(actingParty?.vouchedBy === undefined ? {} : { vouchedBy: actingParty.vouchedBy }),
    via: via ?? 'http',
  };
};

/** What is personal about whom `namelessActor` names, in clear. */
export const personOf = ({ actingParty, ...subject }: Principal): PersonalData => {
  const { userName, email } = actingParty ?? subject;
  return {
    ...(userName === undefined ? {} : { userName }),
    ...(email === undefined ? {} : { email }),
    ...(actingParty?.issuer === undefined ? {} : { issuer: actingParty.issuer }),
  };
};

/** For whom counts what a caller takes of the service: a tenant's users share; admins act for many, so each is one. */
export const payerOf = ({
  admin,
  homeTenant,
  subjectId,
}: Pick<Principal, 'admin' | 'homeTenant' | 'subjectId'>): string =>
  admin || homeTenant === undefined ? `subject ${subjectId}` : `tenant ${homeTenant}`;

/** Names of projects in which the caller is viewer or manager; a manager is a viewer too. */
export type ProjectRoles = { readonly viewers: readonly string[]; readonly managers: readonly string[] };

export type PrincipalOptions = {
  /**
   * Kubernetes namespace of this service's own deployment: only its service accounts `admin`, `osac-operator`,
   * `osac-operator-controller-manager` and `template-publisher` are admins. Absent: no service account is.
   */
  readonly deploymentNamespace?: string;
};

const ADMIN_GROUPS = ['admins', '/admins'];
const ADMIN_SERVICE_ACCOUNTS = [
  'admin',
  'osac-operator',
  'osac-operator-controller-manager',
  'template-publisher',
];
const CSI_DRIVER_ROLE = 'osac-csi-driver';
/** Realm roles that only read; each is a role of the table under its own name. */
const READING_ROLES = ['tenant-reader', 'auditor'] as const;

export const principalOf = (token: VerifiedToken, options: PrincipalOptions = {}): Principal => {
  const account = token.serviceAccount ? serviceAccountOf(token.subject) : undefined;
  const provider = isAdmin(token, account, options);
  const named = account === undefined ? token.organizations : [account.namespace];
  const tenants = [...new Set(named)].filter(notBuiltIn);
  const projects = token.serviceAccount ? new Map<string, ProjectRoles>() : projectsOf(token, tenants);
  const roles = rolesOf(token, provider, namesProjects(token));
  const admin = roles.includes('admin');
  const seesAll = admin || roles.includes('csi-driver');
  const homeTenant = tenants[0] ?? (seesAll ? SHARED_TENANT : undefined);
  return {
    subjectId: subjectIdOf(homeTenant ?? '', token.issuer, token.subject),
    userName: account?.name ?? token.userName,
    ...(token.email === undefined ? {} : { email: token.email }),
    ...actingFor(token, homeTenant ?? ''),
    admin,
    roles,
    projects,
    tenants,
    homeTenant,
    visibility: seesAll
      ? { all: true }
      : {
          tenants: [...tenants, SHARED_TENANT],
          ...(roles.includes('project-member') ? { within: withinOf(tenants, projects) } : {}),
        },
    authMethod: account === undefined ? 'jwt' : 'service-account',
    tokenIdHash: token.tokenIdHash,
    tokenUntil: new Date((token.expiresAt + LEEWAY_S) * 1000).toISOString(),
  };
};

/**
 * In the tenant of whom it acts for: one party that acts in several tenants is as many subjects, as users are. A
 * subject of
 * another issuer than the token's is one by the word of the token's alone: otherwise one issuer could have the
 * history name
 * whom the other one knows.
 */
const actingFor = (
  { issuer: vouchedBy, actingParty }: VerifiedToken,
  tenant: string,
): Pick<Principal, 'actingParty'> => {
  if (actingParty === undefined) return {};
  const { issuer, subject: sub, ...person } = actingParty;
  if (issuer === vouchedBy)
    return { actingParty: { subjectId: subjectIdOf(tenant, issuer, sub), ...person } };
  const subjectId = vouchedSubjectIdOf(tenant, { vouchedBy, issuer, sub });
  return { actingParty: { subjectId, vouchedBy, issuer, ...person } };
};

/**
 * `tenant-admin` implies `tenant-idp-manager`. A user without a realm role has OSAC's client rights, or
 * is limited to the projects that the token names. The CSI driver sees all tenants, so it is nothing
 * else: with a client's rights too it could read and change everybody's orders.
 */
const rolesOf = (
  { realmRoles, serviceAccount }: VerifiedToken,
  admin: boolean,
  inProjects: boolean,
): readonly Role[] => {
  if (admin) return ['admin'];
  if (serviceAccount) return ['client'];
  if (realmRoles.includes(CSI_DRIVER_ROLE)) return ['csi-driver'];
  const tenantAdmin = realmRoles.includes('tenant-admin');
  const writing: readonly Role[] = [
    ...(tenantAdmin ? (['tenant-admin'] as const) : []),
    ...(tenantAdmin || realmRoles.includes('tenant-idp-manager') ? (['tenant-idp-manager'] as const) : []),
  ];
  const reading = READING_ROLES.filter((role) => realmRoles.includes(role));
  if (writing.length > 0) return ['client', ...writing, ...reading];
  if (reading.length > 0) return reading;
  return [inProjects ? 'project-member' : 'client'];
};

/** The projects that the token names, tenant by tenant: nothing else of these tenants is seen. */
const withinOf = (
  tenants: readonly string[],
  projects: Principal['projects'],
): { readonly [tenant: string]: readonly string[] } =>
  Object.fromEntries(tenants.map((tenant) => [tenant, projects.get(tenant)?.viewers ?? []]));

/** `/<project>/system:viewers`; a project inside another is written as a path or with its dotted name. */
const PROJECT_GROUP = /^\/(.+)\/system:(viewers|managers)$/;
/** Also written in another form, or where the tenant that it is of cannot be told: it gives no role, and limits. */
const MEANT_FOR_PROJECT = /(^|\/)system:(viewers|managers)\/?$/;

/** Such a token is limited to projects, even when none of them is known by it: else the claim's form would lift the limit. */
const namesProjects = ({ serviceAccount, groups, tenantGroups }: VerifiedToken): boolean =>
  !serviceAccount &&
  (tenantGroups === undefined ? groups : [...tenantGroups.values()].flat()).some((group) =>
    MEANT_FOR_PROJECT.test(group),
  );

/**
 * Project roles from the groups inside each tenant (OSAC). Where `organization` is a list, the token's
 * own groups are meant; of several tenants they could be any one's, so they count only when it names a single one.
 */
const projectsOf = (token: VerifiedToken, tenants: readonly string[]): Principal['projects'] => {
  const projects = new Map<string, ProjectRoles>();
  const { tenantGroups } = token;
  const [only, ...others] = tenants;
  for (const tenant of tenants) {
    const groups =
      tenantGroups === undefined
        ? others.length === 0 && tenant === only && token.organizations.length === 1
          ? token.groups
          : []
        : (tenantGroups.get(tenant) ?? []);
    const found = projectRolesOf(groups);
    if (found !== undefined) projects.set(tenant, found);
  }
  return projects;
};

const projectRolesOf = (groups: readonly string[]): ProjectRoles | undefined => {
  const viewers = new Set<string>();
  const managers = new Set<string>();
  for (const group of groups) {
    const [, path, role] = PROJECT_GROUP.exec(group) ?? [];
    if (path === undefined) continue;
    const project = path.replaceAll('/', '.');
    viewers.add(project);
    if (role === 'managers') managers.add(project);
  }
  return viewers.size === 0 ? undefined : { viewers: [...viewers], managers: [...managers] };
};

const notBuiltIn = (tenant: string): boolean => !BUILT_IN_TENANTS.includes(tenant);

const serviceAccountOf = (subject: string): { namespace: string; name: string } | undefined => {
  const match = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(subject);
  return match === null ? undefined : { namespace: match[1] ?? '', name: match[2] ?? '' };
};

const isAdmin = (
  token: VerifiedToken,
  account: { namespace: string; name: string } | undefined,
  { deploymentNamespace }: PrincipalOptions,
): boolean => {
  if (token.serviceAccount) {
    return (
      account !== undefined &&
      account.namespace === deploymentNamespace &&
      ADMIN_SERVICE_ACCOUNTS.includes(account.name)
    );
  }
  const { ownAccountOf } = token;
  if (ownAccountOf !== undefined && PROVIDER_CLIENTS.includes(ownAccountOf)) return true;
  return token.groups.some((group) => ADMIN_GROUPS.includes(group));
};

/**
 * The claim of a token that its issuer may not make, in words for the log; undefined when there is none. The CSI driver
 * reaches all tenants, so that an issuer of some may not name one.
 */
export const claimBeyond = (
  { tenants, admins, services }: IssuerScope,
  { serviceAccount }: Pick<VerifiedToken, 'serviceAccount'>,
  principal: Pick<Principal, 'admin' | 'roles' | 'tenants'>,
): string | undefined => {
  if (serviceAccount && !services) return 'service account';
  if (principal.admin && !admins) return 'provider admin';
  if (principal.roles.includes('csi-driver') && !admins && tenants !== 'all') return "role 'osac-csi-driver'";
  // The namespace of the deployment's own accounts is where they run, and no tenant that they speak for.
  if (tenants === 'all' || (serviceAccount && principal.admin)) return undefined;
  const foreign = principal.tenants.find((tenant) => !tenants.includes(tenant));
  return foreign === undefined ? undefined : `tenant '${foreign.slice(0, 63)}'`;
};
