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
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

const IMAGES = `${PUBLIC}/disk_images`;
const SHARED_IMAGES = `${PRIVATE}/disk_images`;
const TYPES = `${PRIVATE}/instance_types`;
const SPEC = {
  source_type: 'SOURCE_TYPE_REGISTRY',
  source_ref: 'registry.example/rhel:9',
  architecture: ['ARCHITECTURE_AMD64'],
};

describe('what compute instances are made of, over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  let serial = 0;

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
  });
  after(() => service.close());

  const name = (): string => `x-${(serial += 1)}`;
  const ok = (reply: Reply): Reply => {
    expect(reply.status, reply.text).to.equal(200);
    return reply;
  };
  const refused = (reply: Reply, status: number, message: string): void => {
    expect(reply.status, reply.text).to.equal(status);
    expect(reply.json['message']).to.contain(message);
  };
  const image = async (): Promise<{ id: string; reply: Reply }> => {
    const reply = ok(await user('POST', IMAGES, { metadata: { name: name() }, spec: SPEC }));
    return { id: textAt(reply.json, 'id'), reply };
  };

  describe('disk images', () => {
    it('belong to the tenant that makes them, and have no status', async () => {
      const { id, reply } = await image();
      expect(reply.json['metadata']).to.include({ tenant: 't1' });
      expect(reply.json['spec']).to.deep.equal({
        ...SPEC,
        guest_os_family: 'GUEST_OS_FAMILY_LINUX',
        lifecycle: 'DISK_IMAGE_LIFECYCLE_AVAILABLE',
      });
      expect(reply.json).to.not.have.property('status');
      expect((await user('GET', `${IMAGES}/${id}`)).json).to.deep.equal(reply.json);
      refused(await other('GET', `${IMAGES}/${id}`), 404, `'${id}' not found`);
    });

    it('say everything that is wrong with them, as recorded', async () => {
      const spec = { source_type: 7, source_ref: '' };
      const reply = await user('POST', IMAGES, { metadata: { name: 'img2' }, spec });
      refused(reply, 400, 'validation failed: validation errors:\n - object.spec.source_type: ');
      refused(reply, 400, '\n - object.spec.source_ref: must be at least 1 characters');
      refused(reply, 400, '\n - object.spec.architecture: must contain at least 1 item(s)');
      const unknown = { metadata: { name: 'img2' }, spec: { source_type: 'NOPE' } };
      refused(await user('POST', IMAGES, unknown), 400, 'spec.source_type');
      refused(
        await user('POST', IMAGES, { metadata: { name: 'img2' } }),
        400,
        'object.spec.source_type: is required',
      );
    });

    it('have one name in a tenant, and the same name in another', async () => {
      const { reply } = await image();
      const same = { metadata: { name: textAt(reply.json, 'metadata', 'name') }, spec: SPEC };
      refused(await user('POST', IMAGES, same), 409, 'already exists');
      ok(await other('POST', IMAGES, same));
      ok(await admin('POST', SHARED_IMAGES, same));
    });

    it('change labels, architecture and lifecycle; nothing they were made from', async () => {
      const { id } = await image();
      const path = `${IMAGES}/${id}`;
      const labelled = ok(await user('PATCH', path, { metadata: { labels: { os: 'rhel' } } }));
      expect(labelled.json['metadata']).to.deep.include({ labels: { os: 'rhel' }, version: 1 });
      const both = ['ARCHITECTURE_AMD64', 'ARCHITECTURE_ARM64'];
      const widened = ok(await user('PATCH', path, { spec: { architecture: both } }));
      expect(widened.json).to.have.nested.property('spec.architecture').that.deep.equals(both);
      for (const spec of [
        { source_ref: 'registry.example/rhel:10' },
        { guest_os_family: 'GUEST_OS_FAMILY_WINDOWS' },
      ])
        refused(await user('PATCH', path, { spec }), 400, 'is immutable');
    });

    it('are stamped when they grow old, and hidden from public lists when obsolete', async () => {
      const { id } = await image();
      const path = `${IMAGES}/${id}`;
      const set = async (lifecycle: string): Promise<Reply> =>
        ok(await user('PATCH', path, { spec: { lifecycle: `DISK_IMAGE_LIFECYCLE_${lifecycle}` } }));
      const deprecated = await set('DEPRECATED');
      expect(textAt(deprecated.json, 'spec', 'deprecation', 'deprecation_timestamp')).to.match(/Z$/);
      const obsolete = await set('OBSOLETE');
      expect(textAt(obsolete.json, 'spec', 'deprecation', 'deprecation_timestamp')).to.equal(
        textAt(deprecated.json, 'spec', 'deprecation', 'deprecation_timestamp'),
      );
      const listed = async (path_: string): Promise<unknown[]> =>
        itemsOf(ok(await user('GET', path_))).map((shown) => shown['id']);
      expect(await listed(`${IMAGES}?limit=1000`)).to.not.include(id);
      expect(
        await listed(`${IMAGES}?limit=1000&filter=${encodeURIComponent('this.spec.lifecycle == 3')}`),
      ).to.include(id);
      expect((await user('GET', path)).status).to.equal(200);
      expect((await set('AVAILABLE')).json['spec']).to.not.have.property('deprecation');
    });

    it('of shared may be used by everybody and changed by nobody', async () => {
      const made = ok(
        await admin('POST', SHARED_IMAGES, { metadata: { name: name(), tenant: 'shared' }, spec: SPEC }),
      );
      const path = `${IMAGES}/${textAt(made.json, 'id')}`;
      ok(await user('GET', path));
      refused(
        await user('PATCH', path, { metadata: { labels: { a: 'b' } } }),
        403,
        "objects of tenant 'shared' are read-only for tenants",
      );
      refused(await user('DELETE', path), 403, "objects of tenant 'shared' are read-only for tenants");
      ok(await user('GET', path));
      const { id } = await image();
      expect((await user('DELETE', `${IMAGES}/${id}`)).text).to.equal('{}');
    });
  });

  describe('instance types', () => {
    const type = async (spec: object = {}): Promise<string> => {
      const wanted = name();
      ok(
        await admin('POST', TYPES, {
          id: wanted,
          metadata: { name: wanted },
          spec: { cores: 4, memory_gib: 16, ...spec },
        }),
      );
      return wanted;
    };

    it('are shared, active, and called by their name', async () => {
      const reply = ok(
        await admin('POST', TYPES, { metadata: { name: 'm4' }, spec: { cores: 4, memory_gib: 16 } }),
      );
      expect(reply.json).to.deep.include({
        id: 'm4',
        spec: { cores: 4, memory_gib: 16, state: 'INSTANCE_TYPE_STATE_ACTIVE' },
      });
      expect(reply.json['metadata']).to.include({ name: 'm4', tenant: 'shared' });
      const sentId = await admin('POST', TYPES, {
        id: 'other',
        metadata: { name: 'm8' },
        spec: { cores: 1, memory_gib: 1 },
      });
      expect(sentId.json, sentId.text).to.include({ id: 'm8' });
      const again = await admin('POST', TYPES, {
        metadata: { name: 'm4' },
        spec: { cores: 1, memory_gib: 1 },
      });
      refused(again, 409, "instance type 'm4' already exists");
      refused(
        await admin('POST', TYPES, {
          metadata: { name: 'm5', tenant: 't1' },
          spec: { cores: 1, memory_gib: 1 },
        }),
        400,
        "belong to tenant 'shared'",
      );
      const post = { metadata: { name: 'm6' }, spec: { cores: 1, memory_gib: 1 } };
      refused(await user('POST', `${PUBLIC}/instance_types`, post), 403, 'permission denied');
    });

    it('keep their size, and say so', async () => {
      const id = await type({
        gpu: { pci_device_selector: '10DE:2331', resource_name: 'nvidia.com/H100', count: 1 },
      });
      refused(
        await admin('PATCH', `${TYPES}/${id}`, { spec: { cores: 3 } }),
        400,
        "field 'spec.cores' is immutable",
      );
      refused(
        await admin('PATCH', `${TYPES}/${id}`, { spec: { gpu: { count: 2 } } }),
        400,
        "'spec.gpu' is immutable",
      );
      refused(
        await admin('POST', TYPES, { metadata: { name: 'm7' }, spec: { memory_gib: 1 } }),
        400,
        "'spec.cores' must be greater",
      );
      const described = ok(await admin('PATCH', `${TYPES}/${id}`, { spec: { description: 'Large' } }));
      expect(described.json).to.have.nested.property('spec.description', 'Large');
    });

    it('grow old with a replacement, and leave public lists when obsolete', async () => {
      const id = await type();
      const replacement = await type();
      const path = `${TYPES}/${id}`;
      refused(
        await admin('PATCH', path, { spec: { deprecation: { replacement: { name: 'none' } } } }),
        400,
        'InstanceType "none" not found',
      );
      const deprecated = ok(
        await admin('PATCH', path, {
          spec: {
            state: 'INSTANCE_TYPE_STATE_DEPRECATED',
            deprecation: { replacement: { name: replacement } },
          },
        }),
      );
      expect(deprecated.json).to.have.nested.property('spec.deprecation.replacement').that.deep.equals({
        id: replacement,
        name: replacement,
      });
      refused(await admin('DELETE', `${TYPES}/${replacement}`), 400, 'in use');
      ok(await admin('PATCH', path, { spec: { state: 'INSTANCE_TYPE_STATE_OBSOLETE' } }));
      const listed = itemsOf(ok(await user('GET', `${PUBLIC}/instance_types?limit=1000`))).map(
        (shown) => shown['id'],
      );
      expect(listed).to.include(replacement).and.to.not.include(id);
      ok(await user('GET', `${PUBLIC}/instance_types/${id}`));
      const active = ok(await admin('PATCH', path, { spec: { state: 'INSTANCE_TYPE_STATE_ACTIVE' } }));
      expect(active.json)
        .to.have.nested.property('spec.deprecation')
        .that.includes.keys('deprecation_timestamp', 'obsolescence_timestamp');
    });
  });
});
