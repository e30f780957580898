import { expect } from 'chai';
import { makeBuiltIns } from '../../support/http/built-ins.ts';
import { collect } from '../../support/commands/fake-context.ts';
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

describe('HTTP: roles, role bindings, project memberships', () => {
  let service: TestService;
  let admin: Caller;
  let owner: Caller;
  let alice: string;
  let bob: string;

  const TENANT_ADMIN = '019dd9f6-36cd-7000-8000-000000000003';
  const admit = async (tenant: string, name: string): Promise<string> => {
    const reply = await admin('POST', `${PRIVATE}/users`, {
      metadata: { name, tenant },
      spec: { username: name, enabled: true },
    });
    if (reply.status !== 200) throw new Error(reply.text);
    return textAt(reply.json, 'id');
  };
  const refusal = async (reply: Promise<{ status: number; text: string; json: object }>, text: string) => {
    const { status, json } = await reply;
    expect([status, (json as { message?: string }).message]).to.deep.equal([400, text]);
  };

  beforeEach(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ admin: true }));
    await seedCatalogue(admin);
    await makeBuiltIns(service);
    owner = callerOf(
      service,
      await service.token({ user: 'boss', tenants: ['t1'], roles: ['tenant-admin'] }),
    );
    alice = await admit('t1', 'alice');
    bob = await admit('t1', 'bob');
  });
  afterEach(() => service.close());

  describe('roles', () => {
    it('five are built in: fixed ids, ready, made by nobody, the same after every start', async () => {
      const listed = itemsOf(await owner('GET', `${PUBLIC}/roles`));
      expect(listed.map((role) => role['metadata']?.['name'])).to.deep.equal([
        'cloud-provider-admin',
        'cloud-provider-reader',
        'tenant-admin',
        'tenant-reader',
        'tenant-user',
      ]);
      for (const role of listed) {
        expect(role).to.have.nested.property('status.state', 'ROLE_STATE_READY');
        expect(role).to.have.nested.property('metadata.tenant', 'shared');
        expect(role['metadata']).to.not.have.property('creator');
        expect(textAt(role, 'id')).to.match(/^019dd9f6-36c[b-f]-/);
      }
      const before = (await collect(service.store.readAll({ limit: 1_000 }))).length;
      expect(await makeBuiltIns(service)).to.deep.equal([]);
      expect(await collect(service.store.readAll({ limit: 1_000 }))).to.have.length(before);
    });
    it('built-in ones are neither changed nor deleted, by nobody', async () => {
      const path = `${PRIVATE}/roles/${TENANT_ADMIN}`;
      for (const reply of [
        await admin('PATCH', path, { spec: { title: 'Mine' } }),
        await admin('DELETE', path),
      ]) {
        expect([reply.status, reply.json['code']], reply.text).to.deep.equal([400, 9]);
        expect(reply.text).to.contain('built in');
      }
      expect((await admin('PATCH', path, {})).status).to.equal(200);
    });
    it('a name that was taken before is said, and does not stop the start', async () => {
      const fresh = await startTestService();
      const other = callerOf(fresh, await fresh.token({ admin: true }));
      await other('POST', `${PRIVATE}/roles`, { metadata: { name: 'tenant-user' } });
      expect(await makeBuiltIns(fresh)).to.deep.equal([
        { level: 'warn', fields: { role: 'tenant-user', code: 'ALREADY_EXISTS' } },
      ]);
      await fresh.close();
    });
    it('are written by admins, with names that are unique everywhere', async () => {
      const made = await admin('POST', `${PRIVATE}/roles`, { metadata: { name: 'operator' } });
      expect(made.json).to.have.nested.property('status.state', 'ROLE_STATE_READY');
      const inTenant = { metadata: { name: 'operator', tenant: 't1' } };
      expect((await admin('POST', `${PRIVATE}/roles`, inTenant)).status).to.equal(409);
      expect((await owner('POST', `${PUBLIC}/roles`, { metadata: { name: 'mine' } })).status).to.equal(403);
      const id = textAt(made.json, 'id');
      expect((await admin('DELETE', `${PRIVATE}/roles/${id}`)).status).to.equal(200);
    });
  });

  describe('role bindings', () => {
    const binding = (
      name: string,
      role: object | undefined,
      users: readonly object[],
      more: object = {},
    ) => ({
      metadata: { name, ...more },
      spec: { ...(role === undefined ? {} : { role }), users },
    });

    it('bind users of their tenant, shown by id, and wait for the token issuer', async () => {
      const made = await owner(
        'POST',
        `${PUBLIC}/role_bindings`,
        binding('admins', { name: 'tenant-admin' }, [{ id: alice }, { name: 'bob' }]),
      );
      expect(made.status, made.text).to.equal(200);
      expect(made.json['spec']).to.deep.equal({
        role: { id: TENANT_ADMIN, name: 'tenant-admin' },
        users: [{ id: alice }, { id: bob }],
      });
      const { message, ...status } = made.json['status'] as { message?: string };
      expect(status).to.deep.equal({ state: 'ROLE_BINDING_STATE_PENDING' });
      expect(message).to.contain('rights come from the token');
      const seen = await admin('GET', `${PRIVATE}/role_bindings/${textAt(made.json, 'id')}`);
      expect(seen.json['status']).to.deep.equal({
        state: 'ROLE_BINDING_STATE_PENDING',
        message,
        users: [{ id: alice }, { id: bob }],
      });
      const stored = await collect(service.store.readAll({ limit: 1_000 }));
      expect(JSON.stringify(stored.filter(({ type }) => type === 'RoleBound'))).to.not.contain('bob');
    });
    it('need a role, take another one, and no user twice or of another tenant', async () => {
      const post = (body: object, caller = owner) => caller('POST', `${PUBLIC}/role_bindings`, body);
      await refusal(post(binding('b', undefined, [{ id: alice }])), "field 'spec.role' is required");
      await refusal(
        post(binding('b', { name: 'nope' }, [])),
        'reference validation failed: object.spec.role: Role "nope" not found',
      );
      await refusal(
        post(binding('b', { name: 'tenant-user' }, [{ id: alice }, { name: 'alice' }])),
        `field 'spec.users[1]' repeats user '${alice}'`,
      );
      const carol = await admit('t2', 'carol');
      const absent = `reference validation failed: object.spec.users.0: User "${carol}" not found`;
      await refusal(post(binding('b', { name: 'tenant-user' }, [{ id: carol }])), absent);
      await refusal(
        post(binding('b', { name: 'tenant-user' }, [{ id: carol }], { tenant: 't1' }), admin),
        absent,
      );
      const made = await post(binding('b', { name: 'tenant-user' }, [{ id: alice }]));
      const path = `${PUBLIC}/role_bindings/${textAt(made.json, 'id')}`;
      const other = await owner('PATCH', path, { spec: { role: { name: 'tenant-reader' } } });
      expect(other.json).to.have.nested.property('spec.role.name', 'tenant-reader');
      await refusal(owner('PATCH', path, { spec: { role: null } }), "field 'spec.role' is required");
      await refusal(owner('PATCH', path, { spec: { users: [{ id: carol }] } }), absent);
      const none = await owner('PATCH', path, { spec: { users: [] } });
      expect(none.json).to.not.have.nested.property('spec.users');
      const same = await owner('PATCH', path, {
        spec: { role: { id: '019dd9f6-36ce-7000-8000-000000000004' } },
      });
      expect(same.json['metadata']).to.deep.equal(none.json['metadata']);
    });
    it('of the provider: roles that only admins give', async () => {
      const denied = async (reply: Promise<{ status: number; text: string; json: object }>) => {
        const { status, text, json } = await reply;
        expect([status, (json as { code?: number }).code], text).to.deep.equal([403, 7]);
        expect(text).to.contain('cloud-provider-');
      };
      for (const name of ['cloud-provider-admin', 'cloud-provider-reader']) {
        await denied(owner('POST', `${PUBLIC}/role_bindings`, binding('x', { name }, [{ id: alice }])));
        await denied(owner('POST', `${PUBLIC}/role_bindings`, binding('x', { name }, [])));
        const body = binding('given', { name }, [{ id: alice }], { tenant: 't1' });
        const given = await admin('POST', `${PRIVATE}/role_bindings`, body);
        expect(given.status, given.text).to.equal(200);
        const path = `${PUBLIC}/role_bindings/${textAt(given.json, 'id')}`;
        await denied(owner('PATCH', path, { spec: { users: [{ id: alice }, { id: bob }] } }));
        expect((await owner('PATCH', path, { metadata: { labels: { a: 'b' } } })).status).to.equal(200);
        expect((await owner('DELETE', path)).status).to.equal(200);
        const own = binding('own', { name: 'tenant-user' }, [{ id: alice }]);
        const made = await owner('POST', `${PUBLIC}/role_bindings`, own);
        const mine = `${PUBLIC}/role_bindings/${textAt(made.json, 'id')}`;
        await denied(owner('PATCH', mine, { spec: { role: { name } } }));
        await owner('DELETE', mine);
      }
    });
    it('keep their role and their users from being deleted; their names are unique in their tenant', async () => {
      const role = textAt((await admin('POST', `${PRIVATE}/roles`, { metadata: { name: 'op' } })).json, 'id');
      const body = binding('b', { name: 'op' }, [{ id: alice }]);
      const made = await owner('POST', `${PUBLIC}/role_bindings`, body);
      expect((await owner('POST', `${PUBLIC}/role_bindings`, body)).status).to.equal(409);
      // What another tenant calls its bindings is not told, and takes nothing away.
      const other = await admin('POST', `${PRIVATE}/role_bindings`, {
        ...binding('b', { name: 'tenant-user' }, []),
        metadata: { name: 'b', tenant: 't2' },
      });
      expect(other.status, other.text).to.equal(200);
      for (const path of [`roles/${role}`, `users/${alice}`]) {
        const gone = await admin('DELETE', `${PRIVATE}/${path}`);
        expect([gone.status, gone.json['code']], gone.text).to.deep.equal([400, 9]);
      }
      await owner('DELETE', `${PUBLIC}/role_bindings/${textAt(made.json, 'id')}`);
      expect((await admin('DELETE', `${PRIVATE}/roles/${role}`)).status).to.equal(200);
    });
  });

  describe('project memberships', () => {
    const membership = (
      name: string,
      users: readonly object[],
      role: string | number | undefined = 'PROJECT_MEMBERSHIP_ROLE_VIEWER',
      metadata: object = { project: 'a' },
    ) => ({ metadata: { name, ...metadata }, spec: { ...(role === undefined ? {} : { role }), users } });
    const post = (body: object) => owner('POST', `${PUBLIC}/project_memberships`, body);

    beforeEach(async () => {
      for (const name of ['a', 'b']) await owner('POST', `${PUBLIC}/projects`, { metadata: { name } });
    });

    it('are ready with their users, which only the private side shows as status', async () => {
      const made = await post(membership('m', [{ name: 'alice' }]));
      expect(made.status, made.text).to.equal(200);
      expect(made.json['spec']).to.deep.equal({
        role: 'PROJECT_MEMBERSHIP_ROLE_VIEWER',
        users: [{ id: alice }],
      });
      expect(made.json['status']).to.deep.equal({ state: 'PROJECT_MEMBERSHIP_STATE_READY' });
      const id = textAt(made.json, 'id');
      const seen = await admin('GET', `${PRIVATE}/project_memberships/${id}`);
      expect(seen.json['status']).to.deep.equal({
        state: 'PROJECT_MEMBERSHIP_STATE_READY',
        users: [{ id: alice }],
      });
      const changed = await owner('PATCH', `${PUBLIC}/project_memberships/${id}`, {
        spec: { role: 'PROJECT_MEMBERSHIP_ROLE_MANAGER', users: [{ id: bob }] },
      });
      expect(changed.json['spec']).to.deep.equal({
        role: 'PROJECT_MEMBERSHIP_ROLE_MANAGER',
        users: [{ id: bob }],
      });
    });
    it('need a project, a known role and a user of the tenant', async () => {
      await refusal(
        post(membership('m', [{ id: alice }], undefined, {})),
        "field 'metadata.project' is required: name the project",
      );
      for (const role of [undefined, 77, 'PROJECT_MEMBERSHIP_ROLE_UNSPECIFIED']) {
        const body = membership('m', [{ id: alice }], 'PROJECT_MEMBERSHIP_ROLE_VIEWER');
        const reply = await post({
          ...body,
          spec: { users: body.spec.users, ...(role === undefined ? {} : { role }) },
        });
        expect([reply.status, reply.text.includes("'spec.role' must be one of")]).to.deep.equal([400, true]);
      }
      await refusal(post(membership('m', [])), "field 'spec.users' must name at least one user");
      await refusal(
        post(membership('m', [{ name: 'nobody' }])),
        'reference validation failed: object.spec.users.0: User not found',
      );
    });
    it('a user has one in a project, also of two that come at once', async () => {
      const both = await Promise.all([
        post(membership('m1', [{ id: alice }])),
        post(membership('m2', [{ id: alice }, { id: bob }])),
      ]);
      expect(both.map(({ status }) => status)).to.have.members([200, 409]);
      const lost = both.find(({ status }) => status === 409);
      expect(lost?.json['message']).to.equal(
        `user '${alice}' is already a member of project 'a' by another membership`,
      );
      expect((await post(membership('m3', [{ id: alice }], undefined, { project: 'b' }))).status).to.equal(
        200,
      );
      const won = both.find(({ status }) => status === 200);
      await owner('DELETE', `${PUBLIC}/project_memberships/${textAt(won?.json, 'id')}`);
      expect((await post(membership('m4', [{ id: alice }, { id: bob }]))).status).to.equal(200);
    });
  });
});
