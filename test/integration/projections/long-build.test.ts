import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { buildAndCheck, LongLog, type CopyContext } from '../../../src/projections/runner/copy.ts';
import { digestOf } from '../../../src/projections/runner/digest.ts';
import { fileStorage } from '../../../src/projections/runner/storage.ts';
import { changed, createTestLog, written } from '../../support/projections/log.ts';
import { notesView, temporaryFolders } from '../../support/projections/open-notes.ts';

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
