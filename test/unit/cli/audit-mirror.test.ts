import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventsOf, historyOf, type History } from '../../support/audit/signed-history.ts';
import { mirrorOf } from '../../support/audit/tampering/tiles.ts';
import { startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

const SIZE = 300;
const history = historyOf(eventsOf(SIZE));
const PREFIX = '/api/audit/v1/';

describe('ledgerctl audit mirror', () => {
  let stub: CliStub;
  let folder: string;
  let mirror: string;
  let trust: string;
  before(async () => {
    stub = await startCliStub();
  });
  after(() => stub.close());
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-mirror-'));
    mirror = join(folder, 'mirror');
    trust = join(folder, 'trust.json');
    await writeFile(trust, JSON.stringify({ ...history.trust, pin: history.noteAt(100) }));
    stub.asked.length = 0;
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const run = async (args: readonly string[]) => {
    const before = process.exitCode;
    process.exitCode = undefined;
    try {
      return await stub.run(['audit', ...args]);
    } finally {
      process.exitCode = before;
    }
  };

  /** A service with the tiles of a history; `instead`: what it answers for some paths. */
  const serves = (of: History, size: number, instead: Record<string, Uint8Array> = {}): void => {
    const files = mirrorOf(of, size);
    stub.answers(({ path, query }) => {
      const name = path.slice(PREFIX.length);
      if (name === 'trust.json' && query.get('newest') === 'true') return { body: of.trust };
      const bytes = instead[name] ?? files.get(name);
      return bytes === undefined || name === 'keys.json' ? undefined : { text: bytes };
    });
  };
  const fetched = (): string[] =>
    stub.asked.map(({ path }) => path.slice(PREFIX.length)).filter((path) => path.startsWith('tile/'));
  const verify = (...more: string[]) => run(['verify', '--tiles', mirror, ...more]);

  it('fetches what is new, says what the directory holds, and is checked without the service', async () => {
    serves(history, 200);
    const first = await run(['mirror', mirror, '--trust', trust]);
    expect([first.code, first.err]).to.deep.equal([0, '']);
    expect(first.out).to.include(`fetched: 2 files\n${mirror} holds the tree of 200 events\nkeys: yours\n`);
    expect(first.out).to.match(/pin: continued\nproven:\n[^]*nothing wrong\n$/);
    stub.asked.length = 0;
    serves(history, SIZE);
    const second = await run(['mirror', mirror]);
    expect(second.out).to.include(
      'holds the tree of 300 events (before: 200)\nkeys: those that the mirror began with',
    );
    expect(fetched()).to.include.members(['tile/0/000', 'tile/0/001.p/44', 'tile/1/000.p/1']);
    expect((await readdir(join(mirror, 'tile', '0'))).toSorted()).to.deep.equal(['000', '001.p']);
    stub.asked.length = 0;
    expect((await run(['mirror', mirror])).out).to.include('fetched: 0 files\n');
    expect(fetched().filter((path) => !path.includes('.p/'))).to.deep.equal([]);
    stub.asked.length = 0;
    const offline = await verify('--trust', trust);
    expect([offline.code, stub.asked.length]).to.deep.equal([0, 0]);
    expect(offline.out).to.include('tree of 300 events, signed at ').and.include('pin: continued\n');
    const asJson = JSON.parse((await verify('--trust', trust, '--json')).out) as Record<string, unknown>;
    expect(asJson).to.include({ ok: true, pin: 'continued', tiles: 3, bundles: 2 });
  });

  it('names a byte that was changed, and mends it', async () => {
    serves(history, SIZE);
    await run(['mirror', mirror]);
    const file = join(mirror, 'tile', 'entries', '000');
    const bytes = await readFile(file);
    // In the note of the data of the second entry, behind the length of the first one.
    const at = 2 + bytes.readUInt16BE(0) + 20;
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    await writeFile(file, bytes);
    const { code, out } = await verify('--trust', trust);
    expect(code).to.equal(1);
    expect(out).to.match(/^wrong: (event \S+, )?place 1, tile\/entries\/000: the entry has not the hash/);
    expect(out).to.match(/\n1 finding\n$/);
    const mended = await run(['mirror', mirror]);
    expect(mended.out).to.include(
      'mended: tile/entries/000 was damaged in the mirror, and was fetched again\n',
    );
    expect((await verify('--trust', trust)).code).to.equal(0);
  });

  it('keeps nothing of a service that shows something else', async () => {
    const fork = historyOf([...history.events.slice(0, 50), ...eventsOf(SIZE, 1).slice(50)]);
    serves(fork, SIZE);
    const { code, out } = await run(['mirror', mirror, '--trust', trust]);
    expect(code).to.equal(1);
    expect(out).to.include('pin: BROKEN').and.include('holds no signed head yet');
    const junk = Buffer.alloc(20 * 1024 * 1024);
    serves(history, SIZE, { 'tile/entries/000': junk, 'tile/0/000': Buffer.from('x') });
    const lying = await run(['mirror', mirror, '--trust', trust]);
    expect(lying.code).to.equal(1);
    expect(lying.out).to.include('wrong: places 0 to 256, tile/0/000: this tile has 1 bytes, not 8192\n');
    expect(await readdir(folder)).not.to.include('checkpoint');
    expect((await verify()).code).to.equal(2);
  });

  it('says what can be done about a service whose head lies before the pin', async () => {
    serves(history, 50);
    const { code, out } = await run(['mirror', mirror, '--trust', trust]);
    expect(code).to.equal(1);
    expect(out)
      .to.include(
        'places 50 to 100, checkpoint: the service shows a head of size 50, before your pin of size 100: ',
      )
      .and.include('Run it again in a minute against every instance')
      .and.include('if the head stays behind, keep your trust.json')
      .and.include('pin: the tiles end before your pin (size 50 < 100)');
    // A mirror, or a proof, of what is there leads to no pin that lies behind it.
    expect(out).not.to.include('ledgerctl');
    expect(await readdir(folder)).not.to.include('mirror');
  });

  it('takes a directory of its own only', async () => {
    serves(history, SIZE);
    await mkdir(join(folder, 'home'));
    await writeFile(join(folder, 'home', 'letter.txt'), 'dear');
    const full = await run(['mirror', join(folder, 'home')]);
    expect(full.code).to.equal(2);
    expect(full.err).to.include(
      'holds other things than tiles: name a directory that is empty, or not there yet',
    );
    const file = await run(['mirror', trust]);
    expect([file.code, file.err.includes('cannot read')]).to.deep.equal([2, true]);
    const none = await verify();
    expect(none.code).to.equal(2);
    expect(none.err).to.include('holds no tiles: `ledgerctl audit mirror');
    expect(stub.asked).to.deep.equal([]);
  });

  it('ends where the system lets nothing be made', async () => {
    serves(history, SIZE);
    for (const directory of ['/proc/ledger-x', '/proc/ledger-x/y']) {
      const { code, err } = await run(['mirror', directory, '--trust', trust]);
      expect(code).to.equal(1);
      expect(err).to.match(/cannot write \/proc\/ledger-x\/.*: no such file or directory/);
    }
  });

  it('is asked for exactly', async () => {
    for (const [args, said] of [
      [['--tiles', mirror, '--store', 'data'], 'give a bundle, or --store'],
      [['acme.tar', '--tiles', mirror], 'give a bundle, or --store'],
      [['--tiles', mirror, '--trust', trust, '--update-pin'], 'tiles do not show the trees of the tenants'],
      [['--tiles', mirror, '--consistency', 'proof.json'], 'give both'],
    ] as const) {
      const { code, err } = await run(['verify', ...args]);
      expect(code, args.join(' ')).to.equal(2);
      expect(err, args.join(' ')).to.include(said);
    }
  });

  it('is not held up by what somebody has put into it', async () => {
    serves(history, SIZE);
    await run(['mirror', mirror]);
    const [hashes, entries, odd] = [
      join(mirror, 'tile', '0', '000'),
      join(mirror, 'tile', 'entries', '000'),
      join(mirror, 'tile', 'entries', '001.p', '44'),
    ];
    await rm(hashes);
    execFileSync('mkfifo', [hashes]);
    await rm(entries);
    await symlink('/dev/zero', entries);
    await truncate(odd, 40_000_000_000);
    const { code, out } = await verify('--trust', trust);
    expect(code).to.equal(1);
    for (const named of [
      'tile/0/000: this tile is missing',
      'tile/entries/000: these entries are missing',
      'tile/entries/001.p/44: these are not 44 entries',
    ])
      expect(out).to.include(named);
  });

  it('names a folder of which nothing is left once, and a single file by its name', async () => {
    serves(history, SIZE);
    const without = async (...gone: string[]): Promise<string[]> => {
      await run(['mirror', mirror]);
      for (const path of gone) await rm(join(mirror, path), { recursive: true });
      const { code, out } = await verify('--trust', trust);
      expect(code).to.equal(1);
      return out.split('\n').filter((line) => line.startsWith('wrong: ') || line.startsWith('pin: '));
    };
    expect(await without('tile/entries')).to.deep.equal([
      'wrong: places 0 to 300, tile/entries/: the whole folder is missing, with 2 bundles of entries',
      'pin: continued by the signed head; of the rest see above',
    ]);
    expect(await without('tile/0')).to.deep.equal([
      'wrong: places 0 to 300, tile/0/: the whole folder is missing, with 2 tiles: nothing else was looked at',
      'pin: not checked (the files are damaged, see above)',
    ]);
    expect(await without('tile')).to.have.length(3);
    expect((await without('tile/1'))[0]).to.include('tile/1/000.p/1: this tile is missing');
    expect((await without('tile/entries/000'))[0]).to.include('tile/entries/000: these entries are missing');
  });

  it('writes into no other file, whatever stands where it writes, and is not held up by it', async () => {
    const outside = join(folder, 'outside');
    await writeFile(outside, 'mine');
    await mkdir(join(mirror, 'tile', '0'), { recursive: true });
    await symlink(outside, join(mirror, 'checkpoint.new'));
    execFileSync('mkfifo', [join(mirror, 'tile', '0', '000.new')]);
    serves(history, SIZE);
    const { code, err } = await run(['mirror', mirror, '--trust', trust]);
    expect([code, err]).to.deep.equal([0, '']);
    expect(await readFile(outside, 'utf8')).to.equal('mine');
    expect((await verify('--trust', trust)).code).to.equal(0);
  });

  it('holds a log in which nothing has happened yet', async () => {
    await writeFile(trust, JSON.stringify(history.trust));
    serves(history, 0);
    const { code, err, out } = await run(['mirror', mirror, '--trust', trust]);
    expect([code, err]).to.deep.equal([0, '']);
    expect(out).to.include(`${mirror} holds the tree of 0 events`);
    expect((await verify('--trust', trust)).code).to.equal(0);
  });

  it('leads to a pin that is newer, with the proof of consistency', async () => {
    serves(history, 50);
    await run(['mirror', mirror]);
    const before = await verify('--trust', trust);
    expect(before.code).to.equal(1);
    expect(before.out).to.include(
      'the tiles end at size 50, before your pin of size 100, and no proof leads from there',
    );
    const { consistencyPath } = await import('../../../src/app/audit/merkle/proofs.ts');
    const path = consistencyPath(50, 100, history.tree.hashAt).map((hash) => hash.toString('base64'));
    await writeFile(join(folder, 'proof.json'), JSON.stringify({ from: 50, to: 100, path }));
    const led = await verify('--trust', trust, '--consistency', join(folder, 'proof.json'));
    expect([led.code, led.out.includes('which continues it (size 50 < 100)')]).to.deep.equal([0, true]);
  });
});
