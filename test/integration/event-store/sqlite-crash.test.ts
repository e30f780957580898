import { copyFile, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { checkSqliteStore } from '../../../src/adapters/event-store/sqlite/check-store.ts';
import { DataDirectoryInUse } from '../../../src/adapters/data-directory/lock.ts';
import { openSqliteLogReader } from '../../../src/adapters/event-store/sqlite/open-log-reader.ts';
import { all, errorOf, event } from './contract/fixture.ts';
import { hasSaid, resources, type Acknowledged } from './support/files.ts';

/** What the log of a data directory holds, in its order. */
const stored = async (dataDir: string): Promise<Acknowledged[]> => {
  const reader = openSqliteLogReader({ dataDir });
  try {
    const events = await all(reader.readAll({ limit: Infinity }));
    return events.map(({ stream, revision, id }) => ({ stream, revision, id }));
  } finally {
    await reader.close();
  }
};

describe('sqlite event store: processes that die, disks that fill', function () {
  this.timeout(60_000);
  const made = resources();
  afterEach(made.endAll);

  it('holds every acknowledged append exactly once after kill -9, several times over', async () => {
    const dataDir = await made.dataDir();
    const acknowledged: Acknowledged[] = [];
    for (const run of ['a', 'b', 'c']) {
      const appender = made.startAppender(dataDir, run, { clients: 8, appends: 100_000 });
      await appender.until((a) => a.acknowledged.length > 300);
      appender.process.kill('SIGKILL');
      expect(await appender.ended).to.equal('SIGKILL');
      acknowledged.push(...appender.acknowledged);
    }
    const ids = (await stored(dataDir)).map((e) => e.id);
    expect(new Set(ids).size, 'no event twice').to.equal(ids.length);
    const missing = acknowledged.filter((e) => !ids.includes(e.id));
    expect(missing).to.deep.equal([]);
    expect((await checkSqliteStore(dataDir)).findings).to.deep.equal([]);
  });

  it('refuses a second process on the directory, and is free when the first was killed', async () => {
    const dataDir = await made.dataDir();
    const first = made.startAppender(dataDir, 'first', { clients: 1, appends: 100_000 });
    await first.until(hasSaid('open'));
    const refused = await errorOf(made.openStore(dataDir));
    expect(refused).to.be.instanceOf(DataDirectoryInUse);
    expect((refused as Error).message)
      .to.include(dataDir)
      .and.to.include(`process ${first.process.pid}`)
      .and.to.include('LEDGER_DATA_DIR');
    const second = made.startAppender(dataDir, 'second');
    expect(await second.ended).to.equal(1);
    expect(second.said.join('\n')).to.include('DataDirectoryInUse').and.to.include(dataDir);
    await first.until((a) => a.acknowledged.length > 10);
    first.process.kill('SIGKILL');
    await first.ended;
    const store = await made.openStore(dataDir);
    await store.append('free', 'no_stream', [event('Freed')]);
    await store.close();
  });

  it('refuses a second store in the same process, and is free after close', async () => {
    const dataDir = await made.dataDir();
    const store = await made.openStore(dataDir);
    expect(await errorOf(made.openStore(dataDir))).to.be.instanceOf(DataDirectoryInUse);
    await store.append('still', 'no_stream', [event('Working')]);
    await store.close();
    await (await made.openStore(dataDir)).close();
    expect(
      (await readdir(dataDir)).filter((name) => name.endsWith('-wal')),
      'no log left behind',
    ).to.deep.equal([]);
  });

  it('starts with a prefix of what was acknowledged when the WAL was cut off or damaged anywhere', async () => {
    const source = await made.dataDir();
    const appender = made.startAppender(source, 'wal', { clients: 1, appends: 100_000 });
    await appender.until((a) => a.acknowledged.length >= 60);
    appender.process.kill('SIGKILL');
    await appender.ended;
    const wal = join(source, 'events.db-wal');
    const { size } = await stat(wal);
    const cuts = Array.from({ length: 25 }, (_, i) => Math.floor((size * i) / 24) - (i % 3));
    let longest = 0;
    for (const [i, cut] of cuts.map((c) => Math.max(0, c)).entries()) {
      const dataDir = await made.dataDir();
      await copyFile(join(source, 'events.db'), join(dataDir, 'events.db'));
      await copyFile(wal, join(dataDir, 'events.db-wal'));
      if (i % 2 === 0) await truncate(join(dataDir, 'events.db-wal'), cut);
      else await flipByte(join(dataDir, 'events.db-wal'), Math.min(cut, size - 1));
      const store = await made.openStore(dataDir);
      const found = await all(store.readStream('run-wal-0'));
      const prefix = appender.acknowledged.slice(0, found.length).map((a) => a.id);
      const readIds = found.map((e) => e.id).slice(0, appender.acknowledged.length);
      expect(readIds, `cut at ${cut} of ${size}`).to.deep.equal(prefix);
      longest = Math.max(longest, found.length);
      const goesOn = await store.append('run-wal-0', found.length === 0 ? 'no_stream' : found.length - 1, [
        event('GoesOn'),
      ]);
      expect(goesOn.revision).to.equal(found.length);
      await store.close();
    }
    expect(longest).to.be.at.least(appender.acknowledged.length);
  });

  it('says full at a file-size limit, loses nothing acknowledged, and works again without the limit', async () => {
    const dataDir = await made.dataDir();
    const appender = made.startAppender(dataDir, 'limited', { clients: 4, appends: 100_000, limitKb: 1024 });
    await appender.until(hasSaid('full'));
    expect(appender.acknowledged.length).to.be.greaterThan(100);
    appender.process.stdin?.write('go on\n');
    expect(await appender.ended, appender.said.join('\n')).to.equal(0);
    expect(appender.said.join('\n')).to.match(/refused StoreUnavailable/);
    expect(sorted(await stored(dataDir))).to.deep.equal(sorted(appender.acknowledged));
    const store = await made.openStore(dataDir);
    await store.append('space', 'no_stream', [event('Again')]);
    expect((await store.fullCheck()).findings).to.deep.equal([]);
    await store.close();
  });

  if (existsSync('/usr/bin/prlimit'))
    it('goes on in the same process when the limit is lifted', async () => {
      const dataDir = await made.dataDir();
      const appender = made.startAppender(dataDir, 'lifted', { clients: 4, appends: 100_000, limitKb: 1024 });
      await appender.until(hasSaid('full'));
      const pid = String(appender.process.pid);
      execFileSync('/usr/bin/prlimit', ['--pid', pid, '--fsize=unlimited:unlimited']);
      appender.process.stdin?.write('go on\n');
      expect(await appender.ended, appender.said.join('\n')).to.equal(0);
      expect(appender.acknowledged.map((a) => a.stream)).to.include('run-lifted-afterwards');
      expect(sorted(await stored(dataDir))).to.deep.equal(sorted(appender.acknowledged));
      expect((await checkSqliteStore(dataDir)).findings).to.deep.equal([]);
    });
});

const sorted = (events: readonly Acknowledged[]): string[] =>
  events.map((e) => `${e.stream}@${String(e.revision).padStart(8, '0')} ${e.id}`).toSorted();

const flipByte = async (file: string, offset: number): Promise<void> => {
  const bytes = await readFile(file);
  bytes.writeUInt8(bytes.readUInt8(offset) ^ 0x10, offset);
  await writeFile(file, bytes);
};
