import { expect } from 'chai';
import type { DatabaseSync } from 'node:sqlite';
import { LogDamaged, type RecordedEvent } from '../../../src/app/log/event-store.ts';
import {
  createApplier,
  isEnvironmental,
  PoisonEvent,
  Undone,
} from '../../../src/projections/runner/applier.ts';
import { openViewFile, readCheckpoint, readParked } from '../../../src/projections/runner/view-file.ts';
import type { View } from '../../../src/projections/view.ts';
import { changed, createTestLog, poisoned, written, type TestLog } from '../../support/projections/log.ts';
import { notesView, temporaryFolders } from '../../support/projections/open-notes.ts';

const versions = (db: DatabaseSync): string[] =>
  db
    .prepare(`SELECT id || ' ' || (private_json ->> '$.spec.text') AS text FROM resources ORDER BY id`)
    .all()
    .map((row) => String(row['text']));

describe('applier', () => {
  const folders = temporaryFolders();
  let log: TestLog;
  let poison: boolean;
  let view: View;
  let db: DatabaseSync;
  let events: RecordedEvent[];
  const last = (): string => events.at(-1)?.position ?? '';

  beforeEach(async () => {
    log = createTestLog();
    poison = true;
    view = notesView({ poison: () => poison });
    db = openViewFile(':memory:', view, 'store');
    await log.append('note-a', written('a'));
    await log.append('note-b', written('b'));
    await log.append('note-a', poisoned('a2'));
    await log.append('note-b', changed('b2'));
    await log.append('note-a', changed('a3'));
    events = await log.all();
  });
  afterEach(() => {
    if (db.isOpen) db.close();
    folders.clean();
  });

  it('commits rows and checkpoint together', () => {
    poison = false;
    const applier = createApplier(db, view);
    applier.apply(events.slice(0, 2), events[1]?.position ?? '');
    expect(readCheckpoint(db)).to.deep.include({ position: events[1]?.position, events: 2 });
    expect(readCheckpoint(db).recordedAt).to.equal(events[1]?.recordedAt);
    expect(versions(db)).to.deep.equal(['a first', 'b first']);
  });

  it('is consistent after a crash at any statement: neither rows nor checkpoint, and a repeat gives the same', () => {
    const path = `${folders.make()}/view.sqlite`;
    poison = false;
    const expected = versionsOfCleanRun(view, events);
    // A crash is a connection that disappears in the middle of a transaction.
    for (let crashAt = 0; crashAt <= events.length; crashAt += 1) {
      const crashing = openViewFile(path, view, 'store');
      const applyEvent = view.open(crashing);
      crashing.exec('BEGIN IMMEDIATE');
      for (const event of events.slice(0, crashAt)) applyEvent(event);
      applyEvent.flush?.();
      crashing.close();
      const survivor = openViewFile(path, view, 'store');
      expect(readCheckpoint(survivor).position, `after a crash at ${crashAt}`).to.equal(undefined);
      expect(versions(survivor)).to.deep.equal([]);
      survivor.close();
    }
    const restarted = openViewFile(path, view, 'store');
    createApplier(restarted, view).apply(events, last());
    expect(versions(restarted)).to.deep.equal(expected);
    restarted.close();
  });

  it('passes over events at or before its checkpoint', () => {
    poison = false;
    const applier = createApplier(db, view);
    applier.apply(events.slice(0, 4), events[3]?.position ?? '');
    applier.apply(events.slice(2), last());
    expect(applier.checkpoint().events).to.equal(5);
    expect(versions(db)).to.deep.equal(['a a3', 'b b2']);
  });

  it('parks the stream of a poison event and goes on with the others', () => {
    const applier = createApplier(db, view);
    applier.apply(events, last());
    expect(versions(db)).to.deep.equal(['a first', 'b b2']);
    expect(applier.parked()).to.deep.equal([
      {
        stream: 'note-a',
        position: events[2]?.position,
        revision: 1,
        error: 'NotePoisoned: this event cannot be read',
      },
    ]);
    expect(readParked(db)).to.deep.equal(applier.parked());
    expect(applier.checkpoint()).to.deep.include({ position: last(), events: 3 });
  });

  it('remembers after a restart what is parked', async () => {
    createApplier(db, view).apply(events, last());
    await log.append('note-a', changed('a4'));
    const [later] = (await log.all()).slice(-1);
    const restarted = createApplier(db, view);
    restarted.apply([later as RecordedEvent], later?.position ?? '');
    expect(versions(db)).to.deep.equal(['a first', 'b b2']);
  });

  it('brings a parked stream up to the checkpoint once its events can be applied', () => {
    const applier = createApplier(db, view);
    applier.apply(events, last());
    const ofA = events.filter(({ stream }) => stream === 'note-a');

    expect(applier.retry('note-a', ofA)).to.equal(false);
    expect(applier.parked()).to.have.length(1);
    expect(versions(db)).to.deep.equal(['a first', 'b b2']);

    poison = false;
    expect(applier.retry('note-a', ofA)).to.equal(true);
    expect(applier.parked()).to.deep.equal([]);
    expect(versions(db)).to.deep.equal(['a a3', 'b b2']);
    expect(applier.retry('note-b', [])).to.equal(true);
  });

  it('does not retry past its checkpoint', () => {
    const applier = createApplier(db, view);
    applier.apply(events.slice(0, 4), events[3]?.position ?? '');
    poison = false;
    expect(
      applier.retry(
        'note-a',
        events.filter(({ stream }) => stream === 'note-a'),
      ),
    ).to.equal(true);
    expect(versions(db)).to.deep.equal(['a a2', 'b b2']);
    applier.apply(events.slice(4), last());
    expect(versions(db)).to.deep.equal(['a a3', 'b b2']);
  });

  it('stops a view across streams right before the poison event', () => {
    const strict = { ...view, rowsBelongToOneStream: false };
    const applier = createApplier(db, strict);
    expect(() => applier.apply(events, last())).to.throw(PoisonEvent, 'note-a@1');
    expect(applier.checkpoint().position).to.equal(events[1]?.position);
    expect(versions(db)).to.deep.equal(['a first', 'b first']);
    poison = false;
    applier.apply(events, last());
    expect(versions(db)).to.deep.equal(['a a3', 'b b2']);
  });

  it('stops right before an event of which the view says that the log is damaged, and does not blame the view', () => {
    const found = new LogDamaged('one is missing', {
      event: 'note-a@1',
      position: events[2]?.position ?? '',
    });
    let isMended = false;
    const watchful: View = {
      ...view,
      open: (file) => {
        const apply = view.open(file);
        return Object.assign((event: RecordedEvent) => {
          if (!isMended && event.position === events[2]?.position) throw found;
          apply(event);
        }, apply);
      },
    };
    poison = false;
    const applier = createApplier(db, watchful);
    expect(() => applier.apply(events, last())).to.throw(found);
    expect(applier.checkpoint()).to.deep.include({ position: events[1]?.position, events: 2 });
    expect(applier.parked()).to.deep.equal([]);
    expect(versions(db)).to.deep.equal(['a first', 'b first']);
    isMended = true;
    applier.apply(events, last());
    expect(versions(db)).to.deep.equal(['a a3', 'b b2']);
  });

  it('keeps a transaction open over many batches, and commits all of it with the next one', () => {
    const path = `${folders.make()}/view.sqlite`;
    poison = false;
    const file = openViewFile(path, view, 'store');
    const reader = openViewFile(path, view, 'store');
    const applier = createApplier(file, view);
    applier.applyOn(events.slice(0, 2), events[1]?.position ?? '');
    applier.applyOn(events.slice(1, 4), events[3]?.position ?? '');
    expect(applier.checkpoint()).to.deep.include({ position: events[3]?.position, events: 4 });
    expect(readCheckpoint(reader).position).to.equal(undefined);
    applier.apply(events.slice(4), last());
    expect(readCheckpoint(reader)).to.deep.equal(applier.checkpoint());
    expect(readCheckpoint(reader)).to.deep.include({ position: last(), events: 5 });
    expect(versions(reader)).to.deep.equal(['a a3', 'b b2']);
    reader.close();
    file.close();
  });

  it('undoes all of an open transaction at an event that cannot be applied, and parks it when all of it comes again', () => {
    for (const fails of ['applyOn', 'apply'] as const) {
      const fresh = openViewFile(':memory:', view, 'store');
      const applier = createApplier(fresh, view);
      applier.apply(events.slice(0, 1), events[0]?.position ?? '');
      applier.applyOn(events.slice(1, 2), events[1]?.position ?? '');
      expect(() => applier[fails](events.slice(2), last())).to.throw(Undone, 'cannot be read');
      expect(applier.checkpoint()).to.deep.include({ position: events[0]?.position, events: 1 });
      expect(fresh.isTransaction).to.equal(false);
      applier.apply(events.slice(1), last());
      expect(versions(fresh)).to.deep.equal(['a first', 'b b2']);
      expect(applier.parked().map(({ stream, revision }) => `${stream}@${revision}`)).to.deep.equal([
        'note-a@1',
      ]);
      fresh.close();
    }
  });

  it('keeps nothing of a batch when the file cannot be written, and does not blame an event', () => {
    poison = false;
    const path = `${folders.make()}/view.sqlite`;
    const small = openViewFile(path, view, 'store');
    const pages = small.prepare('PRAGMA page_count').get()?.['page_count'] as number;
    small.exec(`PRAGMA max_page_count = ${pages}`);
    const applier = createApplier(small, view);
    const big = events.map((event) =>
      event.type === 'NoteChanged' ? { ...event, data: { text: 'x'.repeat(50_000) } } : event,
    );
    expect(() => applier.apply(big, last())).to.throw('full');
    expect(applier.parked()).to.deep.equal([]);
    expect(applier.checkpoint().position).to.equal(undefined);

    small.exec('PRAGMA max_page_count = 1000000'); // space returns
    applier.apply(events, last());
    expect(versions(small)).to.deep.equal(['a a3', 'b b2']);
    small.close();
  });

  it('tells errors of the machine from errors of an event', () => {
    const sqlite = (errcode: number) => Object.assign(new Error('x'), { code: 'ERR_SQLITE_ERROR', errcode });
    expect(isEnvironmental(sqlite(13))).to.equal(true); // full
    expect(isEnvironmental(sqlite(778))).to.equal(true); // an extended I/O error
    expect(isEnvironmental(sqlite(2067))).to.equal(false); // unique
    expect(isEnvironmental(new Error('x'))).to.equal(false);
    expect(isEnvironmental(undefined)).to.equal(false);
  });
});

const versionsOfCleanRun = (view: View, events: readonly RecordedEvent[]): string[] => {
  const db = openViewFile(':memory:', view, 'store');
  createApplier(db, view).apply(events, events.at(-1)?.position ?? '');
  const result = versions(db);
  db.close();
  return result;
};
