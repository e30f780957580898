import { IssuerUnreachable, TokenRejected, type TokenVerifier, type VerifiedToken } from '../app/identity.ts';
import { ApiError, unauthenticated } from './errors.ts';
import { principalOf, type Principal, type PrincipalOptions } from './osac/principal.ts';

export type AuthenticatorOptions = {
  readonly verifier: TokenVerifier;
  /** True when the tenant was onboarded (and is not archived). Built-in tenants are known without asking. */
  readonly tenantExists: (tenant: string) => boolean;
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number;
  readonly principal?: PrincipalOptions;
  /** Sees to it that the caller has a User; see `user-provisioning.ts`. */
  readonly ensureUser?: (principal: Principal) => Promise<void> | undefined;
};

/**
 * `method` names the called method for the error text; a call that only tries (osac-api.md §3 dry run) makes nobody a
 * User. Throws ApiError 401, 400 (unknown tenant) or 503.
 */
export type Authenticate = (
  authorization: string | undefined,
  method: string,
  how?: { readonly dryRun?: boolean },
) => Principal | Promise<Principal>;

/** The token is a good one, but of a tenant that is not there: who called may not come in, and is known. */
export class TenantUnknown extends ApiError {
  readonly principal: Principal;
  constructor(principal: Principal) {
    super('INVALID_ARGUMENT', `tenant '${principal.tenants[0]?.slice(0, 63)}' of the token doesn't exist`);
    this.principal = principal;
  }
}

/** How long a tenant that was seen to exist is believed to go on existing, milliseconds. */
const TENANT_SEEN_MS = 1_000;
const MAX_REMEMBERED = 10_000;

/**
 * Bearer tokens to principals (osac-api.md §7). A token that was verified before costs one hash and two look-ups; the
 * tenants it names are checked again once a second, because they may be offboarded while it is valid.
 */
export const createAuthenticator = (options: AuthenticatorOptions): Authenticate => {
  const { verifier, tenantExists, monotonicMs } = options;
  const remembered = new WeakMap<VerifiedToken, Principal>();
  const seen = new Map<string, number>();

  const isKnown = (tenant: string): boolean => {
    const now = monotonicMs();
    const last = seen.get(tenant);
    if (last !== undefined && now - last < TENANT_SEEN_MS) return true;
    if (!tenantExists(tenant)) {
      seen.delete(tenant);
      return false;
    }
    if (seen.size >= MAX_REMEMBERED) seen.clear();
    seen.set(tenant, now);
    return true;
  };

  const toPrincipal = (token: VerifiedToken): Principal => {
    let principal = remembered.get(token);
    if (principal === undefined) {
      principal = principalOf(token, options.principal);
      remembered.set(token, principal);
    }
    const { admin, tenants } = principal;
    if (!admin && tenants.length > 0 && !tenants.some(isKnown)) throw new TenantUnknown(principal);
    return principal;
  };

  const verify = async (token: string): Promise<Principal> => {
    try {
      return toPrincipal(await verifier.verify(token));
    } catch (error) {
      throw asApiError(error);
    }
  };

  /** A call that writes waits for its User, so that the creator it records can be looked up; a read does not. */
  const withUser = (
    principal: Principal,
    method: string,
    dryRun: boolean | undefined,
  ): Principal | Promise<Principal> => {
    const providing = dryRun === true ? undefined : options.ensureUser?.(principal);
    return providing === undefined || !WRITES.test(method) ? principal : providing.then(() => principal);
  };

  return (authorization, method, { dryRun } = {}) => {
    const token = bearerToken(authorization, method);
    const known = verifier.recall(token);
    return known === undefined
      ? verify(token).then((principal) => withUser(principal, method, dryRun))
      : withUser(toPrincipal(known), method, dryRun);
  };
};

const WRITES = /\/(Create|Update|Delete)$/;

const bearerToken = (authorization: string | undefined, method: string): string => {
  if (authorization === undefined || authorization.trim() === '')
    throw unauthenticated(`method '${method}' requires authentication`, false);
  const [scheme = '', token = '', ...more] = authorization.trim().split(/\s+/);
  if (scheme.toLowerCase() !== 'bearer') {
    const shown = /^[A-Za-z0-9-]{1,32}$/.test(scheme) ? `'${scheme}' ` : '';
    throw unauthenticated(`authentication scheme ${shown}is not supported`, true, { plain: shown === '' });
  }
  if (token === '' || more.length > 0)
    throw unauthenticated('token is not valid: it is empty or holds spaces', true);
  return token;
};

const asApiError = (error: unknown): unknown => {
  if (error instanceof TokenRejected) {
    return unauthenticated(error.expired ? 'token expired: fetch a new one' : error.message, true);
  }
  if (error instanceof IssuerUnreachable) {
    return new ApiError('UNAVAILABLE', 'the keys of the token issuer cannot be fetched now; try again', {
      reason: 'ISSUER_UNREACHABLE',
      retryAfterSeconds: error.retryAfterMs / 1000,
      cause: error,
    });
  }
  return error;
};
