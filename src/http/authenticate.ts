import { LRUCache } from 'lru-cache';
import type { CommandRunner, RequestHash } from '../app/commands/command.ts';
import type { ResourceCommands } from '../app/commands/resource-commands.ts';
import { systemContext } from '../app/log/metadata.ts';
import type { Logger, Clock, Ids } from '../app/ports.ts';
import {
  IssuerUnreachable,
  TokenRejected,
  type TokenVerifier,
  type VerifiedToken,
} from '../app/tenancy/identity.ts';
import type { DocumentCommand } from '../domain/catalog/document.ts';
import type { JsonObject } from '../domain/json.ts';
import { aggregateOf } from '../domain/kinds.ts';
import { isProviderAccountName } from '../domain/tenancy/provider-clients.ts';
import { tenant as tenants } from '../domain/tenancy/tenant.resource.ts';
import type { IssuerScope } from '../domain/tenancy/trusted-issuers.ts';
import { MAX_EMAIL, MAX_USERNAME, user, userNameOf } from '../domain/tenancy/user.resource.ts';
import type { ResourceReader } from '../projections/read-models.ts';
import { ApiError, unauthenticated, unavailable } from './errors.ts';
import {
  claimBeyond,
  principalOf,
  type Principal,
  type PrincipalOptions,
  BUILT_IN_TENANTS,
} from './osac/principal.ts';
import { concealing, createNameToken, type PersonalDocuments } from './osac/write-context.ts';

type AuthenticatorOptions = {
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
  /** Sees to it that the caller has a User. */
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

type UserProvisioningOptions = {
  readonly resources: Pick<ResourceReader, 'get' | 'findByName' | 'generation'>;
  readonly runner: CommandRunner;
  readonly commands: ResourceCommands;
  readonly people: PersonalDocuments;
  readonly requestHash: RequestHash;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** Callers remembered; default 10,000 (some 100 bytes each). */
  readonly cacheSize?: number;
};

type UserProvisioning = {
  /**
   * Undefined when nothing is to be done, which is what nearly every call gets. The promise never rejects: a caller
   * whose User cannot be made now is made one by a later call.
   */
  readonly ensure: (principal: Principal) => Promise<void> | undefined;
  readonly idle: () => Promise<void>;
};

/**
 * A User for every caller of exactly one tenant (OSAC): its id is the caller's subject id, which is what
 * `metadata.creator` holds. A caller who has one is found by an index, and not even looked for again until some user
 * changed; one that was removed is made again by the next call (OSAC).
 */
export const createUserProvisioning = (options: UserProvisioningOptions): UserProvisioning => {
  const { resources, runner, people, clock, ids, logger } = options;
  const nameToken = createNameToken(options.requestHash);
  const commands = concealing(options.commands, { people, runner, nameToken });
  /** Up to which generation of users a caller is known to have one. */
  const known = new LRUCache<string, number>({
    // Counted by size: `max` would take the room for all of them at once.
    maxSize: options.cacheSize ?? 10_000,
    sizeCalculation: () => 1,
  });
  const running = new Map<string, Promise<void>>();

  const exists = ({ subjectId }: Principal, tenant: string, name: string): boolean =>
    resources.get(user.kind, subjectId, { all: true }) !== undefined ||
    resources.findByName(user.kind, name, { tenants: [tenant] }).length > 0;

  const create = async (principal: Principal, tenant: string, name: string): Promise<void> => {
    const { subjectId } = principal;
    // The read model may not have got so far; the stream has.
    const { state } = await runner.load(aggregateOf(user), subjectId);
    if (state.status === 'present' || state.status === 'deleting') return;
    // It was there a second ago; a user without a tenant would belong to whoever gets its name next.
    const owner = tenants.view((await runner.load(aggregateOf(tenants), tenant)).state);
    if (!owner.exists || owner.archived) return;
    const commandId = ids.uuidv7();
    const command = (abandonedBefore: number): DocumentCommand => ({
      type: 'CreateDocument',
      at: clock.now(),
      id: subjectId,
      tenant,
      project: '',
      name,
      creator: 'system',
      document: documentOf(principal),
      abandonedBefore,
    });
    const context = systemContext(commandId, 'user-provisioning', { tenant, onBehalfOf: subjectId });
    const outcome = await commands.execute(user, subjectId, command, context);
    // Another instance, or somebody of the same name, was faster.
    if (outcome.outcome === 'rejected')
      logger.debug({ tenant, subjectId, code: outcome.rejection.code }, 'no user made for a caller');
  };

  const provide = async (principal: Principal, tenant: string, name: string): Promise<void> => {
    const { subjectId } = principal;
    const generation = resources.generation(user.kind);
    try {
      await create(principal, tenant, name);
      known.set(subjectId, generation);
    } catch (error) {
      logger.warn({ err: error, tenant, subjectId }, 'user not made; retrying with a later call');
    } finally {
      running.delete(subjectId);
    }
  };

  return {
    ensure: (principal) => {
      const tenant = onlyTenantOf(principal);
      if (tenant === undefined) return undefined;
      const { subjectId } = principal;
      const generation = resources.generation(user.kind);
      if (known.get(subjectId) === generation) return undefined;
      // It gives no right, but would be taken for the account of the provider.
      if (isProviderAccountName(principal.userName ?? '')) return undefined;
      const underWay = running.get(subjectId);
      if (underWay !== undefined) return underWay;
      const name = userNameOf(principal.userName, `user-${subjectId}`);
      if (exists(principal, tenant, name)) {
        known.set(subjectId, generation);
        return undefined;
      }
      const providing = provide(principal, tenant, name);
      running.set(subjectId, providing);
      return providing;
    },
    idle: async () => {
      await Promise.all(running.values());
    },
  };
};

/** Callers of several tenants or none have no User, nor has provider staff. */
const onlyTenantOf = ({ admin, roles, tenants }: Principal): string | undefined => {
  const [tenant, ...others] = tenants;
  if (admin || tenant === undefined || others.length > 0 || roles.includes('csi-driver')) return undefined;
  return BUILT_IN_TENANTS.includes(tenant) ? undefined : tenant;
};

/** What a token says about its holder; texts that are longer than a User may hold are cut or left out. */
const documentOf = ({ userName, email }: Principal): JsonObject => ({
  spec: {
    username: Array.from(userName).slice(0, MAX_USERNAME).join(''),
    ...(email === undefined || Array.from(email).length > MAX_EMAIL ? {} : { email }),
    enabled: true,
  },
});
