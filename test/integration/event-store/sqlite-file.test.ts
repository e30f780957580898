import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import fc from 'fast-check';
import { checkAtStart } from '../../../src/adapters/event-store/sqlite/check-at-start.ts';
import { checkSqliteStore } from '../../../src/adapters/event-store/sqlite/check-store.ts';
import { StoreDamaged, StoreTooNew } from '../../../src/adapters/event-store/sqlite/errors.ts';
import { logFile } from '../../../src/adapters/event-store/sqlite/files.ts';
import { createLogReader } from '../../../src/adapters/event-store/sqlite/log-reader.ts';
import { openSqliteLogReader } from '../../../src/adapters/event-store/sqlite/open-log-reader.ts';
import { MIGRATIONS, openLogForWriting, pragma } from '../../../src/adapters/event-store/sqlite/schema.ts';
import { createGrowth } from '../../../src/adapters/event-store/shared/paged-subscription.ts';
import { all, errorOf, event, numbered } from './contract/fixture.ts';
import { resources } from './support/files.ts';
import { cases, checkAsync } from '../../support/property.ts';

const PAGE = 4096;
const SECRET = 'the text in which a byte is flipped';

describe('sqlite event store: the file', function () {
  this.timeout(60_000);
  const made = resources();
  afterEach(made.endAll);

  /** A closed log with long and short streams, and events that span pages. */
  const filled = async (): Promise<string> => {
    const dataDir = await made.dataDir();
    const store = await made.openStore(dataDir);
    for (let n = 0; n < 30; n += 1) await store.append(`short-${n}`, 'no_stream', numbered('Short', 3));
    await store.append('long', 'no_stream', [...numbered('Long', 60), event('Long', { text: SECRET })]);
    await store.append('large', 'no_stream', [event('Large', { text: 'x'.repeat(20_000) })]);
    await store.setMaxCount('sys-bounded', 2);
    await store.append('sys-bounded', 'no_stream', numbered('Bounded', 5));
    await store.close();
    return dataDir;
  };
  const copyOf = async (dataDir: string, change: (bytes: Buffer) => void): Promise<string> => {
    const copy = await made.dataDir();
    const bytes = await readFile(logFile(dataDir));
    change(bytes);
    await writeFile(logFile(copy), bytes);
    return copy;
  };
  /** What a start does to the file, without a thread. */
  const open = (dataDir: string): DatabaseSync => {
    const file = logFile(dataDir);
    return openLogForWriting({ file, check: (db) => checkAtStart(db, file, 2000) });
  };
  const execOn = (dataDir: string, sql: string): void => {
    const db = new DatabaseSync(logFile(dataDir));
    db.exec(sql);
    db.close();
  };

  describe('damaged', () => {
    it('is refused at start wherever a page was overwritten', async () => {
      const dataDir = await filled();
      const pages = (await readFile(logFile(dataDir))).length / PAGE;
      expect(pages).to.be.greaterThan(10);
      for (let page = 0; page < pages; page += 1) {
        const copy = await copyOf(dataDir, (bytes) => bytes.fill(0xa5, page * PAGE, (page + 1) * PAGE));
        expect(() => open(copy), `page ${page + 1} of ${pages}`).to.throw(StoreDamaged);
      }
    });

    it('is refused by the store with the file and the command to run, and by a reader', async () => {
      const dataDir = await filled();
      const copy = await copyOf(dataDir, (bytes) => bytes.fill(0xa5, 3 * PAGE, 4 * PAGE));
      const refused = await errorOf(made.openStore(copy));
      expect(refused).to.be.instanceOf(StoreDamaged);
      expect((refused as Error).message)
        .to.include(logFile(copy))
        .and.to.include('ledgerctl store check');
      const noDatabase = await copyOf(dataDir, (bytes) => bytes.fill(0xa5, 0, PAGE));
      expect(await errorOf(made.openStore(noDatabase))).to.be.instanceOf(StoreDamaged);
      const [found] = (await checkSqliteStore(noDatabase)).findings;
      expect(found?.check).to.equal('file');
      expect(found?.finding, 'the check does not advise to run it').not.to.include('store check');
      expect(() => openSqliteLogReader({ dataDir: noDatabase })).to.throw(StoreDamaged);
    });

    it('is refused for one flipped bit in the text of an event, which SQLite does not notice', async () => {
      const dataDir = await filled();
      const copy = await copyOf(dataDir, (bytes) => {
        const at = bytes.indexOf(SECRET);
        bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      });
      const db = new DatabaseSync(logFile(copy));
      expect(db.prepare('PRAGMA integrity_check').get()).to.deep.equal({ integrity_check: 'ok' });
      db.close();
      expect(() => open(copy)).to.throw(StoreDamaged, 'long@60');
      const { findings } = await checkSqliteStore(copy);
      expect(findings.map((f) => f.check)).to.deep.equal(['checksum']);
    });

    it('is looked for at start in the newest events; what that does not reach is refused when it is read', async () => {
      const dataDir = await filled();
      const copy = await copyOf(dataDir, (bytes) => {
        const at = bytes.indexOf(SECRET);
        bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      });
      const file = logFile(copy);
      const db = new DatabaseSync(file);
      const { behind } = db
        .prepare(
          'SELECT max(position) - (SELECT position FROM events WHERE revision = 60) AS behind FROM events',
        )
        .get() as { behind: number };
      db.close();
      const openWith = (newest: number) =>
        openLogForWriting({ file, check: (opened) => checkAtStart(opened, file, newest) });
      expect(() => openWith(behind + 1)).to.throw(StoreDamaged, 'long@60');
      openWith(behind).close();
      const reader = openSqliteLogReader({ dataDir: copy });
      const error = await errorOf(Array.fromAsync(reader.readStream('long')));
      expect(error).to.be.instanceOf(StoreDamaged);
      await reader.close();
    });

    it('is never read as something else: any flipped bit is refused, or every event is as it was', async () => {
      const dataDir = await filled();
      const size = (await readFile(logFile(dataDir))).length;
      const eventsOf = async (db: DatabaseSync, file: string): Promise<string> => {
        const reader = createLogReader(db, file, createGrowth());
        try {
          return JSON.stringify(await all(reader.readAll({ limit: Infinity })));
        } finally {
          await reader.close();
        }
      };
      const before = await eventsOf(open(dataDir), logFile(dataDir));
      const anyBit = fc.tuple(fc.nat({ max: size - 1 }), fc.nat({ max: 7 }));
      await checkAsync(
        fc.asyncProperty(anyBit, async ([offset, bit]) => {
          const copy = await copyOf(dataDir, (bytes) =>
            bytes.writeUInt8(bytes.readUInt8(offset) ^ (1 << bit), offset),
          );
          let db: DatabaseSync;
          try {
            db = open(copy);
          } catch (error) {
            expect(error).to.satisfy((e: unknown) => e instanceof StoreDamaged || e instanceof StoreTooNew);
            return;
          }
          expect((await eventsOf(db, logFile(copy))) === before, 'the events are what they were').to.equal(
            true,
          );
        }),
        { numRuns: cases(150) },
      );
    });

    it('throws instead of handing out an event that was changed while the store was open', async () => {
      const dataDir = await filled();
      const store = await made.openStore(dataDir);
      execOn(dataDir, `UPDATE events SET data = '{"n":99}' WHERE position = 3`);
      expect(await errorOf(all(store.readAll({ limit: 10 })))).to.be.instanceOf(StoreDamaged);
      const { signal } = new AbortController();
      expect(await errorOf(all(store.subscribe({ signal })))).to.be.instanceOf(StoreDamaged);
      await store.close();
    });
  });

  describe('checked offline', () => {
    it('is as sound while a service writes to it', async () => {
      const dataDir = await made.dataDir();
      const store = await made.openStore(dataDir);
      await store.setMaxCount('sys-bounded', 2);
      let checking = true;
      const writing = (async (): Promise<void> => {
        for (let n = 0; checking; n += 1) {
          await store.append(`written-${n}`, 'no_stream', numbered('Written', 2));
          await store.append('sys-bounded', n === 0 ? 'no_stream' : n - 1, [event('Bounded')]);
        }
      })();
      for (let n = 0; n < 200; n += 1) {
        const { findings } = await checkSqliteStore(dataDir);
        expect(findings, `check ${n}`).to.deep.equal([]);
      }
      checking = false;
      await writing;
    });

    it('a sound log has no findings, and its counts', async () => {
      const dataDir = await filled();
      expect(await checkSqliteStore(dataDir)).to.deep.equal({
        file: logFile(dataDir),
        events: 30 * 3 + 61 + 1 + 2,
        streams: 33,
        findings: [],
        count: 0,
      });
    });

    const damages: { name: string; sql: string; checks: string[]; names: string }[] = [
      {
        name: 'a missing revision',
        sql: "DELETE FROM events WHERE stream = (SELECT id FROM streams WHERE name = 'long') AND revision = 7",
        checks: ['revisions'],
        names: 'long has 60 events from 0 to 60',
      },
      {
        name: 'a stream without its beginning',
        sql: "DELETE FROM events WHERE stream = (SELECT id FROM streams WHERE name = 'short-4') AND revision = 0",
        checks: ['revisions'],
        names: 'short-4 begins at revision 1',
      },
      {
        name: 'a missing end of a stream',
        sql: "DELETE FROM events WHERE stream = (SELECT id FROM streams WHERE name = 'short-4') AND revision = 2",
        checks: ['positions'],
        names: '1 more position',
      },
      {
        name: 'data that is no JSON',
        sql: "UPDATE events SET data = '{' WHERE position = 5",
        checks: ['checksum', 'json'],
        names: 'position 5',
      },
      {
        name: 'an event of another stream',
        sql: "UPDATE events SET stream = (SELECT id FROM streams WHERE name = 'large'), revision = 1 WHERE position = 89",
        checks: ['checksum', 'revisions'],
        names: 'large@1',
      },
      {
        name: 'an event of no stream',
        sql: "PRAGMA foreign_keys = OFF; DELETE FROM streams WHERE name = 'large'",
        checks: ['reference'],
        names: 'belongs to no stream',
      },
    ];
    for (const { name, sql, checks, names } of damages) {
      it(`finds ${name}`, async () => {
        const dataDir = await filled();
        execOn(dataDir, sql);
        const { findings, count } = await checkSqliteStore(dataDir);
        const found = new Set(findings.map((f) => f.check));
        for (const check of checks) expect([...found]).to.include(check);
        expect(findings.map((f) => f.finding).join('\n')).to.include(names);
        expect(count).to.be.at.least(findings.length);
      });
    }

    it('reports an unreadable file and a missing one as findings', async () => {
      const empty = await made.dataDir();
      expect((await checkSqliteStore(empty)).findings).to.have.lengthOf(1);
      const copy = await copyOf(await filled(), (bytes) => bytes.fill(0xa5, PAGE));
      expect((await checkSqliteStore(copy)).count).to.be.greaterThan(0);
    });
  });

  describe('of another version', () => {
    it('is refused when newer, by store and reader, and stays as it was', async () => {
      const dataDir = await filled();
      execOn(dataDir, `PRAGMA user_version = ${MIGRATIONS.length + 1}`);
      const before = await readFile(logFile(dataDir));
      const refused = await errorOf(made.openStore(dataDir));
      expect(refused).to.be.instanceOf(StoreTooNew);
      expect((refused as Error).message).to.include(logFile(dataDir));
      expect(() => openSqliteLogReader({ dataDir })).to.throw(StoreTooNew);
      expect(before.equals(await readFile(logFile(dataDir)))).to.equal(true);
    });

    it('is migrated when older, after a copy was put aside', async () => {
      const dataDir = await filled();
      const file = logFile(dataDir);
      const migrations = [...MIGRATIONS, 'CREATE TABLE added (id INTEGER PRIMARY KEY) STRICT'];
      const db = openLogForWriting({ file, migrations });
      expect(pragma(db, 'user_version')).to.equal(2);
      expect(db.prepare('SELECT count(*) AS n FROM added').get()).to.deep.equal({ n: 0 });
      db.close();
      const old = new DatabaseSync(`${file}.v1.backup`, { readOnly: true });
      expect(pragma(old, 'user_version')).to.equal(1);
      expect(old.prepare('SELECT count(*) AS n FROM events').get()).to.deep.equal({ n: 154 });
      old.close();
    });

    it('keeps the old version when a migration fails', async () => {
      const dataDir = await filled();
      const file = logFile(dataDir);
      const broken = [...MIGRATIONS, 'CREATE TABLE added (id INTEGER PRIMARY KEY) STRICT; SELECT nonsense'];
      expect(() => openLogForWriting({ file, migrations: broken })).to.throw('nonsense');
      const store = await made.openStore(dataDir);
      expect((await store.fullCheck()).findings).to.deep.equal([]);
      await store.close();
    });

    it('is refused when it is not an event log at all', async () => {
      const dataDir = await made.dataDir();
      execOn(dataDir, 'CREATE TABLE something (id INTEGER PRIMARY KEY)');
      expect(await errorOf(made.openStore(dataDir))).to.be.instanceOf(StoreDamaged);
      execOn(dataDir, 'PRAGMA user_version = 1');
      expect(await errorOf(made.openStore(dataDir))).to.be.instanceOf(StoreDamaged);
    });
  });

  describe('backed up', () => {
    it('is one sound file that holds a moment of the log, taken while it is written to', async () => {
      const dataDir = await filled();
      const store = await made.openStore(dataDir);
      // Large enough for several steps of the copy.
      for (let n = 0; n < 60; n += 1)
        await store.append(`page-${n}`, 'no_stream', [event('Large', { text: 'x'.repeat(300_000) })]);
      const controller = new AbortController();
      const writer = async (): Promise<void> => {
        for (let n = 0; !controller.signal.aborted; n += 1)
          await store.append('busy', n === 0 ? 'no_stream' : n - 1, [event('Busy', { n })]);
      };
      const writing = writer();
      const restored = await made.dataDir();
      const taken = await store.backup(logFile(restored));
      controller.abort();
      await writing;
      expect(await readdir(restored)).to.deep.equal(['events.db']);
      const copy = await made.openStore(restored);
      const events = await all(copy.readAll({ limit: Infinity }));
      const first = await all(store.readAll({ limit: events.length }));
      expect(taken).to.include({ target: logFile(restored), storeId: store.storeId });
      expect(events.at(-1)?.position).to.equal(taken.position);
      expect(events).to.deep.equal(first);
      expect((await copy.fullCheck()).findings).to.deep.equal([]);
      await copy.close();
      await store.close();
    });

    it('works on a thread of its own, from the first read to the last sync', async () => {
      const store = await made.openStore(await filled());
      const target = join(await made.dataDir(), 'copy.db');
      const thread = once(process, 'worker') as Promise<[Worker]>;
      const taking = store.backup(target);
      const [worker] = await thread;
      const ended = once(worker, 'exit');
      expect(existsSync(target), 'nothing was copied in the call itself').to.equal(false);
      await taking;
      await ended; // nothing is left running
      expect(existsSync(target)).to.equal(true);
      await store.close();
    });

    it('says which folder is missing', async () => {
      const store = await made.openStore(await filled());
      const folder = join(await made.dataDir(), 'none');
      const error = await errorOf(store.backup(join(folder, 'copy.db')));
      expect((error as Error).message).to.equal(`folder ${folder} not found`);
      await store.close();
    });

    it('never replaces a file', async () => {
      const dataDir = await filled();
      const store = await made.openStore(dataDir);
      const target = join(await made.dataDir(), 'copy.db');
      await copyFile(logFile(await filled()), target);
      expect(((await errorOf(store.backup(target))) as Error).message).to.include(target);
      await store.close();
    });
  });
});
