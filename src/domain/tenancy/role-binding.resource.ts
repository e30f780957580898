import { documentKind } from '../catalog/document-kind.ts';
import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import { repeatedUser, withBoundUsers } from './bound-users.ts';

/**
 * Role bindings (OSAC): users of one tenant who have a role. The role may be changed, as in
 * the original, but a binding without one would say nothing; one without users is what is left when the last has gone.
 * Names are unique in the tenant: tenants write bindings, and must not learn of each other's by a name that is taken.
 */
const FIRST = {
  state: 'ROLE_BINDING_STATE_PENDING',
  message:
    'recorded only: rights come from the token, so the binding takes effect once the token issuer gives these users the ' +
    'role; the program that provisions the issuer reports that here',
};

/** A binding by itself changes nothing for anybody, so only a report makes it ready; what it waited for goes with it. */
const withStatus = (document: JsonObject): JsonObject => {
  const stored = withBoundUsers(document, FIRST);
  const { message, ...status } = objectAt(stored, 'status');
  const waited = message === FIRST.message && stringAt(status, 'state') !== FIRST.state;
  return waited ? { ...stored, status } : stored;
};

export const roleBinding = documentKind({
  kind: 'roleBinding',
  context: 'tenancy',
  events: {
    created: 'RoleBound',
    revised: 'RoleBindingRevised',
    deletionRequested: 'RoleUnbindingRequested',
    retired: 'RoleUnbound',
  },
  rights: 'offered',
  nameScope: 'tenant',
  state: 'status.state',
  privateOnly: ['status.users'],
  references: [
    { path: 'spec.role', kind: 'role', scope: 'full' },
    { path: 'spec.users.*', kind: 'user', scope: 'full' },
  ],
  normalize: withStatus,
  check: (document) => (roleIdOf(document) === '' ? roleMissing() : repeatedUser(document)),
});

const roleIdOf = (document: JsonObject): string =>
  stringAt(objectAt(objectAt(document, 'spec'), 'role'), 'id');

const roleMissing = (): Rejection =>
  reject('invalid', 'FIELD_REQUIRED', "field 'spec.role' is required", { field: 'spec.role' });
