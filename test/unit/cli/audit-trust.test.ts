import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { signRotation, type Trust } from '../../../src/app/audit/merkle/key-chain.ts';
import type { NoteSigner } from '../../../src/app/audit/merkle/note.ts';
import { keyOf, ORIGIN, vkey, type History } from '../../support/audit/signed-history.ts';
import { startCliStub, type CliStub } from '../../support/cli/stub-service.ts';
import { consistencyOf, fork, history, SIZE } from './audit-history.ts';

describe('ledgerctl audit trust over a file that is there', () => {
  let stub: CliStub;
  let folder: string;
  let file: string;
  before(async () => {
    stub = await startCliStub();
    folder = await mkdtemp(join(tmpdir(), 'ledger-trust-'));
    file = join(folder, 'trust.json');
  });
  after(async () => {
    stub.close();
    await rm(folder, { recursive: true });
  });

  const pinned = (
    of: History,
    size: number,
    { keys = of.trust.keys, signer = of.signer }: Signing = {},
  ): Trust => ({
    ...of.trust,
    keys,
    pin: of.noteAt(size, signer),
  });
  type Signing = { readonly keys?: Trust['keys']; readonly signer?: NoteSigner };
  /** Asks a service of this history, which shows this, to replace what is there. */
  const replaced = async (held: Trust | string, of: History, shown: Trust, knows = SIZE) => {
    const before = typeof held === 'string' ? held : JSON.stringify(held);
    await writeFile(file, before);
    stub.answers(({ path, query }) => {
      if (!path.endsWith('/consistency')) return { body: shown };
      if (Number(query.get('to')) > knows) return { status: 400, body: { detail: 'larger than the tree' } };
      return { body: consistencyOf(of, query) };
    });
    const run = await stub.run(['audit', 'trust', '-o', file, '--force']);
    const after = await readFile(file, 'utf8');
    return { ...run, isKept: after === before, isNew: after === `${JSON.stringify(shown, null, 2)}\n` };
  };

  it('replaces it by what continues it, and says so', async () => {
    const { code, err, isNew } = await replaced(pinned(history, 10), history, pinned(history, SIZE));
    expect([code, isNew], err).to.deep.equal([0, true]);
    expect(err).to.include('its pin is continued (size 10)\n');
    const next = keyOf('second');
    const stated = { vkey: vkey(next), since: '2026-11-21T12:00:20.000Z', size: 20 };
    const rotation = signRotation(ORIGIN, stated, history.signer);
    const keys = [...history.trust.keys, { vkey: stated.vkey, since: stated.since, rotation }];
    const rotated = pinned(history, SIZE, { keys, signer: next });
    expect(await replaced(pinned(history, 10), history, rotated)).to.include({ code: 0, isNew: true });
  });

  it('replaces what is no trust.json, or of another log, which is said', async () => {
    expect(await replaced('mine', history, pinned(history, SIZE))).to.include({ code: 0, isNew: true });
    const others = { ...history.trust, origin: `${ORIGIN}2` };
    const run = await replaced(others, history, pinned(history, SIZE));
    expect([run.code, run.isNew]).to.deep.equal([0, true]);
    expect(run.err).to.include(`it held a pin of another log, ${ORIGIN}2\n`);
  });

  for (const [what, held, of, shown, knows, says] of [
    [
      'another history',
      pinned(history, 15),
      fork,
      pinned(fork, SIZE),
      SIZE,
      'another history than your pin of size 15',
    ],
    [
      'another history of the same size',
      pinned(history, SIZE),
      fork,
      pinned(fork, SIZE),
      SIZE,
      'two histories of size',
    ],
    [
      'a history that was taken back',
      pinned(history, SIZE),
      history,
      pinned(history, 20),
      20,
      'was taken back',
    ],
    ['an older head', pinned(history, SIZE), history, pinned(history, 20), SIZE, 'is older than your pin'],
    [
      'a key that nothing announced',
      pinned(history, 10),
      history,
      pinned(history, SIZE, { keys: [{ vkey: vkey(keyOf('thief')), since: '' }], signer: keyOf('thief') }),
      SIZE,
      'is not one that you trust',
    ],
    ['no signed head', pinned(history, 10), history, history.trust, SIZE, 'no signed head'],
  ] as const)
    it(`keeps it before ${what}: it is what shows that`, async () => {
      const run = await replaced(held, of, shown, knows);
      expect([run.code, run.isKept], run.err).to.deep.equal([1, true]);
      expect(run.err).to.include(says).and.include(`${file} is kept`);
    });

  it('keeps it before an answer that is no trust.json', async () => {
    for (const shown of [{}, { origin: ORIGIN, keys: 'x' }, null]) {
      const run = await replaced(pinned(history, 10), history, shown as unknown as Trust);
      expect([run.code, run.isKept], run.err).to.deep.equal([1, true]);
      expect(run.err).to.include('the service answered something else than a trust.json');
    }
  });
});
