import { expect } from 'chai';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { changed, createTestLog, marked, written, type TestLog } from '../../support/projections/log.ts';
import { openNotes, settle, temporaryFolders } from '../../support/projections/open-notes.ts';
import { EVERYONE, VERSION, breathing, filesIn, pointedAt, tamper, textOf } from './view-files.ts';
import { eventually } from '../../support/eventually.ts';

describe('rebuild of a view', () => {
  const folders = temporaryFolders();
  let log: TestLog;
  let dir: string;
  let models: ReadModels;

  const fill = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) {
      await log.append(`note-${i}`, written(String(i)));
      await log.append(`note-${i}`, changed('2'), marked('m'));
    }
  };

  beforeEach(async () => {
    log = createTestLog();
    dir = folders.make();
    await fill(20);
    models = await openNotes(log, { dir });
    await settle(models, log);
  });
  afterEach(async () => {
    await models.close();
    folders.clean();
  });

  it('switches to an equal copy; nothing of the old one is left', async () => {
    const before = await models.digest('resources');
    const progress: number[] = [];
    const report = await models.rebuild('resources', { onProgress: (events) => progress.push(events) });
    expect(report).to.deep.include({ outcome: 'switched', differences: [], position: before.position });
    expect(report.events).to.equal(60);
    expect(progress.at(-1)).to.equal(60);
    expect(await models.digest('resources')).to.deep.equal(before);
    expect(filesIn(dir)).to.deep.equal([`resources-v${VERSION}-2.sqlite`, 'resources.current']);
    expect(pointedAt(dir)).to.equal(`resources-v${VERSION}-2.sqlite`);

    await log.append('note-0', changed('after'));
    await settle(models, log);
    expect(textOf(models, '0')).to.equal('after');
  });

  it('goes on with the same copy after a restart', async () => {
    await models.rebuild('resources');
    const before = await models.digest('resources');
    await models.close();
    await log.append('note-1', changed('while away'));
    models = await openNotes(log, { dir });
    expect(models.status()[0]).to.deep.include({ position: before.position, state: 'live' });
    await settle(models, log);
    expect(textOf(models, '1')).to.equal('while away');
    expect(filesIn(dir)).to.deep.equal([`resources-v${VERSION}-2.sqlite`, 'resources.current']);
  });

  it('lets reads and writes go on meanwhile, and no read ever goes back', async () => {
    await models.close();
    models = await openNotes(log, { dir, pace: 'event-loop', reader: breathing(log.store) });
    let stop = false;
    let appended = 0;
    let lastSeen = '';
    const appender = (async () => {
      while (!stop) {
        appended += 1;
        const position = await log.append('note-0', changed(String(appended)));
        expect(await models.waitFor('resources', position, { timeoutMs: 5000 })).to.equal(true);
        const seen = models.resources.get('note', '0', EVERYONE)?.position ?? '';
        expect(seen >= position && seen >= lastSeen, `${seen} after ${position}`).to.equal(true);
        lastSeen = seen;
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    for (let round = 0; round < 3; round += 1)
      expect((await models.rebuild('resources')).outcome).to.equal('switched');
    const duringRebuilds = appended;
    stop = true;
    await appender;
    expect(duringRebuilds).to.be.greaterThan(3);
    await settle(models, log);
    expect(textOf(models, '0')).to.equal(String(appended));

    const clean = await openNotes(log);
    await settle(clean, log);
    expect(await models.digest('resources')).to.deep.equal(await clean.digest('resources'));
    await clean.close();
  });

  it('reports the first differing rows and keeps the live copy, unless it is forced', async () => {
    tamper(dir, `UPDATE resources SET private_json = '{"tampered":true}' WHERE id = '7'`);
    tamper(dir, `DELETE FROM marks WHERE id = '3'`);
    const report = await models.rebuild('resources');
    expect(report.outcome).to.equal('differs');
    expect(report.differences).to.have.length(2);
    expect(report.differences[0]).to.equal('marks ["note","m","t1","3"]: only in the rebuilt copy');
    expect(report.differences[1]).to.match(/^resources \["note","7"\]: differs in private_json \(live "\{/);
    expect(filesIn(dir)).to.deep.equal([`resources-v${VERSION}-1.sqlite`, 'resources.current']);
    expect(models.resources.get('note', '7', EVERYONE)?.privateJson).to.equal('{"tampered":true}');

    const forced = await models.rebuild('resources', { force: true });
    expect(forced).to.deep.include({ outcome: 'switched', differences: report.differences });
    expect(textOf(models, '7')).to.equal('2');
    expect((await models.rebuild('resources')).outcome).to.equal('switched');
  });

  it('is cancelled without a trace', async () => {
    const before = await models.digest('resources');
    const controller = new AbortController();
    const report = await models.rebuild('resources', {
      signal: controller.signal,
      onProgress: () => controller.abort(),
    });
    expect(report.outcome).to.equal('cancelled');
    expect((await models.rebuild('resources', { signal: AbortSignal.abort() })).outcome).to.equal(
      'cancelled',
    );
    expect(filesIn(dir)).to.deep.equal([`resources-v${VERSION}-1.sqlite`, 'resources.current']);
    expect(readdirSync(dir).filter((name) => name.includes('-v1-2'))).to.deep.equal([]);
    expect(await models.digest('resources')).to.deep.equal(before);
    expect(models.status()[0]).to.include({ state: 'live' });
    await log.append('note-0', changed('still live'));
    await settle(models, log);
    expect(textOf(models, '0')).to.equal('still live');
  });

  it('ends with the service and leaves nothing behind', async () => {
    await models.close();
    let waiting = 0;
    const endless = {
      ...log.store,
      subscribe: async function* (options: Parameters<typeof log.store.subscribe>[0]) {
        for await (const item of log.store.subscribe(options)) {
          yield item;
          waiting += 1;
          if (waiting === 30) await once(options.signal, 'abort');
        }
      },
    };
    models = await openNotes(log, { dir: folders.make(), reader: endless });
    await eventually('waiting in the first build', () => waiting === 30);
    expect(models.status()[0]).to.deep.include({ state: 'rebuilding', position: undefined, caughtUp: false });
    expect(models.status()[0]?.rebuild?.target).to.equal(await log.lastPosition());
    await models.close();

    models = await openNotes(log, { dir });
    await settle(models, log);
    await models.close();
    models = await openNotes(log, { dir, reader: endless });
    waiting = -1000;
    await eventually('live', () => models.status()[0]?.caughtUp === true);
    waiting = 0;
    const rebuilding = models.rebuild('resources');
    await eventually('waiting in a rebuild', () => waiting === 30);
    await models.close();
    expect((await rebuilding).outcome).to.equal('cancelled');
    expect(readdirSync(dir).toSorted()).to.deep.equal([
      `resources-v${VERSION}-1.sqlite`,
      'resources.current',
    ]);
  });

  it('can be asked for as soon as the first copy is there, and is silent when it is over', async () => {
    const fresh = await openNotes(log, { dir: folders.make() });
    const last = (await log.lastPosition()) ?? '';
    expect(await fresh.waitFor('resources', last, { timeoutMs: 5000 })).to.equal(true);
    let told = 0;
    const report = await fresh.rebuild('resources', { onProgress: () => (told += 1) });
    expect(report.outcome).to.equal('switched');
    const toldBefore = told;
    await log.append('note-0', changed('afterwards'));
    await settle(fresh, log);
    expect(told).to.equal(toldBefore).and.greaterThan(0);
    await fresh.close();
  });

  it('runs once at a time and shows how far it is', async () => {
    let during: ReturnType<ReadModels['status']>[number] | undefined;
    const first = models.rebuild('resources', { onProgress: () => (during ??= models.status()[0]) });
    const second = await models.rebuild('resources').catch((error: Error) => error);
    expect(second)
      .to.be.instanceOf(Error)
      .with.property('message', 'a rebuild of resources is already running');
    expect((await first).outcome).to.equal('switched');
    expect(during?.state).to.equal('rebuilding');
    expect(during?.rebuild?.events).to.be.greaterThan(0);
    expect(during?.rebuild?.target).to.equal(await log.lastPosition());
    expect(models.status()[0]).not.to.have.property('rebuild');
  });
});
