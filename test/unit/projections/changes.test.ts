import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import { createApplier } from '../../../src/projections/runner/applier.ts';
import { openViewFile } from '../../../src/projections/runner/view-file.ts';
import {
  changed,
  createTestLog,
  deletionRequested,
  removed,
  touched,
  written,
  type TestLog,
} from '../../support/projections/log.ts';
import { notesView } from '../../support/projections/open-notes.ts';

type Change = { position: string; kind: string; id: string; tenant: string; type: string; text: string };

const changesIn = (db: DatabaseSync): Change[] =>
  db
    .prepare(
      `SELECT position, kind, id, tenant, type, document ->> '$.spec.text' AS text
       FROM changes ORDER BY position, n`,
    )
    .all() as unknown as Change[];

/** Applies everything that the log holds, in batches of the given size. */
const applyAll = async (log: TestLog, batch = 100, retentionDays = 90): Promise<DatabaseSync> => {
  const view = notesView({ retentionDays });
  const db = openViewFile(':memory:', view, 'store');
  const applier = createApplier(db, view);
  const events = await log.all();
  for (let i = 0; i < events.length; i += batch) {
    const part = events.slice(i, i + batch);
    applier.apply(part, part.at(-1)?.position ?? '');
  }
  return db;
};

describe('table changes', () => {
  let log: TestLog;
  beforeEach(() => {
    log = createTestLog();
  });

  it('holds one row per append that changed a document, with its type', async () => {
    await log.append('note-a', written('a'));
    await log.append('note-a', touched);
    await log.append('note-a', changed('2'));
    await log.append('note-a', deletionRequested);
    await log.append('note-a', removed);
    await log.append('note-a', changed('unseen'));
    const db = await applyAll(log);
    expect(changesIn(db).map(({ type, text }) => `${type} ${text}`)).to.deep.equal([
      'created first',
      'updated 2',
      'updated 2',
      'deleted 2',
    ]);
    expect(changesIn(db)[0]).to.deep.include({ kind: 'note', id: 'a', tenant: 't1' });
  });

  it('tells of an append of several events once, at the position of the last', async () => {
    for (const batch of [1, 2, 100]) {
      log = createTestLog();
      await log.append('note-a', written('a'), changed('2'));
      const last = await log.append('note-a', changed('3'), touched, changed('4'));
      const db = await applyAll(log, batch);
      expect(changesIn(db).map(({ type, text }) => `${type} ${text}`)).to.deep.equal([
        'created 2',
        'updated 4',
      ]);
      expect(changesIn(db).at(-1)?.position).to.equal(last);
    }
  });

  it('tells of the last update of what was being deleted and of its end, though both are one append', async () => {
    for (const batch of [1, 2, 100]) {
      log = createTestLog();
      await log.append('note-a', written('a'));
      await log.append('note-a', deletionRequested);
      await log.append('note-a', changed('2'));
      await log.append('note-a', changed('3'), changed('4'), removed);
      await log.append('note-b', written('b'));
      await log.append('note-b', deletionRequested, removed);
      const db = await applyAll(log, batch);
      expect(changesIn(db).map(({ id, type, text }) => `${id} ${type} ${text}`)).to.deep.equal([
        'a created first',
        'a updated first',
        'a updated 2',
        'a updated 4',
        'a deleted 4',
        'b created first',
        'b deleted first',
      ]);
    }
  });

  it('says nothing of what came and went in one append', async () => {
    await log.append('note-a', written('a'), removed);
    await log.append('note-b', written('b'));
    await log.append('note-b', changed('2'), removed);
    expect(changesIn(await applyAll(log, 1)).map(({ id, type }) => `${id} ${type}`)).to.deep.equal([
      'b created',
      'b deleted',
    ]);
  });

  it('keeps what is younger than the retention, counted from the newest event', async () => {
    await log.append('note-a', written('a'));
    await log.append('note-a', changed('2'));
    log.passDays(9);
    await log.append('note-a', changed('3'));
    expect(changesIn(await applyAll(log, 1, 10))).to.have.length(3);
    log.passDays(2);
    await log.append('note-a', changed('4'));
    expect(changesIn(await applyAll(log, 1, 10)).map(({ text }) => text)).to.deep.equal(['3', '4']);
  });

  it('prunes in bounded steps', async () => {
    for (let i = 0; i < 10; i += 1) await log.append(`note-${i}`, written(String(i)));
    log.passDays(100);
    await log.append('note-0', changed('x'));
    expect(changesIn(await applyAll(log))).to.have.length(7); // four of ten gone, one new
    await log.append('note-0', changed('y'));
    await log.append('note-0', changed('z'));
    expect(changesIn(await applyAll(log)).map(({ text }) => text)).to.deep.equal(['x', 'y', 'z']);
  });

  it('remembers the last row that retention removed, and none while it removed none', async () => {
    const prunedTo = (db: DatabaseSync): string =>
      String(db.prepare('SELECT pruned_position AS position FROM newest').get()?.['position']);
    const first = await log.append('note-a', written('a'));
    expect(prunedTo(await applyAll(log, 1, 10))).to.equal('');
    log.passDays(11);
    const second = await log.append('note-b', written('b'));
    expect(prunedTo(await applyAll(log, 1, 10))).to.equal(first);
    log.passDays(11);
    await log.append('note-b', changed('2'));
    for (const batch of [1, 2, 100]) expect(prunedTo(await applyAll(log, batch, 10))).to.equal(second);
  });

  it('prunes the same rows whatever the batches were', async () => {
    for (let i = 0; i < 40; i += 1) {
      await log.append(`note-${i}`, written(String(i)));
      log.passDays(i % 7);
      await log.append(`note-${i}`, changed('2'), changed('3'));
      if (i % 3 === 0) await log.append(`note-${i}`, removed);
    }
    const expected = changesIn(await applyAll(log, 1, 10));
    expect(expected.length).to.be.greaterThan(3).and.lessThan(90);
    for (const batch of [2, 7, 50, 1000])
      expect(changesIn(await applyAll(log, batch, 10)), `batches of ${batch}`).to.deep.equal(expected);
  });
});
