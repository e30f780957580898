import { expect } from 'chai';
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { UnsecuredJWT } from 'jose';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Json,
  type TestService,
} from '../../support/http-service.ts';
import { MAX_BODY_BYTES } from '../../../src/http/body.ts';
import { PUBLIC_WATCH } from '../../../src/http/osac/watch/routes.ts';
import { heldBy } from '../../support/held.ts';
import { rawClient, rawExchange, type RawReply } from '../../support/raw-http.ts';

const CLUSTERS = `${PUBLIC}/clusters`;
const MiB = 1024 * 1024;
const SPEC = { template: { id: 'osac.templates.small' } };

type Bad = {
  readonly what: string;
  readonly verb: string;
  readonly path: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Record<string, string>;
  readonly status: number;
  readonly code: number;
  readonly says: RegExp;
};

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
    const theirs = await other('POST', CLUSTERS, { metadata: { name: 'theirs' }, spec: SPEC });
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

  it('leaves the heap as it was after 10,000 bad requests', async () => {
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
    await round(10_000);
    collect();
    expect((process.memoryUsage().heapUsed - before) / MiB).to.be.lessThan(20);
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

    it('a large one is read from known callers only, a small one is checked first (osac-api.md §6)', async () => {
      const large = { ...SPEC, ssh_public_key: 'x'.repeat(70_000) };
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

  it('any content type is read as JSON on the OSAC surfaces (osac-api.md §3)', async () => {
    for (const [i, type] of ['text/plain', 'application/octet-stream', ''].entries()) {
      const reply = await raw.send('POST', CLUSTERS, {
        headers: { authorization: `Bearer ${token}`, ...(type === '' ? {} : { 'content-type': type }) },
        body: JSON.stringify({ metadata: { name: `any-${i}` }, spec: SPEC }),
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

  describe('HTTP that is odd or wrong', () => {
    const request = (rest: string, body = ''): string =>
      `POST ${CLUSTERS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${rest}\r\n${body}`;

    it('Expect: 100-continue is answered, then the request', async () => {
      const text = await rawExchange(
        service.url,
        request('Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n', '{}'),
      );
      expect(text).to.match(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 Bad Request\r\n/);
      expect(text).to.contain('template is mandatory');
    });

    it('another expectation is 417', async () => {
      const text = await rawExchange(service.url, request('Expect: magic\r\nContent-Length: 2\r\n', '{}'));
      expectRefusal(text, 417, 3, "only '100-continue' can be expected here");
    });

    it('a request without a host is 400', async () => {
      const text = await rawExchange(service.url, `GET ${CLUSTERS} HTTP/1.1\r\n\r\n`);
      expectRefusal(text, 400, 3, "a request must have the header 'Host'");
    });

    for (const [what, header] of [
      [
        'a mask of 10,000 names',
        `PATCH ${CLUSTERS}/x?update_mask=${'title,'.repeat(10_000)} HTTP/1.1\r\nHost: x\r\n`,
      ],
      ['a header field of 200 kB', `GET ${CLUSTERS} HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(200_000)}\r\n`],
    ] as const)
      it(`${what}: 431`, async () => {
        const text = await rawExchange(service.url, `${header}\r\n`);
        expectRefusal(
          text,
          431,
          3,
          'the URL and the header fields of a request may have at most 32768 bytes together',
        );
      });

    it('chunk extensions of 100 kB: 413', async () => {
      const text = await rawExchange(
        service.url,
        request('Transfer-Encoding: chunked\r\n', `2;${'e'.repeat(100_000)}\r\n{}\r\n0\r\n\r\n`),
      );
      expectRefusal(text, 413, 3, 'the chunk extensions of the request body are too large');
    });

    it('what is no HTTP behind an answer that is under way ends the connection, and nothing is said into it', async () => {
      const { hostname, port } = new URL(service.url);
      const socket = connect(Number(port), hostname);
      socket.write(`GET ${PUBLIC_WATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
      let text = '';
      await new Promise((resolve) => {
        socket.on('data', (part) => {
          if (text === '') socket.write('GARBAGE\r\n\r\n');
          text += part.toString('latin1');
        });
        socket.on('error', () => undefined);
        socket.on('close', resolve);
      });
      expect(text).to.match(/^HTTP\/1\.1 200 /);
      expect(text.match(/HTTP\/1\.1/g)).to.have.length(1);
    });

    for (const [what, rest, body] of [
      ['chunks that are none', 'Transfer-Encoding: chunked\r\n', 'zz\r\n{}\r\n0\r\n\r\n'],
      ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n', '{}'],
      ['a length and chunks', 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n', '2\r\n{}\r\n0\r\n\r\n'],
      ['a negative length', 'Content-Length: -1\r\n', ''],
      ['a header without a colon', 'nonsense\r\n', ''],
      ['a folded header', 'X-A: a\r\n b: c\r\nX B: c\r\n', ''],
    ] as const)
      it(`${what}: 400, and the connection ends`, async () => {
        expectRefusal(await rawExchange(service.url, request(rest, body)), 400, 3, NO_HTTP);
      });

    it('requests in a row on one connection are answered in their order', async () => {
      const get = (path: string, last = ''): string =>
        `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${last}\r\n`;
      const text = await rawExchange(
        service.url,
        get('/healthz') + get(`${CLUSTERS}/nope`) + get('/nowhere') + get(CLUSTERS, 'Connection: close\r\n'),
      );
      expect([...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)).to.deep.equal([
        '200',
        '404',
        '404',
        '200',
      ]);
    });
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

  it('requests that are no HTTP, or whose headers are too large, are refused by the server itself', async () => {
    expectRefusal(await rawExchange(service.url, 'GARBAGE\r\n\r\n'), 400, 3, NO_HTTP);
    const huge = `GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(40_000)}\r\n\r\n`;
    expectRefusal(await rawExchange(service.url, huge), 431, 3, /at most 32768 bytes together$/);
  });
});

describe('slow senders', () => {
  it('are cut off with 408 when their request does not arrive in time', async () => {
    const service = await startTestService({ limits: { headersTimeoutMs: 100, requestTimeoutMs: 200 } });
    try {
      const headers = `POST ${CLUSTERS} HTTP/1.1\r\nHost: x\r\n`;
      const late = 'the request did not arrive in time; nothing was carried out';
      expectRefusal(await rawExchange(service.url, headers), 408, 4, late);
      const body = `${headers}Content-Length: 100\r\n\r\n{"metadata"`;
      expectRefusal(await rawExchange(service.url, body), 408, 4, late);
      expect((await callerOf(service)('GET', '/healthz')).status).to.equal(200);
    } finally {
      await service.close();
    }
  });
});

describe('callers who hang up', () => {
  it('in the middle of a body leave one log line with status 499 and nothing else', async () => {
    const service = await startTestService();
    try {
      const { hostname, port } = new URL(service.url);
      const socket = connect(Number(port), hostname);
      socket.write(`POST ${CLUSTERS} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"meta`);
      await new Promise((resolve) => setImmediate(resolve));
      socket.destroySoon();
      for (let i = 0; i < 200 && service.logger.lines.length === 0; i += 1)
        await new Promise((resolve) => setTimeout(resolve, 10));
      expect(service.logger.lines.map(({ level }) => level)).to.deep.equal(['info']);
      expect(service.logger.lines[0]?.fields).to.include({ status: 499, route: CLUSTERS });
      expect(service.rejections).to.deep.equal([]);
    } finally {
      await service.close();
    }
  });
});

const NO_HTTP = 'this is no HTTP request: its first line, a header field or the form of its body is wrong';

/** One answer with OSAC's error body, after which the connection has ended. */
const expectRefusal = (text: string, status: number, code: number, message: string | RegExp): void => {
  const [head = '', body = '', ...more] = text.split('\r\n\r\n');
  expect(head, text).to.match(new RegExp(`^HTTP/1\\.1 ${status} [A-Z]`));
  expect(head).to.match(/^content-type: application\/json$/im);
  expect(head).to.match(/^connection: close$/im);
  expect(head).to.match(new RegExp(`^content-length: ${Buffer.byteLength(body)}$`, 'im'));
  expect(more, text).to.deep.equal([]);
  const json = JSON.parse(body) as Json;
  expect(json['code']).to.equal(code);
  if (typeof message === 'string') expect(json['message']).to.equal(message);
  else expect(json['message']).to.match(message);
};

const bomb = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`key-${i}`, 'v']));

const badRequests = (
  foreignId: string,
  tokens: { readonly expired: string; readonly forged: string; readonly unsigned: string },
): Bad[] => {
  const post = (what: string, body: string | Uint8Array, says: RegExp, status = 400, code = 3): Bad => ({
    what,
    verb: 'POST',
    path: CLUSTERS,
    body,
    says,
    status,
    code,
  });
  const json = (what: string, body: object, says: RegExp): Bad => post(what, JSON.stringify(body), says);
  const named = (name: string) => ({ metadata: { name }, spec: SPEC });
  const get = (what: string, path: string, status: number, code: number, says: RegExp): Bad => ({
    what,
    verb: 'GET',
    path,
    status,
    code,
    says,
  });
  const withToken = (what: string, authorization: string, says: RegExp): Bad => ({
    ...get(what, CLUSTERS, 401, 16, says),
    headers: { authorization },
  });
  return [
    post('garbage', '<xml/>', /not valid JSON at line 1, column 1$/),
    post('a cut body', '{"metadata":{"name":"x"', /unexpected end at line 1, column 24$/),
    post('no body', '', /empty/),
    post('a list', '[]', /must be a JSON object/),
    post('a number', '12', /must be a JSON object/),
    post('invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), /not valid UTF-8/),
    post('deep nesting', `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`, /nested deeper than 64/),
    post('a deep list', `{"spec":${'['.repeat(100)}${']'.repeat(100)}}`, /nested deeper than 64/),
    post('a key twice', '{"id":"a","id":"b"}', /more than once/),
    post(
      'a huge number',
      `{"metadata":{"version":${'9'.repeat(400)}}}`,
      /'metadata\.version': a whole number/,
    ),
    post('a BOM', '\uFEFF{}', /not valid JSON at line 1, column 1$/),
    post('a key twice in a map', '{"metadata":{"labels":{"a":"x","a":"y"}}}', /appears more than once/),
    post('a field twice in two spellings', '{"spec":{"nodeSets":{},"node_sets":{}}}', /set more than once/),
    post(
      'a number beyond doubles',
      '{"spec":{"node_sets":{"w":{"size":1e999}}}}',
      /'spec\.node_sets\.w\.size'/,
    ),
    post('a fraction', '{"spec":{"node_sets":{"w":{"size":1.5}}}}', /'spec\.node_sets\.w\.size': a whole/),
    post(
      'a lone surrogate',
      '{"metadata":{"name":"\\ud800"}}',
      /'metadata\.name': it holds a lone surrogate/,
    ),
    post(
      'a bomb of values',
      `{"metadata":{"finalizers":[${'"a",'.repeat(5_000)}"a"]}}`,
      /more than 5000 values$/,
    ),
    json(
      '10,000 labels',
      { metadata: { name: 'x', labels: bomb(10_000) }, spec: SPEC },
      /more than 5000 values$/,
    ),
    json(
      '129 labels',
      { metadata: { name: 'x', labels: bomb(129) }, spec: SPEC },
      /^field 'metadata\.labels' may hold at most 128 labels$/,
    ),
    json(
      '129 annotations',
      { metadata: { name: 'x', annotations: bomb(129) }, spec: SPEC },
      /^field 'metadata\.annotations' may hold at most 128 annotations$/,
    ),
    json(
      'annotations of 270 kB',
      { metadata: { name: 'x', annotations: { a: 'x'.repeat(270_000) } }, spec: SPEC },
      /may hold at most 262144 bytes/,
    ),
    json(
      'a label key of 100 kB',
      { metadata: { name: 'x', labels: { ['A'.repeat(100_000)]: '' } }, spec: SPEC },
      /^field 'metadata\.labels' key 'A{61}\.\.\.' name must be at most 63/,
    ),
    json('a name of 100 kB', named('a'.repeat(100_000)), /at most 63/),
    json(
      'a description of 100 kB',
      { metadata: { name: 'x', description: 'é'.repeat(100_000) }, spec: SPEC },
      /description: must be at most 256/,
    ),
    json(
      'a reference of 100 kB',
      { ...named('x'), spec: { template: { id: 'x'.repeat(100_000) } } },
      /^reference validation failed: object\.spec\.template: ClusterTemplate "x{253}" not found$/,
    ),
    json(
      'a prototype as a node set',
      JSON.parse(
        '{"metadata":{"name":"x"},"spec":{"template":{"name":"small"},"node_sets":{"__proto__":{"size":1}}}}',
      ) as object,
      /^node set '__proto__' doesn't exist in template/,
    ),
    json(
      'a prototype as a parameter',
      JSON.parse(
        '{"metadata":{"name":"x"},"spec":{"template":{"id":"osac.templates.small"},"template_parameters":{"__proto__":{"@type":"type.googleapis.com/google.protobuf.StringValue","value":"x"}}}}',
      ) as object,
      /__proto__/,
    ),
    json(
      'an Any without a type',
      { ...named('x'), spec: { ...SPEC, template_parameters: { flavour: { value: 'x' } } } },
      /'spec\.template_parameters(\.flavour)?'/,
    ),
    json('an unknown field', { nope: 1 }, /^unknown field "nope"$/),
    json(
      'an unknown inner field',
      { spec: { template: { nope: 1 } } },
      /^unknown field "spec\.template\.nope"$/,
    ),
    json('an unknown enum', { status: { state: 'NOPE' } }, /'status\.state': one of/),
    json(
      'an overflow',
      { spec: { node_sets: { w: { size: 2 ** 31 } } } },
      /'spec\.node_sets\.w\.size': a whole/,
    ),
    json('a wrong type', { metadata: { name: 5 } }, /'metadata\.name': a string/),
    json(
      'a prototype key',
      JSON.parse('{"spec":{"__proto__":{}}}') as object,
      /unknown field "spec\.__proto__"/,
    ),
    json(
      'a prototype in a map',
      JSON.parse(
        '{"metadata":{"name":"x","labels":{"__proto__":"x"}},"spec":{"template":{"name":"small"}}}',
      ) as object,
      /'metadata\.labels' key '__proto__'/,
    ),
    json('an upper-case name', named('Bad'), /^validation failed: .*metadata\.name/s),
    json('a name with a path', named('../../etc/passwd'), /metadata\.name/),
    json('a name of 64 characters', named('a'.repeat(64)), /at most 63/),
    json('a name ending in a hyphen', named('a-'), /metadata\.name/),
    json('a null name', { metadata: { name: null }, spec: SPEC }, /metadata\.name/),
    json('an id with a path', { id: '../../x', ...named('x') }, /^field 'id' must not hold/),
    json('an id of dots', { id: '..', ...named('x') }, /^field 'id' must not hold/),
    json('an id with NUL', { id: 'a\u0000b', ...named('x') }, /^field 'id' must not hold/),
    json(
      'an id of 201 characters',
      { id: 'a'.repeat(201), ...named('x') },
      /^field 'id' must be at most 200/,
    ),
    json(
      'a parameter of an unknown type',
      {
        ...named('x'),
        spec: { ...SPEC, template_parameters: { flavour: { '@type': 'type.googleapis.com/evil.Type' } } },
      },
      /'spec\.template_parameters(\.flavour)?'/,
    ),
    json(
      'a parameter of a wrong type',
      {
        ...named('x'),
        spec: {
          ...SPEC,
          template_parameters: {
            flavour: { '@type': 'type.googleapis.com/google.protobuf.BoolValue', value: true },
          },
        },
      },
      /flavour/,
    ),
    {
      ...post('a compressed body', '{}', /content encoding 'gzip'/, 415),
      headers: { 'content-encoding': 'gzip' },
    },
    get('a path of dots', `${CLUSTERS}/../hubs`, 404, 5, /^Not Found$/),
    get(
      'an encoded path',
      `${CLUSTERS}/..%2F..%2Fetc%2Fpasswd`,
      404,
      5,
      /object with identifier '\.\.\/\.\.\/etc\/passwd' not found/,
    ),
    get('an id of NUL', `${CLUSTERS}/%00`, 404, 5, /not found/),
    get('a broken escape', `${CLUSTERS}/%zz`, 400, 3, /invalid escape/),
    get('a broken UTF-8 escape', `${CLUSTERS}/%ff`, 400, 3, /invalid escape/),
    get('an id of 4 kB', `${CLUSTERS}/${'x'.repeat(4096)}`, 404, 5, /not found/),
    get("another tenant's id", `${CLUSTERS}/${foreignId}`, 404, 5, new RegExp(`'${foreignId}' not found$`)),
    get('SQL for an id', `${CLUSTERS}/${encodeURIComponent("x' OR 1=1 --")}`, 404, 5, /not found/),
    get('an unknown collection', `${PUBLIC}/nope`, 404, 5, /^Not Found$/),
    get('an unknown subresource', `${CLUSTERS}/x/nope`, 404, 5, /^Not Found$/),
    get('a path too long', `${CLUSTERS}/x/y/z`, 404, 5, /^Not Found$/),
    get('no path at all', '/', 404, 5, /^Not Found$/),
    get('a collection that only looks like one', `${PUBLIC}/__proto__`, 404, 5, /^Not Found$/),
    get('a subresource that only looks like one', `${CLUSTERS}/x/constructor`, 404, 5, /^Not Found$/),
    get('a bad limit', `${CLUSTERS}?limit=1e3`, 400, 3, /parsing field "limit"/),
    { ...get('a wrong verb', `${CLUSTERS}/x`, 501, 12, /^Method Not Allowed$/), verb: 'PUT' },
    { ...get('a wrong verb on a collection', CLUSTERS, 501, 12, /^Method Not Allowed$/), verb: 'DELETE' },
    { ...get('an unknown verb', CLUSTERS, 501, 12, /^Method Not Allowed$/), verb: 'PROPFIND' },
    {
      ...json('a patch of nothing known', { spec: { ssh_public_key: 'x' } }, /'nope' not found/),
      verb: 'PATCH',
      path: `${CLUSTERS}/nope`,
      status: 404,
      code: 5,
    },
    {
      ...json('a mask of nothing', {}, /'spec\.nope'/),
      verb: 'PATCH',
      path: `${CLUSTERS}/${foreignId}?update_mask=spec.nope`,
      status: 404,
      code: 5,
      says: /not found/,
    },
    {
      ...json(
        'a mask of 10,000 paths',
        {},
        /^an update mask may hold at most 100 paths, but it holds 10000$/,
      ),
      verb: 'PATCH',
      path: `${CLUSTERS}/x?update_mask=${Array.from({ length: 10_000 }, () => 'a').join(',')}`,
    },
    {
      ...json('a mask over many parameters', {}, /but it holds 101$/),
      verb: 'PATCH',
      path: `${CLUSTERS}/x?${Array.from({ length: 101 }, () => 'update_mask=a').join('&')}`,
    },
    {
      ...get('201 header fields', CLUSTERS, 431, 3, /^a request may have at most 200 header fields$/),
      headers: Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`x-${i}`, 'v'])),
    },
    ...['yes', 'TRUE', '1', '', 'true, true'].map(
      (value): Bad => ({
        ...json(`a dry run of '${value}'`, {}, /^header 'X-Dry-Run' must be true or false$/),
        headers: { 'x-dry-run': value },
      }),
    ),
    {
      ...json('a bad If-Match', {}, /^header 'If-Match' must hold one ETag/),
      verb: 'PATCH',
      path: `${CLUSTERS}/x`,
      headers: { 'if-match': '5' },
    },
    {
      ...json('a bad lock', {}, /parsing field "lock"/),
      verb: 'PATCH',
      path: `${CLUSTERS}/x?lock=perhaps`,
    },
    { ...get('a probe that is written to', '/healthz', 501, 12, /^Method Not Allowed$/), verb: 'DELETE' },
    {
      ...get('keys that are written to', '/.well-known/jwks.json', 501, 12, /^Method Not Allowed$/),
      verb: 'POST',
    },
    withToken('an expired token', `Bearer ${tokens.expired}`, /^token expired/),
    withToken('a forged token', `Bearer ${tokens.forged}`, /signature/),
    withToken('an unsigned token', `Bearer ${tokens.unsigned}`, /must be signed/),
    withToken('a garbage token', 'Bearer a.b.c', /not a JSON Web Token/),
    withToken('another scheme', 'Basic eDp5', /scheme 'Basic' is not supported/),
    { ...get('a private path of a tenant', `${PRIVATE}/hubs`, 403, 7, /^permission denied$/) },
  ];
};
