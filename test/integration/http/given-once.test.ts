import { expect } from 'chai';
import {
  callerOf,
  PRIVATE,
  PUBLIC,
  seedCatalogue,
  startTestService,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';

import { PUBLIC_WATCH } from '../../support/http/watch-client.ts';
import { rawExchange } from '../../support/http/raw-client.ts';

/** What is given twice and may mean two things is refused, rather than one of them taken. */
describe('what a request may say once', () => {
  let service: TestService;
  let admin: Caller;
  let token: string;

  before(async () => {
    service = await startTestService();
    token = await service.token({ user: 'root', admin: true });
    admin = callerOf(service, token);
    await seedCatalogue(admin);
  });
  after(() => service.close());

  for (const path of [
    `${PUBLIC}/clusters?limit=1&limit=2`,
    `${PUBLIC}/clusters?offset=1&offset=1`,
    `${PUBLIC}/clusters?filter=this.id=='a'&filter=this.id=='b'`,
    `${PUBLIC}/clusters?order=id&order=id`,
    `${PUBLIC}/clusters/x/timeline?limit=1&limit=2`,
    `${PUBLIC_WATCH}?filter=true&filter=true`,
    `${PUBLIC_WATCH}?from=1&from=2`,
    '/api/ledger/v1/events?limit=1&limit=2',
    '/api/ledger/v1/events?tenant=t1&tenant=t2',
    '/api/ledger/v1/orders?state=waiting&state=failed',
  ])
    it(`GET ${path.slice(path.indexOf('v1') + 3)}`, async () => {
      const reply = await admin('GET', path);
      expect(reply.status, reply.text).to.equal(400);
      expect(reply.text).to.contain('once');
    });

  it('PATCH with two locks', async () => {
    const reply = await admin('PATCH', `${PRIVATE}/clusters/x?lock=true&lock=false`, {});
    expect([reply.status, reply.text.includes("'lock' may be given once")], reply.text).to.deep.equal([
      400,
      true,
    ]);
  });

  it('two Authorization headers, whatever they hold and however they are spelled', async () => {
    const ask = (lines: readonly string[]): Promise<string> => {
      const head = [`GET ${PUBLIC}/clusters HTTP/1.1`, 'Host: x', 'Connection: close', ...lines];
      return rawExchange(service.url, `${head.join('\r\n')}\r\n\r\n`);
    };
    const good = `Authorization: Bearer ${token}`;
    expect(await ask([good])).to.match(/^HTTP\/1\.1 200 /);
    expect(await ask([good, 'X-Other: authorization'])).to.match(/^HTTP\/1\.1 200 /);
    for (const second of [good, 'authorization: Bearer other', 'AUTHORIZATION: '])
      for (const lines of [
        [good, second],
        [second, good],
      ]) {
        const reply = await ask(lines);
        expect(reply).to.match(/^HTTP\/1\.1 400 /);
        expect(reply).to.contain("'Authorization' may be given once");
      }
  });

  it('a ticket is kept whole or refused', async () => {
    const post = (name: string, ticket: string) =>
      admin(
        'POST',
        `${PRIVATE}/secrets`,
        { metadata: { name, tenant: 't1' }, data: { k: 'dg==' } },
        { 'x-ledger-ticket': ticket },
      );
    expect((await post('long', 'T'.repeat(128))).status).to.equal(200);
    const refused = await post('longer', 'T'.repeat(129));
    expect([refused.status, refused.text.includes('at most 128')], refused.text).to.deep.equal([400, true]);
  });
});
