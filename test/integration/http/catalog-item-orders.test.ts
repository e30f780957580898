import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  itemsOf,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { ITEMS, SMALL, refused, startCatalogueItems, type CatalogueItems } from './catalogue-items.ts';

const GOOGLE = 'type.googleapis.com/google.protobuf.';

describe('cluster catalogue items over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let made: CatalogueItems['made'];
  let order: CatalogueItems['order'];

  before(async () => {
    ({ service, admin, user, made, order } = await startCatalogueItems());
  });
  after(() => service.close());

  describe('orders', () => {
    it('follow the recorded exchange', async () => {
      const { id, name: itemName } = await made({
        field_definitions: [
          { path: 'node_sets', display_name: 'Node sets', editable: true },
          { path: 'ssh_public_key', display_name: 'Key', editable: true, default: 'ssh-ed25519 AAAA' },
          { path: 'version', editable: true },
        ],
      });
      refused(await order({ catalog_item: { name: itemName } }), 400, /^field 'node_sets' is required/);
      const versions = await user('GET', `${PUBLIC}/cluster_versions`);
      const version = { name: textAt(itemsOf(versions)[0], 'metadata', 'name') };
      const reply = await order({
        catalog_item: { name: itemName },
        node_sets: { workers: { size: 4 } },
        version,
      });
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.json['spec']).to.deep.include({
        template: { id: 'osac.templates.small', name: 'small' },
        template_parameters: { flavour: { '@type': `${GOOGLE}StringValue`, value: 'plain' } },
        node_sets: { workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 4 } },
        ssh_public_key: 'ssh-ed25519 AAAA',
        catalog_item: { id, name: itemName },
      });
      const path = `${PUBLIC}/clusters/${textAt(reply.json, 'id')}`;
      expect((await user('GET', path)).json).to.deep.equal(reply.json);
      const { id: another } = await made();
      refused(
        await user('PATCH', path, { spec: { catalog_item: { id: another } } }),
        400,
        "'spec.catalog_item' is immutable",
      );
      refused(
        await user('PATCH', path, { spec: { catalog_item: null } }),
        400,
        "'spec.catalog_item' is immutable",
      );
      expect((await user('PATCH', path, reply.json)).json['metadata']).to.deep.equal(reply.json['metadata']);
    });

    it('record the item, its template and the revision of both', async () => {
      const { id, name: itemName } = await made();
      await admin('PATCH', `${PRIVATE}/${ITEMS}/${id}`, { description: 'second' });
      const reply = await order({ catalog_item: { id } });
      const stream = `cluster-${textAt(reply.json, 'id')}`;
      for await (const event of service.store.readStream(stream)) {
        const data = event.data as { readonly catalogItem: object };
        expect(data.catalogItem).to.deep.equal({ id, name: itemName, revision: 1 });
        break;
      }
    });

    it('hold to what the item allows', async () => {
      const { id } = await made({
        field_definitions: [
          { path: 'node_sets.workers.size', editable: true, validation_schema: '{"maximum":5,"minimum":2}' },
          { path: 'network.pod_cidr', default: '10.132.0.0/14' },
        ],
      });
      const spec = (more: object): object => ({ catalog_item: { id }, ...more });
      refused(
        await order(spec({ node_sets: { workers: { size: 6 } } })),
        400,
        "validation failed for field 'node_sets.workers.size': must be at most 5",
      );
      refused(
        await order(spec({ node_sets: { workers: { size: 3 } }, ssh_public_key: 'x' })),
        400,
        /^fields not allowed by catalog item '.*': ssh_public_key$/,
      );
      refused(
        await order(spec({ node_sets: { workers: { size: 3 } }, network: { pod_cidr: '10.0.0.0/14' } })),
        400,
        "'network.pod_cidr' is not editable",
      );
      refused(await order(spec({ template: SMALL })), 400, 'not both');
      const reply = await order(spec({ node_sets: { workers: { size: 3 } } }));
      expect(reply.json, reply.text).to.have.nested.property('spec.network.pod_cidr', '10.132.0.0/14');
    });

    it('never repeat a secret that a schema refuses', async () => {
      const { id } = await made({
        field_definitions: [{ path: 'pull_secret', editable: true, validation_schema: '{"pattern":"^[{]"}' }],
      });
      const reply = await order({ catalog_item: { id }, pull_secret: 'CANARY-VALUE' });
      refused(reply, 400, "validation failed for field 'pull_secret': must match the pattern '^[{]'");
      expect(reply.text).to.not.contain('CANARY');
      const good = await order({ catalog_item: { id }, pull_secret: '{"auths":{}}' });
      expect(good.json, good.text).to.have.nested.property('spec.pull_secret', '***');
    });

    it('protect the item, and the item its template', async () => {
      const template = {
        id: 'osac.templates.kept',
        title: 'Kept',
        node_sets: { w: { host_type: { id: 'gpu' }, size: 1 } },
      };
      await admin('POST', `${PRIVATE}/cluster_templates`, template);
      const { id } = await made({ template: { id: template.id } });
      refused(await admin('DELETE', `${PRIVATE}/cluster_templates/${template.id}`), 400, 'in use');
      const reply = await order({ catalog_item: { id } });
      refused(await admin('DELETE', `${PRIVATE}/${ITEMS}/${id}`), 400, 'in use');
      await user('DELETE', `${PUBLIC}/clusters/${textAt(reply.json, 'id')}`);
      expect((await admin('DELETE', `${PRIVATE}/${ITEMS}/${id}`)).text).to.equal('{}');
      refused(await order({ catalog_item: { id } }), 400, 'object.spec.catalog_item: ClusterCatalogItem');
    });

    it('name all unknown references at once', async () => {
      const reply = await order({
        catalog_item: { name: 'none' },
        version: { name: 'none' },
        pull_secret_secret: { name: 'none' },
      });
      expect(reply.json['message']).to.equal(
        'reference validation failed: object.spec.version: ClusterVersion "none" not found; ' +
          'object.spec.catalog_item: ClusterCatalogItem "none" not found; ' +
          'object.spec.pull_secret_secret: Secret "none" not found',
      );
      const details = reply.json['details'] as unknown as { field_violations: object[] }[];
      expect(details[0]?.field_violations).to.have.lengthOf(3);
    });
  });
});
