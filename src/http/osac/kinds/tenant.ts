import { OutcomeUnknown, StoreUnavailable } from '../../../app/log/event-store.ts';
import { createTenantBelongings, type TenantBelongings } from '../../../app/tenancy/tenant-belongings.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { listAt, objectAt, stringAt, withoutValueAt, withValueAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { kinds } from '../../../domain/kinds.ts';
import { isRefused } from '../../../domain/decider.ts';
import { FULFILLMENT_FINALIZER } from '../../../domain/hubs/hub-object.ts';
import { isDefaultPart } from '../../../domain/networks/default-ids.ts';
import {
  DEFAULT_KINDS,
  needsAddress,
  PROVISION,
  provisionOf,
} from '../../../domain/networks/default-networking.ts';
import { externalIpPool, isOffered } from '../../../domain/networks/external-ip-pool.resource.ts';
import { DEFAULT_CLASS_MARK, networkClass } from '../../../domain/networks/network-class.resource.ts';
import { defaultProjectId } from '../../../domain/tenancy/project.resource.ts';
import { ApiError, unfit } from '../../errors.ts';
import type { ResourceKind } from '../../../domain/resource.ts';
import type { AfterWrite } from '../after-write.ts';
import { refused, type Creation, type CreateServices } from '../creates.ts';
import { createdAtOf } from '../default-parts.ts';
import { createDocument } from '../documents.ts';
import { isOpenTo } from '../references.ts';

const BREAK_GLASS = 'status.break_glass_credentials';
const PASSWORD_CHARACTERS = 24;
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789';

/**
 * A tenant gets break-glass credentials: stored as a secret, shown in the answer that created it and never again.
 * The password is a keyed hash of the command, so that two runs of one command agree on it.
 */
export const tenantCreation = (services: CreateServices): Creation<DocumentCommand> => ({
  resolve: (object) => {
    const document = withProvision(services, withoutValueAt(object.document, BREAK_GLASS), object.tenant);
    const password = (commandId: string): string => passwordOf(services, object.id, commandId);
    return {
      secrets: ({ commandId }) => [
        {
          path: `${BREAK_GLASS}.password`,
          kind: 'break-glass-password',
          value: Buffer.from(password(commandId), 'utf8'),
        },
      ],
      command: (secrets, abandonedBefore) =>
        createDocument({ ...object, document }, secrets, abandonedBefore),
      revealOnce: (shown: JsonObject, { commandId }) =>
        withValueAt(shown, BREAK_GLASS, {
          username: `${object.name}-osac-break-glass`,
          password: password(commandId),
        }),
    };
  },
});

/**
 * What it gets by the default network class, and our finalizer, which holds it until all of that is gone. Whatever is
 * missing for it is missed before anything is stored.
 */
const withProvision = (
  { resources }: Pick<CreateServices, 'resources'>,
  document: JsonObject,
  tenant: string,
): JsonObject => {
  const [row] = resources.marked(networkClass.kind, DEFAULT_CLASS_MARK, ALL);
  if (row === undefined) return document;
  const found = { id: row.id, name: row.name, document: JSON.parse(row.privateJson) as JsonObject };
  const pool = needsAddress(found.document) ? mostFree(resources, tenant) : undefined;
  if (needsAddress(found.document) && pool === undefined)
    throw unfit(
      `${NOT_PROVISIONED}: no external IP pool is ready for its NAT gateway`,
      'NO_EXTERNAL_IP_POOL',
    );
  const provision = provisionOf(found, pool);
  if (provision === undefined) return document;
  if (isRefused(provision))
    throw refused({ ...provision, message: `${NOT_PROVISIONED}: ${provision.message}` });
  const metadata = objectAt(document, 'metadata');
  const finalizers = [...listAt(metadata, 'finalizers'), FULFILLMENT_FINALIZER];
  return { ...document, metadata: { ...metadata, finalizers }, [PROVISION]: provision };
};
const NOT_PROVISIONED = 'failed to provision default networking resources';
const ALL = { all: true } as const;

const PAGE = 100;

/** The pool of the tenant or shared with the most free addresses, and its hub. */
const mostFree = (resources: CreateServices['resources'], tenant: string) => {
  const offered = [...resources.pages(externalIpPool.kind, PAGE)]
    .flat()
    .filter((row) => isOpenTo(tenant, row))
    .map(({ id, name, privateJson }) => ({ id, name, document: JSON.parse(privateJson) as JsonObject }))
    .filter(({ document }) => isOffered(document))
    .map(({ document, ...pool }) => ({ ...pool, status: objectAt(document, 'status') }));
  const freeOf = ({ status }: (typeof offered)[number]): bigint => BigInt(stringAt(status, 'available'));
  const [first, ...others] = offered;
  if (first === undefined) return undefined;
  const { id, name, status } = others.reduce((most, one) => (freeOf(one) > freeOf(most) ? one : most), first);
  return { id, name, hub: stringAt(status, 'hub') };
};

/** Default objects of a tenant go with it, and only with it (OSAC). Undefined: it has none of this kind. */
export const protectedDefault = (
  { kind, words }: Pick<ResourceKind, 'kind' | 'words'>,
  { resources }: Pick<CreateServices, 'resources'>,
): ((id: string) => string | undefined) | undefined =>
  DEFAULT_KINDS.includes(kind)
    ? (id) => {
        const row = resources.get(kind, id, ALL);
        const owner = row && resources.get('tenant', row.tenant, ALL);
        return owner !== undefined && isDefaultPart(id, owner.id, createdAtOf(owner))
          ? `cannot delete default ${words}: default networking resources are system-managed`
          : undefined;
      }
    : undefined;

const passwordOf = ({ requestHash }: CreateServices, tenant: string, commandId: string): string => {
  let rest = BigInt(`0x${requestHash({ method: 'break-glass', route: tenant, body: commandId })}`);
  const base = BigInt(ALPHABET.length);
  let password = '';
  while (password.length < PASSWORD_CHARACTERS) {
    password += ALPHABET[Number(rest % base)] ?? '';
    rest /= base;
  }
  if (rest === 0n) throw new ApiError('INTERNAL', 'the request hash is too short for a password');
  return password;
};

/** The belongings of tenants over what the handlers have. */
export const belongingsOf = (
  services: Pick<CreateServices, 'runner' | 'commands' | 'clock' | 'resources'>,
): TenantBelongings =>
  createTenantBelongings({
    ...services,
    idsOf: (kind, tenant, limit) =>
      services.resources.list(kind, { tenants: [tenant] }, { offset: 0, limit }).rows.map(({ id }) => id),
  });

/**
 * After every write of a tenant, replays too: what it lacks or has left behind. A store that is away now does not turn
 * a tenant that is stored into a failure: the service settles it at its next round.
 */
export const settleTenant =
  (belongings: TenantBelongings): AfterWrite =>
  async (id) => {
    try {
      return await belongings.settle(id);
    } catch (error) {
      if (error instanceof StoreUnavailable || error instanceof OutcomeUnknown) return undefined;
      throw error;
    }
  };

/** Of one kind; whoever has more has some of its own. */
const MOST_DEFAULTS = 4;
/** Of what keeps a tenant. */
const NAMED = 5;

/** Kinds whose objects go with their tenant: users come by themselves with their first call. */
const GO_ALONG = ['tenant', 'user'];

/**
 * A tenant that still owns something stays: its objects would belong to nobody (OSAC). Its default
 * project does not count, other than in the original, where no tenant can be deleted for that (OSAC).
 */
export const tenantInUse =
  ({ resources }: Pick<CreateServices, 'resources'>) =>
  (id: string): string | undefined => {
    const visibility = { tenants: [id] };
    const row = resources.get('tenant', id, { all: true });
    const createdAt = row === undefined ? '' : createdAtOf(row);
    const defaultsOf = (kind: string): number => {
      if (kind === 'project')
        return Number(resources.get(kind, defaultProjectId(id), visibility) !== undefined);
      if (!DEFAULT_KINDS.includes(kind)) return 0;
      const { rows } = resources.list(kind, visibility, { offset: 0, limit: MOST_DEFAULTS });
      return rows.filter((one) => isDefaultPart(one.id, id, createdAt)).length;
    };
    const ownsOf = (kind: string): number => {
      const { total } = resources.list(kind, visibility, { offset: 0, limit: 0 });
      return total === 0 ? 0 : total - defaultsOf(kind);
    };
    const owned = kinds.find(({ kind }) => !GO_ALONG.includes(kind) && ownsOf(kind) > 0);
    if (owned === undefined) return undefined;
    const { rows } = resources.list(owned.kind, visibility, { offset: 0, limit: NAMED + MOST_DEFAULTS });
    const own = rows.filter(
      (one) => !isDefaultPart(one.id, id, createdAt) && one.id !== defaultProjectId(id),
    );
    const names = own.slice(0, NAMED).map((one) => `'${one.name || one.id}'`);
    const more = ownsOf(owned.kind) - names.length;
    const all = `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
    return `tenant '${id}' cannot be deleted because it still has objects of kind ${owned.words}: ${all}`;
  };
