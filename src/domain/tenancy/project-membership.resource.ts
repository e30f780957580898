import {
  documentDecider,
  documentView,
  type CheckContext,
  type DocumentCommand,
  type DocumentState,
} from '../catalog/document.ts';
import { reject, type Rejection } from '../decider.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import type { ResourceKind } from '../resource.ts';
import { boundUserIds, repeatedUser, withBoundUsers } from './bound-users.ts';
import type { ProjectMembershipEvent } from './events.ts';

/**
 * Project memberships (osac-api.md §11): users who are viewers or managers of one project. A user has one membership
 * in a project; the pair is a unique value, so that of two creations at once only one gets it.
 */
const ROLES = ['PROJECT_MEMBERSHIP_ROLE_VIEWER', 'PROJECT_MEMBERSHIP_ROLE_MANAGER'];
const FIRST = { state: 'PROJECT_MEMBERSHIP_STATE_READY' };

export const projectMembershipDecider = documentDecider({
  words: 'project membership',
  events: {
    created: 'ProjectMembershipGranted',
    revised: 'ProjectMembershipRevised',
    deletionRequested: 'ProjectMembershipRevocationRequested',
    retired: 'ProjectMembershipRevoked',
  },
  immutable: [],
  normalize: (document) => withBoundUsers(document, FIRST),
  check: (document, context) => membershipRejection(document, context),
});

export const projectMembership: ResourceKind<DocumentState, DocumentCommand, ProjectMembershipEvent> = {
  kind: 'projectMembership',
  collection: 'project_memberships',
  words: 'project membership',
  message: 'ProjectMembership',
  service: 'ProjectMemberships',
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  event: { field: 'project_membership', public: false },
  ids: 'client-may-choose',
  nameScope: 'project',
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
  defaultTenant: 'shared',
  privateOnly: ['metadata.finalizers', 'status.users'],
  secrets: [],
  immutable: [],
  references: [{ path: 'spec.users.*', kind: 'user', scope: 'full' }],
  pointsAt: (document) => boundUserIds(document).map((id) => ({ kind: 'user', id })),
  protectedWhileReferenced: true,
  decider: projectMembershipDecider,
  stateVersion: 1,
  view: (state) => {
    const view = documentView(state);
    return view.exists ? { ...view, state: stringAt(objectAt(view.document, 'status'), 'state') } : view;
  },
};

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
