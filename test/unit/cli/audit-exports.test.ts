import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { keyOf, ORIGIN, vkey } from '../../support/audit/signed-history.ts';
import { startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

describe('ledgerctl audit', () => {
  let stub: CliStub;
  before(async () => {
    stub = await startCliStub();
  });
  after(() => stub.close());
  beforeEach(() => {
    stub.asked.length = 0;
  });

  it('looks at the file of an export before it asks for one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ledger-export-'));
    try {
      stub.answers(() => ({ status: 202, body: { id: 'x-1', state: 'failed', reason: 'r' } }));
      await writeFile(join(folder, 'there.tar'), 'mine');
      for (const [output, says] of [
        [folder, `${folder} is a directory: name the file in it, for example ${join(folder, 'acme.tar')}`],
        [
          join(folder, 'there.tar'),
          'there.tar is there already: another name keeps both, --force replaces it',
        ],
        [join(folder, 'no', 'x.tar'), `directory ${join(folder, 'no')} not found; make it first`],
        [join(folder, 'there.tar', 'x.tar'), 'a part of the path is not a directory'],
        [join(folder, 'y'.repeat(300)), 'the name is too long'],
      ] as const) {
        const { code, err } = await stub.run(['audit', 'export', '-o', output]);
        expect(code, output).to.equal(2);
        expect(err, output)
          .to.include(says)
          .and.to.not.match(/\bE[A-Z]{4,}\b/);
      }
      expect(stub.calls(), 'nothing was asked').to.deep.equal([]);
      const asked = await stub.run(['audit', 'export', '-o', join(folder, 'there.tar'), '--force']);
      expect(asked.err).to.equal('ledgerctl: export x-1 is failed: r\n');
      expect(await readdir(folder), 'nothing is left of the look').to.deep.equal(['there.tar']);
      expect(await readFile(join(folder, 'there.tar'), 'utf8')).to.equal('mine');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('asks for no export of a service whose log is not the one that is trusted', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ledger-export-'));
    try {
      const keys = [{ vkey: vkey(keyOf('one')), since: '' }];
      const file = join(folder, 'trust.json');
      await writeFile(file, JSON.stringify({ origin: ORIGIN, keys }));
      stub.answers(() => ({ body: { origin: 'fulfillment-ledger/other', keys } }));
      const command = ['audit', 'export', '--trust', file, '-o', join(folder, 'x.tar')];
      const { code, err } = await stub.run(command);
      expect(code).to.equal(2);
      expect(err).to.include(
        `--trust: the file is for ${ORIGIN}, this service keeps fulfillment-ledger/other`,
      );
      expect(stub.calls()).to.deep.equal(['GET /api/audit/v1/trust.json']);
      await writeFile(file, JSON.stringify({ origin: ORIGIN, keys, pin: 'x' }));
      stub.answers(() => ({ body: { origin: ORIGIN, keys } }));
      const pin = await stub.run(command);
      expect([pin.code, stub.calls().filter((call) => call.startsWith('POST'))]).to.deep.equal([2, []]);
      expect(pin.err).to.include('--trust: its pin cannot be used: not a note');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('says how an export is checked, with the trust that there is', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ledger-export-'));
    try {
      const trust = { origin: ORIGIN, keys: [{ vkey: vkey(keyOf('one')), since: '' }] };
      const mine = join(folder, 'mine.json');
      await writeFile(mine, JSON.stringify(trust));
      const bytes = Buffer.from('"the file"');
      const made = {
        id: 'x-1',
        state: 'complete',
        events: 1,
        bytes: bytes.length,
        sha256: createHash('sha256').update(bytes).digest('hex'),
        file: '/file',
      };
      stub.answers(({ path }) =>
        path === '/file' ? { body: 'the file' } : { body: path.endsWith('trust.json') ? trust : made },
      );
      const file = join(folder, 'x.tar');
      const plain = await stub.run(['audit', 'export', '-o', file]);
      expect(plain.err).to.equal(
        `${file}: 1 event, 10 bytes; check it with ledgerctl audit verify ${file}, ` +
          'with --trust and your trust.json where you have one (ledgerctl audit trust)\n',
      );
      const pinned = await stub.run(['audit', 'export', '-o', file, '--force', '--trust', mine]);
      expect(pinned.err).to.equal(
        `${file}: 1 event, 10 bytes; check it with ledgerctl audit verify ${file} --trust ${mine}\n`,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('says why there is no export', async () => {
    const failed = { id: 'x-1', state: 'failed', reason: 'no space left for exports' };
    stub.answers(() => ({ status: 202, body: failed }));
    const { code, err } = await stub.run(['audit', 'export', '--tenant', 'acme']);
    expect(code).to.equal(1);
    expect(err).to.equal('ledgerctl: export x-1 is failed: no space left for exports\n');
  });
});
