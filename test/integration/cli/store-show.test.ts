import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { logFile } from '../../../src/adapters/event-store/sqlite/files.ts';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import type { CliActions } from '../../../src/cli/connection.ts';
import { EXIT } from '../../../src/cli/exit.ts';
import { createCli, runCli } from '../../../src/cli/ledgerctl.ts';
import { lookIntoStore } from '../../../src/composition/stored-event.ts';
import { createBench, event } from '../../support/eventstoredb-peer/fixture.ts';

const released = (reason: string) =>
  event(
    'LegalHoldReleased',
    { at: '2026-11-22T12:00:00.000Z', holdId: 'case-17', scope: { kind: 'tenant', id: 'acme' }, reason },
    { schemaVersion: 1 },
  );
const SECRET = 'the text in which a byte is flipped';

const unused = () => Promise.reject(new Error('not in this test'));
const actions: CliActions = {
  serve: unused,
  demo: unused,
  mintToken: unused,
  checkStore: unused,
  verifyStore: unused,
  showEvent: lookIntoStore,
  restoreStore: unused,
  defaultDataDir: 'data',
  eventStore: 'sqlite',
  version: '1',
};

const show = async (argv: readonly string[], more: Partial<CliActions> = {}) => {
  let [out, err] = ['', ''];
  const io = { out: (text: string) => (out += text), err: (text: string) => (err += text) };
  process.exitCode = undefined;
  const code = await runCli(await createCli({ ...actions, ...more }, io), ['store', 'show', ...argv], io);
  process.exitCode = undefined;
  return { code, out, err };
};

describe('ledgerctl store show', () => {
  let dataDir: string;
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'store-show-'));
    const store = await openSqliteEventStore({ dataDir });
    await store.append('retention-acme', 'no_stream', [
      released('settled'),
      released(SECRET),
      event('StarOrdered', { star: 'Vega' }, { schemaVersion: 1 }),
      event('LegalHoldReleased', { at: 'today', holdId: 7 }, { schemaVersion: 1 }),
    ]);
    await store.close();
  });
  after(() => rmSync(dataDir, { recursive: true, force: true }));

  const atDir = (...argv: string[]) => show([...argv, '--data-dir', dataDir]);

  it('prints a sound event as it is stored, and ends with 0', async () => {
    const { code, out } = await atDir('retention-acme', '0');
    expect(out)
      .to.include('retention-acme@0\n')
      .and.include('"reason":"settled"')
      .and.include('nothing wrong');
    expect(code).to.equal(EXIT.done);
  });

  it('prints one that this release does not know, or whose schema refuses it, with what is wrong', async () => {
    const unknown = await atDir('retention-acme', '2');
    expect([unknown.code, unknown.out.includes('{"star":"Vega"}')]).to.deep.equal([EXIT.failed, true]);
    expect(unknown.out).to.include("type: this release knows no type 'StarOrdered'");
    const wrong = await atDir('retention-acme', '3');
    expect(wrong.code).to.equal(EXIT.failed);
    expect(wrong.out).to.include('data.holdId: ').and.include('data.reason: ').and.include('data.at: ');
  });

  it('prints one in which the disk changed a byte, also where no text can be made of it', async () => {
    const copy = mkdtempSync(join(tmpdir(), 'store-show-'));
    try {
      for (const [byte, said] of [
        ['T'.charCodeAt(0), /checksum: stored [0-9a-f]{8}, computed [0-9a-f]{8}/],
        [0xff, /data: byte \d+ is not UTF-8/],
        [0x22, /data: not JSON: /],
      ] as const) {
        const bytes = readFileSync(logFile(dataDir));
        bytes.writeUInt8(byte, bytes.indexOf(SECRET));
        writeFileSync(logFile(copy), bytes);
        const { code, out } = await show(['retention-acme', '1', '--file', logFile(copy)]);
        expect(code).to.equal(EXIT.failed);
        expect(out).to.match(said).and.include('checksum: ').and.include(SECRET.slice(1));
        expect(readFileSync(logFile(copy)).equals(bytes), 'the file is as it was').to.equal(true);
      }
    } finally {
      rmSync(copy, { recursive: true });
    }
  });

  it('looks beside a service that writes', async () => {
    const store = await openSqliteEventStore({ dataDir });
    try {
      expect((await atDir('retention-acme', '0')).code).to.equal(EXIT.done);
    } finally {
      await store.close();
    }
  });

  it('says which revisions there are, and what it cannot be asked', async () => {
    const { code, err } = await atDir('retention-acme', '9');
    expect(code).to.equal(EXIT.notFoundOrConflict);
    expect(err).to.include("event 'retention-acme@9' not found: the stream has revisions 0 to 3");
    expect((await atDir('nothing', '0')).err).to.include("event 'nothing@0' not found\n");
    expect((await atDir('retention-acme', 'last')).code).to.equal(EXIT.usage);
    expect((await atDir('retention-acme', '0', '--file', 'x')).code).to.equal(EXIT.usage);
  });

  describe('of an EventStoreDB', function () {
    this.timeout(60_000);
    const bench = createBench();
    afterEach(bench.clean);

    it('prints what another writer put into our stream, and what is ours', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      await store.append('retention-acme', 'no_stream', [released('settled')]);
      const data = Buffer.from([0, 255]);
      peer.log.inject('retention-acme', { type: 'Strange', contentType: 'application/octet-stream', data });
      const ours = await show(['retention-acme', '0', '--store', peer.connectionString]);
      expect([ours.code, ours.err]).to.deep.equal([EXIT.done, '']);
      expect(ours.out).to.include('"reason":"settled"');
      const theirs = await show(['retention-acme', '1'], { eventStore: peer.connectionString });
      expect(theirs.code).to.equal(EXIT.failed);
      expect(theirs.out)
        .to.include('content type: not application/json')
        .and.include('bytes from 0 on: 00ff')
        .and.include("this release knows no type 'Strange'");
      expect((await show(['retention-acme', '7', '--store', peer.connectionString])).code).to.equal(
        EXIT.notFoundOrConflict,
      );
      expect((await show(['nothing', '0', '--store', peer.connectionString])).code).to.equal(
        EXIT.notFoundOrConflict,
      );
    });
  });
});
