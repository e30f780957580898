import { expect } from 'chai';
import { OWN_CATEGORIES } from '../../../../src/app/log/own-categories.ts';
import { createBench } from '../../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../../support/eventstoredb-peer/peer.ts';
import { eventually } from '../../../support/eventually.ts';
import { callerOf, PRIVATE, startTestService, textAt } from '../../../support/http/service.ts';
import { CLUSTERS, SMALL, startOrdering, type Ordering } from '../ordering.ts';

/** What a POST reads on an EventStoreDB, as the server counts: a read of a stream costs as much as an append */
describe('the reads of a POST on an EventStoreDB', () => {
  const bench = createBench();
  let peer: Peer;
  let ordering: Ordering;
  beforeEach(async () => {
    peer = await bench.peer();
    const store = await bench.store(peer, { categories: OWN_CATEGORIES, deadlineMs: 15_000 });
    ordering = await startOrdering({ store, positions: { digits: 40 } });
  });
  afterEach(async () => {
    await ordering.service.close();
    await bench.clean();
  });

  const POSTS = 10;
  const reads = async (work: () => Promise<unknown>): Promise<readonly string[]> => {
    const before = peer.stats.readFrom.length;
    await work();
    // The end of the log is looked at by subscriptions, when they are silent or a view is late.
    return peer.stats.readFrom.slice(before).filter((from) => from !== '$all backward');
  };
  const created = async (n: number, key?: string, by = ordering.user): Promise<string> => {
    const body = { metadata: { name: `new-${n}` }, spec: SMALL };
    const reply = await by('POST', CLUSTERS, body, key === undefined ? {} : { 'idempotency-key': key });
    expect(reply.status, reply.text).to.equal(200);
    return textAt(reply.json, 'id');
  };
  const numbers = Array.from({ length: POSTS }, (_, n) => n);

  it('are at most one, and none of the new stream, one POST after another', async () => {
    await created(POSTS);
    const seen = await reads(async () => {
      for (const n of numbers) await created(n);
    });
    expect(seen.filter((from) => from !== '$all forward')).to.deep.equal([]);
    expect(seen.length).to.be.at.most(POSTS);
  });

  it('are at most one of all that come at once', async () => {
    await created(POSTS);
    const seen = await reads(() => Promise.all(numbers.map((n) => created(n))));
    expect(seen.filter((from) => from !== '$all forward')).to.deep.equal([]);
    expect(seen.length).to.be.at.most(POSTS);
  });

  it('are no more with an idempotency key; its repeat to another instance finds the first call', async () => {
    await created(POSTS, 'first');
    const ids: string[] = [];
    const seen = await reads(async () => {
      for (const n of numbers) ids.push(await created(n, `key-${n}`));
    });
    expect(seen.filter((from) => from !== '$all forward')).to.deep.equal([]);
    expect(seen.length).to.be.at.most(POSTS);
    const store = await bench.store(peer, { categories: OWN_CATEGORIES, deadlineMs: 15_000 });
    const second = await startTestService({ store, positions: { digits: 40 } });
    try {
      const other = callerOf(second, await ordering.service.token({ user: 'alice', tenants: ['t1'] }));
      await eventually('it knows the tenant', async () => (await other('GET', CLUSTERS)).status === 200);
      expect(await created(3, 'key-3', other)).to.equal(ids[3]);
    } finally {
      await second.close();
    }
  });

  it('are no more in a named project', async () => {
    const project = await ordering.admin('POST', `${PRIVATE}/projects`, {
      metadata: { name: 'team', tenant: 't1' },
    });
    expect(project.status, project.text).to.equal(200);
    const order = (n: number) => ordering.order({ name: `in-project-${n}`, project: 'team' });
    await order(POSTS);
    const seen = await reads(async () => {
      for (const n of numbers) await order(n);
    });
    expect(seen.filter((from) => from !== '$all forward')).to.deep.equal([]);
    expect(seen.length).to.be.at.most(POSTS);
  });

  it('are none of the new stream of an object with personal data', async () => {
    const user = (n: number) => ({
      metadata: { name: `m-${n}`, tenant: 't1' },
      spec: { username: `m-${n}` },
    });
    const seen = await reads(async () => {
      for (const n of [1, 2])
        expect((await ordering.admin('POST', `${PRIVATE}/users`, user(n))).status).to.equal(200);
    });
    expect(seen.filter((from) => from.startsWith('user-'))).to.deep.equal([]);
  });
});
