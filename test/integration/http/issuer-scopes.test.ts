import { expect } from 'chai';
import { eventually } from '../../support/eventually.ts';
import { collect } from '../../support/commands/fake-context.ts';
import {
  callerOf,
  PRIVATE,
  PUBLIC,
  startTestService,
  type TestService,
  type TokenOptions,
} from '../../support/http/service.ts';

describe('an issuer that may speak for one tenant', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({
      issuerScope: { tenants: ['acme'], admins: false, services: false },
      audit: { signs: false, exports: false, refusals: true },
    });
  });
  after(() => service.close());

  const claims: readonly (readonly [claim: string, token: TokenOptions])[] = [
    ["tenant 'globex'", { user: 'eve', tenants: ['acme', 'globex'] }],
    ['provider admin', { user: 'eve', admin: true }],
    ['provider admin', { user: 'service-account-osac-admin', claims: { azp: 'osac-admin' } }],
    ["role 'osac-csi-driver'", { user: 'eve', roles: ['osac-csi-driver'] }],
    ['service account', { claims: { sub: 'system:serviceaccount:acme:robot', 'kubernetes.io': {} } }],
  ];
  for (const [claim, token] of claims)
    it(`gets nobody in who is ${claim}: 401, with the claim in the log and an event`, async () => {
      const signed = await service.token(token);
      const eve = callerOf(service, signed);
      for (const path of [`${PUBLIC}/clusters`, `${PRIVATE}/clusters`, '/api/ledger/v1/projections']) {
        const reply = await eve('GET', path);
        expect(reply.status, path).to.equal(401);
        expect(reply.headers.get('x-ledger-reason'), path).to.equal('ISSUER_SCOPE');
        expect(reply.headers.get('www-authenticate'), path).to.include('invalid_token');
        expect(reply.text, path)
          .to.include('it claims what its issuer may not claim here')
          .and.not.include('globex');
      }
      const line = service.logger.lines.findLast(({ fields }) => 'claim' in fields);
      expect(line?.fields).to.deep.include({ claim, issuer: 'https://sso.example/realms/osac' });
      const { subjectId } = { ...line?.fields } as { readonly subjectId?: string };
      expect(subjectId).to.match(/^[0-9a-f-]{36}$/);
      await eventually('the refusal is an event', async () => {
        await service.refusalsStored();
        const events = await collect(service.store.readAll({ limit: 10_000 }));
        const refused = events.filter(({ type }) => type === 'RequestRefused').map(({ data }) => data);
        return refused.some(
          (data) =>
            data['outcome'] === 'unauthenticated' &&
            data['code'] === 'ISSUER_SCOPE' &&
            data['subjectId'] === subjectId,
        );
      });
      expect(JSON.stringify(service.logger.lines)).not.to.include(signed);
    });

  it('gets in whom it may speak for, and who speaks for nobody', async () => {
    for (const token of [{ user: 'ann', tenants: ['acme'] }, { user: 'dot' }]) {
      const reply = await callerOf(service, await service.token(token))('GET', `${PUBLIC}/host_types`);
      // The tenant is not made yet.
      expect(reply.status, reply.text).to.equal('tenants' in token ? 400 : 200);
    }
  });
});
