import { expect } from 'chai';
import { OWN_CATEGORIES } from '../../../../src/app/log/own-categories.ts';
import { createBench } from '../../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../../support/eventstoredb-peer/peer.ts';
import { eventually } from '../../../support/eventually.ts';
import { callerOf, startTestService, type Json } from '../../../support/http/service.ts';
import { CLUSTERS, startOrdering, type Ordering } from '../ordering.ts';

/** Somebody puts a record of the store's own into the stream of a cluster: a projection on the server does such things. */
const RECORDS = {
  'a link': { type: '$>', contentType: 'application/octet-stream', data: Buffer.from('0@cluster-other') },
  'a system event': { type: '$Noted', data: Buffer.from('{"n":1}') },
};

describe('a cluster in whose stream an EventStoreDB holds records of its own', function () {
  this.timeout(30_000);
  const bench = createBench();
  let peer: Peer;
  let ordering: Ordering;
  beforeEach(async () => {
    peer = await bench.peer();
    const store = await bench.store(peer, { categories: OWN_CATEGORIES });
    ordering = await startOrdering({ store, positions: { digits: 40 }, audit: { signs: true } });
  });
  afterEach(async () => {
    await ordering.service.close();
    await bench.clean();
  });

  const put = (id: string, record: Parameters<Peer['log']['inject']>[1]): void =>
    peer.log.inject(`cluster-${id}`, record);
  const shown = async (id: string): Promise<Json> => (await ordering.user('GET', `${CLUSTERS}/${id}`)).json;
  const audited = async (): Promise<void> => {
    const { models, store } = ordering.service;
    const last = (await store.lastPosition()) ?? '';
    expect(await models.waitFor('audit', last, { timeoutMs: 10_000 }), 'the audit view got there').to.equal(
      true,
    );
    for (const { name, state, error } of models.status())
      expect(state, `${name}: ${error ?? ''}`).to.equal('live');
  };

  for (const [what, record] of Object.entries(RECORDS))
    it(`${what}: it is changed and deleted as ever, and the tree goes on`, async () => {
      const { user, order } = ordering;
      const { id } = await order({ labels: { env: 'dev' } });
      const before = await user('GET', `${CLUSTERS}/${id}`);
      put(id, record);
      const changed = await user(
        'PATCH',
        `${CLUSTERS}/${id}`,
        { metadata: { labels: { env: 'prod' } } },
        { 'if-match': before.headers.get('etag') ?? '' },
      );
      expect(changed.status, changed.text).to.equal(200);
      expect((await shown(id))['metadata']?.['labels']).to.deep.equal({ env: 'prod' });
      put(id, record);
      put(id, record);
      const again = await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { env: 'test' } } });
      expect(again.status, again.text).to.equal(200);
      put(id, record);
      const deleted = await user('DELETE', `${CLUSTERS}/${id}`);
      expect(deleted.status, deleted.text).to.equal(200);
      await audited();
    });

  it('an instance that starts then reads the same, and changes it', async () => {
    const { id } = await ordering.order({ labels: { env: 'dev' } });
    put(id, RECORDS['a link']);
    const store = await bench.store(peer, { categories: OWN_CATEGORIES });
    const second = await startTestService({ store, positions: { digits: 40 } });
    try {
      const user = callerOf(second, await ordering.service.token({ user: 'alice', tenants: ['t1'] }));
      await eventually(
        'it shows the cluster',
        async () => (await user('GET', `${CLUSTERS}/${id}`)).status === 200,
      );
      const changed = await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { env: 'prod' } } });
      expect(changed.status, changed.text).to.equal(200);
      const revisions: number[] = [];
      for await (const { revision } of store.readStream(`cluster-${id}`)) revisions.push(revision);
      const last = revisions.at(-1) ?? 0;
      expect(revisions).to.deep.equal(
        Array.from({ length: last + 1 }, (_, n) => n).filter((n) => n !== last - 1),
      );
    } finally {
      await second.close();
    }
  });
});
