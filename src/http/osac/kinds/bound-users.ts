import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { objectAt, sameJson, stringAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { boundUserIds } from '../../../domain/tenancy/bound-users.ts';
import { isProviderRole } from '../../../domain/tenancy/role.resource.ts';
import { ApiError } from '../../errors.ts';
import type { Creation, CreateServices } from '../creates.ts';
import { documentCreation, documentRevision } from '../documents.ts';
import type { Principal } from '../principal.ts';
import { problemText, referencesInvalid } from '../references.ts';
import type { Revision } from '../updates.ts';

/**
 * Project memberships and role bindings bind users of their own tenant, also where an admin, who sees all, writes
 * them. A user of another tenant reads as one that does not exist.
 */
type Services = Pick<CreateServices, 'resources' | 'messageOf'>;

export const boundUsersCreation = (services: Services): Creation<DocumentCommand> => ({
  resolve: (object) => {
    checkUsers(object.document, object.tenant, [], services);
    return documentCreation.resolve(object);
  },
});

export const boundUsersRevision = (services: Services): Revision<DocumentCommand> => ({
  command: (change) => {
    checkUsers(change.after, change.tenant, boundUserIds(change.before), services);
    return documentRevision.command(change);
  },
});

/** The same for role bindings, whose role must be the caller's to give. */
export const roleBindingCreation = (services: Services): Creation<DocumentCommand> => ({
  resolve: (object) => {
    checkRole(object.document, object.principal);
    return boundUsersCreation(services).resolve(object);
  },
});

export const roleBindingRevision = (services: Services): Revision<DocumentCommand> => ({
  command: (change) => {
    if (!sameJson(objectAt(change.before, 'spec'), objectAt(change.after, 'spec')))
      checkRole(change.after, change.principal);
    return boundUsersRevision(services).command(change);
  },
});

/** Throws ApiError 403. */
const checkRole = (document: JsonObject, { admin }: Pick<Principal, 'admin'>): void => {
  const role = objectAt(objectAt(document, 'spec'), 'role');
  if (admin || !isProviderRole(role)) return;
  throw new ApiError(
    'PERMISSION_DENIED',
    `role '${stringAt(role, 'name')}' reaches beyond one tenant: only administrators of the provider bind users to it`,
  );
};

/** `known`: bound already, so that whatever became of them since does not stop another change. Throws ApiError 400. */
const checkUsers = (
  document: JsonObject,
  tenant: string,
  known: readonly string[],
  { resources, messageOf }: Services,
): void => {
  const violations = boundUserIds(document).flatMap((id, index) =>
    known.includes(id) || resources.get('user', id, { tenants: [tenant] }) !== undefined
      ? []
      : [
          {
            field: `object.spec.users.${index}`,
            description: problemText(messageOf('user'), { id }, 'not-found'),
          },
        ],
  );
  if (violations.length > 0) throw referencesInvalid(violations);
};
