import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';

/** Projects and what lies in them (OSAC). */
describe('HTTP: projects', () => {
  let service: TestService;
  let admin: Caller;
  let owner: Caller;

  const project = (name: string, more: object = {}) => ({
    metadata: { name, ...more },
    spec: { title: name },
  });
  const named = (caller: Caller, path: string) =>
    caller('GET', path).then((reply) => itemsOf(reply).map((item) => item['metadata']?.['name']));
  const secretIn = (projectName: string, name = 'key') => ({
    metadata: { name, project: projectName },
    data: { k: 'dg==' },
  });

  beforeEach(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ admin: true }));
    await seedCatalogue(admin);
    owner = callerOf(
      service,
      await service.token({ user: 'boss', tenants: ['t1'], roles: ['tenant-admin'] }),
    );
  });
  afterEach(() => service.close());

  it('are usable at once, and a tree: the path is the name, the parent follows from it and must exist', async () => {
    const top = await owner('POST', `${PUBLIC}/projects`, project('research'));
    expect(top.status, top.text).to.equal(200);
    expect(top.json).to.have.nested.property('status.state', 'PROJECT_STATE_ACTIVE');
    expect(top.json).to.not.have.nested.property('metadata.project');
    const below = await owner('POST', `${PUBLIC}/projects`, project('research.genomics'));
    expect(below.json).to.have.nested.property('metadata.project', 'research');
    const same = await owner(
      'POST',
      `${PUBLIC}/projects`,
      project('research.maths', { project: 'research' }),
    );
    expect(same.status, same.text).to.equal(200);

    const refusals: [object, string][] = [
      [project('nope.genomics'), "parent project 'nope' doesn't exist"],
      [project('research.physics', { project: 'maths' }), "'metadata.project' must be left empty"],
      [project('other', { project: 'research' }), "'metadata.project' must be left empty"],
      [project('a.b.c.d.e'), 'at most 4'],
      [project('Research'), 'dot-separated segment'],
      [project('a..b'), 'dot-separated segment'],
      [project('__proto__'), 'dot-separated segment'],
      [project(''), 'at least 1'],
    ];
    for (const [body, text] of refusals) {
      const reply = await owner('POST', `${PUBLIC}/projects`, body);
      expect(reply.status, reply.text).to.equal(400);
      expect(reply.text).to.contain(text);
    }
  });

  it('have names of their own in every tenant, and belong to a tenant', async () => {
    await owner('POST', `${PUBLIC}/projects`, project('research'));
    const again = await owner('POST', `${PUBLIC}/projects`, project('research'));
    expect([again.status, again.json['code']]).to.deep.equal([409, 6]);
    const elsewhere = await admin('POST', `${PRIVATE}/projects`, project('research', { tenant: 't2' }));
    expect(elsewhere.status, elsewhere.text).to.equal(200);
    for (const tenant of [{}, { tenant: 'shared' }, { tenant: 'system' }]) {
      const reply = await admin('POST', `${PRIVATE}/projects`, project('lost', tenant));
      expect(reply.status, reply.text).to.equal(400);
      expect(reply.text).to.contain('must belong to a tenant');
    }
  });

  it('a default one without a name is there from the start, and stays', async () => {
    const listed = await owner('GET', `${PUBLIC}/projects`);
    expect(itemsOf(listed).map(({ id }) => id)).to.include('default-project.t1');
    const found = await owner('GET', `${PUBLIC}/projects/default-project.t1`);
    expect(found.json).to.have.nested.property('metadata.tenant', 't1');
    expect(found.json).to.not.have.nested.property('metadata.name');
    const gone = await owner('DELETE', `${PUBLIC}/projects/default-project.t1`);
    expect([gone.status, gone.json['code']]).to.deep.equal([400, 9]);
    expect((await owner('GET', `${PUBLIC}/projects/default-project.t2`)).status).to.equal(404);
    const reserved = await admin('POST', `${PRIVATE}/projects`, {
      id: 'default-project.t9',
      ...project('mine', { tenant: 't1' }),
    });
    expect(reserved.status, reserved.text).to.equal(400);
  });

  it('tell nobody by the ids of default projects which tenants there are', async () => {
    const answers = async (
      verb: string,
      id: string,
      how: Record<string, string> = {},
    ): Promise<unknown[]> => {
      const [path, body] =
        verb === 'POST' ? ['projects', { id, ...project('mine') }] : [`projects/${id}`, {}];
      const sent = verb === 'DELETE' ? undefined : body;
      const reply = await owner(verb, `${PUBLIC}/${path}`, sent, how);
      return [reply.status, reply.text.replaceAll(id, '<id>'), reply.headers.get('x-ledger-reason')];
    };
    const there = ['default-project.t2', 'default-project.shared', 'default-project.t1'];
    for (const how of [
      {},
      { 'x-dry-run': 'true' },
      { 'idempotency-key': 'one' },
      { 'idempotency-key': 'two', 'x-dry-run': 'true' },
    ]) {
      const absent = await answers('POST', 'default-project.nowhere', how);
      expect(absent[0], String(absent[1])).to.equal(400);
      for (const id of there) expect(await answers('POST', id, how), id).to.deep.equal(absent);
    }
    for (const verb of ['PATCH', 'DELETE'])
      expect(await answers(verb, 'default-project.t2')).to.deep.equal(
        await answers(verb, 'default-project.nowhere'),
      );
    const private_ = async (id: string) =>
      (await admin('POST', `${PRIVATE}/projects`, { id, ...project('mine', { tenant: 't1' }) })).text;
    expect(await private_('default-project.t2')).to.equal(await private_('default-project.nowhere'));
  });

  it('hold objects of every kind, whose names are unique per project', async () => {
    await owner('POST', `${PUBLIC}/projects`, project('a'));
    await owner('POST', `${PUBLIC}/projects`, project('b'));
    const made = await owner('POST', `${PUBLIC}/secrets`, secretIn('a'));
    expect(made.status, made.text).to.equal(200);
    expect(made.json).to.have.nested.property('metadata.project', 'a');
    expect((await owner('POST', `${PUBLIC}/secrets`, secretIn('b'))).status).to.equal(200);
    expect((await owner('POST', `${PUBLIC}/secrets`, secretIn(''))).status).to.equal(200);
    expect((await owner('POST', `${PUBLIC}/secrets`, secretIn('a'))).status).to.equal(409);

    const unknown = await owner('POST', `${PUBLIC}/secrets`, secretIn('nope'));
    expect([unknown.status, unknown.json['message']]).to.deep.equal([400, "project 'nope' doesn't exist"]);
    await admin('POST', `${PRIVATE}/projects`, project('theirs', { tenant: 't2' }));
    const foreign = await owner('POST', `${PUBLIC}/secrets`, secretIn('theirs'));
    expect([foreign.status, foreign.json['message']]).to.deep.equal([400, "project 'theirs' doesn't exist"]);
    const moved = await owner('PATCH', `${PUBLIC}/secrets/${textAt(made.json, 'id')}`, {
      metadata: { project: 'b' },
    });
    expect([moved.status, moved.json['message']]).to.deep.equal([
      400,
      "field 'metadata.project' is immutable",
    ]);
    const cluster = await owner('POST', `${PUBLIC}/clusters`, {
      metadata: { name: 'c1', project: 'a' },
      spec: { template: { name: 'small' } },
    });
    expect(cluster.status, cluster.text).to.equal(200);
    expect(cluster.json).to.have.nested.property('metadata.project', 'a');
  });

  it('stay while anything is inside: objects, memberships, projects', async () => {
    const top = await owner('POST', `${PUBLIC}/projects`, project('a'));
    const inner = await owner('POST', `${PUBLIC}/projects`, project('a.b'));
    const secret = await owner('POST', `${PUBLIC}/secrets`, secretIn('a.b'));
    const remove = (path: string, reply: { json: object }) =>
      owner('DELETE', `${PUBLIC}/${path}/${textAt(reply.json as never, 'id')}`);

    const withProject = await remove('projects', top);
    expect([withProject.status, withProject.json['code']]).to.deep.equal([400, 9]);
    expect(withProject.text).to.contain('project');
    const withSecret = await remove('projects', inner);
    expect([withSecret.status, withSecret.json['code']]).to.deep.equal([400, 9]);
    expect(withSecret.text).to.contain('secret');

    expect((await remove('secrets', secret)).status).to.equal(200);
    expect((await remove('projects', inner)).status).to.equal(200);
    expect((await remove('projects', top)).status).to.equal(200);
    expect(await named(owner, `${PUBLIC}/projects`)).to.not.include('a');
    const late = await owner('POST', `${PUBLIC}/secrets`, secretIn('a'));
    expect([late.status, late.json['message']]).to.deep.equal([400, "project 'a' doesn't exist"]);
    expect((await owner('POST', `${PUBLIC}/projects`, project('a'))).status).to.equal(200);
  });

  it('are deleted or filled, never both, when both come at once', async () => {
    for (let round = 0; round < 15; round += 1) {
      const name = `p${round}`;
      const made = await owner('POST', `${PUBLIC}/projects`, project(name));
      const id = textAt(made.json, 'id');
      const [gone, ...secrets] = await Promise.all([
        owner('DELETE', `${PUBLIC}/projects/${id}`),
        owner('POST', `${PUBLIC}/secrets`, secretIn(name, 'a')),
        owner('POST', `${PUBLIC}/secrets`, secretIn(name, 'b')),
      ]);
      const filled = secrets.filter(({ status }) => status === 200).length;
      expect([gone.status, filled > 0]).to.be.deep.oneOf([
        [200, false],
        [400, true],
      ]);
      for (const reply of secrets) expect(reply.status).to.be.oneOf([200, 400]);
    }
  });

  it('take what controllers report, and nothing from tenants', async () => {
    const made = await owner('POST', `${PUBLIC}/projects`, {
      ...project('a'),
      status: { state: 'PROJECT_STATE_FAILED' },
    });
    expect(made.json).to.have.nested.property('status.state', 'PROJECT_STATE_ACTIVE');
    const id = textAt(made.json, 'id');
    const status = { state: 'PROJECT_STATE_PENDING', message: 'on its way' };
    const reported = await admin('PATCH', `${PRIVATE}/projects/${id}`, { status });
    expect(reported.json).to.deep.include({ status });
    const patched = await owner('PATCH', `${PUBLIC}/projects/${id}`, { spec: { description: 'x' } });
    expect(patched.json).to.deep.include({ status, spec: { title: 'a', description: 'x' } });
  });
});
