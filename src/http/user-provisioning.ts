import { aggregateOf } from '../domain/kinds.ts';
import { isProviderAccountName } from '../domain/tenancy/provider-clients.ts';
import { LRUCache } from 'lru-cache';
import type { CommandRunner } from '../app/commands/command.ts';
import { systemContext } from '../app/log/metadata.ts';
import type { Clock, Ids, Logger } from '../app/ports.ts';
import type { RequestHash } from '../app/commands/request-hash.ts';
import type { ResourceCommands } from '../app/commands/resource-commands.ts';
import type { DocumentCommand } from '../domain/catalog/document.ts';
import type { JsonObject } from '../domain/json.ts';
import { tenant as tenants } from '../domain/tenancy/tenant.resource.ts';
import { MAX_EMAIL, MAX_USERNAME, user, userNameOf } from '../domain/tenancy/user.resource.ts';
import type { ResourceReader } from '../projections/read-models.ts';
import { concealing, createNameToken, type PersonalDocuments } from './osac/personal.ts';
import { BUILT_IN_TENANTS, type Principal } from './osac/principal.ts';

export type UserProvisioningOptions = {
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

export type UserProvisioning = {
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
      // It gives no right, but would be taken for the account of the provider.
      if (isProviderAccountName(principal.userName ?? '')) return undefined;
      const { subjectId } = principal;
      const generation = resources.generation(user.kind);
      if (known.get(subjectId) === generation) return undefined;
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
