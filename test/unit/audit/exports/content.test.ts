import { expect } from 'chai';
import { createMemoryEventStore } from '../../../../src/adapters/event-store/memory/memory-event-store.ts';
import { writeBundle, type BundleContent } from '../../../../src/app/audit/bundle/writer.ts';
import { ChangedEvent } from '../../../../src/app/audit/event-source.ts';
import { contentOf, type Steps } from '../../../../src/app/audit/exports/content.ts';
import type { MakePages } from '../../../../src/app/audit/exports/ports.ts';
import type { EventStore, RecordedEvent } from '../../../../src/app/log/event-store.ts';
import type { ExportRequest } from '../../../../src/domain/audit/events.ts';
import { registry } from '../../../../src/domain/registry.ts';
import type { ReadModels } from '../../../../src/projections/read-models.ts';
import { audit, followed, openAuditView, openSigning } from '../../../support/audit/open-audit.ts';
import { createHistoryWriter } from '../../../support/audit/random-history.ts';
import { memorySink } from '../../../support/audit/signed-history.ts';
import { manualTime } from '../../../support/manual-time.ts';

/** How it goes on, and where its lines are made. */
type Making = { readonly line?: Steps['line']; readonly makePages?: MakePages };

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

  /** What an export of three events of acme is made of. */
  const contentFrom = async (
    reading: Pick<EventStore, 'readStream'>,
    request: Partial<ExportRequest>,
    write = createHistoryWriter(store, 'c'),
    { line = () => Promise.resolve(), makePages }: Making = {},
  ): Promise<BundleContent> => {
    const time = manualTime();
    const tree = audit(models);
    const signing = openSigning({ store, tree, ...time });
    const own = new AbortController();
    const running = signing.signer.run(own.signal);
    const step = { tenant: 'acme', subject: 'alice', types: ['ClusterLabelled'], data: { n: 1 } };
    await write([1, 2, 3].map((n) => ({ ...step, stream: `cluster-c${n}` })));
    await followed(models, store);
    await time.pass(500);
    own.abort();
    await time.pass(0);
    await running;
    const head = await signing.heads.latest();
    if (head === undefined) throw new Error('no head was signed');
    return contentOf(
      { audience: 'tenant', format: 'native', filter: { kind: 'nothing' }, ...request },
      { head, pins: [], at: time.clock.now() },
      {
        store: reading,
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
        ...(makePages && { makePages }),
      },
      { line, signal: stop.signal },
    );
  };

  /** An export from a log that shows its events in another way than they were hashed. */
  const exported = async (change: (event: RecordedEvent) => RecordedEvent): Promise<unknown> => {
    const forging: Pick<EventStore, 'readStream'> = {
      readStream: async function* (stream, options) {
        for await (const event of store.readStream(stream, options)) yield change(event);
      },
    };
    return writeBundle(await contentFrom(forging, { tenant: 'acme' }), memorySink().sink).catch(
      (error: unknown) => error,
    );
  };

  it('is what the tree was made of, also where nothing of it is shown', async () => {
    expect(await exported((event) => event)).to.have.nested.property('counts.withheld', 3);
  });

  it('counts each event once, whatever else is made of it, here or on another thread', async () => {
    const counts = { events: 3, full: 0, redacted: 0, withheld: 3 };
    const elsewhere: MakePages = ({ of }) =>
      of === 'proofs'
        ? undefined
        : (async function* () {
            yield await Promise.resolve({
              text: Buffer.from(''),
              hashes: Buffer.alloc(of === 'events' ? 96 : 0),
              counts,
            });
          })();
    for (const makePages of [undefined, elsewhere]) {
      let done = 0;
      const line = (many = 1): Promise<void> => {
        done += many;
        return Promise.resolve();
      };
      const content = await contentFrom(store, { tenant: 'acme', format: 'ocsf' }, undefined, {
        line,
        ...(makePages && { makePages }),
      });
      for (const lines of [content.lines, ...(content.more ?? []).map((more) => more.lines)])
        for await (const _page of lines);
      expect(done, makePages === undefined ? 'here' : 'elsewhere').to.equal(3);
      await models.close();
      await store.close();
      store = createMemoryEventStore();
      models = await openAuditView(store);
    }
  });

  it('is of a range of time what was recorded at its begin or later, and before its end, as lists have it', async () => {
    const AT = ['10:00:00.000', '10:00:00.001', '10:00:00.002'].map((time) => `2026-01-01T${time}Z`);
    const [first = '', second = '', third = ''] = AT;
    const ranges = [
      [{}, [0, 1, 2]],
      [{ from: second }, [1, 2]],
      [{ to: second }, [0]],
      [{ from: first, to: third }, [0, 1]],
      [{ from: second, to: third }, [1]],
      [{ from: third, to: third }, []],
    ] as const;
    for (const [range, places] of ranges)
      for (const scope of [{ tenant: 'acme' }, {}]) {
        await models.close();
        await store.close();
        let stored = -1;
        // Bookkeeping, which is no part of the history, is of the last moment.
        store = createMemoryEventStore({ now: () => AT[Math.min(stored, 2)] ?? third });
        models = await openAuditView(store);
        const history = createHistoryWriter(store, 'c');
        const write: typeof history = async (steps) => {
          for (const step of steps) {
            stored += 1;
            await history([step]);
          }
        };
        const { from, to } = (await contentFrom(store, { ...scope, ...range }, write)).range;
        const exportedPlaces = Array.from({ length: to - from }, (_, n) => from + n);
        const { leaves } = audit(models).find({ tenants: 'all', kind: 'cluster', limit: 10, ...range });
        const what = JSON.stringify({ ...scope, ...range });
        expect(exportedPlaces, what).to.deep.equal(places);
        expect(
          leaves.map(({ index }) => index),
          `${what}, as a list`,
        ).to.deep.equal(places);
      }
  });

  it('is not exported when the log was changed since', async () => {
    for (const part of [{ data: { n: 2 } }, { type: 'ClusterDeleted' }]) {
      const error = await exported((event) =>
        event.stream === 'cluster-c2' ? { ...event, ...part } : event,
      );
      expect(error).to.be.instanceOf(ChangedEvent);
      expect(error).to.have.nested.property('at.event', 'cluster-c2@0');
      expect(String(error)).to.include('leaf 1 of the audit tree, is not what it was when it was recorded');
      await models.close();
      await store.close();
      store = createMemoryEventStore();
      models = await openAuditView(store);
    }
  });
});
