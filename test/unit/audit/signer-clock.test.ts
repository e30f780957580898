import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { memoryAuditKeyFiles } from '../../../src/adapters/keys/audit-keys.ts';
import { originOf, parseCheckpoint } from '../../../src/app/audit/merkle/checkpoint.ts';
import { verifyNote } from '../../../src/app/audit/merkle/note.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { audit, followed, openAuditView, openSigning } from '../../support/audit/open-audit.ts';
import { createHistoryWriter } from '../../support/audit/random-history.ts';
import { manualTime } from '../../support/manual-time.ts';

describe('times of signed heads', () => {
  let store: EventStore;
  let models: ReadModels;
  beforeEach(async () => {
    store = createMemoryEventStore();
    models = await openAuditView(store);
  });
  afterEach(async () => {
    await models.close();
    await store.close();
  });

  it('never go back, also when the clock is set back or another instance has one that is behind', async () => {
    const files = memoryAuditKeyFiles(originOf(store.storeId));
    const write = createHistoryWriter(store, 's');
    const said: string[] = [];
    for (const [n, begin] of [
      '2026-01-01T12:00:00.000Z',
      '2026-01-01T11:00:00.000Z',
      '2026-01-01T11:59:59.999Z',
      '2026-01-01T12:30:00.000Z',
    ].entries()) {
      const { clock, timers, pass } = manualTime(begin);
      const signing = openSigning({
        store,
        tree: audit(models),
        clock,
        timers,
        files,
        instance: `i${n}`,
      });
      const stop = new AbortController();
      const running = signing.signer.run(stop.signal);
      await write([
        { stream: 'cluster-c1', tenant: 'acme', subject: 'alice', types: ['ClusterLabelled'], data: { n } },
      ]);
      await followed(models, store);
      await pass(500);
      stop.abort();
      await pass(0);
      await running;
      const head = await signing.heads.latest();
      const vkeys = (await signing.keys.chain()).map(({ vkey }) => vkey);
      const { size, time } = parseCheckpoint(verifyNote(head?.note ?? '', vkeys).text);
      expect([size, time]).to.deep.equal([n + 1, head?.at]);
      said.push(time);
    }
    const [first, second, third, fourth] = said;
    expect([second, third]).to.deep.equal([first, first]);
    expect(Date.parse(fourth ?? '')).to.be.at.least(Date.parse('2026-01-01T12:30:00.000Z'));
  });
});
