import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { EventStoreDbStore } from '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import { systemMetadata } from '../../../src/app/log/metadata.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { createViews } from '../../../src/projections/views.ts';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';
import { createLog, type Log } from '../../support/eventstoredb-peer/log.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';
import { temporaryFolders } from '../../support/projections/open-notes.ts';
import { orderToy, startToyRunner, type ToyRunner } from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { noRoom, ordered } from '../../unit/domain/clusters/samples.ts';

const VIEWS = ['resources', 'timeline', 'usage', 'audit'] as const;
const codec = createEventCodec(eventTypes);
const REPLACED = /^log replaced: rebuilding/;

type Line = { readonly level: string; readonly view: string; readonly message: string };

/** What an instance keeps beside an EventStoreDB, over restarts, records of others and restored copies of the log. */
describe('read models and the index of runs on an EventStoreDB', function () {
  this.timeout(120_000);
  const bench = createBench();
  const folders = temporaryFolders();
  let lines: Line[];
  let opened: { models: ReadModels; runner: ToyRunner }[];
  beforeEach(() => {
    lines = [];
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(opened.map(close));
    await bench.clean();
    folders.clean();
  });

  const loggerOf = (view: string) => {
    const at = (level: string) => (_fields: object, message: string) =>
      void lines.push({ level, view, message });
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  };
  const modelsOf = (store: EventStore, dir: string): Promise<ReadModels> =>
    openReadModels({
      dir,
      views: createViews({ audit: true }),
      source: { kind: 'inline', reader: store, pace: 'event-loop' },
      logger: {
        ...silentLogger,
        child: (fields) => ({
          ...loggerOf((fields as { view: string }).view),
          child: () => silentLogger,
        }),
      },
    });
  const open = async (store: EventStore, dir: string) => {
    const logger = { ...loggerOf('runs'), child: () => ({ ...loggerOf('runs'), child: () => silentLogger }) };
    // A lease in a copy of the log would keep the next start waiting.
    const ownership: Ownership = { hold: (signal, whileOwner) => whileOwner({ epoch: 1, signal }) };
    const more = { dataFile: join(dir, 'processes.sqlite'), logger, ownership };
    const one = {
      models: await modelsOf(store, join(dir, 'read-models')),
      runner: startToyRunner({ store, workshop: createWorkshop(), instance: 'a', more }),
    };
    opened.push(one);
    return one;
  };
  const close = async ({ models, runner }: (typeof opened)[number]): Promise<void> => {
    await Promise.all([models.close(), runner.stop()]);
  };

  const order = async (store: EventStore, id: string, tenant = 'acme'): Promise<void> => {
    const metadata = systemMetadata(`command-${id}`, 'Test', '2026-11-21T12:00:00.000Z', 'test');
    const events = codec.encodeAll(
      [
        {
          type: 'ClusterOrdered',
          data: { ...ordered, id, tenant, project: 'web', at: '2026-10-01T00:00:00.000Z' },
        },
        {
          type: 'PlacementDeferred',
          data: { at: '2026-10-02T00:00:00.000Z', message: 'no', decision: noRoom },
        },
      ],
      `cluster-${id}`,
      metadata,
    );
    await store.append(`cluster-${id}`, 'no_stream', events);
  };
  /** Waits until all of it shows what the log holds. */
  const caughtUp = async (store: EventStore, { models, runner }: (typeof opened)[number]): Promise<void> => {
    const end = (await store.lastPosition()) ?? '';
    for (const view of VIEWS)
      expect(await models.waitFor(view, end, { timeoutMs: 20_000 }), view).to.equal(true);
    await eventually('runs are live', () => runner.status().state === 'live', 20_000);
  };
  /** Every view as it is built from this log by an instance that has nothing. */
  const expectClean = async (store: EventStore, models: ReadModels): Promise<void> => {
    const clean = await modelsOf(store, folders.make());
    try {
      for (const view of VIEWS) {
        const end = (await store.lastPosition()) ?? '';
        await clean.waitFor(view, end, { timeoutMs: 20_000 });
        expect((await models.digest(view)).digest, view).to.equal((await clean.digest(view)).digest);
      }
    } finally {
      await clean.close();
    }
  };
  const troubles = (): readonly Line[] =>
    lines.filter(({ level, message }) => level === 'error' || REPLACED.test(message));

  for (const systemEvents of [200, 5000])
    it(`are not thrown away over ${systemEvents} records of the store itself behind the last event`, async () => {
      const dir = folders.make();
      const peer = await bench.peer();
      const store = await bench.store(peer);
      const first = await open(store, dir);
      for (const id of ['c1', 'c2']) await order(store, id);
      await orderToy(store, { id: 't1' });
      await caughtUp(store, first);
      await eventually('t1 is closed', () => first.runner.status().closedRuns === 1);
      for (let n = 0; n < systemEvents; n += 1) peer.log.inject('$scavenges', { type: '$scavengeChunks' });
      const behind = (): boolean =>
        first.models.status().every(({ position }) => (position ?? '') > ((ours ?? '') as string));
      const ours = await store.lastPosition();
      await eventually('checkpoints stand behind the last event', behind);
      await close(first);

      const second = await open(await bench.store(peer), dir);
      await caughtUp(store, second);
      expect(second.runner.status()).to.include({ closedRuns: 1, openRuns: 0 });
      expect(troubles()).to.deep.equal([]);
      for (const view of VIEWS)
        expect(
          readdirSync(join(dir, 'read-models')).filter((name) => name.startsWith(view)),
          'the file is the first one still',
        ).to.satisfy((names: string[]) => names.some((name) => name.endsWith('-1.sqlite')));
    });

  /** The first events of a log, as a copy of its files holds them. */
  const copyOf = (log: Log, events: number): Log => {
    const copy = createLog();
    for (const event of log.all.slice(0, events)) copy.inject(event.stream, event);
    return copy;
  };

  const CASES: readonly [what: string, writeOn: (store: EventStoreDbStore) => Promise<void>][] = [
    [
      'written on with larger events: positions lie inside of records',
      async (store) => {
        for (const id of ['c6', 'c7', 'c8']) await order(store, id, 'another-tenant-with-a-longer-name');
        for (const id of ['t6', 't7', 't8']) await orderToy(store, { id, shop: 'a-shop-with-a-longer-name' });
      },
    ],
    [
      'written on with events of the same size: others lie at the same positions',
      async (store) => {
        for (const id of ['c6', 'c7', 'c8']) await order(store, id, 'evil');
        for (const id of ['t6', 't7', 't8']) await orderToy(store, { id });
      },
    ],
    ['shorter than what was read', async () => undefined],
  ];
  for (const [what, writeOn] of CASES)
    it(`are built again from an older copy of the log, ${what}`, async () => {
      const dir = folders.make();
      const peer = await bench.peer();
      const store = await bench.store(peer);
      const first = await open(store, dir);
      await order(store, 'c1');
      await orderToy(store, { id: 't1' });
      await eventually('t1 is closed', () => first.runner.status().closedRuns === 1);
      const kept = peer.log.all.length;
      for (const id of ['c2', 'c3', 'c4']) await order(store, id);
      for (const id of ['t2', 't3', 't4']) await orderToy(store, { id });
      await eventually('all are closed', () => first.runner.status().closedRuns === 4);
      await caughtUp(store, first);
      await close(first);

      const restored = await bench.peer({ log: copyOf(peer.log, kept) });
      const other = await bench.store(restored);
      expect(other.storeId).to.equal(store.storeId);
      await writeOn(other);
      const second = await open(other, dir);
      const told = (of: string): number =>
        lines.filter(({ view, message }) => view === of && REPLACED.test(message)).length;
      for (const of of [...VIEWS, 'runs'])
        await eventually(`${of} has said so`, () => told(of) === 1, 20_000);
      await caughtUp(other, second);
      const orders = restored.log.all.filter(({ type }) => type === 'ToyOrdered').length;
      await eventually(
        'runs of this log alone',
        () => second.runner.status().closedRuns === orders && second.runner.status().openRuns === 0,
        20_000,
      );
      await eventually(
        'live',
        () => second.models.status().every(({ state, caughtUp: all }) => state === 'live' && all),
        20_000,
      );
      await caughtUp(other, second);
      await expectClean(other, second.models);
      for (const of of [...VIEWS, 'runs']) expect(told(of), of).to.equal(1);
      expect(lines.filter(({ level }) => level === 'error')).to.deep.equal([]);
    });
});
