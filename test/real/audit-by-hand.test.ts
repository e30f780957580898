import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { directorySink } from '../../src/adapters/audit/bundle-files.ts';
import { checkpointText } from '../../src/app/audit/merkle/checkpoint.ts';
import { signNote } from '../../src/app/audit/merkle/note.ts';
import type { RecordedEvent } from '../../src/app/log/event-store.ts';
import {
  asTenant,
  contentOf,
  eventsOf,
  historyOf,
  keyOf,
  tenantOf,
  vkey,
  writeBundle,
} from '../support/audit/signed-history.ts';

const SCRIPT = join(import.meta.dirname, '../../fixtures/audit/verify_export.py');

/**
 * Another implementation, in another language, written from docs/audit-proofs.md, comes to the same result: what an
 * export proves does not hang on our own code. Needs python3 and openssl.
 */
describe('an export that is checked without anything of ours', function () {
  // Up to eight runs of the checker, each of which starts openssl for every signature; other suites run beside it.
  this.timeout(60_000);
  const history = historyOf(eventsOf(200));
  const hiding = history.events.filter(({ metadata }) => Object.hasOwn(metadata, 'hidden')).length;
  const key = vkey(keyOf('first'));
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'by-hand-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const verify = (directory: string, trusted = key, ...pin: string[]) => {
    const { status, stdout, stderr } = spawnSync('python3', [SCRIPT, directory, trusted, ...pin], {
      encoding: 'utf8',
    });
    return { status, said: stdout + stderr };
  };

  for (const [name, ask, said] of [
    ['log', {}, '200 events, 200 in full and 0 in part'],
    ['tenant', { tenant: 'acme' }, ' in full and 0 in part, are what was signed'],
    ['part', { from: 77 }, '200 events, 123 in full'],
    [
      'as a tenant may see it',
      { show: asTenant },
      `200 events, ${200 - hiding} in full and ${hiding} in part`,
    ],
  ] as const)
    it(`is right, and wrong when a letter is changed: ${name}`, async () => {
      const directory = join(folder, name);
      await writeBundle(contentOf(history, ask), directorySink(directory));
      expect(verify(directory)).to.deep.include({ status: 0 });
      expect(verify(directory).said).to.include(said);
      expect(verify(directory, vkey(keyOf('second'))).said).to.include(
        'not signed by the key that you trust',
      );
      const file = join(directory, 'events.ndjson');
      const text = readFileSync(file, 'utf8');
      writeFileSync(file, text.replace('"note":"n 1', '"note":"n 2'));
      expect(verify(directory)).to.deep.include({ status: 1 });
      writeFileSync(file, text.replace(/^.*\n/, ''));
      expect(verify(directory).status).to.equal(1);
      writeFileSync(file, text);
      const checkpoint = join(directory, 'checkpoint');
      writeFileSync(checkpoint, readFileSync(checkpoint, 'utf8').replace('tenants 3', 'tenants 4'));
      expect(verify(directory).said).to.include('the signature of the checkpoint');
    });

  it('is wrong when the log that was signed shows itself that events are missing, double or turned round', async () => {
    const { events } = history;
    const stream = events[0]?.stream;
    const [first = 0, second = 0] = events.flatMap((event, n) => (event.stream === stream ? [n] : []));
    const [one, two] = [events[first] as RecordedEvent, events[second] as RecordedEvent];
    const tenant = tenantOf(one);
    const another = { ...one, id: 'f'.repeat(32) };
    for (const [what, signed, whole, ofTenant] of [
      [
        'gone',
        events.toSpliced(first, 1),
        `${stream}@0, which should stand before it, is missing`,
        undefined,
      ],
      [
        'turned',
        events.with(first, two).with(second, one),
        `${stream}@0, which`,
        `it stands behind ${stream}@1`,
      ],
      ['twice', events.toSpliced(second, 0, another), `behind ${stream}@0`, `behind ${stream}@0`],
      ['id', events.with(second, { ...two, id: one.id }), 'its id is that of', 'its id is that of'],
    ] as const)
      for (const [ask, said] of [
        [{}, whole],
        [{ tenant }, ofTenant],
      ] as const) {
        const directory = join(folder, `${what}-${Object.keys(ask).join()}`);
        await writeBundle(contentOf(historyOf(signed), ask), directorySink(directory));
        const report = verify(directory);
        expect(report.said, what).to.include(said ?? 'are what was signed');
        expect(report.status, what).to.equal(said === undefined ? 0 : 1);
      }
  });

  it('is wrong when recorded times contradict what was asked for, and remarks on clocks that were set', async () => {
    const { events } = history;
    const at = (n: number, recordedAt: string): RecordedEvent[] =>
      events.with(n, { ...(events[n] as RecordedEvent), recordedAt });
    const from = events[7]?.recordedAt ?? '';
    for (const [what, signed, ask, filter, said] of [
      ['period', events, { from: 7 }, { from }, `asked for, as the service stated: from "${from}"\n`],
      ['too-early', events, { from: 6 }, { from }, 'the export is of what was recorded at'],
      ['too-late', events, {}, { to: from }, 'place 7, events.ndjson line 8: recorded at'],
      [
        'back',
        at(9, '1999-01-01T00:00:00.000Z'),
        {},
        {},
        'place 9, events.ndjson line 10: recorded at 1999-01-01',
      ],
      ['future', at(9, '2053-01-01T00:00:00.000Z'), {}, {}, 'the head over it was signed at'],
      ['set-back', at(8, events[6]?.recordedAt ?? ''), { from: 7 }, { from }, 'asked for'],
    ] as const) {
      const directory = join(folder, what);
      await writeBundle({ ...contentOf(historyOf(signed), ask), filter }, directorySink(directory));
      const report = verify(directory);
      expect(report.said, what).to.include(said);
      const isRemark = ['back', 'future'].includes(what);
      expect(report.said.includes('\nremark: '), what).to.equal(isRemark);
      expect(report.status, what).to.equal(isRemark || said.startsWith('asked for') ? 0 : 1);
    }
  });

  it('is wrong when anything else in it is not what the audit key signed over the manifest', async () => {
    const directory = join(folder, 'files');
    await writeBundle(contentOf(history), directorySink(directory));
    expect(verify(directory).said).to.match(
      / are what was signed; all \d+ files are those that the manifest lists\n$/,
    );
    const changed = (name: string, how: (text: string) => string): string => {
      const file = join(directory, name);
      const text = readFileSync(file, 'utf8');
      writeFileSync(file, how(text));
      const { status, said } = verify(directory);
      writeFileSync(file, text);
      expect(status, name).to.equal(1);
      return said;
    };
    // No leaf is over clear texts of personal fields.
    expect(changed('events.ndjson', (text) => text.replace('"Alice"', '"Alicf"'))).to.equal(
      'wrong: events.ndjson is not the file that the manifest lists\n',
    );
    expect(changed('leaves.bin', (text) => `${text}x`)).to.include('leaves.bin is not the file');
    expect(changed('manifest.json', (text) => text.replace('"counts"', '"count"'))).to.include(
      'manifest.note was signed for another manifest',
    );
    expect(
      changed('manifest.note', (text) => text.replace('export manifest', 'export manifesto')),
    ).to.include('the signature of manifest.note');
    // Signed by the same key, for something else.
    expect(
      changed('manifest.note', (text) => {
        const [own = '', ...rest] = text.slice(0, text.lastIndexOf('\n\n') + 1).split('\n');
        return signNote([`${own}x`, ...rest].join('\n'), history.signer);
      }),
    ).to.include('manifest.note was signed for another manifest');
    writeFileSync(join(directory, 'more.json'), '{}');
    expect(verify(directory).said).to.equal('wrong: more.json is not listed in the manifest\n');
    rmSync(join(directory, 'more.json'));
    rmSync(join(directory, 'leaves.bin'));
    expect(verify(directory).said).to.equal('wrong: leaves.bin, which the manifest lists, is missing\n');
  });

  it('says that history was taken back where a smaller tree was signed later than the one that is known', async () => {
    const directory = join(folder, 'back');
    await writeBundle(contentOf(history, { at: 100 }), directorySink(directory));
    const pin = join(folder, 'back.pin');
    const known = (time: string): string => {
      const text = checkpointText({ ...history.checkpointAt(150), time });
      writeFileSync(pin, signNote(text, history.signer));
      return verify(directory, key, pin).said;
    };
    const at = history.checkpointAt(100).time;
    expect(known('2026-11-21T11:00:00.000Z')).to.equal(
      `wrong: history was taken back: size 100 was signed at ${at}, after size 150 at 2026-11-21T11:00:00.000Z\n`,
    );
    expect(known(at)).to.include('or an older export');
  });

  it('is checked by a file that can be run', () => {
    accessSync(SCRIPT, constants.X_OK);
  });

  it('says how it is used, and what it cannot read, to somebody who knows no Python', async () => {
    const run = (...argv: string[]) => spawnSync('python3', [SCRIPT, ...argv], { encoding: 'utf8' });
    for (const [argv, status] of [
      [['--help'], 0],
      [['-h'], 0],
      [[], 2],
      [['acme'], 2],
      [['acme', key, 'pin', 'more'], 2],
    ] as const) {
      const asked = run(...argv);
      expect(asked.status, argv.join(' ')).to.equal(status);
      const said = status === 0 ? asked.stdout : asked.stderr;
      expect(said).to.include('verify_export.py <directory of the export> <vkey that you trust>');
      expect(said.trim().split('\n').length).to.be.at.most(6);
      expect(asked.stdout + asked.stderr).not.to.include('Traceback');
    }
    const none = run(join(folder, 'none'), key);
    expect([none.status, none.stderr]).to.deep.equal([
      1,
      `wrong: cannot be read: No such file or directory: '${join(folder, 'none')}/checkpoint'\n`,
    ]);
    const directory = join(folder, 'usage');
    await writeBundle(contentOf(history), directorySink(directory));
    const noKey = run(directory, 'vkey');
    expect([noKey.status, noKey.stderr.includes('Traceback')]).to.deep.equal([1, false]);
    expect(noKey.stderr).to.match(/^wrong: this is not what an export, a vkey or a checkpoint looks like: /);
  });

  it('continues a checkpoint that is known, of the log and of the tenant', async () => {
    const pin = join(folder, 'pin');
    const none = eventsOf(20).filter((event) => tenantOf(event) !== 'acme');
    const late = historyOf([...none, ...eventsOf(200, 3).slice(20)]);
    const refiled = historyOf(history.events, keyOf('first'), (event, n) =>
      n === history.placesOf('acme')[1] ? 'globex' : tenantOf(event),
    );
    const said: string[] = [];
    for (const [n, [known, of, size, tenant]] of (
      [
        [history, history, 64, undefined],
        [history, history, 77, 'acme'],
        [history, history, 200, 'acme'],
        [late, late, none.length, 'acme'],
        [history, refiled, 77, 'acme'],
        [history, refiled, 200, 'acme'],
        [late, history, 77, undefined],
      ] as const
    ).entries()) {
      const directory = join(folder, `pinned-${n}`);
      const ask = { pins: [size], ...(tenant && { tenant }) };
      await writeBundle(contentOf(of, ask), directorySink(directory));
      writeFileSync(pin, known.noteAt(size));
      said.push(verify(directory, key, pin).said.trim());
    }
    for (const right of said.slice(0, 4)) expect(right).to.include('are what was signed');
    expect(said.slice(4)).to.deep.equal([
      'wrong: the checkpoint that you know has another tree of this tenant',
      'wrong: this is another history than the checkpoint that you know, or an older export',
      'wrong: the log does not continue the checkpoint that you know',
    ]);
  });
});
