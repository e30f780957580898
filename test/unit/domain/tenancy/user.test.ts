import { expect } from 'chai';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { user, userRejection } from '../../../../src/domain/tenancy/user.resource.ts';
import { specify, type EventOf } from '../../../support/domain/decider-spec.ts';

type UserEvent = EventOf<typeof user>;

const at = '2026-11-21T10:00:00.000Z';
const later = '2026-11-21T11:00:00.000Z';
const sealed = (ct: string): JsonObject => ({ alg: 'A256GCM', keyId: 'u-1.1', nonce: 'n', ct, tag: 't' });
const document: JsonObject = {
  metadata: { name: sealed('a') },
  spec: { username: sealed('b'), enabled: true },
};
const create = (
  more: Partial<Extract<DocumentCommand, { type: 'CreateDocument' }>> = {},
): DocumentCommand => ({
  type: 'CreateDocument',
  at,
  id: 'u-1',
  tenant: 't1',
  project: '',
  name: 'p0123',
  creator: 'system',
  document,
  ...more,
});
const admitted = (when = at): UserEvent => ({
  type: 'UserAdmitted',
  data: { id: 'u-1', at: when, tenant: 't1', project: '', name: 'p0123', creator: 'system', document },
});
const removed: UserEvent = { type: 'UserRemoved', data: { at } };
const users = specify(user.decider);

describe('users', () => {
  it('are admitted', () => users.given().when(create()).thenEvents(admitted()));
  it('are admitted once', () => users.given(admitted()).when(create()).thenRejected('ALREADY_EXISTS'));
  it('are not admitted while they are being removed', () => {
    const requested: UserEvent = { type: 'UserRemovalRequested', data: { at } };
    users.given(admitted(), requested).when(create()).thenRejected('ALREADY_EXISTS');
  });
  it('are admitted again after they were removed, under the same id', () =>
    users
      .given(admitted(), removed)
      .when(create({ at: later }))
      .thenEvents(admitted(later)));
  it('cannot be changed or removed while they are gone', () => {
    users.given(admitted(), removed).when({ type: 'DeleteDocument', at }).thenRejected('NOT_FOUND');
    users.given(admitted(), removed).when({ type: 'ReviseDocument', at, document }).thenRejected('NOT_FOUND');
  });
  for (const tenant of ['shared', 'system'])
    it(`never belong to ${tenant}, where everybody could see them`, () =>
      users.given().when(create({ tenant })).thenRejected('TENANT_REQUIRED', { field: 'metadata.tenant' }));

  it('keep their name through a change that does not say it', () => {
    const { metadata: _name, ...rest } = document;
    users.given(admitted()).when({ type: 'ReviseDocument', at: later, document: rest }).thenNothing();
    const disabled = { spec: { username: sealed('b') } };
    users
      .given(admitted())
      .when({ type: 'ReviseDocument', at: later, document: disabled })
      .thenEvents({
        type: 'UserRevised',
        data: { at: later, document: { ...disabled, metadata: { name: sealed('a') } } },
      });
  });
  it('may change their username', () => {
    const renamed = { ...document, spec: { username: sealed('c'), enabled: true } };
    users
      .given(admitted())
      .when({ type: 'ReviseDocument', at: later, document: renamed })
      .thenEvents({ type: 'UserRevised', data: { at: later, document: renamed } });
  });

  it('show their concealed name, and never their credentials', () => {
    const given: UserEvent = {
      type: 'UserAdmitted',
      data: {
        ...admitted().data,
        document: { ...document, spec: { enabled: true, credentials: { temporary_password: true } } },
      } as Extract<UserEvent, { type: 'UserAdmitted' }>['data'],
    };
    const view = user.view(users.given(given).state());
    if (!view.exists) throw new Error('expected a user');
    expect(view).to.include({ name: 'p0123', claimedName: 'p0123' });
    expect(view.document).to.have.nested.property('metadata.name.ct', 'a');
    expect(view.document['spec']).to.deep.equal({ enabled: true });
    expect(user.view(users.given(given, removed).state())).to.include({ archived: true });
    expect(user.view(users.given().state())).to.deep.equal({ exists: false });
  });

  it('have texts of bounded length, counted in characters', () => {
    expect(userRejection({ spec: { username: '🙂'.repeat(255), email: 'e'.repeat(320) } })).to.equal(
      undefined,
    );
    expect(userRejection({ spec: { username: 'u'.repeat(256) } })?.field).to.equal('object.spec.username');
    expect(userRejection({ spec: { email: 'e'.repeat(321) } })?.field).to.equal('object.spec.email');
  });
});
