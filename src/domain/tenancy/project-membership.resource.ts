import type { CheckContext } from '../catalog/document.ts';
import { documentKind } from '../catalog/document-kind.ts';
import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import { boundUserIds, repeatedUser, withBoundUsers } from './bound-users.ts';

/**
 * Project memberships (OSAC): users who are viewers or managers of one project. A user has one membership
 * in a project; the pair is a unique value, so that of two creations at once only one gets it.
 */
const ROLES = ['PROJECT_MEMBERSHIP_ROLE_VIEWER', 'PROJECT_MEMBERSHIP_ROLE_MANAGER'];
const FIRST = { state: 'PROJECT_MEMBERSHIP_STATE_READY' };

export const projectMembership = documentKind({
  kind: 'projectMembership',
  context: 'tenancy',
  events: {
    created: 'ProjectMembershipGranted',
    revised: 'ProjectMembershipRevised',
    deletionRequested: 'ProjectMembershipRevocationRequested',
    retired: 'ProjectMembershipRevoked',
  },
  untold: true,
  uniqueValues: (document) => {
    const metadata = objectAt(document, 'metadata');
    const project = stringAt(metadata, 'project');
    return boundUserIds(document).map((user) => ({
      scope: 'projectMembership.user',
      value: JSON.stringify([stringAt(metadata, 'tenant'), project, user]),
      field: 'spec.users',
      taken: `user '${user}' is already a member of project '${project}' by another membership`,
    }));
  },
  state: 'status.state',
  privateOnly: ['status.users'],
  references: [{ path: 'spec.users.*', kind: 'user', scope: 'full' }],
  normalize: (document) => withBoundUsers(document, FIRST),
  check: (document, context) => membershipRejection(document, context),
});

const membershipRejection = (document: JsonObject, { project }: CheckContext): Rejection | undefined => {
  if (project === '')
    return reject('invalid', 'FIELD_REQUIRED', "field 'metadata.project' is required: name the project", {
      field: 'metadata.project',
    });
  const role = stringAt(objectAt(document, 'spec'), 'role');
  if (!ROLES.includes(role))
    return reject('invalid', 'INVALID_ROLE', `field 'spec.role' must be one of ${ROLES.join(', ')}`, {
      field: 'spec.role',
    });
  if (boundUserIds(document).length === 0)
    return reject('invalid', 'FIELD_REQUIRED', "field 'spec.users' must name at least one user", {
      field: 'spec.users',
    });
  return repeatedUser(document);
};
