import {
  IssuerUnreachable,
  TokenRejected,
  type TokenVerifier,
  type VerifiedToken,
} from '../app/tenancy/identity.ts';
import type { IssuerScope } from '../domain/tenancy/trusted-issuers.ts';
import type { Logger } from '../app/ports.ts';
import { ApiError, unauthenticated, unavailable } from './errors.ts';
import { claimBeyond } from './osac/issuer-scope.ts';
import { principalOf, type Principal, type PrincipalOptions } from './osac/principal.ts';

export type AuthenticatorOptions = {
  readonly verifier: TokenVerifier;
  /** True when the tenant was onboarded (and is not archived). Built-in tenants are known without asking. */
  readonly tenantExists: (tenant: string) => boolean;
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number;
  readonly principal?: PrincipalOptions;
  /** What an issuer may claim. Default, and where it is undefined: everything. */
  readonly scopeOf?: (issuer: string) => IssuerScope | undefined;
  /** Is told why a token was refused that claims more. Default: nobody is. */
  readonly logger?: Pick<Logger, 'warn'>;
  /** Sees to it that the caller has a User; see `user-provisioning.ts`. */
  readonly ensureUser?: (principal: Principal) => Promise<void> | undefined;
};

/**
 * `method` names the called method for the error text; a call that only tries (OSAC) makes nobody a
 * User. Throws ApiError 401, 400 (unknown tenant) or 503.
 */
export type Authenticate = (
  authorization: string | undefined,
  method: string,
  how?: { readonly dryRun?: boolean },
) => Principal | Promise<Principal>;

/** The token is signed by its issuer, but who called may not come in: they are known for the record of the refusal. */
export class TurnedAway extends ApiError {
  readonly principal: Principal;
  constructor(principal: Principal, { error, message, reason, options }: ApiError) {
    super(error, message, { ...options, reason });
    this.principal = principal;
  }
}

const tenantUnknown = ({ tenants }: Principal): ApiError =>
  new ApiError('INVALID_ARGUMENT', `tenant '${tenants[0]?.slice(0, 63)}' of the token doesn't exist`);

/** Which claim it is stands in the log: whoever made the token up need not learn what would pass. */
const beyondScope = (): ApiError => {
  const { error, message, options } = unauthenticated(
    'token is not valid: it claims what its issuer may not claim here',
    true,
  );
  return new ApiError(error, message, { ...options, reason: 'ISSUER_SCOPE' });
};

/** How long a tenant that was seen to exist is believed to go on existing, milliseconds. */
const TENANT_SEEN_MS = 1_000;
const MAX_REMEMBERED = 10_000;

/**
 * Bearer tokens to principals (OSAC). A token that was verified before costs one hash and two look-ups; the
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

  const assertInScope = (token: VerifiedToken, principal: Principal): void => {
    const scope = options.scopeOf?.(token.issuer);
    const claim = scope === undefined ? undefined : claimBeyond(scope, token, principal);
    if (claim === undefined) return;
    const { issuer, tokenIdHash } = token;
    options.logger?.warn(
      { issuer, claim, subjectId: principal.subjectId, tokenIdHash },
      'token refused: claim outside the scope of its issuer',
    );
    throw new TurnedAway(principal, beyondScope());
  };

  const toPrincipal = (token: VerifiedToken): Principal => {
    let principal = remembered.get(token);
    if (principal === undefined) {
      principal = principalOf(token, options.principal);
      assertInScope(token, principal);
      remembered.set(token, principal);
    }
    const { admin, tenants } = principal;
    if (!admin && tenants.length > 0 && !tenants.some(isKnown))
      throw new TurnedAway(principal, tenantUnknown(principal));
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
  if (error instanceof TokenRejected)
    return unauthenticated(error.expired ? 'token expired: fetch a new one' : error.message, true);
  if (!(error instanceof IssuerUnreachable)) return error;
  const text = 'the keys of the token issuer cannot be fetched now; try again';
  return unavailable(text, 'ISSUER_UNREACHABLE', error.retryAfterMs / 1000, error);
};
