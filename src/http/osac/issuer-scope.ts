import type { VerifiedToken } from '../../app/tenancy/identity.ts';
import type { IssuerScope } from '../../domain/tenancy/trusted-issuers.ts';
import type { Principal } from './principal.ts';

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
