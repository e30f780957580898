import { OutcomeUnknown, StoreUnavailable } from '../../../app/log/event-store.ts';
import { createTenantBelongings, type TenantBelongings } from '../../../app/tenancy/tenant-belongings.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { withoutValueAt, withValueAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { kinds } from '../../../domain/kinds.ts';
import { defaultProjectId } from '../../../domain/tenancy/project.resource.ts';
import { ApiError } from '../../errors.ts';
import type { AfterWrite } from '../after-write.ts';
import type { Creation, CreateServices } from '../creates.ts';
import { createDocument } from '../documents.ts';

const BREAK_GLASS = 'status.break_glass_credentials';
const PASSWORD_CHARACTERS = 24;
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789';

/**
 * A tenant gets break-glass credentials: stored as a secret, shown in the answer that created it and never again.
 * The password is a keyed hash of the command, so that two runs of one command agree on it.
 */
export const tenantCreation = (services: CreateServices): Creation<DocumentCommand> => ({
  resolve: (object) => {
    const document = withoutValueAt(object.document, BREAK_GLASS);
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
    const ownsOf = (kind: string): number => {
      const { total } = resources.list(kind, visibility, { offset: 0, limit: 0 });
      const isDefault =
        kind === 'project' && resources.get(kind, defaultProjectId(id), visibility) !== undefined;
      return isDefault ? total - 1 : total;
    };
    const owned = kinds.find(({ kind }) => !GO_ALONG.includes(kind) && ownsOf(kind) > 0);
    return owned === undefined
      ? undefined
      : `tenant '${id}' cannot be deleted because it still has objects of kind ${owned.words}`;
  };
