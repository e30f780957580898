import { expect } from 'chai';
import { collect } from '../../support/commands/fake-context.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';

/** Identity providers (OSAC). */
describe('HTTP: identity providers', () => {
  const CANARY = 'canary-client-secret';
  const oidc = {
    issuer: 'https://sso.t1.example/realms/t1',
    authorization_url: 'https://sso.t1.example/auth',
    token_url: 'https://sso.t1.example/token',
    client_id: 'osac',
    client_secret: CANARY,
  };
  const provider = (name: string, more: object = {}, metadata: object = {}) => ({
    metadata: { name, ...metadata },
    spec: { title: 'T1 SSO', enabled: true, oidc: { ...oidc, ...more } },
  });
  let service: TestService;
  let admin: Caller;
  let owner: Caller;
  const URL = `${PUBLIC}/identity_providers`;

  beforeEach(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ admin: true }));
    await seedCatalogue(admin);
    owner = callerOf(
      service,
      await service.token({ user: 'boss', tenants: ['t1'], roles: ['tenant-idp-manager'] }),
    );
  });
  afterEach(() => service.close());

  const values = (): readonly string[] =>
    [...service.secrets.values.values()].map((value) => Buffer.from(value).toString('utf8'));

  it('answer Create and Update wrapped, Get and List bare', async () => {
    const made = await owner('POST', URL, provider('sso'));
    expect(made.status, made.text).to.equal(200);
    const id = textAt(made.json, 'object', 'id');
    expect(made.json).to.have.nested.property('object.spec.oidc.client_id', 'osac');
    const changed = await owner('PATCH', `${URL}/${id}`, { spec: { title: 'Sign in' } });
    expect(changed.json).to.have.nested.property('object.spec.title', 'Sign in');
    const same = await owner('PATCH', `${URL}/${id}`, {});
    expect(same.json).to.deep.equal(changed.json);
    expect((await owner('GET', `${URL}/${id}`)).json).to.deep.equal(changed.json['object']);
    expect(itemsOf(await owner('GET', URL))).to.deep.equal([changed.json['object']]);
    const key = { 'idempotency-key': '"k1"' };
    const first = await owner('POST', URL, provider('second'), key);
    const again = await owner('POST', URL, provider('second'), key);
    expect([again.status, again.json]).to.deep.equal([200, first.json]);
    const dry = await owner('POST', URL, provider('third'), { 'x-dry-run': 'true' });
    expect(dry.json).to.have.nested.property('object.metadata.name', 'third');
    expect((await owner('DELETE', `${URL}/${id}`)).text).to.equal('{}');
  });

  it('never show the client secret, on no surface and in no event; null removes it, leaving it out keeps it', async () => {
    const made = await owner('POST', URL, provider('sso'));
    const id = textAt(made.json, 'object', 'id');
    const wrong = await owner('POST', URL, provider('other', { token_url: 'ftp://x' }));
    const replies = [
      made,
      wrong,
      await owner('GET', `${URL}/${id}`),
      await owner('GET', URL),
      await admin('GET', `${PRIVATE}/identity_providers/${id}`),
      await admin('GET', `${PRIVATE}/identity_providers`),
      await admin('PATCH', `${PRIVATE}/identity_providers/${id}`, { spec: { title: 'x' } }),
    ];
    for (const { text } of replies) {
      expect(text).to.not.contain(CANARY);
      expect(text).to.not.contain('client_secret');
    }
    const events = await collect(service.store.readAll({ limit: 1_000 }));
    expect(JSON.stringify(events)).to.not.contain(CANARY);
    const lastRefs = async (): Promise<unknown> =>
      (await collect(service.store.readAll({ limit: 1_000 })))
        .filter(({ type }) => type.startsWith('IdentityProvider'))
        .at(-1)?.data['secrets'];
    expect(values()).to.include(CANARY);
    expect(await lastRefs()).to.have.property('spec.oidc.client_secret');
    const cleared = await owner('PATCH', `${URL}/${id}`, { spec: { oidc: { client_secret: null } } });
    expect(cleared.status, cleared.text).to.equal(200);
    expect(await lastRefs()).to.equal(undefined);
    expect(cleared.json).to.have.nested.property('object.spec.oidc.client_id', 'osac');
  });

  it('belong to a tenant of their own', async () => {
    for (const tenant of [{}, { tenant: 'shared' }, { tenant: 'system' }]) {
      const reply = await admin('POST', `${PRIVATE}/identity_providers`, provider('sso', {}, tenant));
      expect(reply.status, reply.text).to.equal(400);
      expect(reply.text).to.contain('must belong to a tenant');
    }
    const absent = await admin(
      'POST',
      `${PRIVATE}/identity_providers`,
      provider('sso', {}, { tenant: 'no' }),
    );
    expect([absent.status, absent.json['message']]).to.deep.equal([400, "tenant 'no' doesn't exist"]);
    const user = callerOf(service, await service.token({ tenants: ['t1'] }));
    expect((await user('GET', URL)).status).to.equal(403);
  });

  it('send users to https addresses only', async () => {
    const bad = [
      'http://sso.example',
      'javascript:alert(1)',
      'nonsense',
      'https://u:p@sso.example',
      'https://a b',
    ];
    for (const field of [
      'issuer',
      'authorization_url',
      'token_url',
      'user_info_url',
      'jwks_url',
      'logout_url',
    ]) {
      for (const url of bad) {
        const reply = await owner('POST', URL, provider('sso', { [field]: url }));
        expect(reply.status, `${field} ${url}`).to.equal(400);
        expect(reply.text).to.contain(`spec.oidc.${field}`);
      }
    }
    const bare = await owner('POST', URL, { metadata: { name: 'sso' }, spec: { title: 'later' } });
    expect(bare.status, bare.text).to.equal(200);
  });

  it('pass the trigger of a health check on, and show what a controller reports', async () => {
    const id = textAt((await owner('POST', URL, provider('sso'))).json, 'object', 'id');
    const asked = await owner('PATCH', `${URL}/${id}`, {
      spec: { health_check_trigger: 'now-1' },
      status: { phase: 'IDENTITY_PROVIDER_PHASE_ERROR' },
    });
    expect(asked.json).to.have.nested.property('object.spec.health_check_trigger', 'now-1');
    expect(asked.json).to.not.have.nested.property('object.status');
    const status = {
      phase: 'IDENTITY_PROVIDER_PHASE_READY',
      health_check_trigger: 'now-1',
      health: { status: 'IDENTITY_PROVIDER_HEALTH_STATUS_HEALTHY' },
      conditions: [{ type: 'Reachable', status: 'CONDITION_STATUS_TRUE' }],
    };
    await admin('PATCH', `${PRIVATE}/identity_providers/${id}`, { status });
    const seen = await owner('GET', `${URL}/${id}`);
    const { conditions: _private, ...shown } = status;
    expect(seen.json['status']).to.deep.equal(shown);
  });
});
