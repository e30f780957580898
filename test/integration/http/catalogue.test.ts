import { expect } from 'chai';
import { subjectIdOf } from '../../../src/app/log/identifiers.ts';
import { hubCapacity } from '../../../src/app/hubs/scheduler.ts';
import type { HubCapacityCommand } from '../../../src/domain/hubs/capacity.ts';
import { commandContext } from '../../support/hubs/hub-fixture.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  ISSUER,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';

/** What the admin of these specs makes bears the admin's own id, as what tenants make bears theirs. */
const ROOT = subjectIdOf('shared', ISSUER, 'root');

/** Kinds that a cluster order needs (OSAC). */
describe('catalogue kinds over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  });
  after(() => service.close());

  describe('host types', () => {
    it('take their name from the id, belong to shared, and show no status', async () => {
      const reply = await admin('POST', `${PRIVATE}/host_types`, {
        id: 'osac.types.acme_1tib',
        title: 'ACME 1 TiB',
      });
      expect(reply.status, reply.text).to.equal(200);
      const { creation_timestamp: _at, ...metadata } = reply.json['metadata'] as object & {
        creation_timestamp: string;
      };
      expect(metadata).to.deep.equal({ creator: ROOT, tenant: 'shared', name: 'acme-1tib' });
      expect(reply.json).not.to.have.property('status');
      const read = await user('GET', `${PUBLIC}/host_types/osac.types.acme_1tib`);
      expect(read.json).to.deep.equal(reply.json);
    });

    it('are changed in part and deleted unless something points at them', async () => {
      await admin('POST', `${PRIVATE}/host_types`, {
        id: 'spare',
        title: 'Spare',
        interfaces: [{ name: 'a' }],
      });
      const changed = await admin('PATCH', `${PRIVATE}/host_types/spare`, { description: 'Kept' });
      expect(changed.json, changed.text).to.deep.include({
        title: 'Spare',
        description: 'Kept',
        interfaces: [{ name: 'a' }],
      });
      expect(changed.json['metadata']).to.include({ version: 1 });
      expect((await admin('DELETE', `${PRIVATE}/host_types/spare`)).text).to.equal('{}');
      expect((await admin('GET', `${PRIVATE}/host_types/spare`)).status).to.equal(404);
      const used = await admin('DELETE', `${PRIVATE}/host_types/fc430`);
      expect(used.status).to.equal(400);
      expect(used.json).to.include({ code: 9 });
      expect(used.json['message']).to.match(
        /^cannot delete host type 'fc430': it is in use by at least one cluster template: cluster template 'osac\.templates\.big', cluster template 'osac/,
      );
    });

    it('need an id or a name', async () => {
      const reply = await admin('POST', `${PRIVATE}/host_types`, { title: 'No name' });
      expect(reply.status).to.equal(400);
      expect(reply.json['message']).to.match(/^validation failed: /);
    });
  });

  describe('cluster templates', () => {
    it('keep parameters and node sets, hide nothing of theirs from tenants but secrets', async () => {
      const body = {
        id: 'osac.templates.with_secret',
        node_sets: { w: { host_type: { id: 'fc430' }, size: 1 } },
        spec_defaults: { pull_secret: 'SENTINEL-TEMPLATE', ssh_public_key: 'default-key' },
      };
      const created = await admin('POST', `${PRIVATE}/cluster_templates`, body);
      expect(created.json['spec_defaults'], created.text).to.deep.equal({
        pull_secret: '***',
        ssh_public_key: 'default-key',
      });
      const read = await user('GET', `${PUBLIC}/cluster_templates/osac.templates.with_secret`);
      expect(read.json['spec_defaults']).to.deep.equal({ ssh_public_key: 'default-key' });
      const ordered = await user('POST', `${PUBLIC}/clusters`, {
        metadata: { name: 'from-secret' },
        spec: { template: { name: 'with-secret' } },
      });
      expect(ordered.json['spec'], ordered.text).to.include({
        pull_secret: '***',
        ssh_public_key: 'default-key',
      });
      expect(created.text + read.text + ordered.text).not.to.contain('SENTINEL');
    });

    it('are protected while a cluster was ordered by them', async () => {
      await user('POST', `${PUBLIC}/clusters`, {
        metadata: { name: 'holds-template' },
        spec: { template: { id: 'osac.templates.small' } },
      });
      const reply = await admin('DELETE', `${PRIVATE}/cluster_templates/osac.templates.small`);
      expect(reply.status).to.equal(400);
      expect(reply.json).to.include({ code: 9 });
    });
  });

  describe('cluster versions', () => {
    it('get a generated id, a derived name, defaults; tenants do not see the image', async () => {
      const created = await admin('POST', `${PRIVATE}/cluster_versions`, {
        id: 'ignored',
        spec: { version: '4.19.0', image: 'quay.example/r:4.19' },
      });
      expect(created.json['id'], created.text).to.match(/^[0-9a-f-]{36}$/);
      expect(textAt(created.json, 'metadata', 'name')).to.match(/^4-19-0-[0-9a-f]{4}$/);
      expect(created.json['spec']).to.deep.equal({
        image: 'quay.example/r:4.19',
        enabled: true,
        state: 'CLUSTER_VERSION_STATE_ACTIVE',
        version: '4.19.0',
      });
      const read = await user('GET', `${PUBLIC}/cluster_versions/${textAt(created.json, 'id')}`);
      expect(read.json['spec']).not.to.have.property('image');
      const again = await admin('POST', `${PRIVATE}/cluster_versions`, {
        metadata: { name: 'other-name' },
        spec: { version: '4.19.0', image: 'x' },
      });
      expect(again.status).to.equal(409);
    });

    it('have one default: setting it clears the one before, on create and on update', async () => {
      const defaults = async (): Promise<string[]> =>
        itemsOf(await admin('GET', `${PRIVATE}/cluster_versions`))
          .filter((version) => (version['spec'] as { is_default?: boolean }).is_default === true)
          .map((version) => textAt(version, 'spec', 'version'));
      expect(await defaults()).to.deep.equal(['4.17.0']);
      const created = await admin('POST', `${PRIVATE}/cluster_versions`, {
        spec: { version: '4.20.0', image: 'i', is_default: true },
      });
      expect(created.status, created.text).to.equal(200);
      expect(await defaults()).to.deep.equal(['4.20.0']);
      const first = itemsOf(await admin('GET', `${PRIVATE}/cluster_versions`))[0];
      const changed = await admin('PATCH', `${PRIVATE}/cluster_versions/${textAt(first, 'id')}`, {
        spec: { is_default: true },
      });
      expect(changed.status, changed.text).to.equal(200);
      expect(await defaults()).to.deep.equal([textAt(first, 'spec', 'version')]);
    });

    it('keep their default when the one that was to take its place is refused', async () => {
      const versions = () => admin('GET', `${PRIVATE}/cluster_versions`);
      const before = await versions();
      const [first = {}] = itemsOf(before);
      const spec = { version: '4.21.0', image: 'i', is_default: true };
      const refusals = [
        admin('POST', `${PRIVATE}/cluster_versions`, {
          metadata: { name: textAt(first, 'metadata', 'name') },
          spec,
        }),
        admin('POST', `${PRIVATE}/cluster_versions`, {
          spec: { ...spec, version: textAt(itemsOf(before)[1] ?? {}, 'spec', 'version') },
        }),
        admin('POST', `${PRIVATE}/cluster_versions`, { spec: { ...spec, enabled: false } }),
      ];
      for (const reply of await Promise.all(refusals))
        expect(reply.status, reply.text).to.be.oneOf([400, 409]);
      expect((await versions()).text).to.equal(before.text);
    });

    it('have one default even when many are made the default at once', async () => {
      const create = (patch: number) =>
        admin('POST', `${PRIVATE}/cluster_versions`, {
          spec: { version: `6.0.${patch}`, image: 'i', is_default: true },
        });
      const replies = await Promise.all([1, 2, 3, 4, 5].map(create));
      for (const reply of replies) {
        expect(reply.status, reply.text).to.be.oneOf([200, 400]);
        if (reply.status === 400) expect(reply.json['message']).to.match(/at the same time/);
      }
      const marked = itemsOf(await admin('GET', `${PRIVATE}/cluster_versions`)).filter(
        (version) => (version['spec'] as { is_default?: boolean }).is_default === true,
      );
      expect(marked).to.have.length(1);
    });

    it('refuse another image and version later, and a default that nobody may use', async () => {
      const created = await admin('POST', `${PRIVATE}/cluster_versions`, {
        spec: { version: '5.0.0', image: 'i' },
      });
      const path = `${PRIVATE}/cluster_versions/${textAt(created.json, 'id')}`;
      for (const spec of [{ image: 'j' }, { version: '5.0.1' }]) {
        const reply = await admin('PATCH', path, { spec });
        expect(reply.status).to.equal(400);
        expect(reply.json['message']).to.match(/^field 'spec\.(image|version)' is immutable$/);
      }
      const off = await admin('PATCH', path, { spec: { enabled: false, is_default: true } });
      expect(off.status).to.equal(400);
      const obsolete = await admin('PATCH', path, { spec: { state: 'CLUSTER_VERSION_STATE_OBSOLETE' } });
      expect(textAt(obsolete.json, 'spec', 'deprecation', 'obsolescence_timestamp')).to.match(/Z$/);
      const order = await user('POST', `${PUBLIC}/clusters`, {
        metadata: { name: 'obsolete' },
        spec: { template: { id: 'osac.templates.big' }, version: { id: textAt(created.json, 'id') } },
      });
      expect(order.status).to.equal(400);
      expect(order.json['message']).to.match(/obsolete/);
    });
  });

  describe('hubs', () => {
    it('exist on the private surface only and never show their kubeconfig', async () => {
      const kubeconfig = Buffer.from('SENTINEL-KUBECONFIG').toString('base64');
      const created = await admin('POST', `${PRIVATE}/hubs`, {
        id: 'hub-1',
        spec: {
          kubeconfig,
          namespace: 'osac',
          zone: 'east',
          capacity: { control_planes: 4, nodes: { fc430: 8 } },
        },
      });
      expect(created.json['spec'], created.text).to.deep.equal({
        namespace: 'osac',
        zone: 'east',
        capacity: { control_planes: 4, nodes: { fc430: 8 } },
      });
      expect(created.json['status']).to.deep.include({ adapter: 'kubernetes' });
      const listed = await admin('GET', `${PRIVATE}/hubs`);
      expect(created.text + listed.text).not.to.match(/kubeconfig|U0VOVElO/);
      expect([...service.secrets.values.values()].map(String)).to.include('SENTINEL-KUBECONFIG');
      expect((await admin('GET', `${PUBLIC}/hubs`)).json).to.deep.equal({ code: 5, message: 'Not Found' });
      const moved = await admin('PATCH', `${PRIVATE}/hubs/hub-1`, { spec: { zone: 'west' } });
      expect(moved.json['spec'], moved.text).to.deep.include({ zone: 'west', namespace: 'osac' });
    });

    it('stay while a cluster holds capacity there, whatever the read models know; then take nothing more', async () => {
      await admin('POST', `${PRIVATE}/hubs`, { id: 'hub-2', spec: { namespace: 'osac' } });
      let commands = 0;
      const capacity = (command: HubCapacityCommand) =>
        service.runner.execute(hubCapacity, 'hub-2', command, commandContext(`capacity-${(commands += 1)}`));
      const at = new Date().toISOString();
      const claim = { controlPlanes: 1, nodes: {} };
      await capacity({ type: 'ReserveCapacity', at, holder: { kind: 'cluster', id: 'c1' }, claim });
      const refused = await admin('DELETE', `${PRIVATE}/hubs/hub-2`);
      expect(refused.status, refused.text).to.equal(400);
      expect(refused.json['message']).to.match(/cannot delete hub '.*': it is in use/);
      expect((await admin('GET', `${PRIVATE}/hubs/hub-2`)).status).to.equal(200);
      await capacity({ type: 'ReleaseCapacity', at, holder: { kind: 'cluster', id: 'c1' } });
      // As after a crash between closing and deregistering.
      await capacity({ type: 'CloseCapacity', at, hub: 'hub-2', hubRevision: 0 });
      const gone = await admin('DELETE', `${PRIVATE}/hubs/hub-2`);
      expect(gone.status, gone.text).to.equal(200);
      const late = await capacity({
        type: 'ReserveCapacity',
        at,
        holder: { kind: 'cluster', id: 'c2' },
        claim,
      });
      expect(late).to.deep.include({ outcome: 'rejected' });
    });

    for (const [what, spec, field] of [
      ['an unknown mode', { mode: 'magic' }, 'spec.mode'],
      ['an unknown step', { steps: { dance: 'hub' } }, 'spec.steps.dance'],
      ['a negative capacity', { capacity: { control_planes: -1 } }, 'spec.capacity.control_planes'],
      ['a kubeconfig that is not base64', { kubeconfig: '%%%' }, 'spec.kubeconfig'],
    ] as const)
      it(`refuse ${what}`, async () => {
        const reply = await admin('POST', `${PRIVATE}/hubs`, { id: 'bad-hub', spec });
        expect(reply.status, reply.text).to.equal(400);
        expect(reply.text).to.contain(field);
      });
  });

  describe('tenants', () => {
    it('are their own name and show break-glass credentials once', async () => {
      const body = { metadata: { name: 'acme' }, spec: { domains: ['acme.example'] } };
      const key = { 'idempotency-key': '"onboard acme"' };
      const created = await admin('POST', `${PRIVATE}/tenants`, body, key);
      expect(created.json, created.text).to.deep.include({ id: 'acme', spec: { domains: ['acme.example'] } });
      expect(created.json['metadata']).to.include({ tenant: 'acme', name: 'acme', creator: ROOT });
      const shown = created.json['status']?.['break_glass_credentials'];
      expect(textAt(shown, 'username')).to.equal('acme-osac-break-glass');
      const password = textAt(shown, 'password');
      expect(password).to.match(/^[A-Za-z0-9]{24}$/);
      expect([...service.secrets.values.values()].map(String)).to.include(password);
      const replayed = await admin('POST', `${PRIVATE}/tenants`, body, key);
      expect(replayed.status).to.equal(200);
      expect(replayed.json['id']).to.equal('acme');
      for (const reply of [
        replayed,
        await admin('GET', `${PRIVATE}/tenants/acme`),
        await admin('GET', `${PRIVATE}/tenants`),
      ])
        expect(reply.text).not.to.contain(password).and.not.to.contain('break_glass');
    });

    it('refuse another id, another owner, taken domains and built-in names', async () => {
      const refuse = async (body: object, status: number, message: RegExp): Promise<void> => {
        const reply = await admin('POST', `${PRIVATE}/tenants`, body);
        expect(reply.status, reply.text).to.equal(status);
        expect(reply.json['message']).to.match(message);
      };
      await refuse({ id: 'x', metadata: { name: 'y1' } }, 400, /must equal its name 'y1'/);
      await refuse({ metadata: { name: 'y1', tenant: 'z1' } }, 400, /must equal its name 'y1'/);
      await refuse({ metadata: { name: 't2' } }, 409, /^tenant 't2' already exists$/);
      await refuse({ metadata: { name: 'shared' } }, 409, /^tenant 'shared' already exists$/);
      await refuse({ metadata: { name: 'y1' }, spec: { domains: ['T1.example'] } }, 409, /t1\.example/i);
      await refuse({ metadata: { name: 'y1' }, spec: { domains: ['127.0.0.1'] } }, 400, /not an IP address/);
      await refuse({ metadata: { name: 'Y1' } }, 400, /^validation failed/);
    });

    it('can be listed publicly by admins; writes are declared there but not implemented', async () => {
      expect((await admin('GET', `${PUBLIC}/tenants`)).status).to.equal(200);
      const create = await admin('POST', `${PUBLIC}/tenants`, { metadata: { name: 'z9' } });
      expect(create.status).to.equal(501);
      expect(create.json['code']).to.equal(12);
      expect((await user('GET', `${PUBLIC}/tenants`)).status).to.equal(403);
      for (const [verb, path] of [
        ['POST', 'tenants'],
        ['PATCH', 'tenants/t1'],
        ['DELETE', 'tenants/t1'],
      ] as const) {
        const body = verb === 'DELETE' ? undefined : {};
        expect((await user(verb, `${PUBLIC}/${path}`, body)).status, verb).to.equal(403);
        expect((await callerOf(service)(verb, `${PUBLIC}/${path}`, body)).status, verb).to.equal(401);
      }
    });

    it('stay while they own something', async () => {
      await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'leaving' } });
      await admin('POST', `${PRIVATE}/host_types`, {
        id: 'theirs',
        metadata: { name: 'theirs', tenant: 'leaving' },
      });
      const held = await admin('DELETE', `${PRIVATE}/tenants/leaving`);
      expect(held.status).to.equal(400);
      expect(held.json).to.include({
        code: 9,
        message:
          "tenant 'leaving' cannot be deleted because it still has objects of kind host type: 'theirs'",
      });
      await admin('DELETE', `${PRIVATE}/host_types/theirs`);
      expect((await admin('DELETE', `${PRIVATE}/tenants/leaving`)).text).to.equal('{}');
    });

    it('may change their domains; the given up ones are free', async () => {
      await admin('POST', `${PRIVATE}/tenants`, {
        metadata: { name: 'mv1' },
        spec: { domains: ['mv.example'] },
      });
      const moved = await admin('PATCH', `${PRIVATE}/tenants/mv1`, { spec: { domains: ['mv2.example'] } });
      expect(moved.status, moved.text).to.equal(200);
      const other = await admin('POST', `${PRIVATE}/tenants`, {
        metadata: { name: 'mv2' },
        spec: { domains: ['mv.example'] },
      });
      expect(other.status, other.text).to.equal(200);
    });
  });

  it('an admin puts an object into the tenant it names, if there is one', async () => {
    const good = await admin('POST', `${PRIVATE}/host_types`, {
      id: 'of-t1',
      metadata: { tenant: 't1', name: 'of-t1' },
    });
    expect(textAt(good.json, 'metadata', 'tenant')).to.equal('t1');
    const bad = await admin('POST', `${PRIVATE}/host_types`, {
      id: 'x9',
      metadata: { tenant: 'nope', name: 'x9' },
    });
    expect(bad.status).to.equal(400);
    expect(bad.json['message']).to.equal("tenant 'nope' doesn't exist");
  });

  it('capabilities name the trusted issuers, without a token on the public surface', async () => {
    const anonymous = callerOf(service);
    const reply = await anonymous('GET', `${PUBLIC}/capabilities`);
    expect(reply.json).to.deep.equal({
      authn: { trusted_token_issuers: ['https://sso.example/realms/osac'] },
    });
    expect((await anonymous('GET', `${PRIVATE}/capabilities`)).status).to.equal(401);
    expect((await user('GET', `${PRIVATE}/capabilities`)).status).to.equal(403);
    expect((await admin('GET', `${PRIVATE}/capabilities`)).status).to.equal(200);
  });
});
