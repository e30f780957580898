import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import { collect } from '../../support/commands/fake-context.ts';
import {
  PRIVATE,
  callerOf,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { CLUSTERS, SMALL } from './ordering.ts';

const keyed = (key: string) => ({ 'idempotency-key': key });

/** An event store whose next appends misbehave as told. */
const unruly = (): EventStore & {
  next: ('unknown-lost' | 'unknown-stored' | 'down')[];
  /** Comes before the next append to a cluster. */
  overtaking: EventStore['append'] | undefined;
} => {
  const store = createMemoryEventStore();
  const wrapped: ReturnType<typeof unruly> = {
    ...store,
    next: [],
    overtaking: undefined,
    append: async (stream, expected, events, options) => {
      const fault = stream.startsWith('cluster-') ? wrapped.next.shift() : undefined;
      const { overtaking } = wrapped;
      if (overtaking !== undefined && stream.startsWith('cluster-')) {
        wrapped.overtaking = undefined;
        await overtaking(stream, expected, events);
      }
      if (fault === 'down') throw new StoreUnavailable('no connection', 'down', { retryAfterMs: 2500 });
      if (fault === 'unknown-lost') throw new OutcomeUnknown(stream);
      const appended = await store.append(stream, expected, events, options);
      if (fault === 'unknown-stored') throw new OutcomeUnknown(stream);
      return appended;
    },
  };
  return wrapped;
};

describe('writes over HTTP', () => {
  let service: TestService;
  let store: ReturnType<typeof unruly>;
  let user: Caller;
  let admin: Caller;
  let serial = 0;
  const name = (): string => `w-${(serial += 1)}`;
  const count = async (): Promise<number> => itemsOf(await user('GET', `${CLUSTERS}?limit=1000`)).length;

  before(async () => {
    store = unruly();
    service = await startTestService({ store });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  });
  after(() => service.close());

  describe('Idempotency-Key', () => {
    it('the same key and body give the same order, however often and whatever happened since', async () => {
      const body = { metadata: { name: name() }, spec: SMALL };
      const first = await user('POST', CLUSTERS, body, keyed('"order-1"'));
      expect(first.status, first.text).to.equal(200);
      const before = await count();
      const id = textAt(first.json, 'id');
      await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { changed: 'yes' } } });
      const again = await user('POST', CLUSTERS, body, keyed('order-1'));
      expect(again.status).to.equal(200);
      expect(again.json).to.deep.equal(first.json);
      expect(again.headers.get('etag')).to.equal('"cluster-0"');
      await user('DELETE', `${CLUSTERS}/${id}`);
      const afterDelete = await user('POST', CLUSTERS, body, keyed('order-1'));
      expect(afterDelete.json).to.deep.equal(first.json);
      expect(await count()).to.equal(before - 1);
    });

    it('does not resolve a repeated order anew: what it referred to may be gone', async () => {
      await admin('POST', `${PRIVATE}/cluster_templates`, {
        id: 'osac.templates.brief',
        node_sets: { w: { host_type: { id: 'fc430' }, size: 1 } },
      });
      const body = { metadata: { name: name() }, spec: { template: { id: 'osac.templates.brief' } } };
      const first = await user('POST', CLUSTERS, body, keyed('brief'));
      await user('DELETE', `${CLUSTERS}/${textAt(first.json, 'id')}`);
      const removed = await admin('DELETE', `${PRIVATE}/cluster_templates/osac.templates.brief`);
      expect(removed.status, removed.text).to.equal(200);
      const again = await user('POST', CLUSTERS, body, keyed('brief'));
      expect(again.json).to.deep.equal(first.json);
    });

    it('ten at once make one order and answer alike', async () => {
      const before = await count();
      const body = { metadata: { name: name() }, spec: { ...SMALL, pull_secret: 'S' } };
      const replies = await Promise.all(
        Array.from({ length: 10 }, () => user('POST', CLUSTERS, body, keyed('burst'))),
      );
      expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
      expect(replies[0]?.status).to.equal(200);
      expect(await count()).to.equal(before + 1);
    });

    it('another body under the same key is 422; spelling does not matter', async () => {
      const wanted = name();
      await user('POST', CLUSTERS, { metadata: { name: wanted }, spec: SMALL }, keyed('k-422'));
      const spelled = await user(
        'POST',
        CLUSTERS,
        `{ "spec": ${JSON.stringify(SMALL)},\n "metadata": {"name":"${wanted}"} }`,
        keyed('k-422'),
      );
      expect(spelled.status).to.equal(200);
      const other = await user('POST', CLUSTERS, { metadata: { name: name() }, spec: SMALL }, keyed('k-422'));
      expect(other.status).to.equal(422);
      expect(other.json['message']).to.match(/idempotency key was used before/);
      const recorded = service.rejections.at(-1);
      expect(recorded).to.include({ outcome: 'rejected', code: 'IDEMPOTENCY_MISMATCH' });
      const [stored] = await collect(
        service.store.readStream(`cluster-${textAt(spelled.json, 'id')}`, { limit: 1 }),
      );
      expect(recorded?.commandId, 'of the command that has the key').to.equal(stored?.metadata['commandId']);
    });

    it('a key belongs to one caller and one route', async () => {
      const body = { metadata: { name: name() }, spec: SMALL };
      const mine = await user('POST', CLUSTERS, body, keyed('shared-key'));
      const colleague = callerOf(service, await service.token({ user: 'carol', tenants: ['t1'] }));
      const theirs = await colleague(
        'POST',
        CLUSTERS,
        { ...body, metadata: { name: name() } },
        keyed('shared-key'),
      );
      expect(theirs.status, theirs.text).to.equal(200);
      expect(theirs.json['id']).not.to.equal(mine.json['id']);
      const patched = await user(
        'PATCH',
        `${CLUSTERS}/${textAt(mine.json, 'id')}`,
        { metadata: { labels: { a: 'b' } } },
        keyed('shared-key'),
      );
      expect(patched.status).to.equal(200);
    });

    it('belongs to one verb and one path, however the path is spelt', async () => {
      const created = await user('POST', CLUSTERS, {
        id: `A-${name()}`,
        metadata: { name: name() },
        spec: SMALL,
      });
      const id = textAt(created.json, 'id');
      const body = { metadata: { labels: { a: 'b' } } };
      const first = await user('PATCH', `${CLUSTERS}/${id}`, body, keyed('spelt'));
      expect(first.status, first.text).to.equal(200);
      await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { a: 'c' } } });
      const again = await user('PATCH', `${CLUSTERS}/%41${id.slice(1)}`, body, keyed('spelt'));
      expect(again.text).to.equal(first.text);
      const other = { metadata: { labels: { a: 'd' } } };
      const reused = await user('PATCH', `${CLUSTERS}/%41${id.slice(1)}?x=1`, other, keyed('spelt'));
      expect(reused.status).to.equal(422);
      for (const path of [`${CLUSTERS}/${id}/`, `${CLUSTERS.replace('/api/', '/API/')}/${id}`])
        expect((await user('PATCH', path, body, keyed('spelt'))).status, path).to.equal(404);
      const removed = await user('DELETE', `${CLUSTERS}/${id}`, undefined, keyed('spelt'));
      expect(removed.status, removed.text).to.equal(200);
      expect((await user('GET', `${CLUSTERS}/${id}`)).status).to.equal(404);
    });

    it('no path has a second spelling', async () => {
      for (const path of [
        '/API/PRIVATE/V1/hubs',
        '/api/private/v1/Hubs',
        '/api/private/v1/hubs/',
        '/Healthz',
      ]) {
        const reply = await admin('GET', path);
        expect([reply.status, reply.json], path).to.deep.equal([404, { code: 5, message: 'Not Found' }]);
      }
      const ledger = await admin('GET', '/api/ledger/v1/store/');
      expect(ledger.status).to.equal(404);
      expect(ledger.headers.get('content-type')).to.equal('application/problem+json');
    });

    it('may be a name that every object has', async () => {
      for (const key of ['constructor', '__proto__']) {
        const body = { metadata: { name: name() }, spec: SMALL };
        const first = await user('POST', CLUSTERS, body, keyed(key));
        expect(first.status, first.text).to.equal(200);
        expect((await user('POST', CLUSTERS, body, keyed(key))).text).to.equal(first.text);
      }
    });

    it('holds for PATCH and DELETE: the state of then, although the ETag is stale by now', async () => {
      const created = await user('POST', CLUSTERS, { metadata: { name: name() }, spec: SMALL });
      const path = `${CLUSTERS}/${textAt(created.json, 'id')}`;
      const scale = { spec: { node_sets: { workers: { size: 4 } } } };
      const headers = { ...keyed('scale-1'), 'if-match': '"cluster-0"' };
      const first = await user('PATCH', path, scale, headers);
      expect(first.status, first.text).to.equal(200);
      await user('PATCH', path, { spec: { node_sets: { workers: { size: 9 } } } });
      const again = await user('PATCH', path, scale, headers);
      expect(again.status).to.equal(200);
      expect(again.json).to.deep.equal(first.json);
      expect((await user('GET', path)).json['spec']?.['node_sets']?.['workers']).to.include({ size: 9 });
      for (let i = 0; i < 3; i += 1) {
        const removed = await user('DELETE', path, undefined, keyed('delete-1'));
        expect(`${removed.status} ${removed.text}`).to.equal('200 {}');
      }
      expect((await user('DELETE', path)).status).to.equal(404);
    });

    it('a refusal is decided again', async () => {
      const wanted = name();
      const holder = await user('POST', CLUSTERS, { metadata: { name: wanted }, spec: SMALL });
      const body = { metadata: { name: wanted }, spec: SMALL };
      expect((await user('POST', CLUSTERS, body, keyed('late'))).status).to.equal(409);
      await user('DELETE', `${CLUSTERS}/${textAt(holder.json, 'id')}`);
      expect((await user('POST', CLUSTERS, body, keyed('late'))).status).to.equal(200);
    });

    for (const key of ['', '""', '"unfinished', 'with space', '"a", "b"', `"${'x'.repeat(256)}"`])
      it(`refuses the key ${JSON.stringify(key.slice(0, 20))}`, async () => {
        const reply = await user('POST', CLUSTERS, { metadata: { name: 'never' }, spec: SMALL }, keyed(key));
        // fetch leaves out a header whose value is empty only when it is undefined; an empty one arrives as such.
        expect(reply.status, reply.text).to.equal(400);
        expect(reply.json['message']).to.match(/Idempotency-Key/);
      });
  });

  describe('an outcome that is not known', () => {
    it('is settled within the request when the append was stored', async () => {
      store.next = ['unknown-stored'];
      const reply = await user('POST', CLUSTERS, { metadata: { name: name() }, spec: SMALL });
      expect(reply.status, reply.text).to.equal(200);
    });

    it('is 504 with the command id; the same key settles it', async () => {
      const body = { metadata: { name: name() }, spec: SMALL };
      store.next = ['unknown-lost', 'unknown-lost', 'unknown-lost', 'unknown-lost'];
      const lost = await user('POST', CLUSTERS, body, keyed('settle'));
      store.next = [];
      expect(lost.status, lost.text).to.equal(504);
      expect(lost.json['code']).to.equal(4);
      const detail = lost.json['details']?.['0'];
      expect(detail).to.include({ reason: 'OUTCOME_UNKNOWN' });
      expect(textAt(detail, 'metadata', 'command_id')).to.match(/^[0-9a-f-]{36}$/);
      expect(lost.headers.get('x-ledger-command-id')).to.equal(null);
      const settled = await user('POST', CLUSTERS, body, keyed('settle'));
      expect(settled.status, settled.text).to.equal(200);
      expect((await user('POST', CLUSTERS, body, keyed('settle'))).json).to.deep.equal(settled.json);
    });

    it('without a key the answer names the header that repeats exactly this command', async () => {
      const before = await count();
      const body = { metadata: { name: name() }, spec: SMALL };
      store.next = ['unknown-lost', 'unknown-lost', 'unknown-lost', 'unknown-lost'];
      const lost = await user('POST', CLUSTERS, body);
      store.next = [];
      expect(lost.status, lost.text).to.equal(504);
      const command = lost.headers.get('x-ledger-command-id') ?? '';
      const repeat = { 'x-ledger-command-id': command };
      const settled = await user('POST', CLUSTERS, body, repeat);
      expect(settled.status, settled.text).to.equal(200);
      expect(settled.json['id']).to.equal(command);
      expect((await user('POST', CLUSTERS, body, repeat)).json).to.deep.equal(settled.json);
      expect(await count()).to.equal(before + 1);
      const other = await user('POST', CLUSTERS, { ...body, metadata: { name: name() } }, repeat);
      expect(other.status).to.equal(422);
    });

    it('refuses a command id that is none, or beside a key', async () => {
      const body = { metadata: { name: name() }, spec: SMALL };
      expect((await user('POST', CLUSTERS, body, { 'x-ledger-command-id': 'x' })).status).to.equal(400);
      const both = { 'x-ledger-command-id': '01a1fdbf-853f-7699-b03b-202e1bbb7ff3', ...keyed('k') };
      expect((await user('POST', CLUSTERS, body, both)).status).to.equal(400);
    });
  });

  it('a store that is down answers 503 with Retry-After, and nothing was stored of an update', async () => {
    const created = await user('POST', CLUSTERS, { metadata: { name: name() }, spec: SMALL });
    const path = `${CLUSTERS}/${textAt(created.json, 'id')}`;
    store.next = ['down'];
    const reply = await user('PATCH', path, { metadata: { labels: { a: 'b' } } });
    expect(reply.status, reply.text).to.equal(503);
    expect(reply.json['code']).to.equal(14);
    expect(reply.headers.get('retry-after')).to.equal('3');
    expect((await user('GET', path)).json).to.deep.equal(created.json);
    expect((await user('PATCH', path, { metadata: { labels: { a: 'b' } } })).status).to.equal(200);
  });

  it('DELETE with If-Match loses a race against a change, and without it wins', async () => {
    for (const [headers, status] of [
      [{ 'if-match': '"cluster-0"' }, 409],
      [{}, 200],
    ] as const) {
      const created = await user('POST', CLUSTERS, { metadata: { name: name() }, spec: SMALL });
      const id = textAt(created.json, 'id');
      store.overtaking = async (stream, expected, events) => {
        const [event] = events;
        if (event === undefined) throw new Error('nothing to append');
        const data = JSON.stringify({ at: '2026-11-21T12:00:00.000Z', labels: { a: 'b' } });
        const metadata = JSON.stringify({ ...JSON.parse(event.metadata), commandId: randomUUID() });
        return store.append(stream, expected, [
          { id: randomUUID(), type: 'ClusterLabelled', data, metadata },
        ]);
      };
      const removed = await user('DELETE', `${CLUSTERS}/${id}`, undefined, headers);
      expect(removed.status, removed.text).to.equal(status);
      expect(store.overtaking).to.equal(undefined);
      expect((await user('GET', `${CLUSTERS}/${id}`)).status).to.equal(status === 200 ? 404 : 200);
    }
  });

  it('a refusal is recorded with the call and the trace that it belongs to', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const headers = { 'x-request-id': 'refused-one', traceparent };
    const wanted = name();
    await user('POST', CLUSTERS, { metadata: { name: wanted }, spec: SMALL });
    const from = service.rejections.length;
    expect(
      (await user('POST', CLUSTERS, { metadata: { name: wanted }, spec: SMALL }, headers)).status,
    ).to.equal(409);
    expect((await user('POST', CLUSTERS, {}, headers)).status).to.equal(400);
    expect((await user('GET', `${PRIVATE}/hubs`, undefined, headers)).status).to.equal(403);
    const recorded = service.rejections.slice(from);
    expect(recorded.length).to.be.greaterThan(2);
    for (const record of recorded) expect(record).to.include({ correlationId: 'refused-one', traceparent });
  });

  describe('positions', () => {
    it('a timeline waits for the timeline, everything else for the resources', async () => {
      const waited: string[] = [];
      const waiting = await startTestService({
        positions: { waitFor: async (view) => waited.push(view) > 0 },
      });
      try {
        const root = callerOf(waiting, await waiting.token({ user: 'root', admin: true }));
        const headers = { 'x-ledger-min-position': 'memory.0000000000000001' };
        for (const path of ['', '/x', '/x/timeline', '/x/kubeconfig'])
          await root('GET', `${CLUSTERS}${path}`, undefined, headers);
        expect(waited).to.deep.equal(['resources', 'resources', 'timeline', 'resources']);
      } finally {
        await waiting.close();
      }
    });

    it('a read waits for the position it names', async () => {
      const created = await user('POST', CLUSTERS, { metadata: { name: name() }, spec: SMALL });
      const position = created.headers.get('x-ledger-position') ?? '';
      const headers = { 'x-ledger-min-position': position };
      expect(
        (await user('GET', `${CLUSTERS}/${textAt(created.json, 'id')}`, undefined, headers)).status,
      ).to.equal(200);
      expect((await user('GET', CLUSTERS, undefined, headers)).status).to.equal(200);
    });

    for (const [what, value, reason] of [
      ['of another store', 'elsewhere.0000000000000001', 'FOREIGN_POSITION'],
      ['of a store whose name ends alike', 'xmemory.0000000000000001', 'FOREIGN_POSITION'],
      ['without a store', '0000000000000001', 'INVALID_ARGUMENT'],
      ['that is no number', 'memory.abc', 'INVALID_ARGUMENT'],
      ['of fewer digits', 'memory.9', 'INVALID_ARGUMENT'],
      ['with something between store and number', 'memory.x.0000000000000001', 'FOREIGN_POSITION'],
      ['of more digits', `memory.${'1'.padStart(28, '0')}`, 'INVALID_ARGUMENT'],
    ] as const)
      it(`a position ${what} is refused`, async () => {
        const reply = await user('GET', CLUSTERS, undefined, { 'x-ledger-min-position': value });
        expect(reply.status).to.equal(400);
        expect(reply.headers.get('x-ledger-reason')).to.equal(reason);
      });
  });
});
