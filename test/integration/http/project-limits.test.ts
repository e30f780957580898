import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { kinds } from '../../../src/domain/kinds.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { KIND_SAMPLES, makeHousePool } from '../../support/http/kind-samples.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Reply,
  type TestService,
  type TokenOptions,
} from '../../support/http/service.ts';
import { PUBLIC_WATCH, watch } from '../../support/http/watch-client.ts';

const groups = (...names: string[]): object => ({ organization: { t1: { groups: names } } });
const VIEWER = '/p1/system:viewers';
const MANAGER = '/p1/system:managers';

const CALLERS: { readonly [name: string]: TokenOptions } = {
  viewer: { user: 'vic', claims: groups(VIEWER) },
  manager: { user: 'max', claims: groups(MANAGER) },
  /** Reads another project beside the one that is managed. */
  both: { user: 'bo', claims: groups(MANAGER, '/p2/system:viewers') },
  reader: { user: 'rita', tenants: ['t1'], roles: ['tenant-reader'] },
  auditor: { user: 'audrey', tenants: ['t1'], roles: ['auditor'] },
  admin: { user: 'ada', tenants: ['t1'], roles: ['tenant-admin'] },
  client: { user: 'cleo', tenants: ['t1'] },
  /** Reads all of the tenant and manages one project of it. */
  remy: { user: 'remy', roles: ['tenant-reader'], claims: groups(MANAGER) },
};

const LIMITED = ['viewer', 'manager', 'both'];

/** Kinds that belong to no tenant, or to a tenant as a whole. */
const NOT_IN_PROJECTS = ['tenant', 'role', 'instanceType', 'bareMetalInstanceType', 'hub', 'project', 'user'];

/** docs/administration.md "Who may do what". */
describe('rights inside a tenant', () => {
  let service: TestService;
  let admin: Caller;
  let reads: string[] = [];
  const callers = new Map<string, Caller>();
  /** Ids by kind and project. */
  const things = new Map<string, string>();
  let users: string[] = [];
  const idOf = (kind: string, project: string): string => things.get(`${kind} ${project}`) ?? '';
  const as = (name: string): Caller => callers.get(name) as Caller;
  const made = async (reply: Reply, what: string): Promise<string> => {
    expect(reply.status, `${what}: ${reply.text}`).to.equal(200);
    return textAt(reply.json['object'] ?? reply.json, 'id');
  };

  before(async () => {
    service = await startTestService({
      onRead: (question, asked) =>
        void reads.push(JSON.stringify([question, ...asked]).replace(/"nowMs":\d+/, '"nowMs":0')),
    });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    await admin('POST', `${PRIVATE}/roles`, { metadata: { name: 'house-role' } });
    await makeHousePool(admin);
    for (const name of ['p1', 'p2', 'house'])
      things.set(
        `project ${name}`,
        await made(await admin('POST', `${PRIVATE}/projects`, { metadata: { name, tenant: 't1' } }), name),
      );
    for (let i = 0; i < 8; i += 1) {
      const body = { metadata: { name: `m-${i}`, tenant: 't1' }, spec: { username: `m-${i}` } };
      users.push(await made(await admin('POST', `${PRIVATE}/users`, body), 'user'));
    }
    let serial = 0;
    const around = { user: () => users.pop() ?? '' };
    for (const { kind, collection } of kinds) {
      if (NOT_IN_PROJECTS.includes(kind)) continue;
      for (const project of ['p1', 'p2', '']) {
        if (kind === 'projectMembership' && project === '') continue;
        const name = `${project || 'none'}-${(serial += 1)}`;
        const sample = KIND_SAMPLES[kind]?.body(name, around) as JsonObject;
        const metadata = { ...(sample['metadata'] as JsonObject), ...(project === '' ? {} : { project }) };
        if (project === '') delete (metadata as Record<string, unknown>)['project'];
        const body = { ...sample, ...(kind === 'clusterCatalogItem' ? { published: true } : {}), metadata };
        const id = await made(await admin('POST', `${PRIVATE}/${collection}`, body), kind);
        things.set(`${kind} ${project}`, id);
        const settled = KIND_SAMPLES[kind]?.settled;
        if (settled !== undefined) await admin('PATCH', `${PRIVATE}/${collection}/${id}`, settled);
      }
    }
    users = [];
    for (const [name, token] of Object.entries(CALLERS))
      callers.set(name, callerOf(service, await service.token(token)));
  });
  after(() => service.close());

  const surface = () => service.surfaces.find((table) => table.surface === 'public')?.kinds ?? new Map();
  const inProjects = kinds.filter(
    ({ kind, methods }) => !NOT_IN_PROJECTS.includes(kind) && methods.public.length > 0,
  );
  const patch = { metadata: { labels: { seen: 'yes' } } };
  const TRIED = { 'x-dry-run': 'true' };

  type Asked = { readonly verb: string; readonly path: (id: string) => string; readonly body?: object };
  /** Every route of the public surface that names an object of a kind, reads of the past among them. */
  const routesOf = (collection: string): readonly Asked[] => {
    const base = `${PUBLIC}/${collection}`;
    const extras = [...(surface().get(collection)?.extras.keys() ?? [])] as string[];
    const past = encodeURIComponent(new Date().toISOString());
    return [
      { verb: 'GET', path: (id) => `${base}/${id}` },
      { verb: 'GET', path: (id) => `${base}/${id}?as_of=${past}` },
      { verb: 'PATCH', path: (id) => `${base}/${id}`, body: patch },
      { verb: 'DELETE', path: (id) => `${base}/${id}` },
      ...extras.map((name): Asked => ({ verb: 'GET', path: (id) => `${base}/${id}/${name}` })),
      { verb: 'GET', path: (id) => `${base}?filter=${encodeURIComponent(`this.id == "${id}"`)}` },
    ];
  };

  for (const name of ['viewer', 'manager'])
    for (const { kind, collection, outsideProjectsForAll } of inProjects)
      it(`${name}: ${collection} of another project are absent, by the same statements`, async () => {
        const foreign = ['p2', ...(outsideProjectsForAll === true ? [] : [''])].map((project) =>
          idOf(kind, project),
        );
        for (const id of foreign.filter((one) => one !== ''))
          for (const { verb, path, body } of routesOf(collection)) {
            const ask = async (asked: string): Promise<readonly unknown[]> => {
              reads = [];
              const reply = await as(name)(verb, path(asked), body);
              return [
                reply.status,
                reply.text.replaceAll(asked, '<id>'),
                reads.join('\n').replaceAll(asked, '<id>'),
              ];
            };
            // Of the form that an id of this kind has.
            const absent = /^[0-9a-f-]{36}$/.test(id) ? randomUUID() : `${id}x`;
            const answer = await ask(id);
            expect(answer, `${verb} ${path(id)}`).to.deep.equal(await ask(absent));
            if (!path('').includes('filter='))
              expect(answer[0], `${verb} ${path(id)}`).to.be.oneOf([403, 404]);
          }
      });

  it('what was deleted in another project stays absent, and nothing tells that it was there', async () => {
    for (const kind of ['cluster', 'diskImage', 'secret']) {
      const { collection } = kinds.find((one) => one.kind === kind) as { collection: string };
      const sample = KIND_SAMPLES[kind]?.body('gone', { user: () => '' }) as JsonObject;
      const metadata = { ...(sample['metadata'] as JsonObject), project: 'p2' };
      const id = await made(await admin('POST', `${PRIVATE}/${collection}`, { ...sample, metadata }), kind);
      expect((await admin('DELETE', `${PRIVATE}/${collection}/${id}`)).status, kind).to.equal(200);
      for (const name of ['viewer', 'manager'])
        for (const { verb, path, body } of routesOf(collection)) {
          const ask = async (asked: string): Promise<readonly unknown[]> => {
            const reply = await as(name)(verb, path(asked), body);
            return [reply.status, reply.text.replaceAll(asked, '<id>'), reply.headers.get('x-ledger-reason')];
          };
          expect(await ask(id), `${name} ${verb} ${path(id)}`).to.deep.equal(await ask(randomUUID()));
        }
    }
  });

  it('lists, their totals, their past and their filters hold the own projects alone', async () => {
    const past = encodeURIComponent(new Date().toISOString());
    const foreign = encodeURIComponent('this.metadata.project in ["p2", ""] && this.metadata.tenant == "t1"');
    for (const { kind, collection, outsideProjectsForAll } of inProjects)
      for (const name of ['viewer', 'manager'])
        for (const query of ['', `as_of=${past}`, `filter=${foreign}`, 'order=metadata.name', 'limit=1']) {
          const reply = await as(name)('GET', `${PUBLIC}/${collection}?${query}`);
          const said = `${name} ${collection}?${query}: ${reply.text}`;
          if (reply.status === 403) {
            expect([`${name} ${kind}`], said).to.be.deep.oneOf([
              ['viewer secret'],
              ['viewer identityProvider'],
              ['manager identityProvider'],
            ]);
            continue;
          }
          expect(reply.status, said).to.equal(200);
          const seen = itemsOf(reply).filter((item) => textAt(item, 'metadata', 'tenant') === 't1');
          const projects = seen.map((item) => (item['metadata'] as JsonObject)['project'] ?? '');
          const allowed = ['p1', ...(outsideProjectsForAll === true ? [''] : [])];
          for (const project of projects) expect(allowed, said).to.include(project);
          if (query === '') {
            expect(
              seen.map(({ id }) => id),
              said,
            ).to.include(idOf(kind, 'p1'));
            expect(reply.json['total'], said).to.equal(itemsOf(reply).length);
          }
        }
    for (const name of ['viewer', 'manager']) {
      const projects = itemsOf(await as(name)('GET', `${PUBLIC}/projects`));
      const own = projects.filter((item) => textAt(item, 'metadata', 'tenant') === 't1');
      expect(own.map((item) => textAt(item, 'metadata', 'name'))).to.deep.equal(['p1']);
    }
  });

  it('watches tell of the own projects alone', async () => {
    const token = await service.token(CALLERS['viewer'] as TokenOptions);
    const path = `${PUBLIC_WATCH}?filter=${encodeURIComponent('has(event.disk_image)')}`;
    const replayed = `${path}&from=${encodeURIComponent(service.positions.format('0'.repeat(16)))}.0`;
    const [live, resumed] = [await watch(service, token, path), await watch(service, token, replayed)];
    try {
      const image = KIND_SAMPLES['diskImage']?.body('w', { user: () => '' }) as JsonObject;
      for (const [name, project] of [
        ['theirs', 'p2'],
        ['tenants', ''],
        ['mine', 'p1'],
      ] as const)
        await made(
          await admin('POST', `${PRIVATE}/disk_images`, {
            ...image,
            metadata: { name, project, tenant: 't1' },
          }),
          name,
        );
      const names = (events: readonly object[]): readonly string[] =>
        events.map((event) => textAt(event as never, 'disk_image', 'metadata', 'name'));
      expect(names(await live.count(1))).to.deep.equal(['mine']);
      const all = names(await resumed.count(2));
      expect(all.at(-1)).to.equal('mine');
      expect(all.every((name) => name === 'mine' || name.startsWith('p1-'))).to.equal(true);
    } finally {
      live.close();
      resumed.close();
    }
  });

  it('a viewer changes nothing and enters no cluster of the own project', async () => {
    for (const { kind, collection } of inProjects) {
      const path = `${PUBLIC}/${collection}/${idOf(kind, 'p1')}`;
      for (const [verb, body] of [
        ['PATCH', patch],
        ['DELETE', undefined],
      ] as const)
        expect((await as('viewer')(verb, path, body)).status, `${verb} ${path}`).to.be.oneOf([403, 501]);
    }
    const cluster = `${PUBLIC}/clusters/${idOf('cluster', 'p1')}`;
    for (const [part, status] of [
      ['', 200],
      ['/timeline', 200],
      ['/kubeconfig', 403],
      ['/password', 403],
    ] as const)
      expect((await as('viewer')('GET', cluster + part)).status, part).to.equal(status);
  });

  it('a manager writes in the own project and nowhere else, whatever stands there', async () => {
    const order = (project: string | undefined, more: object = {}) => ({
      metadata: { name: `o-${randomUUID().slice(0, 8)}`, ...(project === undefined ? {} : { project }) },
      spec: { template: { id: 'osac.templates.small' }, ...more },
    });
    const mine = await as('manager')('POST', `${PUBLIC}/clusters`, order('p1'));
    const id = await made(mine, 'order');
    const path = `${PUBLIC}/clusters/${id}`;
    expect((await as('manager')('PATCH', path, patch)).status).to.equal(200);
    const kubeconfig = await as('manager')('GET', `${path}/kubeconfig`);
    expect([kubeconfig.status, textAt(kubeconfig.json, 'message')]).to.deep.equal([
      404,
      `kubeconfig for cluster with identifier '${id}' isn't yet available`,
    ]);
    // There or not: nobody learns which other projects there are.
    const refusals = await Promise.all(
      ['p2', 'never-was', '', undefined].map((project) =>
        as('manager')('POST', `${PUBLIC}/clusters`, order(project)),
      ),
    );
    expect(new Set(refusals.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
    expect(refusals[0]?.status).to.equal(403);
    const key = { 'idempotency-key': randomUUID() };
    expect((await as('manager')('DELETE', path, undefined, key)).text).to.equal('{}');
    // A retry of the deletion is answered as before.
    expect((await as('manager')('DELETE', path, undefined, key)).text).to.equal('{}');
    // What is read by another right is there, and not the manager's to write.
    const theirs = `${PUBLIC}/clusters/${idOf('cluster', 'p2')}`;
    for (const name of ['both', 'remy']) {
      expect((await as(name)('GET', theirs)).status, name).to.equal(200);
      for (const [verb, part, body] of [
        ['PATCH', '', patch],
        ['DELETE', '', undefined],
        ['GET', '/kubeconfig', undefined],
        ['GET', '/password', undefined],
      ] as const)
        expect((await as(name)(verb, theirs + part, body)).status, `${name} ${verb} ${part}`).to.equal(403);
      const secrets = itemsOf(await as(name)('GET', `${PUBLIC}/secrets`));
      expect(
        secrets.map((item) => item['id']),
        name,
      ).to.deep.equal([idOf('secret', 'p1')]);
    }
  });

  it('an order reaches nothing of a project that the caller does not manage', async () => {
    for (const name of ['manager', 'both', 'remy']) {
      const ask = (secret: string): Promise<Reply> =>
        as(name)(
          'POST',
          `${PUBLIC}/clusters`,
          {
            metadata: { name: 'reach', project: 'p1' },
            spec: { template: { id: 'osac.templates.small' }, pull_secret_secret: { id: secret } },
          },
          TRIED,
        );
      for (const project of ['p2', '']) {
        const [theirs, absent] = [idOf('secret', project), randomUUID()];
        const [one, other] = [await ask(theirs), await ask(absent)];
        expect(one.status, `${name} ${one.text}`).to.equal(400);
        expect(one.text.replaceAll(theirs, '<id>')).to.equal(other.text.replaceAll(absent, '<id>'));
      }
    }
  });

  it("a manager has no say in another manager's memberships", async () => {
    const theirs = `${PUBLIC}/project_memberships/${idOf('projectMembership', 'p2')}`;
    for (const [name, status] of [
      ['manager', 404],
      ['both', 403],
      ['remy', 403],
    ] as const)
      for (const [verb, body] of [
        ['PATCH', patch],
        ['DELETE', undefined],
      ] as const)
        expect((await as(name)(verb, theirs, body)).status, `${name} ${verb}`).to.equal(status);
    const own = `${PUBLIC}/project_memberships/${idOf('projectMembership', 'p1')}`;
    expect((await as('manager')('PATCH', own, patch, TRIED)).status).to.equal(200);
  });

  for (const name of ['reader', 'auditor'])
    it(`${name}: reads everything of the tenant, changes and reveals nothing`, async () => {
      for (const { kind, collection } of inProjects)
        for (const project of ['p1', 'p2', '']) {
          const id = idOf(kind, project);
          if (id === '') continue;
          const path = `${PUBLIC}/${collection}/${id}`;
          const read = kind === 'secret' ? 403 : 200;
          expect((await as(name)('GET', path)).status, path).to.equal(read);
          expect((await as(name)('PATCH', path, patch)).status, path).to.be.oneOf([403, 501]);
          expect((await as(name)('DELETE', path)).status, path).to.be.oneOf([403, 501]);
        }
      for (const kind of kinds.filter(({ methods }) => methods.public.includes('Create'))) {
        const reply = await as(name)('POST', `${PUBLIC}/${kind.collection}`, {
          metadata: { name: 'x', project: 'p1' },
        });
        expect(reply.status, kind.collection).to.equal(403);
      }
      expect((await as(name)('GET', `${PUBLIC}/secrets`)).status).to.equal(403);
      const cluster = `${PUBLIC}/clusters/${idOf('cluster', 'p1')}`;
      expect((await as(name)('GET', `${cluster}/timeline`)).status).to.equal(200);
      for (const part of ['kubeconfig', 'password'])
        expect((await as(name)('GET', `${cluster}/${part}`)).status, part).to.equal(403);
      for (const collection of ['projects', 'project_memberships', 'users', 'identity_providers'])
        expect((await as(name)('GET', `${PUBLIC}/${collection}`)).status, collection).to.equal(200);
    });

  it('our own surfaces and the private one are closed to all of them', async () => {
    const document = (await callerOf(service)('GET', '/openapi.json')).json;
    const paths = Object.entries(document['paths'] as Record<string, JsonObject>).filter(([path]) =>
      /^\/api\/(ledger|private)\/v1\//.test(path),
    );
    expect(paths.length).to.be.greaterThan(60);
    let asked = 0;
    for (const [template, verbs] of paths)
      for (const verb of Object.keys(verbs).filter((key) => /^(get|post|patch|delete)$/.test(key))) {
        const path = template.replaceAll(/\{\w+\*?\}/g, 'x');
        // Whole tenants may read what they have used, and nobody who is limited to projects.
        const all = template === '/api/ledger/v1/usage' ? LIMITED : Object.keys(CALLERS);
        // The fault suites ask as each of them, the others take turns.
        const some =
          process.env['LEDGER_TEST_ALL_CASES'] === undefined ? [all[(asked += 1) % all.length] ?? ''] : all;
        for (const name of some) {
          const body = ['post', 'patch'].includes(verb) ? {} : undefined;
          const reply = await as(name)(verb.toUpperCase(), path, body);
          expect(reply.status, `${name} ${verb} ${path}: ${reply.text}`).to.equal(403);
        }
      }
  });
});
