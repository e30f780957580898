import { expect } from 'chai';
import { eventually } from '../../support/eventually.ts';
import {
  callerOf,
  PRIVATE,
  PUBLIC,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import {
  idOf,
  PRIVATE_WATCH,
  PUBLIC_WATCH,
  summaryOf,
  watch,
  type Watching,
} from '../../support/http/watch-client.ts';

describe('watch', () => {
  let service: TestService;
  let adminToken: string;
  let userToken: string;
  let admin: Caller;
  let user: Caller;
  const open: Watching[] = [];

  before(async () => {
    service = await startTestService({ watch: { perSubject: 5, heartbeatMs: 50, sweepMs: 20 } });
    adminToken = await service.token({ user: 'root', admin: true });
    admin = callerOf(service, adminToken);
    await seedCatalogue(admin);
    userToken = await service.token({ user: 'alice', tenants: ['t1'] });
    user = callerOf(service, userToken);
  });
  afterEach(() => {
    for (const one of open.splice(0)) one.close();
  });
  after(() => service.close());

  const watching = async (
    path: string,
    token: string | undefined = adminToken,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Watching> => {
    const opened = await watch(service, token, path, headers);
    open.push(opened);
    return opened;
  };
  let names = 0;
  const freshName = (): string => `w${(names += 1)}`;
  const order = async (by: Caller = user, more: object = {}): Promise<{ id: string; name: string }> => {
    const name = freshName();
    const reply = await by('POST', `${PUBLIC}/clusters`, {
      metadata: { name, ...more },
      spec: { template: { id: 'osac.templates.small' }, pull_secret: 'canary-pull-secret' },
    });
    expect(reply.status, reply.text).to.equal(200);
    return { id: textAt(reply.json, 'id'), name };
  };

  it('sends its head at once, and says where it begins', async () => {
    const seen = await watching(PRIVATE_WATCH);
    expect(seen.status).to.equal(200);
    expect(seen.headers).to.include({
      'content-type': 'application/json',
      'grpc-metadata-content-type': 'application/grpc',
      'cache-control': 'no-store',
      'transfer-encoding': 'chunked',
    });
    expect(seen.headers['x-ledger-watch-id']).to.match(/^.+\.\d{16}\.0$/);
    expect(seen.text()).to.equal('');
  });

  it('tells what happens to an object, one line each, in order', async () => {
    const seen = await watching(PRIVATE_WATCH);
    const publicly = await watching(PUBLIC_WATCH, userToken);
    const { id, name } = await order();
    await user('PATCH', `${PUBLIC}/clusters/${id}`, { metadata: { labels: { a: 'b' } } });
    await admin('PATCH', `${PRIVATE}/clusters/${id}`, { metadata: { finalizers: ['bench'] } });
    await user('DELETE', `${PUBLIC}/clusters/${id}`);
    await admin('PATCH', `${PRIVATE}/clusters/${id}`, { metadata: { finalizers: [] } });
    const expected = ['CREATED', 'UPDATED', 'UPDATED', 'UPDATED', 'UPDATED', 'DELETED'];
    const events = await seen.count(expected.length);
    expect(events.map(summaryOf)).to.deep.equal(expected.map((type) => `${type} cluster ${name}`));
    const documents = events.map((event) => event['cluster']);
    expect(documents.map((cluster) => cluster?.['metadata']?.['finalizers'])).to.deep.equal([
      undefined,
      undefined,
      ['bench'],
      ['bench'],
      undefined,
      undefined,
    ]);
    expect(
      documents.map((cluster) => cluster?.['metadata']?.['deletion_timestamp'] !== undefined),
    ).to.deep.equal([false, false, false, true, true, true]);
    expect(new Set(events.map(idOf)).size).to.equal(events.length);
    expect(events.map(idOf)).to.deep.equal(events.map(idOf).toSorted());
    // Tenants see no finalizers: what alone changed these is none of their events.
    const told = [0, 1, 3, 5].map((i) => events[i] as (typeof events)[number]);
    const own = await publicly.count(told.length);
    expect(own.map(summaryOf)).to.deep.equal(told.map(summaryOf));
    expect(own.map(idOf)).to.deep.equal(told.map(idOf));
    expect(publicly.text()).not.to.contain('finalizers');
  });

  it('shows an object as a read shows it', async () => {
    const privately = await watching(PRIVATE_WATCH);
    const publicly = await watching(PUBLIC_WATCH, userToken);
    const { id } = await order();
    const [inPrivate] = await privately.count(1);
    const [inPublic] = await publicly.count(1);
    expect(inPrivate?.['cluster']).to.deep.equal((await admin('GET', `${PRIVATE}/clusters/${id}`)).json);
    expect(inPublic?.['cluster']).to.deep.equal((await user('GET', `${PUBLIC}/clusters/${id}`)).json);
  });

  it('says nothing of a change that changes nothing', async () => {
    const { id, name } = await order();
    const seen = await watching(PRIVATE_WATCH);
    const labels = { metadata: { labels: { a: 'b' } } };
    for (let i = 0; i < 3; i += 1) await user('PATCH', `${PUBLIC}/clusters/${id}`, labels);
    const { name: next } = await order();
    expect((await seen.count(2)).map(summaryOf)).to.deep.equal([
      `UPDATED cluster ${name}`,
      `CREATED cluster ${next}`,
    ]);
  });

  it('shows a tenant its own and what is shared, never what is of others or of the provider', async () => {
    const seen = await watching(PUBLIC_WATCH, userToken);
    const other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
    await order(other, { labels: { secret: 'canary-of-t2' } });
    await admin('POST', `${PRIVATE}/hubs`, {
      id: 'sim-canary-hub',
      spec: { namespace: 'osac', kubeconfig: 'Y2FuYXJ5LWt1YmVjb25maWc=' },
    });
    await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'canary-tenant' } });
    await admin('PATCH', `${PRIVATE}/tenants/t1`, { metadata: { labels: { canary: 'tenant' } } });
    await admin('PATCH', `${PRIVATE}/host_types/gpu`, { description: 'changed' });
    const { name } = await order();
    const events = await seen.count(2);
    expect(events.map(summaryOf)).to.deep.equal(['UPDATED host_type gpu', `CREATED cluster ${name}`]);
    expect(seen.text()).not.to.contain('canary');
  });

  it('shows admins everything but secrets', async () => {
    const seen = await watching(PRIVATE_WATCH);
    const publicly = await watching(PUBLIC_WATCH);
    await admin('POST', `${PRIVATE}/hubs`, {
      id: 'sim-second',
      spec: { namespace: 'osac', kubeconfig: 'Y2FuYXJ5LWt1YmVjb25maWc=' },
    });
    await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'third' } });
    const { name } = await order();
    const all = ['CREATED hub sim-second', 'CREATED tenant third', `CREATED cluster ${name}`];
    const kindsSeen = (events: readonly Parameters<typeof summaryOf>[0][]): string[] =>
      events.map(summaryOf).filter((summary) => all.includes(summary));
    const last = async (one: Watching): Promise<void> => {
      for (let n = 1; !one.events().some((event) => summaryOf(event) === all[2]); n += 1) await one.count(n);
    };
    await last(seen);
    await last(publicly);
    expect(kindsSeen(seen.events())).to.deep.equal(all);
    expect(kindsSeen(publicly.events())).to.deep.equal(all.slice(1)); // hubs are on no public answer
    for (const one of [seen, publicly]) {
      expect(one.text()).not.to.contain('canary-pull-secret');
      expect(one.text()).not.to.contain('Y2FuYXJ5');
      expect(one.events().find((event) => event['cluster'])?.['cluster']?.['spec']?.['pull_secret']).to.equal(
        '***',
      );
    }
  });

  describe('resumes', () => {
    it('after an id, without loss or repetition, on either surface', async () => {
      const start = await watching(PUBLIC_WATCH, userToken);
      const ids: string[] = [];
      for (let i = 0; i < 4; i += 1) ids.push((await order()).id);
      const events = await start.count(4);
      const begin = String(start.headers['x-ledger-watch-id']);
      for (const [i, from] of [begin, ...events.map(idOf)].entries()) {
        const again = await watching(`${PUBLIC_WATCH}?from=${encodeURIComponent(from)}`, userToken);
        expect(again.headers['x-ledger-watch-id']).to.equal(from);
        expect((await again.count(4 - i)).map(idOf)).to.deep.equal(events.slice(i).map(idOf));
        again.close();
      }
    });

    it('after a write that the caller knows the position of', async () => {
      const reply = await user('POST', `${PUBLIC}/clusters`, {
        metadata: { name: freshName() },
        spec: { template: { id: 'osac.templates.small' } },
      });
      const { name } = await order();
      const seen = await watching(
        `${PUBLIC_WATCH}?from=${reply.headers.get('x-ledger-position')}`,
        userToken,
      );
      expect((await seen.count(1)).map(summaryOf)).to.deep.equal([`CREATED cluster ${name}`]);
    });

    for (const [what, from, reason] of [
      [
        'of another store',
        `${'0'.repeat(8)}-0000-7000-8000-${'0'.repeat(12)}.${'1'.repeat(16)}.0`,
        'FOREIGN_POSITION',
      ],
      ['that is no id', 'yesterday', 'INVALID_ARGUMENT'],
      ['of another width', 'STORE.12.0', 'INVALID_ARGUMENT'],
      ['with a part too many', 'STORE.0000000000000001.0.0', 'INVALID_ARGUMENT'],
    ] as const)
      it(`refuses one ${what}`, async () => {
        const id = from.replace('STORE', service.store.storeId);
        const refused = await watching(`${PRIVATE_WATCH}?from=${id}`);
        expect(refused.status).to.equal(400);
        expect(refused.headers['x-ledger-reason']).to.equal(reason);
        await refused.ended();
        expect(JSON.parse(refused.text())).to.have.nested.property('error.code', 3);
        expect(refused.text()).to.contain("'from'");
      });
  });

  describe('as Server-Sent Events', () => {
    const SSE = { accept: 'text/event-stream' };

    it('carries the same lines, with ids that Last-Event-ID resumes after', async () => {
      const lines = await watching(PUBLIC_WATCH, userToken);
      const events = await watching(PUBLIC_WATCH, userToken, SSE);
      expect(events.headers['content-type']).to.equal('text/event-stream');
      await order();
      await order();
      await lines.count(2);
      await events.count(2);
      expect(events.lines()).to.deep.equal(lines.lines());
      const parsed = parseEvents(events.text());
      expect(parsed.retry).to.be.within(2000, 5000);
      expect(parsed.events.map(({ id }) => id)).to.deep.equal(lines.events().map(idOf));
      const again = await watching(
        `${PUBLIC_WATCH}?from=${String(lines.headers['x-ledger-watch-id'])}`, // what a browser began with
        userToken,
        { ...SSE, 'last-event-id': parsed.events[0]?.id ?? '' },
      );
      expect((await again.count(1)).map(idOf)).to.deep.equal([idOf(lines.events()[1])]);
    });

    it('shows that it lives while nothing happens, and how far it has come; lines of JSON stay silent', async () => {
      const lines = await watching(PUBLIC_WATCH, userToken);
      const events = await watching(PUBLIC_WATCH, userToken, SSE);
      const other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
      await order(other);
      const newest = (): string => {
        const { position, n } = service.models.changes.newest();
        return `${service.positions.format(position)}.${n}`;
      };
      await eventually('the newest is told', () => events.text().includes(`:\nid: ${newest()}\n\n`));
      const parsed = parseEvents(events.text());
      expect(parsed.events).to.deep.equal([]);
      expect(parsed.lastId).to.equal(newest());
      expect(lines.text()).to.equal('');
    });
  });

  describe('answers before the first event', () => {
    const bodyOf = async (one: Watching): Promise<unknown> => {
      await one.ended();
      return JSON.parse(one.text());
    };

    it('401 without a token, wrapped as streams wrap errors, with our header', async () => {
      const refused = await watching(PRIVATE_WATCH, undefined, { authorization: '' });
      expect(refused.status).to.equal(401);
      expect(refused.headers['www-authenticate']).to.match(/^Bearer /);
      expect(await bodyOf(refused)).to.deep.equal({
        error: { code: 16, message: "method '/osac.private.v1.Events/Watch' requires authentication" },
      });
    });

    it('403 for a tenant on the private surface', async () => {
      const refused = await watching(PRIVATE_WATCH, userToken);
      expect(refused.status).to.equal(403);
      expect(await bodyOf(refused)).to.deep.equal({ error: { code: 7, message: 'permission denied' } });
    });

    for (const [filter, what] of [
      ['event.nope == 1', 'an unknown field'],
      ['event.id', 'what is not true or false'],
      ['event.cluster.items.exists(x, x == 1)', 'a comprehension'],
      ['event.hub.id == "x"', 'a field that the public surface does not have'],
      ['(', 'no expression'],
      [`${'('.repeat(1000)}true${')'.repeat(1000)}`, 'a thousand parentheses'],
    ] as const)
      it(`400 for a filter with ${what}`, async () => {
        const refused = await watching(`${PUBLIC_WATCH}?filter=${encodeURIComponent(filter)}`, userToken);
        expect(refused.status, refused.text()).to.equal(400);
        expect(await bodyOf(refused)).to.have.nested.property('error.code', 3);
      });

    it('404 beside it, 501 for other verbs, and to HEAD only the head', async () => {
      expect((await admin('GET', '/api/events/v1/nothing')).status).to.equal(404);
      expect((await admin('GET', '/api/private/v1/events')).status).to.equal(404);
      expect((await admin('POST', PRIVATE_WATCH, {})).status).to.equal(501);
      const head = await admin('HEAD', PRIVATE_WATCH);
      expect(head.status).to.equal(200);
      expect(head.headers.get('x-ledger-watch-id')).to.be.a('string');
      expect(head.text).to.equal('');
    });

    it('429 beyond what one caller may have open, until one is closed', async () => {
      const mine: Watching[] = [];
      for (let i = 0; i < 5; i += 1) mine.push(await watching(PUBLIC_WATCH, userToken));
      const refused = await watching(PUBLIC_WATCH, userToken);
      expect(refused.status).to.equal(429);
      expect(refused.headers['retry-after']).to.equal('30');
      expect(await bodyOf(refused)).to.have.nested.property('error.code', 8);
      expect(
        (await watching(PUBLIC_WATCH, await service.token({ user: 'bob', tenants: ['t2'] }))).status,
      ).to.equal(200);
      mine[0]?.close();
      let again = refused;
      await eventually(
        'there is room again',
        async () => (again = await watching(PUBLIC_WATCH, userToken)).status === 200,
      );
      expect(again.status).to.equal(200);
    });

    it('waits for the position that the caller names', async () => {
      const { position } = service.models.changes.newest();
      const seen = await watching(PRIVATE_WATCH, adminToken, {
        'x-ledger-min-position': service.positions.format(position),
      });
      expect(seen.status).to.equal(200);
      expect(seen.headers['x-ledger-watch-id']).to.contain(position);
    });
  });

  describe('filters', () => {
    const TABLE: readonly (readonly [string, readonly string[]])[] = [
      ['has(event.cluster)', ['CREATED cluster one', 'UPDATED cluster one', 'CREATED cluster two']],
      ['event.type == EVENT_TYPE_OBJECT_UPDATED', ['UPDATED cluster one', 'UPDATED host_type gpu']],
      ['has(event.cluster) && event.type == EVENT_TYPE_OBJECT_UPDATED', ['UPDATED cluster one']],
      [
        'has(event.cluster) && (event.cluster.id == "ONE" || event.cluster.metadata.name == "ONE")',
        ['CREATED cluster one', 'UPDATED cluster one'],
      ],
      ['event.cluster.metadata.labels["a"] == "b"', ['UPDATED cluster one']],
      ['event.cluster.status.state == CLUSTER_STATE_READY', []],
      ['event.host_type.description == "again"', ['UPDATED host_type gpu']],
      ['!has(event.cluster)', ['UPDATED host_type gpu']],
      ['', ['CREATED cluster one', 'UPDATED cluster one', 'CREATED cluster two', 'UPDATED host_type gpu']],
    ];

    it('choose what is sent', async () => {
      const filtering = await watching(PRIVATE_WATCH);
      const from = String(filtering.headers['x-ledger-watch-id']);
      const one = await order();
      await user('PATCH', `${PUBLIC}/clusters/${one.id}`, { metadata: { labels: { a: 'b' } } });
      const two = await order();
      await admin('PATCH', `${PRIVATE}/host_types/gpu`, { description: 'again' });
      await filtering.count(4);
      const { name: marker } = await order();
      for (const [filter, expected] of TABLE) {
        const text = filter.replaceAll('ONE', one.id);
        const withMarker = text === '' ? '' : `(${text}) || event.cluster.metadata.name == "${marker}"`;
        const seen = await watching(`${PRIVATE_WATCH}?from=${from}&filter=${encodeURIComponent(withMarker)}`);
        const events = await seen.count(expected.length + 1);
        expect(events.map(summaryOf), filter).to.deep.equal([
          ...expected.map((summary) => summary.replace(/one$/, one.name).replace(/two$/, two.name)),
          `CREATED cluster ${marker}`,
        ]);
        seen.close();
      }
    });
  });
});

/** The parsing rules of the HTML standard, as far as they are used. */
const parseEvents = (
  text: string,
): { retry: number | undefined; lastId: string; events: { id: string; data: string }[] } => {
  let retry: number | undefined;
  let lastId = '';
  let data = '';
  const events: { id: string; data: string }[] = [];
  for (const line of text.split('\n')) {
    if (line === '') {
      if (data !== '') events.push({ id: lastId, data: data.slice(0, -1) });
      data = '';
    } else if (!line.startsWith(':')) {
      const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
      if (field === 'id') lastId = value;
      else if (field === 'data') data += `${value}\n`;
      else if (field === 'retry') retry = Number(value);
    }
  }
  return { retry, lastId, events };
};
