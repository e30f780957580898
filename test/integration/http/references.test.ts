import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

const b64 = (text: string): string => Buffer.from(text).toString('base64');
const named = (name: string, more: object = {}): object => ({ metadata: { name, tenant: 't1', ...more } });
const message = (reply: Reply): string => textAt(reply.json, 'message');

/** What points at an object keeps it (OSAC). */
describe('references between objects over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let alice: Caller;
  const ids = new Map<string, string>();

  const make = async (caller: Caller, path: string, body: object): Promise<string> => {
    const reply = await caller('POST', path, body);
    expect(reply.status, `${path}: ${reply.text}`).to.equal(200);
    return textAt(reply.json, 'id');
  };
  const own = async (key: string, collection: string, body: object): Promise<void> => {
    ids.set(key, await make(admin, `${PRIVATE}/${collection}`, body));
  };
  const idOf = (key: string): string => ids.get(key) ?? key;

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    alice = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    await own('version', 'cluster_versions', { spec: { version: '4.20.1', image: 'quay.example/r:20' } });
    await own('default-version', 'cluster_versions', {
      spec: { version: '4.20.2', image: 'quay.example/r:21' },
    });
    await own('host', 'host_types', { ...named('own-host'), title: 'Own' });
    await own('template', 'cluster_templates', {
      ...named('own-template'),
      id: 'own.template',
      title: 'Own',
      node_sets: { workers: { host_type: { id: idOf('host') }, size: 1 } },
      spec_defaults: { version: { id: idOf('default-version') } },
    });
    await own('item-template', 'cluster_templates', {
      ...named('item-template'),
      id: 'own.item',
      title: 'Own',
      node_sets: { workers: { host_type: { id: 'fc430' }, size: 1 } },
    });
    await own('item', 'cluster_catalog_items', {
      ...named('own-item'),
      title: 'Item',
      template: { name: 'item-template' },
    });
    await own('user', 'users', { ...named('carol'), spec: { username: 'carol' } });
    await own('project', 'projects', named('house'));
    await own('role', 'roles', { metadata: { name: 'own-role' } });
    await own('role-binding', 'role_bindings', {
      ...named('binding'),
      spec: { role: { name: 'own-role' }, users: [{ id: idOf('user') }] },
    });
    await own('membership', 'project_memberships', {
      ...named('member', { project: 'house' }),
      spec: { role: 'PROJECT_MEMBERSHIP_ROLE_VIEWER', users: [{ id: idOf('user') }] },
    });
    await own('secret', 'secrets', { ...named('free'), data: { a: b64('x') } });
    await own('cluster', 'clusters', {
      ...named('ordered'),
      spec: { template: { id: 'own.template' }, version: { id: idOf('version') } },
    });
  });
  after(() => service.close());

  const PROTECTED: readonly (readonly [key: string, collection: string, text: RegExp])[] = [
    [
      'version',
      'cluster_versions',
      /^cannot delete cluster version '[^']+': it is in use by at least one cluster: cluster '/,
    ],
    [
      'default-version',
      'cluster_versions',
      /in use by at least one cluster template: cluster template 'own\.template'$/,
    ],
    ['host', 'host_types', /^cannot delete host type 'own-host': it is in use by at least one cluster/],
    [
      'template',
      'cluster_templates',
      /^cannot delete cluster template 'own-template': it is in use by at least one cluster: /,
    ],
    [
      'item-template',
      'cluster_templates',
      /in use by at least one cluster catalog item: cluster catalog item '/,
    ],
    ['role', 'roles', /^cannot delete role 'own-role': it is in use by at least one role binding: /],
    [
      'user',
      'users',
      /in use by at least one (role binding and one project membership|project membership and one role binding): /,
    ],
    [
      'project',
      'projects',
      /^project 'house' cannot be deleted because it still has objects inside: project membership$/,
    ],
    ['t1', 'tenants', /^tenant 't1' cannot be deleted because it still has objects/],
  ];
  for (const [key, collection, text] of PROTECTED)
    it(`${collection}: ${key} stays while it is used`, async () => {
      const path = `${PRIVATE}/${collection}/${encodeURIComponent(idOf(key))}`;
      for (const headers of [{}, { 'x-dry-run': 'true' }]) {
        const reply = await admin('DELETE', path, undefined, headers);
        expect(reply.status, reply.text).to.equal(400);
        expect(reply.json['code']).to.equal(9);
        expect(message(reply)).to.match(text);
      }
      expect((await admin('GET', path)).status).to.equal(200);
    });

  it('what nothing points at goes', async () => {
    const path = `${PRIVATE}/secrets/${idOf('secret')}`;
    expect((await admin('DELETE', path)).status).to.equal(200);
    expect((await admin('GET', path)).status).to.equal(404);
  });

  it('tenants are told what they may see, by name', async () => {
    const secret = await make(alice, `${PUBLIC}/secrets`, {
      metadata: { name: 'pull' },
      data: { pull_secret: b64('{"auths":{}}') },
    });
    const order = {
      metadata: { name: 'with-secret' },
      spec: { template: { id: 'osac.templates.small' }, pull_secret_secret: { id: secret } },
    };
    const cluster = await make(alice, `${PUBLIC}/clusters`, order);
    const reply = await alice('DELETE', `${PUBLIC}/secrets/${secret}`);
    expect(reply.status).to.equal(400);
    expect(message(reply)).to.equal(
      "cannot delete secret 'pull': it is in use by at least one cluster: cluster 'with-secret'",
    );
    expect((await alice('DELETE', `${PUBLIC}/clusters/${cluster}`)).status).to.equal(200);
    expect((await alice('DELETE', `${PUBLIC}/secrets/${secret}`)).status).to.equal(200);
  });

  it('what is about to go is not referred to anew', async () => {
    const role = await make(admin, `${PRIVATE}/roles`, { metadata: { name: 'going', finalizers: ['f'] } });
    expect((await admin('DELETE', `${PRIVATE}/roles/${role}`)).status).to.equal(200);
    const reply = await admin('POST', `${PRIVATE}/role_bindings`, {
      ...named('late'),
      spec: { role: { id: role }, users: [{ id: idOf('user') }] },
    });
    expect(reply.status).to.equal(400);
    expect(message(reply)).to.contain(`Role "${role}" is being deleted`);
  });

  it('two bad references are told together, with a violation each', async () => {
    const reply = await admin('POST', `${PRIVATE}/role_bindings`, {
      ...named('bad'),
      spec: { role: { name: 'nope' }, users: [{ id: 'nobody' }] },
    });
    expect(reply.status).to.equal(400);
    expect(message(reply)).to.equal(
      'reference validation failed: object.spec.role: Role "nope" not found; object.spec.users.0: User not found',
    );
    const details = reply.json['details'] as unknown as { field_violations: { field: string }[] }[];
    expect(details[0]?.field_violations.map(({ field }) => field)).to.deep.equal([
      'object.spec.role',
      'object.spec.users.0',
    ]);
  });

  it('references in lists are resolved on update too; names of people stay out of other documents', async () => {
    const path = `${PRIVATE}/role_bindings/${idOf('role-binding')}`;
    const dan = await make(admin, `${PRIVATE}/users`, { ...named('dan'), spec: { username: 'dan' } });
    const reply = await admin('PATCH', path, {
      spec: { users: [{ name: 'dan' }, { id: idOf('user') }] },
    });
    expect(reply.status, reply.text).to.equal(200);
    expect(reply.json['spec']?.['users']).to.deep.equal([{ id: dan }, { id: idOf('user') }]);
  });

  it("another tenant's object and one that never was get the same answer", async () => {
    const theirs = await make(admin, `${PRIVATE}/cluster_templates`, {
      metadata: { name: 'theirs', tenant: 't2' },
      id: 'their.template',
      title: 'T',
      node_sets: { workers: { host_type: { id: 'fc430' }, size: 1 } },
    });
    const answers: string[] = [];
    for (const id of [theirs, 'never.was']) {
      const reply = await alice('POST', `${PUBLIC}/clusters`, {
        metadata: { name: 'probe' },
        spec: { template: { id } },
      });
      answers.push(`${reply.status} ${reply.text.replaceAll(id, 'ID')}`);
    }
    expect(answers[0]).to.equal(answers[1]);
    expect(answers[0]).to.match(/^400 .*ClusterTemplate \\"ID\\" not found/);
  });
});
