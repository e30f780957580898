import type { DocumentCommand, DocumentState, Secrets } from '../../domain/catalog/document.ts';
import { withoutValueAt, withValueAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import { ApiError } from '../errors.ts';
import type { Creation, CreateServices, NewObject } from './creates.ts';
import { documentOf, type Revision } from './updates.ts';

type DocumentKind = ResourceKind<DocumentState, DocumentCommand, never>;

/** Catalogue-like kinds: one creation and one revision for all, plus what versions and tenants add. */
export const documentCreation = (kind: DocumentKind, services: CreateServices): Creation<DocumentCommand> => {
  const creation: Creation<DocumentCommand> = {
    resolve: ({ document, ...object }) => ({
      command: (secrets, abandonedBefore) =>
        createDocument({ document, ...object }, secrets, abandonedBefore),
    }),
  };
  if (kind.kind === 'clusterVersion') return versionCreation;
  return kind.kind === 'tenant' ? tenantCreation(services) : creation;
};

const createDocument = (
  { id, at, tenant, project, name, creator, document }: NewObject,
  secrets: Secrets,
  abandonedBefore: number,
): DocumentCommand => ({
  type: 'CreateDocument',
  id,
  at,
  tenant,
  project,
  name,
  creator,
  document,
  ...(Object.keys(secrets).length === 0 ? {} : { secrets }),
  abandonedBefore,
});

export const documentRevision = (): Revision<DocumentCommand> => ({
  command: (change) => ({
    type: 'ReviseDocument',
    at: change.at,
    document: documentOf(change),
    ...(Object.keys(change.secrets).length === 0 ? {} : { secrets: change.secrets }),
  }),
});

const IS_DEFAULT = 'spec.is_default';

/** Only admins choose the default, on the private surface; the previous one ceases to be it (osac-api.md §11). */
const versionCreation: Creation<DocumentCommand> = {
  resolve: (object) => {
    const document =
      object.surface === 'public' ? withoutValueAt(object.document, IS_DEFAULT) : object.document;
    return {
      command: (secrets, abandonedBefore) =>
        createDocument({ ...object, document }, secrets, abandonedBefore),
    };
  },
};

const BREAK_GLASS = 'status.break_glass_credentials';
const PASSWORD_CHARACTERS = 24;
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789';

/**
 * A tenant gets break-glass credentials: stored as a secret, shown in the answer that created it and never again
 * (design §4). The password is a keyed hash of the command, so that two runs of one command agree on it.
 */
const tenantCreation = (services: CreateServices): Creation<DocumentCommand> => ({
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
