import { allows, type AnyMethod } from '../../domain/tenancy/rights.ts';
import type { Surface } from './messages.ts';
import { BUILT_IN_TENANTS, type Principal } from './principal.ts';

export type { AnyMethod, ExtraMethod } from '../../domain/tenancy/rights.ts';

/** What authorization needs to know of a kind; a ResourceKind is one. */
export type Governed = { readonly service: string };

/** May this caller use this method at all? Pure: admins may everything, others what the table gives their roles. */
export const mayCall = (
  principal: Pick<Principal, 'admin' | 'roles'>,
  surface: Surface,
  { service }: Governed,
  method: AnyMethod,
): boolean => principal.admin || (surface === 'public' && allows(principal.roles, service, method));

export type TenantDecision =
  | { readonly tenant: string }
  | { readonly refused: 'denied' | 'invalid'; readonly message: string };

/**
 * Tenant of a new object (osac-api.md §7 Tenancy): the one asked for if the caller may assign it, else the caller's
 * first own one, else the kind's default for admins. `exists` says whether a tenant was onboarded.
 */
export const tenantOfNew = (
  principal: Pick<Principal, 'admin' | 'tenants' | 'visibility'>,
  asked: string,
  fallback: string,
  exists: (tenant: string) => boolean,
): TenantDecision => {
  if (asked === '') {
    const own = principal.admin ? fallback : principal.tenants[0];
    if (own === undefined) return { refused: 'denied', message: 'the caller belongs to no tenant' };
    return { tenant: own };
  }
  if (principal.admin) {
    if (BUILT_IN_TENANTS.includes(asked) || exists(asked)) return { tenant: asked };
    return { refused: 'invalid', message: `tenant '${asked}' doesn't exist` };
  }
  if (principal.tenants.includes(asked)) return { tenant: asked };
  const visible = 'tenants' in principal.visibility && principal.visibility.tenants.includes(asked);
  return {
    refused: 'denied',
    message: visible ? `tenant '${asked}' can't be assigned` : `tenant '${asked}' doesn't exist`,
  };
};

/** Objects of `shared` are read-only for tenants, on update and on delete (osac-api-run.md head). */
export const mayWrite = (principal: Pick<Principal, 'admin' | 'tenants'>, tenant: string): boolean =>
  principal.admin || principal.tenants.includes(tenant);
