import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { withoutValueAt, withValueAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { kinds } from '../../../domain/kinds.ts';
import { ApiError } from '../../errors.ts';
import type { Creation, CreateServices } from '../creates.ts';
import { createDocument } from '../documents.ts';

const BREAK_GLASS = 'status.break_glass_credentials';
const PASSWORD_CHARACTERS = 24;
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789';

/**
 * A tenant gets break-glass credentials: stored as a secret, shown in the answer that created it and never again
 * (design §4). The password is a keyed hash of the command, so that two runs of one command agree on it.
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

/** A tenant that still owns something stays: its objects would belong to nobody (osac-api.md §11 Tenants). */
export const tenantInUse =
  ({ resources }: Pick<CreateServices, 'resources'>) =>
  (id: string): string | undefined => {
    const owned = kinds.find(
      ({ kind }) =>
        kind !== 'tenant' && resources.list(kind, { tenants: [id] }, { offset: 0, limit: 0 }).total > 0,
    );
    return owned === undefined
      ? undefined
      : `tenant '${id}' cannot be deleted because it still has objects of kind ${owned.words}`;
  };
