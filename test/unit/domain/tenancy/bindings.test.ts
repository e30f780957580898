import { expect } from 'chai';
import fc from 'fast-check';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { projectMembership } from '../../../../src/domain/tenancy/project-membership.resource.ts';
import { roleBinding } from '../../../../src/domain/tenancy/role-binding.resource.ts';
import { BUILT_IN_ROLES, role } from '../../../../src/domain/tenancy/role.resource.ts';
import { specify, type EventOf } from '../../../support/domain/decider-spec.ts';
import { check } from '../../../support/property.ts';

type ProjectMembershipEvent = EventOf<typeof projectMembership>;
type RoleBindingEvent = EventOf<typeof roleBinding>;
type RoleEvent = EventOf<typeof role>;

const at = '2026-11-21T12:00:00.000Z';
const later = '2026-11-21T13:00:00.000Z';
const facts = { id: 'x1', at, tenant: 'acme', project: 'a', name: 'x', creator: 'u1' };
const create = (document: JsonObject, more: object = {}): DocumentCommand => ({
  type: 'CreateDocument',
  ...facts,
  document,
  ...more,
});
const revise = (document: JsonObject): DocumentCommand => ({ type: 'ReviseDocument', at: later, document });
const remove: DocumentCommand = { type: 'DeleteDocument', at: later };

describe('project memberships', () => {
  const { given } = specify(projectMembership.decider);
  const VIEWER = 'PROJECT_MEMBERSHIP_ROLE_VIEWER';
  const users = [{ id: 'u1' }, { id: 'u2' }];
  const document = {
    spec: { role: VIEWER, users },
    status: { state: 'PROJECT_MEMBERSHIP_STATE_READY', users },
  };
  const granted: ProjectMembershipEvent = {
    type: 'ProjectMembershipGranted',
    data: { ...facts, document },
  };

  it('are ready with their users, whose names are not stored', () => {
    const sent = { spec: { role: VIEWER, users: [{ id: 'u1', name: 'alice' }, { id: 'u2' }] } };
    given().when(create(sent)).thenEvents(granted);
    given(granted).when(revise(sent)).thenNothing();
  });
  it('need a project, a role and users, each once', () => {
    const refused: [JsonObject, object, string, string][] = [
      [{ spec: { role: VIEWER, users } }, { project: '' }, 'FIELD_REQUIRED', 'metadata.project'],
      [{ spec: { users } }, {}, 'INVALID_ROLE', 'spec.role'],
      [{ spec: { role: 77, users } }, {}, 'INVALID_ROLE', 'spec.role'],
      [{ spec: { role: VIEWER } }, {}, 'FIELD_REQUIRED', 'spec.users'],
      [{ spec: { role: VIEWER, users: [{ id: 'u1' }, { id: 'u1' }] } }, {}, 'USER_REPEATED', 'spec.users[1]'],
    ];
    for (const [wrong, more, code, field] of refused)
      given().when(create(wrong, more)).thenRejected(code, { field });
    given(granted)
      .when(revise({ spec: { role: VIEWER } }))
      .thenRejected('FIELD_REQUIRED');
  });
  it('show what a controller reports, but their users are those of the spec', () => {
    const reported = { state: 'PROJECT_MEMBERSHIP_STATE_FAILED', message: 'm', users: [{ id: 'u9' }] };
    given(granted)
      .when(revise({ ...document, status: reported }))
      .thenEvents({
        type: 'ProjectMembershipRevised',
        data: { at: later, document: { ...document, status: { ...reported, users } } },
      });
    expect(projectMembership.view(given(granted).state())).to.include({
      state: 'PROJECT_MEMBERSHIP_STATE_READY',
    });
  });
  it('end', () => {
    given(granted)
      .when(remove)
      .thenEvents({ type: 'ProjectMembershipRevoked', data: { at: later } });
    expect(projectMembership.view(given().state())).to.deep.equal({ exists: false });
  });
  it('protect their users, and claim each of them once in the project', () => {
    expect(projectMembership.pointsAt(document)).to.deep.equal([
      { kind: 'user', id: 'u1' },
      { kind: 'user', id: 'u2' },
    ]);
    const claims = (tenant: string, project: string, ids: readonly string[]) =>
      projectMembership.uniqueValues?.({
        metadata: { tenant, project },
        spec: { users: ids.map((id) => ({ id })) },
      }) ?? [];
    expect(claims('t1', 'a', ['u1'])).to.deep.equal([
      {
        scope: 'projectMembership.user',
        value: '["t1","a","u1"]',
        field: 'spec.users',
        taken: "user 'u1' is already a member of project 'a' by another membership",
      },
    ]);
    const part = fc.constantFrom('a', 'b', '"', 'a","b');
    check(
      fc.property(part, part, part, part, part, part, (t1, p1, u1, t2, p2, u2) => {
        const [one] = claims(t1, p1, [u1]);
        const [other] = claims(t2, p2, [u2]);
        expect(one?.value === other?.value).to.equal(t1 === t2 && p1 === p2 && u1 === u2);
      }),
      { numRuns: 500 },
    );
  });
});

describe('role bindings', () => {
  const { given } = specify(roleBinding.decider);
  const spec = { role: { id: 'r1', name: 'r' }, users: [{ id: 'u1' }] };
  const message =
    'recorded only: rights come from the token, so the binding takes effect once the token issuer gives these users the ' +
    'role; the program that provisions the issuer reports that here';
  const pending = { state: 'ROLE_BINDING_STATE_PENDING', message };
  const document = { spec, status: { ...pending, users: [{ id: 'u1' }] } };
  const bound: RoleBindingEvent = { type: 'RoleBound', data: { ...facts, document } };

  it('have a role, which may change but not go, and may lose all users', () => {
    given().when(create({ spec })).thenEvents(bound);
    given()
      .when(create({ spec: { users: [] } }))
      .thenRejected('FIELD_REQUIRED', { field: 'spec.role' });
    given(bound)
      .when(revise({ spec: { users: spec.users } }))
      .thenRejected('FIELD_REQUIRED');
    const other = { role: { id: 'r2' } };
    given(bound)
      .when(revise({ spec: other, status: document.status }))
      .thenEvents({
        type: 'RoleBindingRevised',
        data: { at: later, document: { spec: other, status: pending } },
      });
    given(bound)
      .when(revise({ spec: { ...spec, users: [{ id: 'u1' }, { id: 'u1' }] } }))
      .thenRejected('USER_REPEATED');
    given(bound)
      .when(remove)
      .thenEvents({ type: 'RoleUnbound', data: { at: later } });
  });
  it('change nothing by themselves, so they wait until a provisioner says that they do', () => {
    const ready = { state: 'ROLE_BINDING_STATE_READY' };
    const users = [{ id: 'u1' }];
    // A change of one field leaves the message beside it as it was.
    given(bound)
      .when(revise({ spec, status: { ...pending, ...ready, users } }))
      .thenEvents({
        type: 'RoleBindingRevised',
        data: { at: later, document: { spec, status: { ...ready, users } } },
      });
    const failed = { state: 'ROLE_BINDING_STATE_FAILED', message: 'realm refuses' };
    given(bound)
      .when(revise({ spec, status: { ...failed, users } }))
      .thenEvents({
        type: 'RoleBindingRevised',
        data: { at: later, document: { spec, status: { ...failed, users } } },
      });
  });
  it('protect role and users', () => {
    expect(roleBinding.pointsAt(document)).to.deep.equal([
      { kind: 'role', id: 'r1' },
      { kind: 'user', id: 'u1' },
    ]);
    expect(roleBinding.view(given(bound).state())).to.include({ state: 'ROLE_BINDING_STATE_PENDING' });
    expect(roleBinding.view(given().state())).to.deep.equal({ exists: false });
  });
});

describe('roles', () => {
  const { given } = specify(role.decider);
  const defined = (id: string): RoleEvent => ({
    type: 'RoleDefined',
    data: { ...facts, id, document: { status: { state: 'ROLE_STATE_READY' } } },
  });

  it('are ready once they are defined', () => {
    given()
      .when(create({}, { id: 'r1' }))
      .thenEvents(defined('r1'));
    given(defined('r1'))
      .when(revise({ spec: { title: 'T' } }))
      .thenEvents({
        type: 'RoleRevised',
        data: { at: later, document: { spec: { title: 'T' }, status: { state: 'ROLE_STATE_READY' } } },
      });
    given(defined('r1'))
      .when(remove)
      .thenEvents({ type: 'RoleRetired', data: { at: later } });
    expect(role.view(given(defined('r1')).state())).to.include({ state: 'ROLE_STATE_READY' });
    expect(role.view(given().state())).to.deep.equal({ exists: false });
    expect(role.pointsAt({})).to.deep.equal([]);
  });
  it('built-in ones stay as they are', () => {
    for (const { id, name } of BUILT_IN_ROLES) {
      given(defined(id))
        .when(revise({ spec: { title: name } }))
        .thenRejected('BUILT_IN_ROLE');
      given(defined(id)).when(remove).thenRejected('BUILT_IN_ROLE');
      given(defined(id)).when(create({}, { id })).thenRejected('ALREADY_EXISTS');
    }
    given().when(remove).thenRejected('NOT_FOUND');
  });
});
