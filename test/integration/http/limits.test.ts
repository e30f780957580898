import { expect } from 'chai';
import { connect } from 'node:net';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createIssuerKeys } from '../../../src/adapters/identity/issuer-keys.ts';
import { createTokenVerifier } from '../../../src/adapters/identity/token-verifier.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { createAuthenticator } from '../../../src/http/authenticate.ts';
import {
  ISSUER,
  PRIVATE,
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  type Caller,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { eventually } from '../../support/eventually.ts';

const CLUSTERS = `${PUBLIC}/clusters`;
const SPEC = { template: { id: 'osac.templates.small' } };

const service = async (options: Parameters<typeof startTestService>[0]) => {
  const started = await startTestService(options);
  const admin = callerOf(started, await started.token({ user: 'root', admin: true }));
  await seedCatalogue(admin);
  const alice = callerOf(started, await started.token({ user: 'alice', tenants: ['t1'] }));
  const bob = callerOf(started, await started.token({ user: 'bob', tenants: ['t2'] }));
  return { started, admin, alice, bob };
};

/** Issue 4, part 6. */
describe('limits over HTTP', () => {
  describe('rates', () => {
    let started: TestService;
    let admin: Caller;
    let alice: Caller;
    let bob: Caller;
    before(async () => {
      ({ started, admin, alice, bob } = await service({
        admission: { rateLimitTenant: 5, rateLimitAddress: 4 },
      }));
    });
    after(() => started.close());

    it('what is left is told with every answer, and past the quota when to come again', async () => {
      const replies: Reply[] = [];
      for (let i = 0; i < 6; i += 1) replies.push(await alice('GET', `${CLUSTERS}?limit=1`));
      expect(replies.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200, 429]);
      expect(replies.map(({ headers }) => headers.get('ratelimit')?.split(';')[1])).to.deep.equal(
        [4, 3, 2, 1, 0, 0].map((left) => `r=${left}`),
      );
      expect(replies[0]?.headers.get('ratelimit-policy')).to.equal('"tenant";q=5;w=60');
      const last = replies[5];
      expect(last?.json).to.deep.equal({
        code: 8,
        message: 'too many requests of this tenant: at most 5 in 60 seconds are served',
      });
      expect(Number(last?.headers.get('retry-after'))).to.be.within(1, 12);
      expect(last?.headers.get('x-ledger-reason')).to.equal('RATE_LIMITED');
    });

    it('another user of the tenant shares its quota; another tenant and admins have their own', async () => {
      const colleague = callerOf(started, await started.token({ user: 'carol', tenants: ['t1'] }));
      expect((await colleague('GET', CLUSTERS)).status).to.equal(429);
      expect((await bob('GET', CLUSTERS)).status).to.equal(200);
      for (let i = 0; i < 20; i += 1) {
        const reply = await admin('GET', `${PRIVATE}/hubs`);
        expect(reply.status).to.equal(200);
        expect(reply.headers.get('ratelimit')).to.equal(null);
      }
    });

    it('a refused write is no rejection worth a record, and leaves no trace', async () => {
      const records = started.rejections.length;
      const last = await started.store.lastPosition();
      const reply = await alice('POST', CLUSTERS, { metadata: { name: 'late' }, spec: SPEC });
      expect(reply.status).to.equal(429);
      expect(started.rejections.length).to.equal(records);
      expect(await started.store.lastPosition()).to.equal(last);
    });

    it('callers without a valid token are counted by address, also when they fail before that is asked', async () => {
      const nobody = callerOf(started);
      const forged = callerOf(started, 'a.b.c');
      expect((await nobody('GET', CLUSTERS)).status).to.equal(401);
      expect((await forged('GET', CLUSTERS)).status).to.equal(401);
      expect((await nobody('POST', CLUSTERS, '{"nope":1}')).status).to.equal(400);
      expect((await nobody('GET', `${PUBLIC}/capabilities`)).status).to.equal(200);
      for (const [verb, path, body] of [
        ['GET', CLUSTERS, undefined],
        ['POST', CLUSTERS, '{"nope":1}'],
        ['GET', `${PUBLIC}/capabilities`, undefined],
      ] as const) {
        const reply = await nobody(verb, path, body);
        expect(reply.status, path).to.equal(429);
        expect(reply.headers.get('ratelimit-policy')).to.equal('"address";q=4;w=60');
      }
      expect((await bob('GET', CLUSTERS)).status, 'a valid token from there').to.equal(200);
      for (const probe of ['/healthz', '/readyz']) expect((await nobody('GET', probe)).status).to.equal(200);
    });
  });

  describe('while the keys of the token issuer cannot be had', () => {
    let away = false;
    let started: TestService;
    before(async () => {
      started = await startTestService({
        admission: { rateLimitAddress: 3 },
        guard: (_models, authenticate) => {
          const keys = createIssuerKeys({
            issuer: ISSUER,
            now: () => 1_000_000,
            fetch: () => Promise.reject(new Error('connection refused')),
          });
          const without = createAuthenticator({
            verifier: createTokenVerifier({ issuers: new Map([[ISSUER, keys]]), now: () => Date.now() }),
            tenantExists: () => true,
            monotonicMs: () => 0,
          });
          return (...call) => (away ? without : authenticate)(...call);
        },
      });
      await seedCatalogue(callerOf(started, await started.token({ user: 'root', admin: true })));
      away = true;
    });
    after(() => started.close());

    it('every caller with a token of it gets 503 and is no stranger, however many stand behind one address', async () => {
      const callers = await Promise.all(
        Array.from({ length: 8 }, async (_, i) =>
          callerOf(started, await started.token({ user: `user-${i}`, tenants: ['t1'] })),
        ),
      );
      for (const caller of callers)
        for (const [verb, path, body] of [
          ['GET', CLUSTERS, undefined],
          ['POST', CLUSTERS, { metadata: { name: 'away' }, spec: SPEC }],
          ['GET', '/api/events/v1/events', undefined],
          ['GET', '/api/ledger/v1/orders', undefined],
        ] as const) {
          const reply = await caller(verb, path, body);
          expect(reply.status, `${verb} ${path} ${reply.text}`).to.equal(503);
          expect(reply.headers.get('x-ledger-reason'), path).to.equal('ISSUER_UNREACHABLE');
          expect(Number(reply.headers.get('retry-after')), path).to.be.within(1, 5);
          expect(reply.headers.get('ratelimit'), path).to.equal(null);
        }
      // What is wrong before anybody asks who calls is told, and counted for nobody either.
      for (const caller of callers)
        expect((await caller('POST', CLUSTERS, '{"nope":1}')).status).to.equal(400);
    });

    it('strangers from that address are counted as ever, and bar no one who has a token', async () => {
      const alice = callerOf(started, await started.token({ user: 'alice', tenants: ['t1'] }));
      const statuses: number[] = [];
      for (const caller of Array.from({ length: 5 }, (_, i) =>
        callerOf(started, i % 2 === 0 ? undefined : 'a.b.c'),
      ))
        statuses.push((await caller('GET', CLUSTERS)).status);
      expect(statuses).to.deep.equal([401, 401, 401, 429, 429]);
      expect((await alice('GET', CLUSTERS)).status).to.equal(503);
    });
  });

  describe('turns', () => {
    /** A store whose appends to clusters wait until they are let go. */
    const held = () => {
      const store = createMemoryEventStore();
      const waiting: (() => void)[] = [];
      const wrapped: EventStore = {
        ...store,
        append: async (stream, ...rest) => {
          if (stream.startsWith('cluster-')) await new Promise<void>((resolve) => waiting.push(resolve));
          return store.append(stream, ...rest);
        },
      };
      return { store: wrapped, waiting };
    };

    it('a tenant with many requests in flight delays itself and nobody else', async () => {
      const { store, waiting } = held();
      const { started, alice, bob, admin } = await service({ store, admission: { concurrentRequests: 2 } });
      try {
        const orders = Array.from({ length: 6 }, (_, i) =>
          alice('POST', CLUSTERS, { metadata: { name: `c-${i}` }, spec: SPEC }),
        );
        await eventually('two wait', () => waiting.length === 2);
        const listed = alice('GET', CLUSTERS);
        expect((await bob('GET', CLUSTERS)).status).to.equal(200);
        expect((await admin('GET', `${PRIVATE}/clusters`)).status).to.equal(200);
        expect(waiting.length, 'the others wait for a turn').to.equal(2);
        let answered = 0;
        for (const order of orders) void order.then(() => (answered += 1));
        while (answered < orders.length) {
          await eventually('one waits', () => waiting.length > 0 || answered === orders.length);
          waiting.shift()?.();
        }
        expect((await Promise.all(orders)).map(({ status }) => status)).to.deep.equal(
          Array.from({ length: 6 }, () => 200),
        );
        expect((await listed).status).to.equal(200);
      } finally {
        await started.close();
      }
    });
  });
});

describe('turns of the thread', () => {
  it('go round: what a tenant has sent does not come before what another one sends', async () => {
    const served: string[] = [];
    const { started } = await service({
      // Every request waits for a turn of its own.
      admission: { sliceMs: 0 },
      onRequest: ({ route }) => void served.push(route),
    });
    try {
      const [hog, quiet] = [
        await started.token({ user: 'alice', tenants: ['t1'] }),
        await started.token({ user: 'bob', tenants: ['t2'] }),
      ];
      const request = (path: string, token: string): string =>
        `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
      for (const token of [hog, quiet])
        expect((await callerOf(started, token)('GET', CLUSTERS)).status).to.equal(200);
      const { hostname, port } = new URL(started.url);
      const sockets = [connect(Number(port), hostname), connect(Number(port), hostname)] as const;
      await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
      served.length = 0;
      // Pipelined: all of them are there before the first one is answered.
      const path = `${PUBLIC}/cluster_templates`;
      sockets[0].write(request(`${path}?limit=1000`, hog).repeat(80));
      sockets[1].write(request(`${path}/osac.templates.small`, quiet));
      for (const socket of sockets) socket.resume();
      await eventually('all are served', () => served.length >= 81);
      expect(served).to.have.length(81);
      expect(served.indexOf(`${path}/{id}`)).to.be.within(0, 10);
      for (const socket of sockets) socket.destroy();
    } finally {
      await started.close();
    }
  });

  it('bodies of a tenant count by their bytes, whatever becomes of them', async () => {
    const measured: (readonly [string | undefined, number | undefined])[] = [];
    const { started, alice, bob } = await service({
      audit: {},
      admission: { byteLimitTenant: 1 },
      onRequest: ({ tenant, bytes }) => void measured.push([tenant, bytes]),
    });
    try {
      const body = (name: string) => ({
        metadata: { name, annotations: { big: 'x'.repeat(240_000) } },
        spec: SPEC,
      });
      const bytes = Buffer.byteLength(JSON.stringify(body('b-1')));
      for (const name of ['b-1', 'b-2', 'b-3'])
        expect((await alice('POST', CLUSTERS, body(name))).status).to.equal(200);
      expect((await alice('POST', CLUSTERS, `{${'x'.repeat(bytes)}`)).status, 'refused').to.equal(400);
      expect(measured).to.deep.include(['t1', bytes]);
      const past = await alice('POST', CLUSTERS, body('b-5'));
      expect(past.json, past.text).to.deep.equal({
        code: 8,
        message:
          'too many bytes in requests of this tenant: at most 1 MiB of request bodies in 60 seconds are taken',
      });
      expect(past.status).to.equal(429);
      expect(past.headers.get('x-ledger-reason')).to.equal('BYTES_LIMITED');
      expect(Number(past.headers.get('retry-after'))).to.be.within(1, 60);
      expect((await alice('GET', CLUSTERS)).status, 'brings nothing').to.equal(200);
      expect((await bob('POST', CLUSTERS, body('b-1'))).status, 'of another tenant').to.equal(200);
      const auditor = callerOf(
        started,
        await started.token({ user: 'a', tenants: ['t1'], roles: ['auditor'] }),
      );
      const others: unknown[] = [];
      for (let i = 0; i < 10; i += 1) {
        const asked = { filter: { note: 'x'.repeat(60_000) } };
        others.push((await auditor('POST', '/api/audit/v1/exports', asked)).json['code']);
      }
      expect(others, 'on other surfaces').to.include('BYTES_LIMITED');
    } finally {
      await started.close();
    }
  });

  it('a list counts by its rows', async () => {
    const { started, alice } = await service({ admission: { rateLimitTenant: 25 } });
    try {
      const began = performance.now();
      for (const [limit, left] of [
        ['', 24],
        ['?limit=0', 23],
        ['?limit=1000', 13],
        ['?limit=101', 11],
      ] as const) {
        const told = (await alice('GET', CLUSTERS + limit)).headers.get('ratelimit')?.split(';')[1];
        // On a slow machine some of it is there again.
        const again = Math.floor(((performance.now() - began) / 60_000) * 25);
        expect(Number(told?.slice('r='.length)), limit).to.be.within(left, left + again);
      }
    } finally {
      await started.close();
    }
  });
});

describe('callers who do not read', function () {
  this.timeout(60_000);
  it('are cut off when nothing moves any more; their answer is not kept', async () => {
    const { started, admin } = await service({ slowReaderMs: 100 });
    try {
      const annotations = { big: 'x'.repeat(250_000) };
      for (let i = 0; i < 40; i += 1) {
        const reply = await admin('POST', `${PRIVATE}/roles`, { metadata: { name: `r-${i}`, annotations } });
        expect(reply.status).to.equal(200);
      }
      const { hostname, port } = new URL(started.url);
      const token = await started.token({ user: 'root', admin: true });
      const socket = connect(Number(port), hostname);
      socket.pause();
      socket.write(`GET ${PRIVATE}/roles HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
      // Nothing is read here, so only the server can end it.
      const connections = (): Promise<number> =>
        new Promise((resolve, reject) => {
          started.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
        });
      const answered = (): boolean =>
        started.logger.lines.some(
          ({ fields }) =>
            'route' in fields &&
            fields.route === `${PRIVATE}/roles` &&
            'method' in fields &&
            fields.method === 'GET',
        );
      for (let i = 0; i < 500 && !answered(); i += 1) await new Promise((resolve) => setTimeout(resolve, 10));
      expect(answered(), 'the exchange is over').to.equal(true);
      expect(socket.bytesRead).to.be.lessThan(10_000_000);
      socket.destroy();
      for (let i = 0; i < 500 && (await connections()) > 1; i += 1)
        await new Promise((resolve) => setTimeout(resolve, 10));
    } finally {
      await started.close();
    }
  });

  it('get no more answers while too much waits for them; others do, and they again once they have read', async () => {
    const { started, admin, alice, bob } = await service({
      admission: { unread: { ofAll: 4_000_000, ofOne: 1_000_000 } },
    });
    try {
      // Each list is a little less than what is sent in one piece.
      const annotations = { big: 'x'.repeat(240_000) };
      for (let i = 0; i < 4; i += 1) {
        const metadata = { name: `p-${i}`, tenant: 't1', annotations };
        expect((await admin('POST', `${PRIVATE}/projects`, { metadata })).status).to.equal(200);
      }
      const path = `${PUBLIC}/projects`;
      const token = await started.token({ user: 'alice', tenants: ['t1'] });
      const { hostname, port } = new URL(started.url);
      const sockets: ReturnType<typeof connect>[] = [];
      let refused: Reply | undefined;
      // The buffers of the sockets take some; then the service keeps them.
      for (let i = 0; i < 40 && refused === undefined; i += 1) {
        const socket = connect(Number(port), hostname);
        sockets.push(socket);
        socket.pause();
        const request = `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
        socket.write(request.repeat(12));
        const reply = await alice('GET', CLUSTERS);
        if (reply.status !== 200) refused = reply;
      }
      expect(refused?.status).to.equal(429);
      expect(refused?.headers.get('x-ledger-reason')).to.equal('ANSWERS_NOT_READ');
      expect(refused?.headers.get('retry-after')).to.equal('1');
      expect((await bob('GET', CLUSTERS)).status, 'another tenant').to.equal(200);
      const order = await alice('POST', CLUSTERS, { metadata: { name: 'still' }, spec: SPEC });
      expect(order.status, 'what is written needs no room').to.equal(200);
      for (const socket of sockets) socket.destroy();
      let status = 0;
      for (let i = 0; i < 200 && status !== 200; i += 1) {
        ({ status } = await alice('GET', CLUSTERS));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect(status).to.equal(200);
    } finally {
      await started.close();
    }
  });
});

/** CORS, as browsers ask for it. */
describe('CORS', () => {
  const preflight = (origin: string, asked = 'authorization,content-type') => ({
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': asked,
  });
  const answered = (reply: Response) => ({
    status: reply.status,
    origin: reply.headers.get('access-control-allow-origin'),
    credentials: reply.headers.get('access-control-allow-credentials'),
    vary: reply.headers.get('vary'),
  });

  it('any origin may call where * is set; the preflight names what was asked for', async () => {
    const started = await startTestService({ cors: { origins: ['*'] } });
    try {
      const reply = await fetch(started.url + CLUSTERS, {
        method: 'OPTIONS',
        headers: preflight('https://ui.example'),
      });
      expect(answered(reply)).to.deep.equal({ status: 200, origin: '*', credentials: 'true', vary: null });
      expect(reply.headers.get('access-control-allow-headers')).to.equal('authorization,content-type');
      expect(reply.headers.get('access-control-allow-methods')).to.contain('PATCH');
      expect(reply.headers.get('access-control-max-age')).to.equal('86400');
      expect(await reply.text()).to.equal('');
      const call = await fetch(started.url + CLUSTERS, { headers: { origin: 'https://ui.example' } });
      expect(answered(call)).to.deep.equal({ status: 401, origin: '*', credentials: 'true', vary: null });
      expect(call.headers.get('access-control-expose-headers')).to.contain('X-Ledger-Position');
    } finally {
      await started.close();
    }
  });

  it('a list lets its origins in and tells the others nothing', async () => {
    const started = await startTestService({ cors: { origins: ['https://ui.example'] } });
    try {
      const ask = async (origin: string) =>
        answered(await fetch(started.url + CLUSTERS, { method: 'OPTIONS', headers: preflight(origin) }));
      expect(await ask('https://ui.example')).to.deep.equal({
        status: 200,
        origin: 'https://ui.example',
        credentials: 'true',
        vary: 'Origin',
      });
      expect(await ask('https://evil.example')).to.include({
        origin: null,
        credentials: null,
        vary: 'Origin',
      });
    } finally {
      await started.close();
    }
  });

  it('header names that are none are not repeated', async () => {
    const started = await startTestService({ cors: { origins: ['*'] } });
    try {
      const headers = preflight('https://ui.example', 'a b c; d=<x>');
      const reply = await fetch(`${started.url}/nowhere`, { method: 'OPTIONS', headers });
      expect(reply.headers.get('access-control-allow-headers')).to.match(/^Authorization, /);
    } finally {
      await started.close();
    }
  });

  it('without the setting nothing is said, and OPTIONS is a verb that is not allowed', async () => {
    const started = await startTestService();
    try {
      const headers = preflight('https://ui.example');
      const reply = await fetch(started.url + CLUSTERS, { method: 'OPTIONS', headers });
      expect(answered(reply)).to.deep.equal({ status: 501, origin: null, credentials: null, vary: null });
    } finally {
      await started.close();
    }
  });
});
