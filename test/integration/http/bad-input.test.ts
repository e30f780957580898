import { expect } from 'chai';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { UnsecuredJWT } from 'jose';
import {
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Json,
  type TestService,
} from '../../support/http/service.ts';
import { MAX_BODY_BYTES } from '../../../src/http/body.ts';
import { heldBy } from '../../support/held-promise.ts';
import { rawClient, rawExchange, type RawReply } from '../../support/http/raw-client.ts';
import { badRequests, type Bad } from './bad-requests.ts';
import { CLUSTERS, SMALL } from './ordering.ts';

const MiB = 1024 * 1024;
/** `npm test` sends some, the fault suites all; what they may leave behind is in proportion. */
const REQUESTS = process.env['LEDGER_TEST_ALL_CASES'] === undefined ? 2_500 : 10_000;

/** Issue "Bad input": each gets its exact status and a body that says what and where. */
describe('bad input over HTTP', function () {
  this.timeout(60_000);
  let service: TestService;
  let raw: ReturnType<typeof rawClient>;
  let token: string;
  let cases: Bad[];

  before(async () => {
    service = await startTestService({ forgetful: true });
    const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    const other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
    const theirs = await other('POST', CLUSTERS, { metadata: { name: 'theirs' }, spec: SMALL });
    token = await service.token({ user: 'alice', tenants: ['t1'] });
    raw = rawClient(service.url);
    cases = badRequests(textAt(theirs.json, 'id'), {
      expired: await service.token({ tenants: ['t1'], expiresIn: -60 }),
      forged: `${token.slice(0, -8)}AAAAAAAA`,
      unsigned: new UnsecuredJWT({ sub: 'x', iss: 'https://sso.example/realms/osac' }).encode(),
    });
  });
  after(async () => {
    raw.close();
    await service.close();
  });

  const send = ({ verb, path, body, headers = {} }: Bad): Promise<RawReply> =>
    raw.send(verb, path, {
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body === undefined ? {} : { body }),
    });

  it('gets its exact status and a body that says what is wrong and where', async () => {
    for (const bad of cases) {
      const reply = await send(bad);
      expect(reply.status, `${bad.what}: ${reply.text}`).to.equal(bad.status);
      const json = JSON.parse(reply.text) as Json;
      expect(json['code'], bad.what).to.equal(bad.code);
      expect(textAt(json, 'message'), bad.what).to.match(bad.says);
      expect(reply.headers['content-type'], bad.what).to.equal('application/json');
    }
    const reply = await raw.send('GET', CLUSTERS, { headers: { authorization: `Bearer ${token}` } });
    expect(reply.status).to.equal(200);
  });

  it(`leaves the heap as it was after ${REQUESTS} bad requests`, async () => {
    setFlagsFromString('--expose_gc');
    const collect = runInNewContext('gc') as () => void;
    const small = cases.filter(({ body }) => (body?.length ?? 0) < 4096);
    const round = async (requests: number): Promise<void> => {
      let sent = 0;
      const worker = async (): Promise<void> => {
        while (sent < requests) {
          const bad = small[(sent += 1) % small.length] as Bad;
          const reply = await send(bad);
          expect(reply.status, bad.what).to.equal(bad.status);
        }
      };
      await Promise.all(Array.from({ length: 16 }, worker));
    };
    await round(1_000);
    collect();
    const before = process.memoryUsage().heapUsed;
    await round(REQUESTS);
    collect();
    expect((process.memoryUsage().heapUsed - before) / MiB).to.be.lessThan(REQUESTS / 500);
  }).timeout(180_000);

  describe('bodies that are too large', () => {
    for (const size of [MAX_BODY_BYTES + 1, 10 * MiB]) {
      it(`${size} bytes announced`, async () => {
        const reply = await raw.send('POST', CLUSTERS, {
          headers: { authorization: `Bearer ${token}` },
          body: Buffer.alloc(size, 0x20),
        });
        expect(reply.status).to.equal(413);
        expect(reply.text).to.contain('larger than 294912 bytes');
      });
    }

    it('10 MiB in chunks of unknown length', async () => {
      const reply = await raw.send('POST', CLUSTERS, {
        headers: { authorization: `Bearer ${token}`, 'transfer-encoding': 'chunked' },
        body: Array.from({ length: 160 }, () => Buffer.alloc(64 * 1024, 0x20)),
      });
      expect(reply.status).to.equal(413);
    });

    it('a large one is read from known callers only, a small one is checked first', async () => {
      const large = { ...SMALL, ssh_public_key: 'x'.repeat(70_000) };
      for (const [body, status] of [
        [JSON.stringify({ spec: large, nope: 1 }), 401],
        [JSON.stringify({ nope: 1 }), 400],
      ] as const)
        expect((await raw.send('POST', CLUSTERS, { body })).status).to.equal(status);
      const chunked = await raw.send('POST', CLUSTERS, {
        headers: { 'transfer-encoding': 'chunked' },
        body: [Buffer.from('{"nope":1}')],
      });
      expect(chunked.status).to.equal(401);
    });

    it('an absurd announcement is answered without waiting for it', async () => {
      const text = await rawExchange(
        service.url,
        `POST ${CLUSTERS} HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n`,
      );
      expect(text).to.match(/^HTTP\/1\.1 413 /);
    });

    it('exactly the limit is read', async () => {
      const body = Buffer.alloc(MAX_BODY_BYTES, 0x20);
      body.write('{"nope":1}');
      const reply = await raw.send('POST', CLUSTERS, { headers: { authorization: `Bearer ${token}` }, body });
      expect(reply.status).to.equal(400);
      expect(reply.text).to.contain('nope');
    });
  });

  it('any content type is read as JSON on the OSAC surfaces', async () => {
    for (const [i, type] of ['text/plain', 'application/octet-stream', ''].entries()) {
      const reply = await raw.send('POST', CLUSTERS, {
        headers: { authorization: `Bearer ${token}`, ...(type === '' ? {} : { 'content-type': type }) },
        body: JSON.stringify({ metadata: { name: `any-${i}` }, spec: SMALL }),
      });
      expect(reply.status, type).to.equal(200);
    }
  });

  it('HEAD answers like GET without a body', async () => {
    const headers = { authorization: `Bearer ${token}` };
    const get = await raw.send('GET', CLUSTERS, { headers });
    const head = await raw.send('HEAD', CLUSTERS, { headers });
    expect(head.status).to.equal(200);
    expect(head.text).to.equal('');
    expect(head.headers['content-length']).to.equal(get.headers['content-length']);
    expect((await raw.send('HEAD', `${CLUSTERS}/nope`, { headers })).status).to.equal(404);
  });

  it('the key set is empty until something is signed, and anonymous', async () => {
    const reply = await raw.send('GET', '/.well-known/jwks.json');
    expect([reply.status, reply.text]).to.deep.equal([200, '{"keys":[]}']);
  });

  it('a header beyond the limit of fields is never dropped silently', async () => {
    const headers = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`x-${i}`, 'v']));
    const reply = await raw.send('PATCH', `${CLUSTERS}/x`, {
      headers: { ...headers, authorization: `Bearer ${token}`, 'if-match': '"cluster-0"' },
      body: '{}',
    });
    expect(reply.status).to.equal(431);
  });

  it('none of it is stored; what each holds the thread for is printed (the bound is 20 ms)', async () => {
    for (const bad of cases) await send(bad);
    const before = await service.store.lastPosition();
    const held: { what: string; ms: number }[] = [];
    for (const bad of cases) held.push({ what: bad.what, ms: await heldBy(() => send(bad)) });
    const [slowest] = held.toSorted((a, b) => b.ms - a.ms);
    process.stdout.write(`      slowest: ${slowest?.ms.toFixed(1)} ms (${slowest?.what})\n`);
    expect(await service.store.lastPosition()).to.equal(before);
  });
});
