import { expect } from 'chai';
import {
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { directorySink, tarOf } from '../../../../src/adapters/audit/bundle-files.ts';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import type { RecordedEvent } from '../../../../src/app/log/event-store.ts';
import type { StoreReport } from '../../../../src/app/audit/bundle/verify-store.ts';
import { openBundle } from '../../../../src/cli/audit/bundle-source.ts';
import { consistencyPath } from '../../../../src/app/audit/merkle/proofs.ts';
import { verifyBundle } from '../../../../src/app/audit/bundle/verify.ts';
import { createCli, runCli } from '../../../../src/cli/ledgerctl.ts';
import type { CliActions } from '../../../../src/cli/connection.ts';
import { contentOf, eventsOf, historyOf, writeBundle } from '../../../support/audit/signed-history.ts';

const history = historyOf(eventsOf(40));

describe('bundles in files', () => {
  let folder: string;
  let directory: string;
  let tar: string;
  let trust: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bundle-'));
    directory = join(folder, 'bundle');
    tar = join(folder, 'bundle.tar');
    trust = join(folder, 'trust.json');
  });
  beforeEach(async () => {
    await writeBundle(contentOf(history), directorySink(directory));
    await pipeline(await tarOf(directory), createWriteStream(tar));
    writeFileSync(trust, JSON.stringify({ ...history.trust, pin: history.noteAt(20) }));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('do not stay open where the disk refuses what was written', async () => {
    // A device cannot be synced.
    symlinkSync('/dev/null', join(directory, 'device'));
    const target = (fd: string): string => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return '';
      }
    };
    const open = (): number => readdirSync('/proc/self/fd').filter((fd) => target(fd) === '/dev/null').length;
    const before = open();
    const file = await directorySink(directory).file('device');
    expect(open()).to.equal(before + 1);
    expect(await file.close().catch((error: NodeJS.ErrnoException) => error.code)).to.equal('EINVAL');
    expect(open()).to.equal(before);
  });

  it('are the same as a directory and as a tar', async () => {
    const [loose, packed] = [
      await verifyBundle(await openBundle(directory)),
      await verifyBundle(await openBundle(tar)),
    ];
    expect(loose.findings.map(findingText)).to.deep.equal([]);
    expect(packed).to.deep.equal(loose);
    expect(loose.counts.events).to.equal(40);
  });

  it('have the same tar each time, so that a download can be resumed', async () => {
    const again = await buffer(await tarOf(directory));
    expect(again.equals(readFileSync(tar))).to.equal(true);
  });

  it('are read from tars of other tools, whatever the order', async () => {
    const archive = pack();
    archive.entry({ name: './', type: 'directory' });
    const names = ['events.ndjson', 'leaves.bin', 'schemas/ClusterOrdered.json', 'proofs.json', 'checkpoint'];
    for (const name of [...names, 'manifest.json', 'manifest.note', 'trust.json'])
      archive.entry({ name: `./${name}` }, readFileSync(join(directory, name)));
    archive.finalize();
    const foreign = join(folder, 'foreign.tar');
    await pipeline(archive, createWriteStream(foreign));
    const report = await verifyBundle(await openBundle(foreign));
    expect(report.findings.map(findingText)).to.deep.equal([]);
    expect(report.counts.events).to.equal(40);
  });

  it('are not sound when the tar is cut off or damaged anywhere', async () => {
    const bytes = readFileSync(tar);
    for (let length = 0; length < bytes.length - 1024; length += 4099) {
      truncateSync(tar, length);
      const report = await verifyBundle(await openBundle(tar));
      expect(report.ok, `${length} bytes`).to.equal(false);
      // What is cut off is said once, not once for each file that lay behind.
      if (length > 0 && length % 512 > 0) expect(report.count, `${length} bytes`).to.equal(1);
      writeFileSync(tar, bytes);
    }
    const header = Buffer.from(bytes);
    header.writeUInt8(header.readUInt8(0) ^ 1, 0);
    writeFileSync(tar, header);
    const report = await verifyBundle(await openBundle(tar));
    expect(report.findings.map(findingText).join()).to.match(
      /^the bundle cannot be read: the tar \S+ is damaged: \S/,
    );
  });

  const unused = () => Promise.reject(new Error('not in this test'));
  const storeReport: StoreReport = {
    remarks: [],
    ok: true,
    findings: [],
    count: 0,
    keys: 'from the store',
    events: 50,
    leaves: 40,
    heads: 4,
    signed: 38,
  };
  const ledgerctl = async (argv: readonly string[], more: Partial<CliActions> = {}) => {
    const actions: CliActions = {
      serve: unused,
      demo: unused,
      mintToken: unused,
      checkStore: async () => ({ events: 50, findings: [] }),
      verifyStore: async () => storeReport,
      showEvent: unused,
      restoreStore: unused,
      defaultDataDir: 'data',
      eventStore: 'sqlite',
      version: '1',
      ...more,
    };
    let [out, err] = ['', ''];
    const io = { out: (text: string) => (out += text), err: (text: string) => (err += text) };
    process.exitCode = undefined;
    const code = await runCli(await createCli(actions, io), ['audit', 'verify', ...argv], io);
    process.exitCode = undefined;
    return { code, out, err };
  };

  it('are verified by ledgerctl, with status 0', async () => {
    const { code, out } = await ledgerctl([tar, '--trust', trust]);
    expect(out).to.include(
      'export of the whole log, sizes 0 to 40 of 40: 40 events (40 in full, 0 redacted, 0 withheld)',
    );
    expect(out).to.include(
      'from the beginning, to the signed head\nevents shown: 2026-11-21T12:00:00.000Z to 2026-11-21T12:00:39.000Z\n',
    );
    expect(out)
      .to.include('keys: yours\npin: continued\n')
      .and.to.include('not proven:')
      .and.to.match(/nothing wrong\n$/);
    expect(code).to.equal(0);
    const alone = await ledgerctl([directory]);
    expect(alone.out).to.include('keys: those that came with the bundle').and.to.include('pin: none');
  });

  it('are said with what the service was asked for', async () => {
    const [from, to] = ['2026-11-21T12:00:00.000Z', '2026-11-21T12:00:20.000Z'];
    rmSync(directory, { recursive: true });
    await writeBundle({ ...contentOf(history, { to: 20 }), filter: { from, to } }, directorySink(directory));
    const { out } = await ledgerctl([directory, '--trust', trust]);
    expect(out).to.include(
      `\nasked for: recorded from ${from} to before ${to}: as the service stated\nfilter: none was asked for: `,
    );
    const json = await ledgerctl([directory, '--json']);
    expect(JSON.parse(json.out)).to.deep.include({ ok: true, period: { from, to } });
    writeFileSync(join(directory, 'leaves.bin'), '');
    expect((await ledgerctl([directory])).out).to.not.include('asked for');
  });

  it('are right where a clock was set back, with a remark that says so', async () => {
    rmSync(directory, { recursive: true });
    const [first, ...rest] = history.events as [RecordedEvent, ...RecordedEvent[]];
    const ahead = historyOf([{ ...first, recordedAt: '2026-11-21T12:30:00.000Z' }, ...rest]);
    await writeBundle(contentOf(ahead), directorySink(directory));
    const { out, code } = await ledgerctl([directory]);
    expect([code, out.match(/^remark: /gmu)?.length]).to.deep.equal([0, 1]);
    expect(out)
      .to.include('somebody set the clock')
      .and.to.match(/\nnothing wrong\n$/);
    const json = JSON.parse((await ledgerctl([directory, '--json'])).out) as { remarks: string[] };
    expect(json.remarks).to.have.length(1);
  });

  it('are not called continued without a word of what is wrong, nor proven of 0', async () => {
    await writeBundle(contentOf(history, { pins: [20] }), directorySink(directory));
    rmSync(join(directory, 'events.ndjson'));
    const { out } = await ledgerctl([directory, '--trust', trust]);
    expect(out)
      .to.include('pin: continued by the signed head; of the rest see above\n')
      .and.to.match(/1 finding\n$/);
    rmSync(directory, { recursive: true });
    const before = historyOf(
      history.events.map((event) => {
        const { hidden: _hidden, ...metadata } = event.metadata;
        return { ...event, metadata };
      }),
    );
    await writeBundle(contentOf(before, { show: () => 'redacted' }), directorySink(directory));
    expect((await ledgerctl([directory])).out).to.include(
      'redacted: 40 events, all that is shown is proven of none of them\n',
    );
  });

  it('are named by ledgerctl where they are wrong, with status 1', async () => {
    const file = join(directory, 'events.ndjson');
    writeFileSync(file, readFileSync(file, 'utf8').replace('"note":"n 7"', '"note":"n 8"'));
    const { code, out } = await ledgerctl([directory, '--trust', trust]);
    const event = history.events[7];
    expect(out).to.include(
      `wrong: event ${event?.stream}@${event?.revision}, place 7, events.ndjson line 8: its data is not what was stored`,
    );
    expect(out).to.match(/2 findings\n$/);
    expect(code).to.equal(1);
    const json = await ledgerctl([directory, '--json']);
    expect(JSON.parse(json.out)).to.deep.include({ ok: false, count: 2 });
  });

  it('move the pin, but only when nothing is wrong', async () => {
    const before = readFileSync(trust, 'utf8');
    const wrong = join(folder, 'wrong.json');
    writeFileSync(wrong, JSON.stringify({ ...history.trust, pin: historyOf(eventsOf(40, 1)).noteAt(20) }));
    const refused = await ledgerctl([tar, '--trust', wrong, '--update-pin']);
    expect(refused.code).to.equal(1);
    expect(refused.out).to.include(
      'pin: BROKEN: this is not the history that you pinned: somewhere before leaf 20 at least one event is another one, is ' +
        'missing, was added, or is filed elsewhere; its events are sound by themselves: they are those of the head that was signed\n',
    );
    expect(refused.out).to.include('wrong: places 0 to 20, checkpoint: it is another history than your pin');
    expect(JSON.parse(readFileSync(wrong, 'utf8'))).to.not.deep.include({ pin: history.noteAt(40) });
    const { code, err } = await ledgerctl([tar, '--trust', trust, '--update-pin']);
    expect([code, err]).to.deep.equal([0, `${trust} now pins size 40\n`]);
    expect(JSON.parse(readFileSync(trust, 'utf8'))).to.deep.include({ pin: history.noteAt(40) });
    expect(readFileSync(trust, 'utf8')).to.not.equal(before);
  });

  it('are asked for exactly', async () => {
    writeFileSync(join(folder, 'bad.json'), '{}');
    for (const [argv, says] of [
      [[], 'give a bundle, or --store'],
      [[tar, '--store', 'data'], 'give a bundle, or --store'],
      [[tar, '--update-pin'], '--update-pin writes to the file of --trust'],
      [[join(folder, 'none')], `cannot read ${join(folder, 'none')}: no such file or directory`],
      [['--store', join(folder, 'none')], '--store: cannot read '],
      [[tar, '--trust', join(folder, 'none')], '--trust: cannot read '],
      [[tar, '--trust', join(folder, 'bad.json')], 'is not a trust.json'],
    ] as const) {
      const { code, err } = await ledgerctl(argv);
      expect(err, argv.join(' ')).to.include(says).and.to.not.include('ENOENT');
      expect(code).to.equal(2);
    }
  });

  it('are told from files that are none: in one sentence, with status 2', async () => {
    const others = join(folder, 'others');
    mkdirSync(join(others, 'photos', 'deep'), { recursive: true });
    mkdirSync(join(others, 'empty'));
    for (const name of ['a.jpg', 'b.jpg', 'deep/c.jpg']) writeFileSync(join(others, 'photos', name), 'x');
    // Who works in a folder keeps the own trust.json there, and links lead anywhere.
    mkdirSync(join(others, 'desk', 'deep'), { recursive: true });
    writeFileSync(join(others, 'desk', 'trust.json'), '{}');
    symlinkSync(others, join(others, 'desk', 'deep', 'link'));
    writeFileSync(join(others, 'nothing'), '');
    writeFileSync(join(others, 'some.json'), JSON.stringify({ a: 'x'.repeat(2000) }));
    writeFileSync(join(others, 'packed.tgz'), gzipSync(readFileSync(tar)));
    const archive = pack();
    archive.entry({ name: 'a.jpg' }, 'x');
    archive.finalize();
    await pipeline(archive, createWriteStream(join(others, 'photos.tar')));
    for (const [name, says] of [
      ['desk', 'none of manifest.json, manifest.note, checkpoint, '],
      ['photos', 'none of manifest.json, manifest.note, checkpoint, '],
      ['empty', 'it holds no file'],
      ['nothing', 'the file is empty'],
      ['some.json', 'the file is not a tar'],
      ['packed.tgz', 'compressed with gzip: unpack it first'],
      ['photos.tar', 'none of manifest.json, manifest.note, checkpoint, '],
    ] as const) {
      const path = join(others, name);
      const { code, out, err } = await ledgerctl([path, '--trust', trust]);
      expect([code, out], name).to.deep.equal([2, '']);
      expect(err).to.include(`ledgerctl: ${path}: this is not an export bundle: `).and.to.include(says);
      expect(err.trim().split('\n')).to.have.length(1);
    }
    // A bundle without its manifest is one that is wrong.
    rmSync(join(directory, 'manifest.json'));
    const { code, out } = await ledgerctl([directory, '--trust', trust]);
    expect(code).to.equal(1);
    expect(out).to.include('wrong: manifest.json: the bundle does not hold this file');
  });

  it('are not called another history when they are damaged, or older than the pin', async () => {
    rmSync(join(directory, 'checkpoint'));
    const damaged = await ledgerctl([directory, '--trust', trust]);
    expect(damaged.out).to.include('pin: not checked (the files are damaged, see above)\n');
    const later = join(folder, 'later.json');
    writeFileSync(later, JSON.stringify({ ...history.trust, pin: historyOf(eventsOf(60)).noteAt(60) }));
    const older = await ledgerctl([tar, '--trust', later]);
    expect(older.out)
      .to.include('pin: the export ends before your pin (size 40 < 60)\n')
      .and.to.match(/1 finding\n$/);
    expect([damaged.code, older.code]).to.deep.equal([1, 1]);
    const proof = join(folder, 'proof.json');
    const path = consistencyPath(40, 60, historyOf(eventsOf(60)).tree.hashAt);
    writeFileSync(
      proof,
      JSON.stringify({ from: 40, to: 60, path: path.map((hash) => hash.toString('base64')) }),
    );
    const led = await ledgerctl([tar, '--trust', later, '--consistency', proof, '--update-pin']);
    expect([led.code, led.err]).to.deep.equal([
      0,
      `${later} still pins size 60, which is behind this export\n`,
    ]);
    expect(led.out).to.include('pin: the export ends before your pin, which continues it (size 40 < 60)\n');
    for (const [text, says] of [
      ['x', `--consistency: ${proof} is not a proof of consistency: one holds from, to and path`],
      ['[1]', 'is not a proof of consistency'],
    ] as const) {
      writeFileSync(proof, text);
      const none = await ledgerctl([tar, '--trust', later, '--consistency', proof]);
      expect([none.code, none.err.includes(says)], none.err).to.deep.equal([2, true]);
    }
    expect((await ledgerctl([tar, '--consistency', proof])).code).to.equal(2);
    const foreign = join(folder, 'foreign.json');
    writeFileSync(foreign, JSON.stringify({ ...history.trust, origin: 'fulfillment-ledger/other' }));
    const others = await ledgerctl([tar, '--trust', foreign]);
    expect(others.out).to.include('pin: none');
    writeFileSync(
      foreign,
      JSON.stringify({ ...history.trust, origin: 'fulfillment-ledger/other', pin: history.noteAt(20) }),
    );
    expect((await ledgerctl([tar, '--trust', foreign])).out).to.include(
      'pin: not checked (the files are of another log, see above)\n',
    );
  });

  it('of a stopped store are compared with its heads', async () => {
    const { code, out } = await ledgerctl(['--store', folder]);
    expect(out).to.equal(
      '50 events, 40 of them in the audit tree; compared with 4 signed heads\n' +
        'keys: those that the store names; an attacker who can rewrite the store can name others (--trust)\n' +
        'the last 2 events are not signed yet: nothing is proven of them\nnothing wrong\n',
    );
    expect(code).to.equal(0);
    const pinned = await ledgerctl(['--store', folder, '--trust', trust]);
    expect(pinned.out).to.include('compared with 4 signed heads and your pin\nkeys: ');
    const inUse = await ledgerctl(['--store', folder], {
      verifyStore: () => Promise.reject(new Error('the store is in use by process 7')),
      checkStore: () => Promise.reject(new Error('it was read all the same')),
    });
    expect([inUse.code, inUse.err]).to.deep.equal([1, 'ledgerctl: the store is in use by process 7\n']);
    const damaged = await ledgerctl(['--store', folder], {
      checkStore: async () => ({ events: 50, findings: ['page 3 is damaged'] }),
    });
    expect(damaged.out)
      .to.include('wrong: page 3 is damaged')
      .and.to.match(/1 finding\n$/);
    expect(damaged.code).to.equal(1);
    const ended = { ...storeReport, ok: false, count: 1, ended: true as const };
    const partly = await ledgerctl(['--store', folder, '--trust', trust], {
      verifyStore: async () => ({ ...ended, findings: [{ code: 'unreadable', message: 'event 51' }] }),
    });
    expect(partly.out).to.equal(
      'wrong: event 51\n' +
        '50 events could be read, 40 of them in the audit tree: reading ended there, and nothing behind it was looked at; compared ' +
        'with the signed heads up to size 38\n' +
        'keys: those that the store names; an attacker who can rewrite the store can name others (--trust)\n1 finding\n',
    );
  });
});
