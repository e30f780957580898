import { expect } from 'chai';
import { kinds } from '../../../src/domain/kinds.ts';
import { allows, type Role } from '../../../src/domain/tenancy/rights.ts';
import type { Method } from '../../../src/domain/resource.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
  type TokenOptions,
} from '../../support/http/service.ts';

const METHODS: readonly Method[] = ['List', 'Get', 'Create', 'Update', 'Delete'];
const REQUESTS: Readonly<Record<Method, { verb: string; suffix: string; body?: object }>> = {
  List: { verb: 'GET', suffix: '' },
  Get: { verb: 'GET', suffix: '/nope' },
  Create: { verb: 'POST', suffix: '', body: {} },
  Update: { verb: 'PATCH', suffix: '/nope', body: {} },
  Delete: { verb: 'DELETE', suffix: '/nope' },
};
/** What an admin gets for the request above: the check that comes after the rights. */
const ALLOWED: Readonly<Record<Method, readonly number[]>> = {
  List: [200],
  Get: [404],
  Create: [400],
  Update: [404],
  Delete: [404],
};

/** Callers by what their tokens say, and the roles that OSAC gives them. */
const CALLERS: readonly { name: string; token: TokenOptions; roles: readonly Role[] }[] = [
  { name: 'user', token: { user: 'alice', tenants: ['t1'] }, roles: ['client'] },
  { name: 'user of another tenant', token: { user: 'bob', tenants: ['t2'] }, roles: ['client'] },
  { name: 'user of no tenant', token: { user: 'nomad' }, roles: ['client'] },
  {
    name: 'tenant admin',
    token: { user: 'tess', tenants: ['t1'], roles: ['tenant-admin'] },
    roles: ['client', 'tenant-admin', 'tenant-idp-manager'],
  },
  {
    name: 'identity provider manager',
    token: { user: 'ivan', tenants: ['t1'], roles: ['tenant-idp-manager'] },
    roles: ['client', 'tenant-idp-manager'],
  },
  {
    name: 'project viewer',
    token: { user: 'vic', claims: { organization: { t1: { groups: ['/p1/system:viewers'] } } } },
    roles: ['project-member', 'project-viewer'],
  },
  {
    name: 'project manager',
    token: { user: 'max', tenants: ['t1'], claims: { groups: ['/p1/system:managers'] } },
    roles: ['project-member', 'project-viewer', 'project-manager'],
  },
  {
    name: 'reader of a tenant',
    token: { user: 'rita', tenants: ['t1'], roles: ['tenant-reader'] },
    roles: ['tenant-reader'],
  },
  {
    name: 'auditor of a tenant',
    token: { user: 'audrey', tenants: ['t1'], roles: ['auditor'] },
    roles: ['auditor'],
  },
  {
    name: 'reader of a tenant who manages a project',
    token: {
      user: 'remy',
      roles: ['tenant-reader'],
      claims: { organization: { t1: { groups: ['/p1/system:managers'] } } },
    },
    roles: ['tenant-reader', 'project-viewer', 'project-manager'],
  },
  {
    name: 'CSI driver',
    token: { user: 'csi', roles: ['osac-csi-driver'] },
    roles: ['csi-driver'],
  },
  {
    name: 'service account of a tenant',
    token: {
      claims: { sub: 'system:serviceaccount:t1:robot', 'kubernetes.io': {}, groups: ['admins'] },
    },
    roles: ['client'],
  },
  { name: 'admin', token: { user: 'root', admin: true }, roles: ['admin'] },
  {
    name: 'controller',
    token: { user: 'service-account-osac-controller', claims: { azp: 'osac-controller' } },
    roles: ['admin'],
  },
  {
    name: 'user of a tenant with the name of the admin client',
    token: { user: 'service-account-osac-admin', tenants: ['t1'], claims: { azp: 'osac-admin' } },
    roles: ['client'],
  },
  {
    name: 'user of a tenant with the user name of the admin client',
    token: {
      tenants: ['t1'],
      claims: { azp: 'osac-admin', preferred_username: undefined, username: 'service-account-osac-admin' },
    },
    roles: ['client'],
  },
];

/** Every route × every role, from the declarations. */
describe('who may call what', () => {
  let service: TestService;
  let anonymous: Caller;
  let user: Caller;
  let other: Caller;
  let admin: Caller;
  const callers = new Map<string, Caller>();

  before(async () => {
    service = await startTestService();
    anonymous = callerOf(service);
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    for (const { name, token } of CALLERS) callers.set(name, callerOf(service, await service.token(token)));
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
  });
  after(() => service.close());

  for (const kind of kinds) {
    for (const [surface, prefix] of [
      ['public', PUBLIC],
      ['private', PRIVATE],
    ] as const) {
      for (const method of METHODS) {
        const { verb, suffix, body } = REQUESTS[method];
        const path = `${prefix}/${kind.collection}${suffix}`;
        const offered = kind.methods[surface];
        it(`${surface} ${kind.service}/${method}`, async () => {
          const all: readonly (readonly [string, Caller])[] = [['anonymous', anonymous], ...callers];
          const statuses = new Map(
            await Promise.all(
              all.map(async ([name, caller]) => [name, (await caller(verb, path, body)).status] as const),
            ),
          );
          if (!offered.includes(method)) {
            const unheard = (name: string, roles: readonly Role[]): readonly [string, number] => [
              name,
              allows(roles, kind.service, method, surface) ? 501 : 403,
            ];
            return expect([...statuses]).to.deep.equal(
              offered.length === 0
                ? all.map(([name]) => [name, 404])
                : [['anonymous', 401], ...CALLERS.map(({ name, roles }) => unheard(name, roles))],
            );
          }
          expect(statuses.get('anonymous')).to.equal(401);
          for (const { name, roles } of CALLERS) {
            // A project role says nothing of an object that names no project.
            const nowhere = method === 'Create';
            const asked = nowhere ? roles.filter((role) => !role.startsWith('project-')) : roles;
            const allowed = allows(asked, kind.service, method, surface);
            const expected = allowed
              ? name === 'user of no tenant' && method === 'Create'
                ? [400, 403]
                : ALLOWED[method]
              : [403];
            expect(expected, `${name}: ${statuses.get(name)}`).to.include(statuses.get(name));
          }
          return undefined;
        });
      }
    }
  }

  for (const [path, method] of [
    ['kubeconfig', 'GetKubeconfig'],
    ['password', 'GetPassword'],
    ['timeline', 'GetTimeline'],
  ] as const)
    it(`GET clusters/{id}/${path}`, async () => {
      const url = `${PUBLIC}/clusters/nope/${path}`;
      for (const { name, roles } of CALLERS) {
        const { status } = await (callers.get(name) as Caller)('GET', url);
        expect(status, name).to.equal(allows(roles, 'Clusters', method) ? 404 : 403);
      }
      const replies = await Promise.all([anonymous, user, other, admin].map((caller) => caller('GET', url)));
      expect(replies.map(({ status }) => status)).to.deep.equal([401, 404, 404, 404]);
      const hidden = await Promise.all(
        [anonymous, user, other, admin].map((caller) => caller('GET', `${PRIVATE}/clusters/nope/${path}`)),
      );
      const expected = path === 'timeline' ? [401, 403, 403, 404] : [404, 404, 404, 404];
      expect(hidden.map(({ status }) => status)).to.deep.equal(expected);
    });

  for (const [verb, path] of [
    ['GET', 'events?limit=1'],
    ['GET', 'orders'],
    ['GET', 'orders/nope'],
    ['POST', 'orders/nope/retry'],
    ['POST', 'orders/nope/cancel'],
    ['GET', 'clusters/nope'],
    ['GET', 'projections'],
    ['GET', 'projections/nope'],
    ['GET', 'projections/nope/digest'],
    ['POST', 'projections/nope/rebuild'],
    ['POST', 'projections/nope/parked/x/retry'],
    ['GET', 'store'],
    ['POST', 'store/backup'],
    ['POST', 'store/check'],
  ] as const)
    it(`${verb} /api/ledger/v1/${path} is for admins only`, async () => {
      const url = `/api/ledger/v1/${path}`;
      const [nobody, mine, theirs, admins] = await Promise.all(
        [anonymous, user, other, admin].map((caller) => caller(verb, url)),
      );
      expect([nobody?.status, mine?.status, theirs?.status]).to.deep.equal([401, 403, 403]);
      expect(nobody?.headers.get('content-type')).to.equal('application/problem+json');
      expect(admins?.status).not.to.be.oneOf([401, 403, 500]);
    });

  it('says with the called method that a token is needed', async () => {
    const reply = await anonymous('GET', `${PUBLIC}/clusters`);
    const message = "method '/osac.public.v1.Clusters/List' requires authentication";
    expect(reply.json).to.deep.equal({ code: 16, message });
    expect(reply.headers.get('www-authenticate')).to.contain(message);
  });

  it('checks the schema before it asks who calls', async () => {
    const path = `${PUBLIC}/clusters`;
    const bad = await anonymous('POST', path, { metadata: { name: 'Bad_Name' } });
    expect(bad.status).to.equal(400);
    const good = await anonymous('POST', path, {
      metadata: { name: 'ok-name' },
      spec: { template: { id: 'osac.templates.small' } },
    });
    expect(good.status).to.equal(401);
    expect(good.json['message']).to.match(/Clusters\/Create/);
  });

  it('refuses tokens that are expired, forged, of another scheme, or name an unknown tenant', async () => {
    const call = async (authorization: string) => {
      const reply = await anonymous('GET', `${PUBLIC}/clusters`, undefined, { authorization });
      return reply.status === 200 ? '200' : `${reply.status} ${textAt(reply.json, 'message')}`;
    };
    expect(await call(`Bearer ${await service.token({ tenants: ['t1'], expiresIn: -60 })}`)).to.match(
      /^401 token expired/,
    );
    const good = await service.token({ tenants: ['t1'] });
    expect(await call(`Bearer ${good.slice(0, -4)}AAAA`)).to.match(/^401 token is not valid: its signature/);
    expect(await call('Bearer garbage')).to.match(/^401 token is not valid/);
    expect(await call('Bearer')).to.match(/^401 token is not valid/);
    expect(await call('Basic dXNlcjpwdw==')).to.equal("401 authentication scheme 'Basic' is not supported");
    expect(await call(`bEaReR ${good}`)).to.match(/^200/);
    expect(await call(`Bearer ${await service.token({ tenants: ['no-such'] })}`)).to.equal(
      "400 tenant 'no-such' of the token doesn't exist",
    );
  });

  it('a caller without a tenant reads what is shared and orders nothing', async () => {
    const nobody = callerOf(service, await service.token({ user: 'zed' }));
    expect((await nobody('GET', `${PUBLIC}/host_types`)).json).to.include({ total: 2 });
    expect((await nobody('GET', `${PUBLIC}/clusters`)).text).to.equal('{}');
    const reply = await nobody('POST', `${PUBLIC}/clusters`, {
      metadata: { name: 'nt' },
      spec: { template: { id: 'osac.templates.small' } },
    });
    expect(reply.status).to.equal(403);
    expect(reply.json['code']).to.equal(7);
  });

  it("a tenant's write on a shared object is refused", async () => {
    const shared = await admin('POST', `${PRIVATE}/clusters`, {
      id: 'shared-cluster',
      metadata: { name: 'shared-cluster', tenant: 'shared' },
      spec: { template: { id: 'osac.templates.small' } },
    });
    expect(shared.status, shared.text).to.equal(200);
    expect((await user('GET', `${PUBLIC}/clusters/shared-cluster`)).status).to.equal(200);
    for (const verb of ['PATCH', 'DELETE']) {
      const body = verb === 'PATCH' ? { metadata: { labels: { a: 'b' } } } : undefined;
      const reply = await user(verb, `${PUBLIC}/clusters/shared-cluster`, body);
      expect(reply.status, verb).to.equal(403);
      expect(reply.json['message']).to.equal("objects of tenant 'shared' are read-only for tenants");
    }
  });

  it('records who was refused, and why', async () => {
    const before = service.rejections.length;
    await anonymous('GET', `${PUBLIC}/clusters`);
    await user('GET', `${PRIVATE}/hubs`);
    await user('POST', `${PUBLIC}/clusters`, { metadata: { name: 'r1' } });
    await user('GET', `${PUBLIC}/clusters/nope`);
    const recorded = service.rejections.slice(before);
    expect(
      recorded.map(({ outcome, code, command, tenant }) => [outcome, code, command, tenant]),
    ).to.deep.equal([
      ['unauthenticated', 'UNAUTHENTICATED', '/osac.public.v1.Clusters/List', ''],
      ['denied', 'PERMISSION_DENIED', '/osac.private.v1.Hubs/List', 't1'],
      ['rejected', 'FIELD_REQUIRED', '/osac.public.v1.Clusters/Create', 't1'],
    ]);
  });

  it('a rejection of the aggregate is recorded once', async () => {
    await user('POST', `${PUBLIC}/clusters`, {
      metadata: { name: 'once' },
      spec: { template: { id: 'osac.templates.small' } },
    });
    const before = service.rejections.length;
    await user('POST', `${PUBLIC}/clusters`, {
      metadata: { name: 'once' },
      spec: { template: { id: 'osac.templates.small' } },
    });
    expect(service.rejections.slice(before).map(({ code }) => code)).to.deep.equal(['ALREADY_EXISTS']);
  });

  it('project roles hold in their project and nowhere else', async () => {
    const projects = ['p1', 'p2'];
    const ids = new Map<string, string>();
    for (const tenant of ['t1', 't2'])
      for (const name of projects) {
        const made = await admin('POST', `${PRIVATE}/projects`, { metadata: { name, tenant } });
        expect(made.status, made.text).to.equal(200);
        ids.set(`${tenant}/${name}`, textAt(made.json, 'id'));
      }
    const person = await admin('POST', `${PRIVATE}/users`, { metadata: { name: 'pat', tenant: 't1' } });
    const status = async (name: string, verb: string, path: string, body?: object): Promise<number> => {
      const reply = await (callers.get(name) as Caller)(verb, `${PUBLIC}/${path}`, body);
      return reply.status;
    };
    const patch = { spec: { title: 'Mine' } };
    for (const [name, get, update] of [
      ['user', 403, 403],
      ['project viewer', 200, 403],
      ['project manager', 200, 200],
      ['tenant admin', 200, 200],
    ] as const) {
      const [own, next, foreign] = ['t1/p1', 't1/p2', 't2/p1'].map((key) => `projects/${ids.get(key)}`);
      expect(await status(name, 'GET', own ?? ''), name).to.equal(get);
      expect(await status(name, 'PATCH', own ?? '', patch), name).to.equal(update);
      // Another project is absent to those who are limited to theirs.
      const beside = name === 'tenant admin' ? 200 : 404;
      expect(await status(name, 'GET', next ?? ''), name).to.equal(get === 403 ? 403 : beside);
      expect(await status(name, 'PATCH', next ?? '', patch), name).to.equal(update === 403 ? 403 : beside);
      expect(await status(name, 'GET', foreign ?? ''), name).to.equal(name === 'user' ? 403 : 404);
      expect(await status(name, 'GET', 'projects'), name).to.equal(200);
    }
    const membership = (project: string, name: string): object => ({
      metadata: { name, project },
      spec: { role: 'PROJECT_MEMBERSHIP_ROLE_VIEWER', users: [{ id: textAt(person.json, 'id') }] },
    });
    expect(await status('project viewer', 'POST', 'project_memberships', membership('p1', 'm1'))).to.equal(
      403,
    );
    expect(await status('project manager', 'POST', 'project_memberships', membership('p2', 'm1'))).to.equal(
      403,
    );
    const manager = callers.get('project manager') as Caller;
    const mine = await manager('POST', `${PUBLIC}/project_memberships`, membership('p1', 'm1'));
    expect(mine.status, mine.text).to.equal(200);
    const theirs = await admin('POST', `${PRIVATE}/project_memberships`, {
      ...membership('p2', 'm2'),
      metadata: { name: 'm2', project: 'p2', tenant: 't1' },
    });
    expect(theirs.status, theirs.text).to.equal(200);
    for (const [reply, expected] of [
      [mine, 200],
      [theirs, 404],
    ] as const) {
      const path = `project_memberships/${textAt(reply.json, 'id')}`;
      expect(await status('project manager', 'GET', path)).to.equal(expected);
      expect(await status('project viewer', 'GET', path)).to.equal(403);
      expect(await status('project manager', 'DELETE', path)).to.equal(expected);
    }
    expect(await status('project manager', 'DELETE', `projects/${ids.get('t1/p2')}`)).to.equal(404);
    expect(await status('project manager', 'DELETE', `projects/${ids.get('t1/p1')}`)).to.equal(200);
  });
});
