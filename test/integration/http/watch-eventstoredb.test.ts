import { expect } from 'chai';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';
import { callerOf, PRIVATE, startTestService } from '../../support/http/service.ts';
import { idOf, PRIVATE_WATCH, summaryOf, watch } from '../../support/http/watch-client.ts';

describe('watch on an EventStoreDB', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  it('resumes by the positions of that store, and refuses those of another', async () => {
    const store = await bench.store(await bench.peer());
    const service = await startTestService({ store, positions: { digits: 40 } });
    try {
      const token = await service.token({ user: 'root', admin: true });
      const admin = callerOf(service, token);
      const seen = await watch(service, token, PRIVATE_WATCH);
      for (const id of ['a', 'b', 'c'])
        expect((await admin('POST', `${PRIVATE}/host_types`, { id, title: id })).status).to.equal(200);
      const events = await seen.count(3);
      expect(events.map(summaryOf)).to.deep.equal(['a', 'b', 'c'].map((id) => `CREATED host_type ${id}`));
      seen.close();
      const again = await watch(service, token, `${PRIVATE_WATCH}?from=${idOf(events[0])}`);
      expect((await again.count(2)).map(idOf)).to.deep.equal(events.slice(1).map(idOf));
      again.close();
      const foreign = idOf(events[0]).replace(store.storeId, 'another-store');
      const refused = await watch(service, token, `${PRIVATE_WATCH}?from=${foreign}`);
      expect(refused.status).to.equal(400);
      expect(refused.headers['x-ledger-reason']).to.equal('FOREIGN_POSITION');
    } finally {
      await service.close();
    }
  });
});
