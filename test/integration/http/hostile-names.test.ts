import { expect } from 'chai';
import { INHERITED_NAMES } from '../../support/arbitraries/hostile-names.ts';
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

const CLUSTERS = `${PUBLIC}/clusters`;
const SPEC = { template: { id: 'osac.templates.small' } };

describe('names that every object inherits, over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let serial = 0;
  const name = (): string => `n-${(serial += 1)}`;

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  });
  after(() => service.close());

  const order = async (): Promise<string> => {
    const reply = await user('POST', CLUSTERS, { metadata: { name: name() }, spec: SPEC });
    expect(reply.status, reply.text).to.equal(200);
    return `${CLUSTERS}/${textAt(reply.json, 'id')}`;
  };

  it('constructor as the name of a tenant', async () => {
    const made = await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'constructor' } });
    expect(made.status, made.text).to.equal(200);
    const own = callerOf(service, await service.token({ user: 'carl', tenants: ['constructor'] }));
    const ordered = await own('POST', CLUSTERS, { metadata: { name: name() }, spec: SPEC });
    expect(ordered.status, ordered.text).to.equal(200);
    expect(ordered.json['metadata']?.['tenant']).to.equal('constructor');
    expect((await user('GET', `${CLUSTERS}/${textAt(ordered.json, 'id')}`)).status).to.equal(404);
  });

  for (const key of INHERITED_NAMES) {
    it(`${key} as the id of a cluster`, async () => {
      const ordered = await user('POST', CLUSTERS, { id: key, metadata: { name: name() }, spec: SPEC });
      expect(ordered.status, ordered.text).to.equal(200);
      expect((await user('GET', `${CLUSTERS}/${key}`)).json['id']).to.equal(key);
      expect((await user('DELETE', `${CLUSTERS}/${key}`)).status).to.equal(200);
    });

    it(`${key} as a node set: unknown to the template, new to a cluster`, async () => {
      const sets = `{"${key}":{"size":2,"host_type":{"id":"fc430"}}}`;
      const spec = `{"template":{"id":"osac.templates.small"},"node_sets":${sets}}`;
      const refused = await user('POST', CLUSTERS, `{"metadata":{"name":"${name()}"},"spec":${spec}}`);
      expect(refused.status, refused.text).to.equal(400);
      expect(refused.json['message']).to.contain(`node set '${key}' doesn't exist`);
      const path = await order();
      const nameless = await user('PATCH', path, `{"spec":{"node_sets":{"${key}":{"size":2}}}}`);
      expect(nameless.status, nameless.text).to.equal(400);
      expect(nameless.json['message']).to.match(/host_type for new node set/);
      const added = await user(
        'PATCH',
        path,
        `{"spec":{"node_sets":{"workers":{"size":3},${sets.slice(1)}}}`,
      );
      // An underscore begins what metering names a control plane.
      if (key.startsWith('_')) {
        expect(added.status, added.text).to.equal(400);
        expect(added.json['message']).to.contain(`node set '${key}' needs another name`);
        return;
      }
      expect(added.status, added.text).to.equal(200);
      expect(added.text).to.contain(`"${key}":{"host_type":{"id":"fc430","name":"fc430"},"size":2}`);
      expect((await user('GET', path)).text).to.equal(added.text);
    });

    it(`${key} as a segment of an update mask and as a label`, async () => {
      const path = await order();
      const labels = { metadata: { labels: { a: 'b' } } };
      const nothing = await user('PATCH', `${path}?update_mask=metadata.labels.${key}`, labels);
      if (key === '__proto__') expect(nothing.status).to.equal(400);
      else expect(nothing.status, nothing.text).to.equal(200);
      expect((await user('GET', path)).json['metadata']?.['labels']).to.equal(undefined);
      const sent = await user('PATCH', path, `{"metadata":{"labels":{"${key}":"x"}}}`);
      // A label is written small, and begins and ends with a letter or a digit.
      if (key !== 'constructor') expect(sent.status).to.equal(400);
      else expect(sent.text).to.contain(`"labels":{"${key}":"x"}`);
      for (const mask of [key, `spec.${key}`, `spec.node_sets.${key}.${key}`]) {
        const masked = await user('PATCH', `${path}?update_mask=${mask}`, { spec: {} });
        expect(masked.status, `${mask} ${masked.text}`).to.equal(400);
      }
    });

    it(`${key} as the id of a host type, a template and a parameter`, async () => {
      const type = 'type.googleapis.com/google.protobuf.StringValue';
      const made = await admin('POST', `${PRIVATE}/host_types`, { id: key, metadata: { name: name() } });
      expect(made.status, made.text).to.equal(200);
      const id = `osac.templates.${name().replace('-', '_')}`;
      const template = await admin('POST', `${PRIVATE}/cluster_templates`, {
        id,
        node_sets: { workers: { host_type: { id: key }, size: 1 } },
        parameters: [{ name: key, type, default: { '@type': type, value: 'd' } }],
      });
      expect(template.status, template.text).to.equal(200);
      const ordered = await user('POST', CLUSTERS, {
        metadata: { name: name() },
        spec: { template: { id } },
      });
      expect(ordered.status, ordered.text).to.equal(200);
      expect(ordered.text).to.contain(`"${key}":{"value":"d","@type":"${type}"}`);
      const odd = await user('POST', CLUSTERS, {
        metadata: { name: name() },
        spec: { template: { id: key } },
      });
      expect(odd.status, odd.text).to.equal(400);
    });
  }
});
