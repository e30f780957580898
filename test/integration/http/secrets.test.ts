import { expect } from 'chai';
import { collect } from '../../support/commands/fake-context.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';

/** Secrets (OSAC). */
describe('HTTP: secrets', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  const URL = `${PUBLIC}/secrets`;
  const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64');
  const secret = (name: string, data: Record<string, string>, more: object = {}) => ({
    metadata: { name },
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)])),
    ...more,
  });

  beforeEach(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ tenants: ['t1'] }));
  });
  afterEach(() => service.close());

  const events = () => collect(service.store.readAll({ limit: 10_000 }));
  /** Stored values by key, as the newest event refers to them. */
  const stored = async (): Promise<Record<string, string | undefined>> => {
    const last = (await events()).filter(({ type }) => /^Secret(Deposited|Revised)$/.test(type)).at(-1);
    const refs = (last?.data['secrets'] ?? {}) as Record<string, { id: string; version: string }>;
    return Object.fromEntries(
      Object.entries(refs).map(([path, { id, version }]) => [
        path,
        Buffer.from(service.secrets.values.get(`${id} ${version}`) ?? []).toString('utf8'),
      ]),
    );
  };

  it('values appear nowhere but in the secret store', async () => {
    const CANARY = 'canary-value-of-a-secret';
    const replies = [await user('POST', URL, secret('s', { token: CANARY, 'tls.key': `${CANARY}-2` }))];
    const id = textAt(replies[0]?.json, 'id');
    replies.push(
      await user('POST', URL, secret('s', { token: CANARY })),
      await user('POST', URL, secret('bad key', { token: CANARY })),
      await user('POST', URL, secret('t', { 'bad key!': CANARY })),
      await user('POST', URL, { ...secret('t', {}), data: { token: `?${CANARY}` } }),
      await user('GET', `${URL}/${id}`),
      await user('GET', URL),
      await user('PATCH', `${URL}/${id}`, { data: { token: base64(`${CANARY}-3`) } }),
      await user('PATCH', `${URL}/${id}`, { metadata: { labels: { a: 'b' } } }),
      await admin('GET', `${PRIVATE}/secrets/${id}`),
      await admin('GET', `${PRIVATE}/secrets`),
      await admin('PATCH', `${PRIVATE}/secrets/${id}`, { metadata: { labels: { a: 'c' } } }),
      await admin('GET', '/api/ledger/v1/events?limit=1000'),
      await user('DELETE', `${URL}/${id}`),
    );
    const encoded = base64(CANARY).slice(0, 24);
    const where = {
      replies: replies.map(({ text }) => text),
      events: await events(),
      log: service.logger.lines,
      rejections: service.rejections,
      rows: service.models.resources.list('secret', { all: true }, { offset: 0, limit: 100 }),
    };
    for (const [place, content] of Object.entries(where)) {
      expect(JSON.stringify(content), place).to.not.contain(CANARY);
      expect(JSON.stringify(content), place).to.not.contain(encoded);
    }
    expect(replies.slice(0, 5).map(({ status }) => status)).to.deep.equal([200, 409, 400, 400, 400]);
    expect([...service.secrets.values.values()].map((value) => Buffer.from(value).toString())).to.include(
      CANARY,
    );
  });

  it('have generated ids and a backend that only the private side shows', async () => {
    const made = await user('POST', URL, { id: 'mine', ...secret('s', { k: 'v' }) });
    expect(made.status, made.text).to.equal(200);
    expect(textAt(made.json, 'id')).to.match(/^[0-9a-f-]{36}$/);
    expect(made.json).to.not.have.any.keys('data', 'backend');
    const path = `${PRIVATE}/secrets/${textAt(made.json, 'id')}`;
    expect((await admin('GET', path)).json).to.have.property('backend', 'SECRET_BACKEND_VAULT');
    const moved = await admin('PATCH', path, { backend: 'SECRET_BACKEND_HUB', coordinates: { name: 'x' } });
    expect([moved.status, moved.json['message']]).to.deep.equal([400, "field 'backend' is immutable"]);
    expect((await user('POST', URL, { ...secret('t', {}), backend: 'SECRET_BACKEND_HUB' })).status).to.equal(
      400,
    );
  });

  it('on a hub name their coordinates and hold nothing', async () => {
    const post = (name: string, more: object, data: Record<string, string> = {}) =>
      admin('POST', `${PRIVATE}/secrets`, {
        ...secret(name, data, { backend: 'SECRET_BACKEND_HUB', ...more }),
        metadata: { name, tenant: 't1' },
      });
    const where = { coordinates: { namespace: 'n', name: 's' } };
    expect((await post('a', {})).text).to.contain("'coordinates' is required");
    expect((await post('a', where, { k: 'v' })).text).to.contain("'data' must be empty");
    const made = await post('a', where);
    expect(made.status, made.text).to.equal(200);
    const id = textAt(made.json, 'id');
    expect((await user('GET', `${URL}/${id}`)).json).to.not.have.any.keys('coordinates', 'backend');
    const filled = await user('PATCH', `${URL}/${id}`, { data: { k: base64('v') } });
    expect([filled.status, filled.text.includes("'data' must be empty")]).to.deep.equal([400, true]);
  });

  it('keys are replaced and removed one by one with a mask, all together without one', async () => {
    const made = await user('POST', URL, secret('s', { a: '1', 'b.c': '2' }));
    const path = `${URL}/${textAt(made.json, 'id')}`;
    expect(await stored()).to.deep.equal({ 'data.a': '1', 'data.b.c': '2' });
    const changed = await user('PATCH', `${path}?update_mask=data.a`, { data: { a: base64('3') } });
    expect(changed.status, changed.text).to.equal(200);
    expect(changed.json).to.have.nested.property('metadata.version', 1);
    expect(await stored()).to.deep.equal({ 'data.a': '3', 'data.b.c': '2' });
    const removed = await user('PATCH', `${path}?update_mask=data.b.c`, {});
    expect(removed.status, removed.text).to.equal(200);
    expect(await stored()).to.deep.equal({ 'data.a': '3' });
    await user('PATCH', path, { metadata: { labels: { x: 'y' } } });
    expect(await stored()).to.deep.equal({ 'data.a': '3' });
    await user('PATCH', path, { data: { z: base64('9') } });
    expect(await stored()).to.deep.equal({ 'data.z': '9' });
    for (const [query, sent] of [
      ['', { data: null }],
      ['', { data: {} }],
      ['?update_mask=data', {}],
      ['?update_mask=data.z', {}],
    ] as const) {
      const emptied = await user('PATCH', path + query, sent);
      expect(emptied.status, emptied.text).to.equal(400);
      expect(emptied.json['message']).to.match(/^field 'data' is required/);
    }
    expect(await stored()).to.deep.equal({ 'data.z': '9' });
  });

  it('without data are refused, by a dry run too', async () => {
    for (const sent of [{ metadata: { name: 's' } }, secret('s', {})])
      for (const headers of [{}, { 'x-dry-run': 'true' }] as Record<string, string>[]) {
        const reply = await user('POST', URL, sent, headers);
        expect([reply.status, reply.json['code']], reply.text).to.deep.equal([400, 3]);
        expect(reply.json['message']).to.match(/^field 'data' is required/);
      }
  });

  it('keys are those of Kubernetes, hostile ones are refused', async () => {
    const refused = ['', 'a/b', 'a b', 'ü', 'x'.repeat(254)];
    for (const key of refused) {
      const reply = await user('POST', URL, secret('s', { [key]: 'v' }));
      expect(reply.status, key).to.equal(400);
    }
    const raw = `{"metadata":{"name":"s"},"data":{"__proto__":"${base64('p')}","constructor":"${base64('c')}"}}`;
    const made = await user('POST', URL, raw);
    expect(made.status, made.text).to.equal(200);
    expect(await stored()).to.deep.equal({ 'data.__proto__': 'p', 'data.constructor': 'c' });
    const many = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`k${i}`, 'v']));
    expect((await user('POST', URL, secret('t', many))).status).to.equal(400);
  });

  it('that a cluster or a template uses stay', async () => {
    const made = await user('POST', URL, secret('pull', { '.dockerconfigjson': '{}' }));
    const ordered = await user('POST', `${PUBLIC}/clusters`, {
      metadata: { name: 'c1' },
      spec: { template: { name: 'small' }, pull_secret_secret: { name: 'pull' } },
    });
    expect(ordered.status, ordered.text).to.equal(200);
    const held = await user('DELETE', `${URL}/${textAt(made.json, 'id')}`);
    expect([held.status, held.json['code']], held.text).to.deep.equal([400, 9]);
    const shared = await admin('POST', `${PRIVATE}/secrets`, secret('ours', { '.dockerconfigjson': '{}' }));
    const template = await admin('POST', `${PRIVATE}/cluster_templates`, {
      id: 'osac.templates.held',
      title: 'Held',
      node_sets: { workers: { host_type: { id: 'fc430' }, size: 1 } },
      spec_defaults: { pull_secret_secret: { name: 'ours' } },
    });
    expect(template.status, template.text).to.equal(200);
    const kept = await admin('DELETE', `${PRIVATE}/secrets/${textAt(shared.json, 'id')}`);
    expect([kept.status, kept.json['code']], kept.text).to.deep.equal([400, 9]);
  });

  it('belong to their tenant alone', async () => {
    const made = await user('POST', URL, secret('s', { k: 'v' }));
    const other = callerOf(service, await service.token({ user: 'eve', tenants: ['t2'] }));
    const path = `${URL}/${textAt(made.json, 'id')}`;
    for (const reply of [
      await other('GET', path),
      await other('PATCH', path, { data: null }),
      await other('DELETE', path),
    ])
      expect(reply.status).to.equal(404);
    expect(service.secrets.values.size).to.be.greaterThan(0);
    const before = service.secrets.values.size;
    expect((await user('DELETE', path)).status).to.equal(200);
    expect((await user('GET', path)).status).to.equal(404);
    expect(service.secrets.values.size, 'a value whose secret is gone').to.equal(before - 1);
  });
});
