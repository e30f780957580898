import { expect } from 'chai';
import {
  PRIVATE,
  callerOf,
  itemsOf,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { CLUSTERS, SMALL, startOrdering, type Ordering } from './ordering.ts';

/** What lists, ends and tells of clusters; who sees them. */
describe('clusters over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  let order: Ordering['order'];

  before(async () => {
    ({ service, admin, user, other, order } = await startOrdering());
  });
  after(() => service.close());

  describe('list', () => {
    before(async () => {
      for (let i = 0; i < 5; i += 1) await order();
    });

    it('pages by limit and offset, counts all that the caller may see', async () => {
      const fresh = callerOf(service, await service.token({ user: 'carol', tenants: ['t1'] }));
      const all = await fresh('GET', CLUSTERS);
      const total = all.json['total'] as unknown as number;
      expect(all.json['size']).to.equal(Math.min(total, 100));
      const ids = itemsOf(all).map((item) => textAt(item, 'id'));
      const times = itemsOf(all).map((item) => textAt(item, 'metadata', 'creation_timestamp'));
      expect(times).to.deep.equal(times.toSorted());
      const page = await fresh('GET', `${CLUSTERS}?limit=2&offset=1`);
      expect(page.json).to.deep.equal({
        size: 2,
        total,
        items: itemsOf(all).slice(1, 3),
      });
      expect((await fresh('GET', `${CLUSTERS}?limit=0`)).json).to.deep.equal({ total });
      expect((await fresh('GET', `${CLUSTERS}?limit=1&offset=-5`)).json['items']?.[0]?.['id']).to.equal(
        ids[0],
      );
      expect((await fresh('GET', `${CLUSTERS}?limit=5000&unknown=1`)).status).to.equal(200);
      expect((await fresh('GET', `${CLUSTERS}?offset=100000`)).json).to.deep.equal({ total });
    });

    it('is an empty object when there is nothing', async () => {
      const empty = callerOf(service, await service.token({ user: 'dave', tenants: [] }));
      expect((await empty('GET', CLUSTERS)).text).to.equal('{}');
    });

    for (const [query, message] of [
      ['limit=-1', /^limit must be a non-negative integer, but it is -1$/],
      ['limit=abc', /^parsing field "limit": /],
      ['offset=1.5', /^parsing field "offset": /],
      ['limit=99999999999', /^parsing field "limit": /],
    ] as const)
      it(`refuses ${query}`, async () => {
        const reply = await user('GET', `${CLUSTERS}?${query}`);
        expect(reply.status).to.equal(400);
        expect(reply.json['message']).to.match(message);
      });
  });

  describe('delete', () => {
    it('answers {} and is gone before dispatch; the name is free again', async () => {
      const { id, name: wanted } = await order();
      const reply = await user('DELETE', `${CLUSTERS}/${id}`);
      expect(reply.status).to.equal(200);
      expect(reply.text).to.equal('{}');
      for (const verb of ['GET', 'DELETE', 'PATCH']) {
        const after = await user(verb, `${CLUSTERS}/${id}`, verb === 'PATCH' ? {} : undefined);
        expect(after.status, verb).to.equal(404);
        expect(after.json['message']).to.contain(
          `object with identifier '${id}' not found: it was deleted at`,
        );
      }
      const again = await user('POST', CLUSTERS, { metadata: { name: wanted }, spec: SMALL });
      expect(again.status, again.text).to.equal(200);
    });

    it('stays readable with a deletion time while finalizers hold it', async () => {
      const { id } = await order();
      await admin('PATCH', `${PRIVATE}/clusters/${id}`, { metadata: { finalizers: ['bench'] } });
      for (let i = 0; i < 2; i += 1) expect((await user('DELETE', `${CLUSTERS}/${id}`)).text).to.equal('{}');
      const read = await user('GET', `${CLUSTERS}/${id}`);
      expect(read.json['metadata']?.['deletion_timestamp']).to.match(/Z$/);
      await admin('PATCH', `${PRIVATE}/clusters/${id}`, { metadata: { finalizers: [] } });
      expect((await user('GET', `${CLUSTERS}/${id}`)).status).to.equal(404);
    });
  });

  describe("another tenant's cluster", () => {
    it('is absent for every verb, word for word as an unknown id', async () => {
      const { id } = await order();
      const unknown = '01a1fdbf-0000-7000-8000-000000000000';
      for (const [verb, suffix, body] of [
        ['GET', '', undefined],
        ['PATCH', '', { metadata: { labels: { a: 'b' } } }],
        ['PATCH', '', { spec: { ssh_public_key: 'x' } }],
        ['DELETE', '', undefined],
        ['GET', '/kubeconfig', undefined],
        ['GET', '/password', undefined],
        ['GET', '/timeline', undefined],
      ] as const) {
        const foreign = await other(verb, `${CLUSTERS}/${id}${suffix}`, body);
        const absent = await other(verb, `${CLUSTERS}/${unknown}${suffix}`, body);
        expect(foreign.status, `${verb} ${suffix}`).to.equal(404);
        expect(foreign.text.replaceAll(id, 'ID')).to.equal(absent.text.replaceAll(unknown, 'ID'));
      }
      const listed = await other('GET', CLUSTERS);
      expect(listed.text).not.to.contain(id);
    });
  });

  it('GET …/timeline tells what happened, oldest first', async () => {
    const { id } = await order();
    await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { a: 'b' } } });
    const position = (
      await user('PATCH', `${CLUSTERS}/${id}`, { spec: { node_sets: { workers: { size: 4 } } } })
    ).headers.get('x-ledger-position');
    const reply = await user('GET', `${CLUSTERS}/${id}/timeline`, undefined, {
      'x-ledger-min-position': position ?? '',
    });
    expect(reply.status).to.equal(200);
    const items = itemsOf(reply);
    expect(items.map((item) => item['type'])).to.deep.equal([
      'ClusterOrdered',
      'ClusterLabelled',
      'NodeSetResized',
    ]);
    expect(items[0]?.['position']).to.match(/^memory\.\d+$/);
    expect(items[2]?.['data']).to.include({ name: 'workers', from: 3, to: 4 });
    const page = await user(
      'GET',
      `${CLUSTERS}/${id}/timeline?limit=1&after=${textAt(items[0], 'position')}`,
    );
    expect(itemsOf(page)).to.deep.equal([items[1]]);
    expect((await user('GET', `${CLUSTERS}/${id}/timeline?after=elsewhere.1`)).status).to.equal(400);
    expect((await user('GET', `${CLUSTERS}/${id}/timeline?limit=-1`)).status).to.equal(400);
  });
});
