import { expect } from 'chai';
import { subjectIdOf } from '../../../src/app/log/identifiers.ts';
import { randomUUID } from 'node:crypto';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  ISSUER,
  itemsOf,
  textAt,
  type Caller,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { ITEMS, SMALL, refused, startCatalogueItems, type CatalogueItems } from './catalogue-items.ts';

/** What the admin of these specs makes bears the admin's own id, as what tenants make bears theirs. */
const ROOT = subjectIdOf('shared', ISSUER, 'root');

describe('cluster catalogue items over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let tenantAdmin: Caller;
  let name: CatalogueItems['name'];
  let item: CatalogueItems['item'];
  let made: CatalogueItems['made'];
  let order: CatalogueItems['order'];

  before(async () => {
    ({ service, admin, user, tenantAdmin, name, item, made, order } = await startCatalogueItems());
  });
  after(() => service.close());

  describe('create', () => {
    it('answers the item with its template resolved', async () => {
      const reply = await item({
        field_definitions: [
          { path: 'node_sets', display_name: 'Node sets', editable: true },
          { path: 'ssh_public_key', display_name: 'Key', editable: true, default: 'ssh-ed25519 AAAA' },
          { path: 'version', editable: true },
        ],
      });
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.json).to.deep.include({
        title: 'Small item',
        template: { id: 'osac.templates.small', name: 'small' },
        published: true,
        field_definitions: [
          { path: 'node_sets', display_name: 'Node sets', editable: true },
          { path: 'ssh_public_key', display_name: 'Key', editable: true, default: 'ssh-ed25519 AAAA' },
          { path: 'version', editable: true },
        ],
      });
      expect(reply.json['metadata']).to.include({ creator: ROOT, tenant: 'shared' });
      const read = await user('GET', `${PUBLIC}/${ITEMS}/${textAt(reply.json, 'id')}`);
      expect(read.json).to.deep.equal(reply.json);
    });

    it('refuses what no order could keep', async () => {
      const cases: [object, string][] = [
        [{ title: '' }, "field 'title' is required"],
        [{ template: { id: 'no-such' } }, 'object.template: ClusterTemplate "no-such" not found'],
        [{ template: undefined }, "field 'template' is required"],
        [{ field_definitions: [{ path: 'nope', editable: true }] }, "no field 'nope'"],
        [{ field_definitions: [{ path: 'ssh_public_key' }] }, 'needs a default'],
        [
          { field_definitions: [{ path: 'ssh_public_key', editable: true, validation_schema: '{' }] },
          'it is not JSON',
        ],
        [
          {
            field_definitions: [
              { path: 'ssh_public_key', editable: true, validation_schema: '{"pattern":"(?=a)"}' },
            ],
          },
          'is not a regular expression of RE2',
        ],
        [
          {
            field_definitions: [
              { path: 'ssh_public_key', editable: true, default: 5, validation_schema: '{"type":"number"}' },
            ],
          },
          'is not what the field takes',
        ],
        [
          {
            field_definitions: [
              {
                path: 'node_sets.workers.size',
                editable: true,
                default: 9,
                validation_schema: '{"maximum":5}',
              },
            ],
          },
          'does not fit its validation_schema: must be at most 5',
        ],
        [
          {
            field_definitions: [
              { path: 'node_sets.workers', editable: true, default: { hostType: { id: 'fc430' } } },
            ],
          },
          'must be written as clusters show it',
        ],
        [
          { field_definitions: [{ path: 'network.pod_cidr', default: 'wide' }] },
          "the defaults of this item cannot be ordered: field 'spec.network.pod_cidr' must be an IPv4 or IPv6 range",
        ],
        [
          { field_definitions: [{ path: 'node_sets.workers.host_type', default: { id: 'gpu' } }] },
          "host type for node set 'workers' should be empty or 'fc430'",
        ],
        [
          { field_definitions: [{ path: 'node_sets', editable: true, default: { none: { size: 1 } } }] },
          "node set 'none' doesn't exist",
        ],
        [
          { field_definitions: [{ path: 'template_parameters', editable: true, default: { flavour: 1 } }] },
          "type of parameter 'flavour'",
        ],
        [
          {
            field_definitions: ['ssh_public_key', 'network.pod_cidr'].map((path) => ({
              path,
              editable: true,
              validation_schema: '{"pattern":"a{900}b{900}"}',
            })),
          },
          'the patterns of all field definitions together are too large',
        ],
        [{ field_definitions: [{ path: 'node_sets.none.size', default: 1 }] }, "no node set 'none'"],
        [
          { field_definitions: [{ path: 'template_parameters.none', editable: true }] },
          "no parameter 'none'",
        ],
        [
          { field_definitions: [{ path: 'template_parameters.flavour', default: 5 }] },
          "does not fit the parameter's type",
        ],
        [
          { field_definitions: [{ path: 'version', default: { name: 'none' } }] },
          'ClusterVersion "none" not found',
        ],
        [{ field_definitions: [{ path: 'version', default: '4.17' }] }, 'is not what the field takes'],
      ];
      for (const [body, message] of cases) refused(await item(body), 400, message);
    });

    it('takes defaults beside what customers will give', async () => {
      const reply = await item({
        field_definitions: [
          { path: 'node_sets.workers.host_type', default: { id: 'fc430', name: 'fc430' } },
          { path: 'node_sets.workers.size', editable: true },
        ],
      });
      const spec = { catalog_item: { id: textAt(reply.json, 'id') } };
      refused(await order(spec), 400, /^field 'node_sets.workers.size' is required/);
      expect((await order({ ...spec, node_sets: { workers: { size: 2 } } })).status).to.equal(200);
    });

    it('names the field of a definition', async () => {
      const reply = await item({
        field_definitions: [
          { path: 'network', editable: true },
          { path: 'ssh_public_key', editable: true, validation_schema: '{"type":"no"}' },
        ],
      });
      expect(JSON.stringify(reply.json['details'])).to.contain('field_definitions.1.validation_schema');
    });

    it('keeps a default version by id and name; it must be usable and is protected', async () => {
      const version = { version: '4.19.9', image: 'quay.example/r:4.19.9' };
      const created = await admin('POST', `${PRIVATE}/cluster_versions`, { spec: version });
      const id = textAt(created.json, 'id');
      const versionName = textAt(created.json, 'metadata', 'name');
      const reply = await item({ field_definitions: [{ path: 'version', default: { name: versionName } }] });
      expect(reply.json['field_definitions'], reply.text).to.deep.equal([
        { path: 'version', default: { id, name: versionName } },
      ]);
      refused(await admin('DELETE', `${PRIVATE}/cluster_versions/${id}`), 400, 'in use');
      const path = `${PRIVATE}/${ITEMS}/${textAt(reply.json, 'id')}`;
      const again = await admin('PATCH', path, {
        field_definitions: [{ path: 'version', default: { name: versionName } }],
      });
      expect(again.json).to.deep.equal(reply.json);
      await admin('PATCH', `${PRIVATE}/cluster_versions/${id}`, { spec: { enabled: false } });
      refused(
        await item({ field_definitions: [{ path: 'version', default: { id } }] }),
        400,
        'cannot be a default: it is disabled',
      );
      refused(await order({ catalog_item: { id: textAt(reply.json, 'id') } }), 400, 'it is disabled');
    });
  });

  describe('update', () => {
    it('takes one field and keeps the rest, as everywhere', async () => {
      const { id } = await made({ field_definitions: [{ path: 'network', editable: true }] });
      const reply = await admin('PATCH', `${PRIVATE}/${ITEMS}/${id}`, { description: 'New' });
      expect(reply.json, reply.text).to.deep.include({
        description: 'New',
        title: 'Small item',
        published: true,
        field_definitions: [{ path: 'network', editable: true }],
      });
      refused(
        await admin('PATCH', `${PRIVATE}/${ITEMS}/${id}`, {
          field_definitions: [{ path: 'network', editable: true, validation_schema: '{"minimum":"x"}' }],
        }),
        400,
        "'minimum' must be a number",
      );
      refused(await admin('PATCH', `${PRIVATE}/${ITEMS}/${id}`, { template: null }), 400, 'is required');
    });
  });

  describe('publication', () => {
    it('hides an unpublished item from tenants until something refers to it', async () => {
      const { id } = await made();
      expect((await order({ catalog_item: { id } })).status).to.equal(200);
      const { id: draft } = await made({ published: false });
      await admin('PATCH', `${PRIVATE}/${ITEMS}/${id}`, { published: false });
      refused(await user('GET', `${PUBLIC}/${ITEMS}/${draft}`), 404, `'${draft}' not found`);
      expect((await user('GET', `${PUBLIC}/${ITEMS}/${id}`)).status).to.equal(200);
      const stranger = callerOf(service, await service.token({ user: 'ben', tenants: ['t2'] }));
      refused(await stranger('GET', `${PUBLIC}/${ITEMS}/${id}`), 404, `'${id}' not found`);
      expect((await admin('GET', `${PUBLIC}/${ITEMS}/${id}`)).status).to.equal(200);
      expect((await admin('GET', `${PRIVATE}/${ITEMS}/${draft}`)).status).to.equal(200);
    });

    it('lets nobody tell an unpublished item of others from one that never was', async () => {
      const { id: draft, name: draftName } = await made({ published: false });
      const ordered = await order({ template: { id: 'osac.templates.small' } });
      const cluster = `${PUBLIC}/clusters/${textAt(ordered.json, 'id')}`;
      const calls: readonly ((id: string) => Promise<Reply>)[] = [
        (id) => order({ catalog_item: { id } }),
        (id) => order({ catalog_item: { name: id } }),
        (id) => user('PATCH', cluster, { spec: { catalog_item: { id } } }),
        (id) => user('PATCH', `${cluster}?update_mask=spec.catalog_item`, { spec: { catalog_item: { id } } }),
        ...[
          {},
          { 'x-dry-run': 'true' },
          { 'idempotency-key': name() },
          { 'if-match': '"clusterCatalogItem-7"' },
        ].flatMap((headers: Record<string, string>) => [
          (id: string) => tenantAdmin('PATCH', `${PUBLIC}/${ITEMS}/${id}`, { title: 'Mine' }, headers),
          (id: string) => tenantAdmin('DELETE', `${PUBLIC}/${ITEMS}/${id}`, undefined, headers),
        ]),
      ];
      for (const [i, call] of calls.entries()) {
        const [asked, absent] = i === 1 ? [draftName, name()] : [draft, randomUUID()];
        const [hidden, nothing] = [await call(asked), await call(absent)];
        expect(nothing.status, nothing.text).to.be.oneOf([400, 404]);
        expect([hidden.status, hidden.text.replaceAll(asked, '<id>')], String(i)).to.deep.equal([
          nothing.status,
          nothing.text.replaceAll(absent, '<id>'),
        ]);
      }
      refused(
        await admin('POST', `${PRIVATE}/clusters`, {
          metadata: { name: name(), tenant: 't1' },
          spec: { catalog_item: { id: draft } },
        }),
        404,
        'is not published',
      );
    });

    it('lets administrators of a tenant publish and remove drafts of their own', async () => {
      const body = { metadata: { name: name() }, title: 'Ours', template: SMALL };
      const draft = textAt((await tenantAdmin('POST', `${PUBLIC}/${ITEMS}`, body)).json, 'id');
      refused(await order({ catalog_item: { id: draft } }), 400, 'not found');
      const published = await tenantAdmin('PATCH', `${PUBLIC}/${ITEMS}/${draft}`, { published: true });
      expect(published.status, published.text).to.equal(200);
      expect((await order({ catalog_item: { id: draft } })).status).to.equal(200);
      const other = textAt(
        (await tenantAdmin('POST', `${PUBLIC}/${ITEMS}`, { ...body, metadata: { name: name() } })).json,
        'id',
      );
      expect((await tenantAdmin('DELETE', `${PUBLIC}/${ITEMS}/${other}`)).status).to.equal(200);
    });

    it('passes over a draft for a published item of the same name', async () => {
      const called = name();
      const shared = await made({ metadata: { name: called } });
      await tenantAdmin('POST', `${PUBLIC}/${ITEMS}`, {
        metadata: { name: called },
        title: 'Draft',
        template: SMALL,
      });
      const reply = await order({ catalog_item: { name: called } });
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.text).to.include(shared.id);
    });

    it('lists published items only on the public surface', async () => {
      const { id: draft } = await made({ published: false });
      const listed = itemsOf(await user('GET', `${PUBLIC}/${ITEMS}`)).map((shown) => shown['id']);
      expect(listed).to.not.include(draft);
      expect(listed.length).to.be.greaterThan(0);
      const all = itemsOf(await admin('GET', `${PRIVATE}/${ITEMS}`)).map((shown) => shown['id']);
      expect(all).to.include(draft);
    });
  });

  describe('rights', () => {
    it('lets administrators of a tenant keep items of their own, and nobody change shared ones', async () => {
      const body = { metadata: { name: name() }, title: 'Ours', template: SMALL, published: true };
      refused(await user('POST', `${PUBLIC}/${ITEMS}`, body), 403, 'permission denied');
      const reply = await tenantAdmin('POST', `${PUBLIC}/${ITEMS}`, body);
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.json['metadata']).to.include({ tenant: 't1' });
      const { id } = await made();
      refused(
        await tenantAdmin('PATCH', `${PUBLIC}/${ITEMS}/${id}`, { title: 'Mine' }),
        403,
        "objects of tenant 'shared' are read-only",
      );
      refused(
        await tenantAdmin('DELETE', `${PUBLIC}/${ITEMS}/${id}`),
        403,
        "objects of tenant 'shared' are read-only",
      );
      expect((await order({ catalog_item: { id: textAt(reply.json, 'id') } })).status).to.equal(200);
      const other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
      const foreign = await other('POST', `${PUBLIC}/clusters`, {
        metadata: { name: 'x' },
        spec: { catalog_item: { id: textAt(reply.json, 'id') } },
      });
      const absent = await other('POST', `${PUBLIC}/clusters`, {
        metadata: { name: 'x' },
        spec: { catalog_item: { id: '01a1fdbe-6ec6-7448-a69a-554dbb381e5f' } },
      });
      expect([foreign.status, absent.status]).to.deep.equal([400, 400]);
      expect(foreign.text.replaceAll(textAt(reply.json, 'id'), 'ID')).to.equal(
        absent.text.replaceAll('01a1fdbe-6ec6-7448-a69a-554dbb381e5f', 'ID'),
      );
    });
  });
});
