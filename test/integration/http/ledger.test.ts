import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { LEDGER, linesOf, startDispatching, type Dispatching } from './dispatching.ts';
import { CLUSTERS } from './ordering.ts';

describe('credentials and admin routes over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let order: Dispatching['order'];

  before(async () => {
    ({ service, admin, user, order } = await startDispatching());
  });
  after(() => service.close());

  describe('events', () => {
    it('are lines, redacted, with filters and a limit', async () => {
      const id = await order();
      const stream = linesOf(await admin('GET', `${LEDGER}/events?stream=cluster-${id}`));
      expect(stream).to.have.length(1);
      expect(stream[0]).to.include({
        stream: `cluster-${id}`,
        revision: 0,
        type: 'ClusterOrdered',
        tenant: 't1',
        command: 'OrderCluster',
      });
      expect(textAt(stream[0], 'data', 'id')).to.equal(id);
      const limited = linesOf(await admin('GET', `${LEDGER}/events?limit=3`));
      expect(limited).to.have.length(3);
      const rest = linesOf(
        await admin('GET', `${LEDGER}/events?limit=1&from=${textAt(limited[1], 'position')}`),
      );
      expect(rest[0]).to.deep.equal(limited[2]);
      const ofTenant = linesOf(
        await admin('GET', `${LEDGER}/events?tenant=t1&type=ClusterOrdered&limit=1000`),
      );
      expect(ofTenant.length).to.be.greaterThan(0);
      for (const event of ofTenant) expect(event).to.include({ tenant: 't1', type: 'ClusterOrdered' });
      const names = linesOf(await admin('GET', `${LEDGER}/events?type=NameReserved&limit=1`));
      expect(names[0]).to.deep.include({ internal: true, data: {} });
    });

    it('follow the log until the caller leaves', async () => {
      const controller = new AbortController();
      const token = await service.token({ user: 'root', admin: true });
      const response = await fetch(`${service.url}${LEDGER}/events?type=ClusterLabelled&follow=true`, {
        headers: { authorization: `Bearer ${token}` },
        signal: controller.signal,
      });
      expect(response.headers.get('content-type')).to.equal('application/x-ndjson');
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      const id = await order();
      await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { followed: 'yes' } } });
      let text = '';
      while (!text.includes('followed')) text += Buffer.from((await reader.read()).value ?? []).toString();
      expect(text).to.contain(`"stream":"cluster-${id}"`);
      controller.abort();
    });

    it('a service that stops ends who follows at once', async () => {
      const ending = new AbortController();
      const stopping = await startTestService({ ending: ending.signal });
      try {
        const token = await stopping.token({ user: 'root', admin: true });
        const response = await fetch(`${stopping.url}${LEDGER}/events?follow=true`, {
          headers: { authorization: `Bearer ${token}` },
        });
        ending.abort();
        // What stood in the log already was the look itself.
        const types = (await response.text())
          .split('\n')
          .filter((line) => line !== '' && !line.includes('"AuditRead"'));
        expect(types, 'no line that says something failed').to.deep.equal([]);
      } finally {
        await stopping.close();
      }
    });

    for (const query of ['limit=x', 'from=1', 'from=other.0000000000000001', 'follow=perhaps'])
      it(`refuse ${query} with a problem document`, async () => {
        const reply = await admin('GET', `${LEDGER}/events?${query}`);
        expect(reply.status).to.equal(400);
        expect(reply.headers.get('content-type')).to.equal('application/problem+json');
        expect(reply.json).to.include({ status: 400, title: 'The request is wrong' });
        expect(textAt(reply.json, 'detail')).to.match(/limit|from|follow/);
        expect(textAt(reply.json, 'type')).to.match(/^urn:fulfillment-ledger:problem:/);
      });
  });

  it('what operators do is not carried out when it was only to be tried', async () => {
    for (const path of ['projections/resources/rebuild', 'store/backup', 'orders/nope/retry']) {
      const reply = await admin('POST', `${LEDGER}/${path}`, undefined, { 'x-dry-run': 'true' });
      expect([reply.status, reply.json['code']], path).to.deep.equal([501, 'NO_DRY_RUN']);
    }
  });

  describe('projections', () => {
    it('show state, digest, and are rebuilt while reads go on', async () => {
      const listed = await admin('GET', `${LEDGER}/projections`);
      expect(itemsOf(listed).map((item) => textAt(item, 'name'))).to.deep.equal([
        'resources',
        'timeline',
        'usage',
        'audit',
      ]);
      const one = await admin('GET', `${LEDGER}/projections/resources`);
      expect(one.json).to.include({ name: 'resources', state: 'live', caughtUp: true });
      expect(textAt(one.json, 'position')).to.match(/^memory\.\d+$/);
      const digest = await admin('GET', `${LEDGER}/projections/resources/digest`);
      expect(textAt(digest.json, 'digest')).to.match(/^[0-9a-f]{64}$/);
      const rebuilt = linesOf(await admin('POST', `${LEDGER}/projections/resources/rebuild`));
      expect(rebuilt.at(-1)?.['report'], JSON.stringify(rebuilt)).to.include({
        view: 'resources',
        outcome: 'switched',
      });
      const after = await admin('GET', `${LEDGER}/projections/resources/digest`);
      expect(after.json['digest']).to.equal(digest.json['digest']);
      expect((await admin('GET', `${LEDGER}/projections/nope`)).status).to.equal(404);
      expect((await admin('POST', `${LEDGER}/projections/resources/parked/cluster-x/retry`)).status).to.equal(
        404,
      );
    });
  });

  describe('store', () => {
    it('says what it is; backup and check are the adapter’s', async () => {
      const store = await admin('GET', `${LEDGER}/store`);
      expect(store.json).to.include({ kind: 'memory', store_id: 'memory', single_writer: true });
      expect(textAt(store.json, 'last_position')).to.match(/^memory\.\d+$/);
      expect((await admin('POST', `${LEDGER}/store/backup`, { file: '/var/backup/x.db' })).status).to.equal(
        501,
      );
      expect((await admin('POST', `${LEDGER}/store/check`)).status).to.equal(501);
    });
  });

  it('routes of one path are told apart by verb, and so are the names in it', async () => {
    const hub = await admin('GET', `${LEDGER}/hubs/check`);
    expect([hub.status, hub.text.includes("'check'")], hub.text).to.deep.equal([404, true]);
    expect((await admin('POST', `${LEDGER}/hubs/check`, {})).status).to.equal(400);
    const neither = await admin('DELETE', `${LEDGER}/hubs/check`);
    expect([neither.status, neither.headers.get('allow')]).to.deep.equal([405, 'GET, POST']);
  });

  it('unknown routes of this surface are problem documents too', async () => {
    const reply = await admin('GET', `${LEDGER}/nope`);
    expect(reply.status).to.equal(404);
    expect(reply.headers.get('content-type')).to.equal('application/problem+json');
  });
});

describe('store routes with an adapter that can', () => {
  it('back up to an absolute path and report findings', async () => {
    const files: string[] = [];
    const service = await startTestService({
      ledger: {
        backupStore: async (file) => {
          files.push(file);
          return { file, bytes: 42 };
        },
        checkStore: async () => ({ events: 7, findings: ['page 3 is damaged'] }),
      },
    });
    try {
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      const done = await admin('POST', `${LEDGER}/store/backup`, { file: '/var/backup/x.db' });
      expect(done.json).to.deep.equal({ file: '/var/backup/x.db', bytes: 42 });
      for (const file of ['relative.db', '', 5, '/a\u0000b'])
        expect((await admin('POST', `${LEDGER}/store/backup`, { file })).status).to.equal(400);
      expect(files).to.deep.equal(['/var/backup/x.db']);
      const check = await admin('POST', `${LEDGER}/store/check`);
      expect(check.json).to.deep.equal({ events: 7, findings: ['page 3 is damaged'] });
    } finally {
      await service.close();
    }
  });
});

describe('health, log and metrics', () => {
  it('healthz is empty, readyz says what is missing, every request is one line and one observation', async () => {
    const seen: string[] = [];
    let ready = false;
    const service = await startTestService({
      readiness: () => ({
        ready,
        checks: [{ name: 'store', ok: ready, ...(ready ? {} : { message: 'down' }) }],
      }),
      onRequest: ({ method, route, status, seconds }) => {
        expect(seconds).to.be.within(0, 60);
        seen.push(`${method} ${route} ${status}`);
      },
    });
    try {
      const anonymous = callerOf(service);
      const health = await anonymous('GET', '/healthz');
      expect(`${health.status}${health.text}`).to.equal('200');
      const missing = await anonymous('GET', '/readyz');
      expect(missing.status).to.equal(503);
      expect(missing.json).to.deep.equal({
        ready: false,
        checks: [{ name: 'store', ok: false, message: 'down' }],
      });
      ready = true;
      expect((await anonymous('GET', '/readyz')).status).to.equal(200);
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const reply = await admin('GET', `${PRIVATE}/hubs/some-id`, undefined, {
        traceparent: trace,
        'x-request-id': 'call-7',
      });
      expect(reply.headers.get('x-request-id')).to.equal('call-7');
      await anonymous('GET', '/nowhere');
      await anonymous('GET', `${PUBLIC}/clusters/%zz`);
      expect(seen).to.deep.equal([
        'GET /healthz 200',
        'GET /readyz 503',
        'GET /readyz 200',
        `GET ${PRIVATE}/hubs/{id} 404`,
        'GET unknown 404',
        'GET unknown 400',
      ]);
      const line = service.logger.lines.find(
        ({ fields }) => (fields as { correlationId?: string }).correlationId === 'call-7',
      );
      expect(line?.fields).to.include({
        method: 'GET',
        route: `${PRIVATE}/hubs/{id}`,
        status: 404,
        tenant: 'shared',
        traceId: '0af7651916cd43dd8448eb211c80319c',
      });
      expect(JSON.stringify(service.logger.lines)).not.to.match(/Bearer|eyJ/);
    } finally {
      await service.close();
    }
  });
});
