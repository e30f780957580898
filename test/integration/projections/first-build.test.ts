import { expect } from 'chai';
import { createFeedLines } from '../../../src/adapters/event-store/eventstoredb/feed-line.ts';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';
import { changed, createTestLog, written } from '../../support/projections/log.ts';
import { createViews } from '../../support/projections/note-views.ts';
import { temporaryFolders } from '../../support/projections/open-notes.ts';

/** More than are built in the thread of all views: each view is handed over to a thread of its own. */
const EVENTS = 14_000;
const PER_APPEND = 500;
const support = (name: string): string => new URL(`../../support/projections/${name}`, import.meta.url).href;

describe('first start on a filled EventStoreDB', function () {
  this.timeout(120_000);
  const bench = createBench();
  const lines = createFeedLines();
  const folders = temporaryFolders();
  let models: ReadModels | undefined;
  after(async () => {
    await models?.close();
    lines.close();
    await bench.clean();
    folders.clean();
  });

  it('takes each event from the server once, for all views, and goes on with the same subscription', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    const log = createTestLog(store);
    await log.append('note-a', written('a'));
    for (let n = 0; n < EVENTS; n += PER_APPEND)
      await log.append('note-a', ...Array.from({ length: PER_APPEND }, (_, i) => changed(String(n + i))));
    const viewsConfig = { others: ['second', 'third'] };
    const opened = await openReadModels({
      dir: folders.make(),
      views: createViews(viewsConfig),
      openFeed: lines.open,
      logger: silentLogger,
      source: {
        kind: 'worker',
        storeId: store.storeId,
        readerModule: support('peer-log-reader.ts'),
        readerConfig: { connectionString: peer.connectionString, instance: 'a', deadlineMs: 30_000 },
        viewsModule: support('note-views.ts'),
        viewsConfig,
      },
    });
    models = opened;
    await eventually(
      'built and live',
      () => opened.status().every(({ state, caughtUp }) => state === 'live' && caughtUp),
      100_000,
    );
    const position = await log.append('note-a', changed('news'));
    for (const { name } of opened.status())
      expect(await opened.waitFor(name, position, { timeoutMs: 10_000 }), name).to.equal(true);
    expect(peer.stats.calls.subscribe, 'subscriptions').to.equal(1);
    const ours = peer.log.all.filter(({ stream }) => !stream.startsWith('$'));
    expect(peer.stats.eventsSubscribed, 'events that they took').to.equal(ours.length);
  });
});
