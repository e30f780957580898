import { expect } from 'chai';
import { createMemoryEventStore } from '../../../../src/adapters/event-store/memory/memory-event-store.ts';
import { BundleInconsistent, writeBundle } from '../../../../src/app/audit/bundle/writer.ts';
import { contentOf } from '../../../../src/app/audit/exports/content.ts';
import type { EventStore, RecordedEvent } from '../../../../src/app/event-store.ts';
import { registry } from '../../../../src/domain/registry.ts';
import type { ReadModels } from '../../../../src/projections/read-models.ts';
import { audit, followed, openAuditView, openSigning } from '../../../support/audit/open-audit.ts';
import { createHistoryWriter } from '../../../support/audit/random-history.ts';
import { memorySink } from '../../../support/audit/signed-history.ts';
import { manualTime } from '../../../support/manual-time.ts';

describe('what an export is made of', () => {
  let store: EventStore;
  let models: ReadModels;
  const stop = new AbortController();
  beforeEach(async () => {
    store = createMemoryEventStore();
    models = await openAuditView(store);
  });
  afterEach(async () => {
    await models.close();
    await store.close();
  });

  /** An export from a log that shows its events in another way than they were hashed. */
  const exported = async (change: (event: RecordedEvent) => RecordedEvent): Promise<unknown> => {
    const time = manualTime();
    const tree = audit(models);
    const signing = openSigning({ store, tree, ...time });
    const own = new AbortController();
    const running = signing.signer.run(own.signal);
    const step = { tenant: 'acme', subject: 'alice', types: ['ClusterLabelled'], data: { n: 1 } };
    await createHistoryWriter(store, 'c')([1, 2, 3].map((n) => ({ ...step, stream: `cluster-c${n}` })));
    await followed(models, store);
    await time.pass(500);
    own.abort();
    await time.pass(0);
    await running;
    const head = await signing.heads.latest();
    if (head === undefined) throw new Error('no head was signed');
    const forging: Pick<EventStore, 'readStream'> = {
      readStream: async function* (stream, options) {
        for await (const event of store.readStream(stream, options)) yield change(event);
      },
    };
    const content = await contentOf(
      { tenant: 'acme', audience: 'tenant', format: 'native', filter: { kind: 'nothing' } },
      { head, pins: [], at: time.clock.now() },
      {
        store: forging,
        tree,
        proofs: signing.proofs,
        words: {
          codec: { decode: (event) => event as never },
          registry,
          open: (values) => values.map(() => undefined),
        },
        schemas: () => Promise.resolve({}),
        productVersion: '1',
        keys: signing.keys,
      },
      { line: () => Promise.resolve(), signal: stop.signal },
    );
    return writeBundle(content, memorySink().sink).catch((error: unknown) => error);
  };

  it('is what the tree was made of, also where nothing of it is shown', async () => {
    expect(await exported((event) => event)).to.have.nested.property('counts.withheld', 3);
  });

  it('is not exported when the log was changed since', async () => {
    for (const part of [{ data: { n: 2 } }, { type: 'ClusterDeleted' }]) {
      const error = await exported((event) =>
        event.stream === 'cluster-c2' ? { ...event, ...part } : event,
      );
      expect(error).to.be.instanceOf(BundleInconsistent);
      expect(String(error)).to.include('the log has changed cluster-c2@0, leaf 1 of the tree');
      await models.close();
      await store.close();
      store = createMemoryEventStore();
      models = await openAuditView(store);
    }
  });
});
