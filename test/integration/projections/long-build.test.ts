import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { RETENTION_CATEGORY } from '../../../src/domain/audit/retention.ts';
import { resourcesView } from '../../../src/projections/resources/resources-view.ts';
import { createApplier } from '../../../src/projections/runner/applier.ts';
import { buildAndCheck, LongLog, type CopyContext } from '../../../src/projections/runner/copy.ts';
import { digestOf } from '../../../src/projections/runner/digest.ts';
import { fileStorage } from '../../../src/projections/runner/storage.ts';
import { openViewFile, readParked } from '../../../src/projections/runner/view-file.ts';
import { changed, createTestLog, marked, poisoned, written } from '../../support/projections/log.ts';
import { noteCodec, noteKind } from '../../support/projections/notes.ts';
import { notesView, openNotes, settle, temporaryFolders } from '../../support/projections/open-notes.ts';

describe('a copy that is built', () => {
  const folders = temporaryFolders();
  const view = notesView();
  const signal = new AbortController().signal;
  after(() => folders.clean());

  const contextOf = async (notes: number): Promise<CopyContext> => {
    const log = createTestLog();
    for (let i = 0; i < notes; i += 1) await log.append(`note-${i}`, written(String(i)), changed('2'));
    const storage = fileStorage(folders.make(), view, log.store.storeId);
    return { view, storage, reader: log.store, pace: 'microtask', onProgress: () => undefined };
  };
  const digest = (copy: string): string => {
    const db = new DatabaseSync(copy, { readOnly: true });
    const { digest: text } = digestOf(db, view);
    db.close();
    return text;
  };
  const schemaOf = (db: DatabaseSync): unknown[] =>
    db.prepare('SELECT name, sql FROM sqlite_schema ORDER BY name').all();

  it('from more events than a shared thread may take goes on elsewhere where it was left', async () => {
    const context = await contextOf(20);
    const [copy, whole] = [context.storage.next(), context.storage.next().replace('-1.', '-9.')];
    const left = await buildAndCheck(copy, undefined, { ...context, most: 10 }, signal).catch(
      (e: unknown) => e,
    );
    expect(left).to.be.instanceOf(LongLog);
    let first: number | undefined;
    const onProgress: CopyContext['onProgress'] = ({ events }) => (first ??= events);
    const { outcome } = await buildAndCheck(copy, undefined, { ...context, onProgress }, signal);
    expect(outcome).to.equal('verified');
    expect(first, 'events before it went on').to.be.greaterThan(10);
    await buildAndCheck(whole, undefined, context, signal);
    expect(digest(copy)).to.equal(digest(whole));
  });

  it('in long transactions parks what any other does, and holds what any other holds', async () => {
    const poisonous = notesView({ poison: () => true });
    const log = createTestLog();
    for (let i = 0; i < 1_500; i += 1) {
      await log.append(`note-${i % 40}`, i < 40 ? written(String(i)) : changed(String(i)), marked('m'));
      if (i === 700 || i === 1_400) await log.append(`note-${i % 40}`, poisoned());
    }
    const all = await log.all();
    const plain = openViewFile(':memory:', poisonous, log.store.storeId);
    const applier = createApplier(plain, poisonous);
    for (let i = 0; i < all.length; i += 100)
      applier.apply(all.slice(i, i + 100), all[Math.min(i + 99, all.length - 1)]?.position ?? '');
    const storage = fileStorage(folders.make(), poisonous, log.store.storeId);
    const copy = storage.next();
    const context = { view: poisonous, storage, reader: log.store, onProgress: () => undefined };
    await buildAndCheck(copy, undefined, { ...context, pace: 'event-loop' }, signal);
    const built = new DatabaseSync(copy, { readOnly: true });
    expect(readParked(built)).to.deep.equal(applier.parked()).and.to.have.length(2);
    expect(digestOf(built, poisonous)).to.deep.equal(digestOf(plain, poisonous));
    built.close();
    plain.close();
  });

  it('erases a person as a live one does', async () => {
    const personal = resourcesView({
      kinds: [{ ...noteKind(), personal: ['spec.text'] }],
      codec: noteCodec(),
    });
    const log = createTestLog();
    await log.append('note-a', written('a'));
    await log.append('note-b', written('b'));
    await log.append('note-a', changed('their name'));
    const storage = fileStorage(folders.make(), personal, log.store.storeId);
    const models = await openNotes(log, { view: personal });
    await settle(models, log);
    await log.append(`${RETENTION_CATEGORY}-x`, { type: 'SubjectKeyDestroyed', data: { subjectId: 'a' } });
    await log.append('note-b', changed('2'));
    await settle(models, log);
    const copy = storage.next();
    const context = { view: personal, storage, reader: log.store, onProgress: () => undefined };
    await buildAndCheck(copy, undefined, { ...context, pace: 'event-loop' }, signal);
    const built = new DatabaseSync(copy, { readOnly: true });
    expect(digestOf(built, personal)).to.deep.equal(await models.digest('resources'));
    const documents = built.prepare('SELECT document FROM changes ORDER BY position').all();
    expect(JSON.stringify(documents)).to.contain('erased').and.not.to.contain('their name');
    const blank = storage.blank();
    expect(schemaOf(built)).to.deep.equal(schemaOf(blank));
    blank.close();
    built.close();
    await models.close();
  });

  it('has the indexes of reads at its end', async () => {
    const context = await contextOf(3);
    const copy = context.storage.next();
    const building = context.storage.build(copy);
    const without = schemaOf(building);
    building.close();
    await buildAndCheck(copy, undefined, context, signal);
    const built = new DatabaseSync(copy, { readOnly: true });
    const blank = context.storage.blank();
    expect(schemaOf(built)).to.deep.equal(schemaOf(blank));
    expect(without.length).to.equal(schemaOf(blank).length - (view.indexesForReads ?? []).length);
    built.close();
    blank.close();
  });

  it('of resources commits at once what a caller may wait for, and nothing that the service does by itself', () => {
    const by = (authMethod: string, stream: string): RecordedEvent =>
      ({ stream, metadata: { actor: { authMethod } } }) as unknown as RecordedEvent;
    const isUrgent = view.isUrgent as (event: RecordedEvent) => boolean;
    expect(isUrgent(by('jwt', 'note-1'))).to.equal(true);
    expect(isUrgent(by('internal', 'note-1'))).to.equal(false);
    expect(isUrgent(by('jwt', 'counter-1'))).to.equal(false);
  });
});
