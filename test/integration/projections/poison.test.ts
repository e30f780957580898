import { expect } from 'chai';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { changed, createTestLog, poisoned, written, type TestLog } from '../../support/projections/log.ts';
import { notesView, openNotes, settle, temporaryFolders } from '../../support/projections/open-notes.ts';
import { textOf } from './view-files.ts';
import { eventually } from '../../support/eventually.ts';

describe('poison events of a running view', () => {
  const folders = temporaryFolders();
  let log: TestLog;
  let poison: boolean;
  let models: ReadModels;

  beforeEach(async () => {
    log = createTestLog();
    poison = true;
    await log.append('note-a', written('a'));
    await log.append('note-a', poisoned('cured'));
    await log.append('note-a', changed('later'));
    await log.append('note-b', written('b'));
    models = await openNotes(log, { dir: folders.make(), poison: () => poison });
    await settle(models, log);
  });
  afterEach(async () => {
    await models.close();
    folders.clean();
  });

  it('are shown, and the others are served', async () => {
    expect(models.status()[0]?.parkedStreams).to.have.length(1);
    expect(models.status()[0]?.parkedStreams[0]).to.deep.include({
      stream: 'note-a',
      error: 'NotePoisoned: this event cannot be read',
    });
    expect(textOf(models, 'a')).to.equal('first');
    expect(textOf(models, 'b')).to.equal('first');
  });

  it('are applied by a retry once they can be', async () => {
    expect(await models.retryParked('resources', 'note-a')).to.equal(false);
    poison = false;
    expect(await models.retryParked('resources', 'note-a')).to.equal(true);
    expect(textOf(models, 'a')).to.equal('later');
    expect(models.status()[0]?.parkedStreams).to.deep.equal([]);

    const clean = await openNotes(log);
    await settle(clean, log);
    expect(await models.digest('resources')).to.deep.equal(await clean.digest('resources'));
    await clean.close();
  });

  it('are cured by a rebuild with the corrected code', async () => {
    expect((await models.rebuild('resources')).outcome, 'equally parked').to.equal('switched');
    expect(models.status()[0]?.parkedStreams).to.have.length(1);
    poison = false;
    const report = await models.rebuild('resources');
    expect(report).to.deep.include({ outcome: 'switched', differences: [] });
    expect(models.status()[0]?.parkedStreams).to.deep.equal([]);
    expect(textOf(models, 'a')).to.equal('later');
  });

  it('stop a view across streams, visibly, until a rebuild', async () => {
    const view = { ...notesView({ poison: () => poison }), rowsBelongToOneStream: false };
    const strict = await openNotes(log, { dir: folders.make(), view });
    await eventually('stopped', () => strict.status()[0]?.state === 'stopped');
    expect(strict.status()[0]?.error).to.contain('note-a@1');
    expect(strict.status()[0]).to.include({ caughtUp: false });
    expect(await strict.waitFor('resources', (await log.lastPosition()) ?? '', { timeoutMs: 5 })).to.equal(
      false,
    );
    await strict.close();
  });
});
