import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import type { Logger } from '../../../../src/app/ports.ts';
import { openReadModels } from '../../../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../../../src/projections/read-models.ts';
import { changed, createTestLog, poisoned, written, type TestLog } from '../../../support/projections/log.ts';
import { createViews, type NoteViewsConfig } from '../../../support/projections/note-views.ts';
import { notesView, openNotes, settle, temporaryFolders } from '../../../support/projections/open-notes.ts';
import { createBench } from '../../../support/eventstoredb-peer/fixture.ts';
import { eventually } from '../../../support/eventually.ts';

const EVERYONE = { all: true } as const;
const VERSION = notesView().version;
const support = (name: string): string =>
  new URL(`../../../support/projections/${name}`, import.meta.url).href;

describe('read models in worker threads, on the embedded log', function () {
  this.timeout(60_000);
  const folders = temporaryFolders();
  let dataDir: string;
  let store: SqliteEventStore;
  let log: TestLog;
  let models: ReadModels | undefined;

  const open = async (config: NoteViewsConfig = {}): Promise<ReadModels> => {
    models = await openReadModels({
      dir: `${dataDir}/read-models`,
      views: createViews(config),
      source: {
        kind: 'worker',
        storeId: store.storeId,
        readerModule: new URL('../../../../src/composition/log-reader-module.ts', import.meta.url).href,
        readerConfig: { kind: 'sqlite', dataDir },
        viewsModule: support('note-views.ts'),
        viewsConfig: config,
      },
    });
    return models;
  };
  const textOf = (of: ReadModels, id: string): unknown => {
    const row = of.resources.get('note', id, EVERYONE);
    return row === undefined
      ? undefined
      : (JSON.parse(row.privateJson) as { spec: { text: string } }).spec.text;
  };

  beforeEach(async () => {
    dataDir = folders.make();
    store = await openSqliteEventStore({ dataDir });
    log = createTestLog(store);
  });
  afterEach(async () => {
    await models?.close();
    models = undefined;
    await store.close();
    folders.clean();
  });

  it('follow the log, answer waits, and give the digest of a clean inline build', async () => {
    await log.append('note-a', written('a'));
    const opened = await open();
    await settle(opened, log);
    for (let i = 0; i < 50; i += 1) {
      const position = await log.append('note-a', changed(String(i)));
      expect(await opened.waitFor('resources', position, { timeoutMs: 5000 })).to.equal(true);
      expect(textOf(opened, 'a')).to.equal(String(i));
    }
    const clean = await openNotes(log);
    await settle(clean, log);
    expect(await opened.digest('resources')).to.deep.equal(await clean.digest('resources'));
    await clean.close();
  });

  it('that gather for long are woken by those who wait', async () => {
    await log.append('note-a', written('a'));
    const opened = await open({ patient: true });
    await settle(opened, log);
    for (let i = 0; i < 5; i += 1) {
      const position = await log.append('note-a', changed(String(i)));
      void opened.waitFor('resources', `9${position.slice(1)}`, { timeoutMs: 60_000 });
      expect(await opened.waitFor('resources', position, { timeoutMs: 30_000 })).to.equal(true);
      expect(textOf(opened, 'a')).to.equal(String(i));
    }
  });

  it('are rebuilt beside the live copy while appends go on', async () => {
    for (let i = 0; i < 200; i += 1) await log.append(`note-${i}`, written(String(i)), changed('2'));
    const opened = await open();
    await settle(opened, log);
    await eventually('live', () => opened.status()[0]?.state === 'live');
    let running = true;
    const appender = (async () => {
      let count = 0;
      while (running) {
        count += 1;
        const position = await log.append('note-0', changed(`during ${count}`));
        expect(await opened.waitFor('resources', position, { timeoutMs: 5000 })).to.equal(true);
        expect(textOf(opened, '0')).to.equal(`during ${count}`);
      }
      return count;
    })();
    const report = await opened.rebuild('resources');
    running = false;
    expect(await appender).to.be.greaterThan(0);
    expect(report).to.deep.include({ outcome: 'switched', differences: [] });
    expect(report.events).to.be.greaterThan(399);
    await settle(opened, log);
    const names = readdirSync(`${dataDir}/read-models`).filter((name) => name.endsWith('.sqlite'));
    expect(names).to.deep.equal([`resources-v${VERSION}-2.sqlite`]);

    const clean = await openNotes(log);
    await settle(clean, log);
    expect(await opened.digest('resources')).to.deep.equal(await clean.digest('resources'));
    await clean.close();
  });

  it('cancel a rebuild and leave nothing behind', async () => {
    for (let i = 0; i < 50; i += 1) await log.append(`note-${i}`, written(String(i)));
    const opened = await open();
    await settle(opened, log);
    await eventually('live', () => opened.status()[0]?.state === 'live');
    const controller = new AbortController();
    const rebuilding = opened.rebuild('resources', { signal: controller.signal });
    await eventually('rebuilding', () => opened.status()[0]?.state === 'rebuilding');
    controller.abort();
    expect((await rebuilding).outcome).to.equal('cancelled');
    const names = readdirSync(`${dataDir}/read-models`).filter((name) => name.includes('-v1-2'));
    expect(names).to.deep.equal([]);
    expect(opened.status()[0]?.state).to.equal('live');
  });

  it('park and retry poison events across the thread', async () => {
    await log.append('note-a', written('a'));
    await log.append('note-a', poisoned('cured'));
    const opened = await open({ poison: true });
    await settle(opened, log);
    expect(opened.status()[0]?.parkedStreams[0]?.stream).to.equal('note-a');
    expect(await opened.retryParked('resources', 'note-a')).to.equal(false);
    expect(await opened.retryParked('resources', 'note-never-parked')).to.equal(true);
    await eventually('live', () => opened.status()[0]?.state === 'live');
    await opened.close();

    const cured = await open();
    await settle(cured, log);
    expect(cured.status()[0]?.parkedStreams).to.have.length(1);
    expect(await cured.retryParked('resources', 'note-a')).to.equal(true);
    await eventually('no longer parked', () => cured.status()[0]?.parkedStreams.length === 0);
    expect(textOf(cured, 'a')).to.equal('cured');
  });

  it('are failed while their thread is dead, and start again', async () => {
    await log.append('note-a', written('a'));
    const opened = await open({ deadly: 'boom' });
    await settle(opened, log);
    await log.append('note-a', changed('boom'));
    await eventually('failed', () => opened.status()[0]?.state === 'failed');
    expect(opened.status()[0]?.error).to.match(/exited with code 7/);
    expect(opened.status()[0]).to.include({ caughtUp: false }).and.not.have.property('damaged');
    expect(textOf(opened, 'a'), 'reads go on').to.equal('first');
    await opened.close();

    const repaired = await open();
    await settle(repaired, log);
    expect(textOf(repaired, 'a')).to.equal('boom');
  });

  it('say that the log is damaged, and where', async () => {
    const [, position] = [await log.append('note-a', written('a')), await log.append('note-a', changed('b'))];
    const db = new DatabaseSync(join(dataDir, 'events.db'));
    db.exec('UPDATE events SET checksum = checksum + 1 WHERE revision = 1');
    db.close();
    const opened = await open();
    await eventually('failed', () => opened.status()[0]?.state === 'failed');
    expect(opened.status()[0]?.damaged).to.deep.equal({ at: { event: 'note-a@1', position } });
  });

  it('log through the service, with the name of the view, what the log reader of their thread says', async () => {
    const bench = createBench();
    try {
      const peer = await bench.peer();
      const other = await bench.store(peer);
      await createTestLog(other).append('note-a', written('a'));
      const lines: { level: string; view: unknown; message: string; fields: object }[] = [];
      const loggerOf = (bound: object): Logger => {
        const at = (level: string) => (fields: object, message: string) =>
          void lines.push({ level, message, fields, view: 'view' in bound ? bound.view : undefined });
        return {
          debug: at('debug'),
          info: at('info'),
          warn: at('warn'),
          error: at('error'),
          child: (more) => loggerOf({ ...bound, ...more }),
        };
      };
      models = await openReadModels({
        dir: `${dataDir}/read-models`,
        views: createViews({}),
        logger: loggerOf({}),
        source: {
          kind: 'worker',
          storeId: other.storeId,
          readerModule: new URL('../../../../src/composition/log-reader-module.ts', import.meta.url).href,
          readerConfig: {
            kind: 'eventstoredb',
            connectionString: peer.connectionString,
            instance: 'a',
            deadlineMs: 1500,
          },
          viewsModule: support('note-views.ts'),
          viewsConfig: {},
        },
      });
      const opened = models;
      await eventually('live', () => opened.status()[0]?.caughtUp === true, 10_000);
      const before = lines.length;
      peer.cutConnections();
      await eventually(
        'a drop was told',
        () => lines.slice(before).some(({ message }) => message.includes('subscription')),
        10_000,
      );
      const told = lines.slice(before).filter(({ message }) => message.includes('subscription'));
      expect(told.map(({ view }) => view)).to.include('resources');
      expect(told[0]?.fields).to.have.property('component', 'eventstoredb');
    } finally {
      await models?.close();
      models = undefined;
      await bench.clean();
    }
  });

  it('say what is wrong with their modules', async () => {
    models = await openReadModels({
      dir: `${dataDir}/read-models`,
      views: createViews({}),
      source: {
        kind: 'worker',
        storeId: store.storeId,
        readerModule: support('no-such-module.ts'),
        readerConfig: { dataDir },
        viewsModule: support('note-views.ts'),
        viewsConfig: {},
      },
    });
    const opened = models;
    await eventually('failed', () => opened.status()[0]?.state === 'failed');
    expect(opened.status()[0]?.error).to.contain('no-such-module');
  });
});
