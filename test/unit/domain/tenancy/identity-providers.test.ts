import { expect } from 'chai';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { identityProvider } from '../../../../src/domain/tenancy/identity-provider.resource.ts';
import { specify, type EventOf } from '../../../support/domain/decider-spec.ts';

type IdentityProviderEvent = EventOf<typeof identityProvider>;

const at = '2026-11-21T12:00:00.000Z';
const later = '2026-11-21T13:00:00.000Z';
const { given } = specify(identityProvider.decider);
const facts = { id: 'i1', at, tenant: 'acme', project: '', name: 'sso', creator: 'u1' };
const secrets = {
  'spec.oidc.client_secret': { id: 's', version: '1', kind: 'client-secret', fingerprint: 'f' },
} as const;
const document: JsonObject = {
  spec: { title: 'SSO', oidc: { issuer: 'https://sso.example', client_id: 'osac' } },
};
const connect = (more: object = {}): DocumentCommand => ({
  type: 'CreateDocument',
  ...facts,
  document,
  secrets,
  ...more,
});
const connected: IdentityProviderEvent = {
  type: 'IdentityProviderConnected',
  data: { ...facts, document, secrets },
};

describe('identity providers', () => {
  it('are connected with a reference of their secret, which no read shows', () => {
    given().when(connect()).thenEvents(connected);
    const view = identityProvider.view(given(connected).state());
    expect(view.exists && view.document['spec']).to.deep.equal(document['spec']);
    expect(view).to.not.have.property('state');
    expect(identityProvider.pointsAt({})).to.deep.equal([]);
    expect(identityProvider.view(given().state())).to.deep.equal({ exists: false });
  });
  it('belong to a tenant', () => {
    for (const tenant of ['shared', 'system'])
      given().when(connect({ tenant })).thenRejected('TENANT_REQUIRED');
  });
  it('have https addresses without a password, or none', () => {
    const withUrl = (field: string, url: string) =>
      given().when(connect({ document: { spec: { oidc: { [field]: url } } } }));
    for (const url of [
      'http://a',
      'ftp://a',
      'a',
      'https://u@a',
      'https://:p@a',
      'https://a\\b',
      'https:// a',
    ])
      withUrl('token_url', url).thenRejected('INVALID_URL', { field: 'spec.oidc.token_url' });
    withUrl('jwks_url', `https://a.example/${'x'.repeat(2048)}`).thenRejected('INVALID_URL');
    expect(withUrl('logout_url', 'https://a.example:8443/x?y=z').decision).to.have.length(1);
    expect(withUrl('client_id', 'http://anything').decision).to.have.length(1);
    expect(given().when(connect({ document: {} })).decision).to.have.length(1);
  });
  it('show the phase that a controller reports as their state', () => {
    const status = { phase: 'IDENTITY_PROVIDER_PHASE_READY' };
    const revised: IdentityProviderEvent = {
      type: 'IdentityProviderRevised',
      data: { at: later, document: { ...document, status }, secrets },
    };
    given(connected)
      .when({ type: 'ReviseDocument', at: later, document: { ...document, status } })
      .thenEvents(revised);
    expect(identityProvider.view(given(connected, revised).state())).to.include({ state: status.phase });
    given(connected, revised)
      .when({ type: 'DeleteDocument', at: later })
      .thenEvents({ type: 'IdentityProviderDisconnected', data: { at: later } });
  });
});
