import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { signRotation, type ChainedKey, type Trust } from '../../../src/app/audit/merkle/key-chain.ts';
import { hashedMetadata, leafHashOf, leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import type { NoteSigner } from '../../../src/app/audit/merkle/note.ts';
import { inclusionPath } from '../../../src/app/audit/merkle/proofs.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import {
  historyOf,
  keyOf,
  ORIGIN,
  tenantOf,
  vkey,
  type History,
} from '../../support/audit/signed-history.ts';
import { startCliStub, type Answer, type CliStub } from '../../support/cli/stub-service.ts';
import { consistencyOf, fork, history, SIZE } from './audit-history.ts';

const nameOf = ({ stream, revision }: RecordedEvent): string => `${stream}@${revision}`;
const eventAt = (of: History, index: number): RecordedEvent => of.events[index] as RecordedEvent;

describe('ledgerctl audit proof', () => {
  let stub: CliStub;
  let folder: string;
  let trust: string;
  before(async () => {
    stub = await startCliStub();
    folder = await mkdtemp(join(tmpdir(), 'ledger-proof-'));
    trust = join(folder, 'trust.json');
  });
  after(async () => {
    stub.close();
    await rm(folder, { recursive: true });
  });
  beforeEach(() => {
    stub.asked.length = 0;
  });

  type Served = {
    /** Leaves under the head; default: all. */
    readonly size?: number;
    readonly signer?: NoteSigner;
    readonly keys?: readonly ChainedKey[];
    /** Instead of the proof between two sizes. */
    readonly consistency?: Answer;
  };
  /** The proof of an event under the head of a history, whatever is asked for. */
  const serves = (of: History, index: number, { size = SIZE, ...as }: Served = {}): void =>
    stub.answers(({ path, query }) => {
      if (path.endsWith('/consistency')) {
        return as.consistency ?? { body: consistencyOf(of, query) };
      }
      if (path.endsWith('/trust.json')) return { body: { ...of.trust, keys: as.keys ?? of.trust.keys } };
      const event = eventAt(of, index);
      return {
        body: {
          id: event.id,
          event: nameOf(event),
          leaf: leafOf(event),
          leaf_hash: leafHashOf(leafOf(event)).toString('base64'),
          index,
          path: inclusionPath(index, size, of.tree.hashAt).map((hash) => hash.toString('base64')),
          checkpoint: { note: of.noteAt(size, as.signer) },
          stored: { data: event.data, metadata: hashedMetadata(event.metadata) },
        },
      };
    });
  const trusts = (own: Trust): Promise<void> => writeFile(trust, JSON.stringify(own));
  const pin = (size: number, signer = history.signer): Promise<void> =>
    trusts({ ...history.trust, pin: history.noteAt(size, signer) });
  const run = async (event: string, ...more: string[]) => {
    const before = process.exitCode;
    process.exitCode = undefined;
    try {
      return await stub.run(['audit', 'proof', event, ...more]);
    } finally {
      process.exitCode = before;
    }
  };
  const asked = (of: History, index: number, ...more: string[]) =>
    run(nameOf(eventAt(of, index)), '--trust', trust, ...more);
  const proven = async (): Promise<string> => {
    const { code, out, err } = await asked(history, 5);
    expect([code, err], out).to.deep.equal([0, '']);
    return out;
  };

  it('is of the event that was asked for, by its name or its id', async () => {
    await trusts(history.trust);
    serves(history, 5);
    const event = eventAt(history, 5);
    for (const name of [nameOf(event), event.id, event.id.toUpperCase()]) {
      const { code, out, err } = await run(name, '--trust', trust);
      expect([code, err], name).to.deep.equal([0, '']);
      expect(out).to.include(`${nameOf(event)} (${event.type}) is leaf 5,`);
    }
    const { code, out } = await asked(history, 6);
    expect(code).to.equal(1);
    expect(out)
      .to.match(/^wrong: the proof is of another event, \S+@\d+\n/)
      .and.include('\n1 finding\n');
  });

  it('says where there is no pin, or no trust.json at all', async () => {
    const none = 'pin: none: a history that was rewritten as a whole would not be noticed (--trust)\n';
    await trusts(history.trust);
    serves(history, 5);
    expect(await proven())
      .to.match(/\nkeys: yours\n/)
      .and.include(none);
    const without = await run(nameOf(eventAt(history, 5)));
    expect([without.code, without.err]).to.deep.equal([0, '']);
    expect(without.out)
      .to.include('keys: those that the service names: keep them with `ledgerctl audit trust`\n')
      .and.include(none);
  });

  it('is under a head that continues the pin, and asks for what shows it', async () => {
    for (const pinned of [0, 10, SIZE]) {
      await pin(pinned);
      stub.asked.length = 0;
      serves(history, 5);
      expect(await proven(), String(pinned)).to.match(/\nkeys: yours\npin: continued\n$/);
      const consistency = stub.asked.filter(({ path }) => path.endsWith('/consistency'));
      expect(consistency.map(({ query }) => query.toString())).to.deep.equal(
        pinned === 10 ? ['from=10&to=30'] : [],
      );
    }
  });

  it('is under an older head that leads to the pin', async () => {
    await pin(SIZE);
    serves(history, 5, { size: 20 });
    expect(await proven()).to.include(
      'keys: yours\npin: the signed head lies before your pin, which continues it (size 20 < 30)\n',
    );
  });

  const filed = historyOf(history.events, keyOf('first'), (event, n) =>
    n === 3 ? 'elsewhere' : tenantOf(event),
  );
  const moved = historyOf(
    history.events.map((event, n) => (n === SIZE - 1 ? { ...event, position: '0000000000009999' } : event)),
  );
  const sound = 'the event is sound by itself: it is under the head that was signed';
  for (const [what, of, pinned, size, says] of [
    ['larger than the pin', fork, 15, SIZE, 'it is another history than your pin of size 15'],
    ['of the same size', fork, SIZE, SIZE, 'two histories of size 30: its root is not the one'],
    ['smaller than the pin', fork, SIZE, 20, 'it is another history than your pin of size 30'],
    ['with other trees of tenants', filed, SIZE, SIZE, 'two histories of size 30: the root over its tenants'],
    ['that ends at another position', moved, SIZE, SIZE, 'two histories of size 30: the position of its'],
  ] as const)
    it(`is nothing under the head of another history, ${what}`, async () => {
      await pin(pinned);
      serves(of, 5, { size });
      const { code, out } = await asked(of, 5);
      expect(code).to.equal(1);
      expect(out)
        .to.match(/^wrong: /)
        .and.include(says)
        .and.include(
          `keys: yours\npin: BROKEN: this is not the history that you pinned: somewhere before leaf ${Math.min(pinned, size)} `,
        )
        .and.match(new RegExp(`; ${sound}\\n1 finding\\n$`))
        .and.not.include('is leaf');
    });

  it('is nothing under a head of which is not shown that it and the pin are of one history', async () => {
    const behind = { status: 400, body: { detail: "query parameter 'to' is larger than the tree" } };
    for (const [pinned, size, consistency] of [
      [SIZE, 20, behind],
      [10, SIZE, behind],
      [10, SIZE, { status: 404, body: {} }],
    ] as const) {
      await pin(pinned);
      serves(history, 5, { size, consistency });
      const { code, out } = await asked(history, 5);
      expect(code).to.equal(1);
      expect(out)
        .to.include('history was taken back, or an instance answers that is behind')
        .and.include(
          `pin: not shown: the service does not prove that its history is that of your pin of size ${pinned}\n`,
        );
    }
    for (const body of [{}, { path: [] }, { path: 'x' }, { path: [1, null, 'no base64'] }, null]) {
      await pin(10);
      serves(history, 5, { consistency: { body } });
      const { code, out } = await asked(history, 5);
      expect([code, out.includes('pin: BROKEN')], JSON.stringify(body)).to.deep.equal([1, true]);
    }
    serves(history, 5, { consistency: { status: 403, body: { detail: 'no longer' } } });
    const refused = await asked(history, 5);
    expect([refused.code, refused.out, refused.err.includes('answered 403')]).to.deep.equal([1, '', true]);
  });

  it('with a pin that nobody trusted signed shows nothing, and as JSON it fails, too', async () => {
    await pin(15, keyOf('foreign'));
    serves(history, 5);
    const { code, out, err } = await asked(history, 5, '--json');
    expect(code).to.equal(1);
    expect(JSON.parse(out)).to.have.property('leaf_hash');
    expect(err)
      .to.include('wrong: trust.json: the pin cannot be used')
      .and.include('pin: not checked (the pin cannot be used, see above)\n');
    serves(fork, 5);
    await pin(SIZE);
    const forked = await asked(fork, 5, '--json');
    expect([forked.code, forked.err.includes('pin: BROKEN')]).to.deep.equal([1, true]);
  });

  it('is nothing in an answer of another form', async () => {
    await pin(10);
    const event = eventAt(history, 5);
    const right = {
      event: nameOf(event),
      leaf: leafOf(event),
      leaf_hash: '',
      index: 5,
      path: [],
      checkpoint: { note: history.noteAt(SIZE) },
    };
    for (const body of [
      {},
      null,
      [],
      { ...right, leaf: null },
      { ...right, leaf: 'data' },
      { ...right, path: 'x' },
      { ...right, checkpoint: {} },
      { ...right, index: '5' },
      { ...right, stored: { data: 1, metadata: {} } },
    ]) {
      stub.answers(({ path }) => (path.endsWith('/trust.json') ? { body: history.trust } : { body }));
      const { code, out, err } = await asked(history, 5);
      expect([code, out], JSON.stringify(body)).to.deep.equal([1, '']);
      expect(err).to.match(/^ledgerctl: the service answered something else than the proof of an event: /);
    }
  });

  describe('when keys were replaced', () => {
    const [first, second, third] = [keyOf('first'), keyOf('second'), keyOf('third')];
    const start: ChainedKey = { vkey: vkey(first), since: '2026-11-21T00:00:00.000Z' };
    const since = '2026-11-21T12:30:00.000Z';
    const announced = (next: NoteSigner, previous: NoteSigner, size = SIZE): ChainedKey => ({
      vkey: vkey(next),
      since,
      rotation: signRotation(ORIGIN, { vkey: vkey(next), since, size }, previous),
    });
    const lost = (next: NoteSigner): ChainedKey => ({ vkey: vkey(next), since });
    const shown = async (own: readonly ChainedKey[], keys: readonly ChainedKey[], signer: NoteSigner) => {
      await trusts({
        ...history.trust,
        keys: own,
        pin: history.noteAt(10, own.includes(start) ? first : second),
      });
      serves(history, 5, { signer, keys });
      return asked(history, 5);
    };
    const rotated = [start, announced(second, first), announced(third, second)];

    for (const [what, own, keys, signer] of [
      ['follows the key that was announced', [start], rotated.slice(0, 2), second],
      ['follows several', [start], rotated, third],
      ['takes several of its own', rotated, rotated, third],
      ['follows from the last of its own', rotated.slice(0, 2), rotated, third],
      ['takes what an older key signed before', rotated, rotated, first],
      [
        'takes a key without announcement that is its own',
        [start, lost(second)],
        [start, lost(second)],
        second,
      ],
      [
        'follows from such a key',
        [start, lost(second)],
        [start, lost(second), announced(third, second)],
        third,
      ],
      ['needs none before its own', [lost(second)], [start, lost(second), announced(third, second)], third],
    ] as const)
      it(what, async () => {
        const { code, out, err } = await shown(own, keys, signer);
        expect([code, err], out).to.deep.equal([0, '']);
        expect(out).to.include('keys: yours\npin: continued\n');
      });

    const stolen = [start, announced(third, first)];
    for (const [what, own, keys, signer, says] of [
      [
        'a key that nothing announced',
        [start],
        [start, lost(second)],
        second,
        'came without a note of the key',
      ],
      [
        'another key than the one announced',
        rotated.slice(0, 2),
        stolen,
        third,
        'announced already: it was stolen',
      ],
      [
        'a key that announces itself',
        [start],
        [start, announced(second, second)],
        second,
        'was not announced by',
      ],
      [
        'a key that was replaced before',
        [start],
        [start, announced(second, first, 29)],
        first,
        'replaced at size 29',
      ],
      ['keys of somebody else', [start], [lost(third)], third, 'is not one that you trust'],
    ] as const)
      it(`is nothing under ${what}`, async () => {
        const { code, out } = await shown(own, keys, signer);
        expect(code, out).to.equal(1);
        expect(out).to.include(says).and.not.include('is leaf');
      });
  });
});
