import { expect } from 'chai';
import { connect } from 'node:net';
import {
  callerOf,
  seedCatalogue,
  startTestService,
  type Json,
  type TestService,
} from '../../support/http/service.ts';
import { PUBLIC_WATCH } from '../../../src/http/osac/watch/routes.ts';
import { rawExchange } from '../../support/http/raw-client.ts';
import { CLUSTERS } from './ordering.ts';
import { eventually } from '../../support/eventually.ts';

describe('bad input over HTTP', function () {
  this.timeout(60_000);
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService({ forgetful: true });
    await seedCatalogue(callerOf(service, await service.token({ user: 'root', admin: true })));
    token = await service.token({ user: 'alice', tenants: ['t1'] });
  });
  after(() => service.close());

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

    for (const second of ['Host: x', 'host: evil.example', 'HOST:'])
      it(`a request with two hosts, ${second}, is 400`, async () => {
        for (const version of ['1.0', '1.1']) {
          const text = await rawExchange(
            service.url,
            `GET ${CLUSTERS} HTTP/${version}\r\nHost: x\r\n${second}\r\n\r\n`,
          );
          expectRefusal(text, 400, 3, "header 'Host' may be given once");
        }
      });

    it('every error says that it is neither to be stored nor to be taken for anything else', async () => {
      for (const [path, status] of [
        [CLUSTERS, 401],
        ['/nowhere', 404],
        ['/api/ledger/v1/projections', 401],
        ['/api/audit/v1/events', 401],
        [`${PUBLIC_WATCH}?filter=this(`, 401],
        [`${CLUSTERS}/%zz`, 400],
        ['/healthz', 501],
      ] as const) {
        const answer = await fetch(service.url + path, { method: status === 501 ? 'POST' : 'GET' });
        expect(answer.status, path).to.equal(status);
        expect(answer.headers.get('cache-control'), path).to.equal('no-store');
        expect(answer.headers.get('x-content-type-options'), path).to.equal('nosniff');
      }
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
      await eventually('a line of the log', () => service.logger.lines.length > 0);
      expect(service.logger.lines.map(({ level }) => level)).to.deep.equal(['info']);
      expect(service.logger.lines[0]?.fields).to.include({ status: 499, route: CLUSTERS });
      expect(service.rejections).to.deep.equal([]);
    } finally {
      await service.close();
    }
  });
});

const NO_HTTP = 'not an HTTP request: its first line, a header field or the form of its body is wrong';

/** One answer with OSAC's error body, after which the connection has ended. */
const expectRefusal = (text: string, status: number, code: number, message: string | RegExp): void => {
  const [head = '', body = '', ...more] = text.split('\r\n\r\n');
  expect(head, text).to.match(new RegExp(`^HTTP/1\\.1 ${status} [A-Z]`));
  expect(head).to.match(/^content-type: application\/json$/im);
  expect(head).to.match(/^connection: close$/im);
  expect(head).to.match(/^cache-control: no-store$/im);
  expect(head).to.match(/^x-content-type-options: nosniff$/im);
  expect(head).to.match(new RegExp(`^content-length: ${Buffer.byteLength(body)}$`, 'im'));
  expect(more, text).to.deep.equal([]);
  const json = JSON.parse(body) as Json;
  expect(json['code']).to.equal(code);
  if (typeof message === 'string') expect(json['message']).to.equal(message);
  else expect(json['message']).to.match(message);
};
