import { expect } from 'chai';
import type { SecretRef } from '../../../src/domain/secret-ref.ts';
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

const CLUSTERS = `${PUBLIC}/clusters`;
const SECRETS = `${PUBLIC}/secrets`;
const TEMPLATES = `${PRIVATE}/cluster_templates`;
const SMALL = { template: { id: 'osac.templates.small' } };
const encoded = (text: string): string => Buffer.from(text).toString('base64');

/** What orders and templates refer to besides each other: secrets and host types (OSAC). */
describe('references of orders and templates over HTTP', () => {
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

  const name = (): string => `r-${(serial += 1)}`;
  const ok = (reply: Reply): Reply => {
    expect(reply.status, reply.text).to.equal(200);
    return reply;
  };
  const refused = (reply: Reply, status: number, message: string): void => {
    expect(reply.status, reply.text).to.equal(status);
    expect(reply.json['message']).to.contain(message);
  };
  const secret = async (
    data: { readonly [key: string]: string },
    caller: Caller = user,
    path: string = SECRETS,
  ): Promise<{ id: string; name: string }> => {
    const wanted = name();
    const values = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, encoded(value)]));
    const reply = ok(await caller('POST', path, { metadata: { name: wanted }, data: values }));
    return { id: textAt(reply.json, 'id'), name: wanted };
  };
  const order = (spec: object, caller: Caller = user): Promise<Reply> =>
    caller('POST', CLUSTERS, { metadata: { name: name() }, spec });
  /** What a hub is given for an order, as the workflow reveals it. */
  const dispatched = async (cluster: string): Promise<string | undefined> => {
    let ref: SecretRef | undefined;
    for await (const { data } of service.store.readStream(`cluster-${cluster}`)) {
      const { pullSecret, spec } = data as { pullSecret?: SecretRef; spec?: { pullSecret?: SecretRef } };
      ref = spec === undefined ? (pullSecret ?? ref) : spec.pullSecret;
    }
    const value = ref === undefined ? undefined : await service.secrets.reveal(ref, ref.tenant ?? 't1');
    return value === undefined ? undefined : Buffer.from(value).toString('utf8');
  };

  describe('a pull secret that is an object', () => {
    it('is resolved, shown by id and name, and its value reaches the hub', async () => {
      const { id, name: secretName } = await secret({ '.dockerconfigjson': '{"auths":1}', other: 'x' });
      const reply = ok(await order({ ...SMALL, pull_secret_secret: { name: secretName } }));
      expect(reply.json)
        .to.have.nested.property('spec.pull_secret_secret')
        .that.deep.equals({ id, name: secretName });
      expect(reply.json).to.not.have.nested.property('spec.pull_secret');
      expect(await dispatched(textAt(reply.json, 'id'))).to.equal('{"auths":1}');
      refused(await user('DELETE', `${SECRETS}/${id}`), 400, 'in use');
    });

    it('must be there, in the own tenant, and hold a pull secret', async () => {
      const unknown = 'reference validation failed: object.spec.pull_secret_secret: Secret "';
      refused(
        await order({ ...SMALL, pull_secret_secret: { name: 'none' } }),
        400,
        `${unknown}none" not found`,
      );
      const { id } = await secret({ 'pull-secret': 'x' });
      refused(
        await order({ ...SMALL, pull_secret_secret: { id } }, other),
        400,
        `${unknown}${id}" not found`,
      );
      const empty = await secret({ token: 'x' });
      refused(await order({ ...SMALL, pull_secret_secret: { id: empty.id } }), 400, 'holds no pull secret');
      refused(await order({ ...SMALL, pull_secret: 'x', pull_secret_secret: { id } }), 400, 'not both');
    });

    it('can be exchanged, replaced by a value and removed', async () => {
      const first = await secret({ 'pull-secret': 'first' });
      const second = await secret({ pull_secret: 'second' });
      const created = ok(await order({ ...SMALL, pull_secret_secret: { id: first.id } }));
      const cluster = textAt(created.json, 'id');
      const patch = (spec: object): Promise<Reply> => user('PATCH', `${CLUSTERS}/${cluster}`, { spec });
      ok(await patch({ pull_secret_secret: { name: second.name } }));
      expect(await dispatched(cluster)).to.equal('second');
      expect((await user('DELETE', `${SECRETS}/${first.id}`)).text).to.equal('{}');
      refused(await patch({ pull_secret: 'value' }), 400, 'not both');
      const replaced = ok(await patch({ pull_secret: 'value', pull_secret_secret: null }));
      expect(replaced.json).to.have.nested.property('spec.pull_secret', '***');
      expect(replaced.json).to.not.have.nested.property('spec.pull_secret_secret');
      expect(await dispatched(cluster)).to.equal('value');
      refused(await patch({ pull_secret_secret: { id: second.id } }), 400, 'not both');
      ok(await patch({ pull_secret: null, pull_secret_secret: { id: second.id } }));
      expect(await dispatched(cluster)).to.equal('second');
      const removed = ok(await patch({ pull_secret_secret: null }));
      expect(removed.json).to.not.have.any.keys('pull_secret', 'pull_secret_secret');
      expect(await dispatched(cluster)).to.equal(undefined);
    });

    it('may be a template’s default, of the template’s tenant', async () => {
      const { id, name: secretName } = await secret({ 'pull-secret': 'theirs' }, admin, `${PRIVATE}/secrets`);
      const template = {
        id: `osac.templates.s${(serial += 1)}`,
        title: 'S',
        node_sets: { w: { host_type: { id: 'gpu' }, size: 1 } },
      };
      refused(
        await admin('POST', TEMPLATES, {
          ...template,
          spec_defaults: { pull_secret_secret: { name: 'none' } },
        }),
        400,
        'object.spec_defaults.pull_secret_secret: Secret "none" not found',
      );
      ok(
        await admin('POST', TEMPLATES, {
          ...template,
          spec_defaults: { pull_secret_secret: { name: secretName } },
        }),
      );
      const reply = ok(await order({ template: { id: template.id } }));
      expect(reply.json).to.have.nested.property('spec.pull_secret_secret.id', id);
      expect(await dispatched(textAt(reply.json, 'id'))).to.equal('theirs');
      const own = ok(await order({ template: { id: template.id }, pull_secret: 'mine' }));
      expect(await dispatched(textAt(own.json, 'id'))).to.equal('mine');
    });
  });

  describe('host types of templates', () => {
    it('must be there, and are filled in', async () => {
      const template = (hostType: object): object => ({
        id: `osac.templates.h${(serial += 1)}`,
        node_sets: { workers: { host_type: hostType, size: 1 } },
      });
      refused(
        await admin('POST', TEMPLATES, template({ id: 'none' })),
        400,
        'reference validation failed: object.node_sets.workers.host_type: HostType "none" not found',
      );
      const reply = ok(await admin('POST', TEMPLATES, template({ name: 'gpu' })));
      expect(reply.json)
        .to.have.nested.property('node_sets.workers.host_type')
        .that.deep.equals({ id: 'gpu', name: 'gpu' });
      const path = `${TEMPLATES}/${textAt(reply.json, 'id')}`;
      refused(
        await admin('PATCH', path, { node_sets: { more: { host_type: { id: 'none' }, size: 1 } } }),
        400,
        'object.node_sets.more.host_type',
      );
    });

    it('given by name alone protect the host type', async () => {
      const hostType = name();
      ok(await admin('POST', `${PRIVATE}/host_types`, { id: hostType, title: 'Kept' }));
      ok(
        await admin('POST', TEMPLATES, {
          id: `osac.templates.k${(serial += 1)}`,
          node_sets: { workers: { host_type: { name: hostType }, size: 1 } },
        }),
      );
      refused(await admin('DELETE', `${PRIVATE}/host_types/${hostType}`), 400, 'in use');
    });
  });

  describe('the publisher', () => {
    it('posts what is missing and patches what is there', async () => {
      const host = name();
      const template = {
        id: 'osac.templates.ocp_published',
        metadata: { name: 'ocp-published' },
        title: 'Published',
        node_sets: { workers: { host_type: { id: host }, size: 2 } },
      };
      const publish = async (
        collection: string,
        body: { readonly id: string; readonly title: string },
      ): Promise<Reply> => {
        const listed = ok(await admin('GET', `${PRIVATE}/${collection}`));
        const items = (listed.json['items'] ?? []) as unknown as { id: string }[];
        return items.some(({ id }) => id === body.id)
          ? admin('PATCH', `${PRIVATE}/${collection}/${body.id}`, body)
          : admin('POST', `${PRIVATE}/${collection}`, body);
      };
      for (const [title, version] of [
        ['Published', undefined],
        ['Published', undefined],
        ['Renamed', 1],
      ] as const) {
        ok(await publish('host_types', { id: host, title: 'Host' }));
        const reply = ok(await publish('cluster_templates', { ...template, title }));
        expect(reply.json).to.include({ title });
        expect((reply.json['metadata'] as { version?: number }).version).to.equal(version);
      }
    });
  });
});
