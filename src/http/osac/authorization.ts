import { allows, type AnyMethod, type ProjectRole } from '../../domain/tenancy/rights.ts';
import type { Visibility } from '../../projections/visibility.ts';
import type { Surface } from './messages.ts';
import { BUILT_IN_TENANTS, type Principal, type ProjectRoles } from './principal.ts';

export type { AnyMethod, ExtraMethod } from '../../domain/tenancy/rights.ts';

/** What authorization needs to know of a kind; a ResourceKind is one. */
export type Governed = { readonly service: string };

export type Caller = Pick<Principal, 'admin' | 'roles'> & Partial<Pick<Principal, 'projects'>>;

/**
 * May this caller use this method at all? Pure: admins may everything, others what the table gives their roles. What a
 * project role allows holds for objects of its project only: `mayCallOn` says for which.
 */
export const mayCall = (
  principal: Caller,
  surface: Surface,
  { service }: Governed,
  method: AnyMethod,
): boolean =>
  mayCallAnywhere(principal, surface, { service }, method) ||
  allows(projectRolesOf(principal), service, method, surface);

/** True when the caller's right does not depend on the project. */
export const mayCallAnywhere = (
  { admin, roles }: Caller,
  surface: Surface,
  { service }: Governed,
  method: AnyMethod,
): boolean => admin || allows(roles, service, method, surface);

/** The same for one object, which is a project or lies in one (by its dotted name) of a tenant. */
export const mayCallOn = (
  principal: Caller,
  surface: Surface,
  governed: Governed,
  method: AnyMethod,
  { tenant, project }: { readonly tenant: string; readonly project: string },
): boolean =>
  mayCallAnywhere(principal, surface, governed, method) ||
  allows(rolesIn(principal.projects?.get(tenant), project), governed.service, method, surface);

/**
 * What a caller with a role that only reads is told of a right that users have without it. Undefined: OSAC's words, which
 * its clients hear for what is no right of theirs.
 */
export const lackedRight = (
  { roles }: Caller,
  surface: Surface,
  { service }: Governed,
  method: AnyMethod,
): string | undefined => {
  if (roles.includes('client') || !allows(['client'], service, method, surface)) return undefined;
  const who = roles.map((role) => (role === 'project-member' ? 'a viewer of projects' : `role '${role}'`));
  const managers = allows(['project-manager'], service, method, surface)
    ? ' or to a manager of its project'
    : '';
  return `permission denied: ${who.join(' or ')} has no right '${service}/${method}'; it belongs to role 'tenant-admin'${managers}`;
};

/**
 * What of all that the caller sees this method may be used on: everything by a right that holds anywhere, else what
 * lies in
 * the projects where a role allows it, and what is shared. Pure.
 */
export const visibilityFor = (
  principal: Caller & Pick<Principal, 'visibility' | 'tenants'>,
  surface: Surface,
  governed: Governed,
  method: AnyMethod,
): Visibility => {
  const { visibility, tenants, projects } = principal;
  if ('all' in visibility || mayCallAnywhere(principal, surface, governed, method)) return visibility;
  const allowed = (tenant: string): readonly string[] =>
    (projects?.get(tenant)?.viewers ?? []).filter((project) =>
      mayCallOn(principal, surface, governed, method, { tenant, project }),
    );
  return { ...visibility, within: Object.fromEntries(tenants.map((tenant) => [tenant, allowed(tenant)])) };
};

const projectRolesOf = ({ projects }: Caller): readonly ProjectRole[] => {
  if (projects === undefined || projects.size === 0) return [];
  const manages = [...projects.values()].some(({ managers }) => managers.length > 0);
  return manages ? ['project-viewer', 'project-manager'] : ['project-viewer'];
};

const rolesIn = (roles: ProjectRoles | undefined, project: string): readonly ProjectRole[] => [
  ...(roles?.viewers.includes(project) === true ? (['project-viewer'] as const) : []),
  ...(roles?.managers.includes(project) === true ? (['project-manager'] as const) : []),
];

export type TenantDecision =
  | { readonly tenant: string }
  | { readonly refused: 'denied' | 'invalid'; readonly message: string };

/**
 * Tenant of a new object (OSAC): the one asked for if the caller may assign it, else the caller's
 * first own one; for those who see all tenants any, else the kind's default, which may be none (`''`). `exists` says
 * whether a tenant was onboarded.
 */
export const tenantOfNew = (
  principal: Pick<Principal, 'tenants' | 'visibility'>,
  asked: string,
  fallback: string,
  exists: (tenant: string) => boolean,
): TenantDecision => {
  const anywhere = 'all' in principal.visibility;
  const wanted = asked === '' ? (anywhere ? fallback : principal.tenants[0]) : asked;
  if (wanted === undefined) return { refused: 'denied', message: 'the caller belongs to no tenant' };
  if (wanted === '')
    return {
      refused: 'invalid',
      message: "field 'metadata.tenant' is required: name the tenant that it is for",
    };
  if (anywhere || principal.tenants.includes(wanted)) {
    if (BUILT_IN_TENANTS.includes(wanted) || exists(wanted)) return { tenant: wanted };
    return { refused: 'invalid', message: `tenant '${wanted}' doesn't exist` };
  }
  const visible = 'tenants' in principal.visibility && principal.visibility.tenants.includes(asked);
  return {
    refused: 'denied',
    message: visible ? `tenant '${asked}' can't be assigned` : `tenant '${asked}' doesn't exist`,
  };
};

/** Objects of `shared` are read-only for tenants, on update and on delete (OSAC). */
export const mayWrite = (principal: Pick<Principal, 'admin' | 'tenants'>, tenant: string): boolean =>
  principal.admin || principal.tenants.includes(tenant);
