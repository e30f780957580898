import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { ITEMS, SMALL, refused, startCatalogueItems, type CatalogueItems } from './catalogue-items.ts';

/** docs/administration.md "Cluster catalogue item": what an item says outlives the order. */
describe('orders from catalogue items stay inside them', () => {
  let stage: CatalogueItems;
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  before(async () => {
    stage = await startCatalogueItems();
    ({ service, admin, user } = stage);
  });
  after(() => service.close());

  const DEFINITIONS = [
    {
      path: 'node_sets.workers.size',
      editable: true,
      default: 2,
      validation_schema: '{"type":"integer","minimum":1,"maximum":4}',
    },
    { path: 'ssh_public_key', editable: false, default: 'ssh-ed25519 AAAA' },
  ];
  const sized = (size: number): object => ({ spec: { node_sets: { workers: { size } } } });
  const ordered = async (definitions: readonly object[] = DEFINITIONS) => {
    const item = await stage.made({ field_definitions: definitions });
    const reply = await stage.order({ catalog_item: { id: item.id } });
    expect(reply.status, reply.text).to.equal(200);
    return { item, path: `clusters/${textAt(reply.json, 'id')}` };
  };

  it('when they are changed by PATCH, tried or meant', async () => {
    const { path } = await ordered();
    for (const headers of [{ 'x-dry-run': 'true' }, {}] as Record<string, string>[]) {
      const change = (body: object) => user('PATCH', `${PUBLIC}/${path}`, body, headers);
      expect((await change(sized(4))).status).to.equal(200);
      refused(await change(sized(5)), 400, /^validation failed for field 'node_sets.workers.size'/);
      refused(
        await change({ spec: { ssh_public_key: 'ssh-ed25519 BBBB' } }),
        400,
        /^field 'ssh_public_key' is not editable/,
      );
      refused(await change({ spec: { ssh_public_key: null } }), 400, /'ssh_public_key' is not editable/);
      refused(
        await change({ spec: { pull_secret: '{"auths":{}}' } }),
        400,
        /^fields not allowed by catalog item .*: pull_secret$/,
      );
      refused(
        await change({ spec: { node_sets: { more: { host_type: { id: 'fc430' }, size: 1 } } } }),
        400,
        /^fields not allowed by catalog item .*node_sets\.more/,
      );
      // Labels are the customer's own.
      expect((await change({ metadata: { labels: { a: 'b' } } })).status).to.equal(200);
    }
    const stored = await user('GET', `${PUBLIC}/${path}`);
    expect(stored.json).to.have.nested.property('spec.node_sets.workers.size', 4);
  });

  it('as the item is now, and only in what changes', async () => {
    const { item, path } = await ordered();
    expect((await user('PATCH', `${PUBLIC}/${path}`, sized(4))).status).to.equal(200);
    const narrowed = DEFINITIONS.map((one) =>
      'validation_schema' in one ? { ...one, validation_schema: '{"maximum":3}' } : one,
    );
    const items = `${PRIVATE}/${ITEMS}/${item.id}`;
    const body = { field_definitions: narrowed, published: false };
    expect((await admin('PATCH', items, body)).status).to.equal(200);
    // Four nodes stay, five are too many, three are inside again.
    const labelled = await user('PATCH', `${PUBLIC}/${path}`, { metadata: { labels: { kept: 'yes' } } });
    expect(labelled.status, labelled.text).to.equal(200);
    refused(await user('PATCH', `${PUBLIC}/${path}`, sized(5)), 400, /^validation failed/);
    expect((await user('PATCH', `${PUBLIC}/${path}`, sized(3))).status).to.equal(200);
  });

  it('while the provider may change what it offered', async () => {
    const { path } = await ordered();
    expect((await admin('PATCH', `${PRIVATE}/${path}`, sized(9))).status).to.equal(200);
  });

  it('and a secret is judged as it was sent', async () => {
    const definitions = [
      ...DEFINITIONS,
      { path: 'pull_secret', editable: true, validation_schema: '{"maxLength":20}' },
    ];
    const item = await stage.made({ field_definitions: definitions });
    const reply = await stage.order({ catalog_item: { id: item.id }, pull_secret: '{"auths":{}}' });
    expect(reply.status, reply.text).to.equal(200);
    const path = `${PUBLIC}/clusters/${textAt(reply.json, 'id')}`;
    expect((await user('PATCH', path, { spec: { pull_secret: '{"auths":{ }}' } })).status).to.equal(200);
    const long = await user('PATCH', path, {
      spec: { pull_secret: JSON.stringify({ auths: { registry: {} } }) },
    });
    refused(long, 400, /^validation failed for field 'pull_secret'/);
    expect(long.text).not.to.contain('registry');
  });

  describe('a template that is ordered through items only', () => {
    const only = (items_only: boolean): Promise<{ status: number; text: string }> =>
      admin('PATCH', `${PRIVATE}/cluster_templates/${SMALL.id}`, { spec: { items_only } });
    before(async () => {
      const reply = await only(true);
      expect(reply.status, reply.text).to.equal(200);
    });
    after(() => only(false));

    it('is refused when a tenant orders it by itself, by id or by name, tried or meant', async () => {
      for (const template of [SMALL, { name: 'small' }])
        for (const headers of [{ 'x-dry-run': 'true' }, {}] as Record<string, string>[]) {
          const body = { metadata: { name: stage.name() }, spec: { template } };
          const reply = await user('POST', `${PUBLIC}/clusters`, body, headers);
          refused(
            reply,
            400,
            /^cluster template 'small' is ordered through catalog items of its provider only: give 'spec.catalog_item'/,
          );
          expect(reply.headers.get('x-ledger-reason')).to.equal('TEMPLATE_ITEMS_ONLY');
        }
    });

    it('is ordered through an item of the provider, and not through one that the tenant wrote', async () => {
      await ordered();
      const own = await stage.tenantAdmin('POST', `${PUBLIC}/${ITEMS}`, {
        metadata: { name: stage.name() },
        title: 'Everything goes',
        template: SMALL,
        published: true,
      });
      expect(own.status, own.text).to.equal(200);
      refused(
        await stage.order({ catalog_item: { id: textAt(own.json, 'id') } }),
        400,
        /of its provider only/,
      );
    });

    it('is ordered by itself by the provider', async () => {
      const reply = await admin('POST', `${PRIVATE}/clusters`, {
        metadata: { name: stage.name(), tenant: 't1' },
        spec: { template: SMALL },
      });
      expect(reply.status, reply.text).to.equal(200);
    });

    it('shows tenants nothing of that', async () => {
      const { json } = await user('GET', `${PUBLIC}/cluster_templates/${SMALL.id}`);
      expect(json).not.to.have.property('spec');
      const filter = encodeURIComponent('this.spec.items_only');
      expect((await user('GET', `${PUBLIC}/cluster_templates?filter=${filter}`)).status).to.equal(400);
      const stranger = callerOf(service, await service.token({ user: 'sue', tenants: ['t2'] }));
      const tried = await stranger('PATCH', `${PUBLIC}/cluster_templates/${SMALL.id}`, {
        spec: { items_only: false },
      });
      expect(tried.status).to.be.oneOf([400, 403]);
    });
  });
});
