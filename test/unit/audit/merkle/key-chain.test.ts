import { expect } from 'chai';
import { generateKeyPairSync } from 'node:crypto';
import {
  keyChain,
  outlived,
  signRotation,
  type ChainedKey,
} from '../../../../src/app/audit/merkle/key-chain.ts';
import { vkeyOf, type NoteSigner } from '../../../../src/app/audit/merkle/note.ts';

const ORIGIN = 'fulfillment-ledger/store';

const signer = (name = ORIGIN): NoteSigner => ({
  name,
  privateKey: generateKeyPairSync('ed25519').privateKey,
});
const vkey = ({ name, privateKey }: NoteSigner): string => vkeyOf(name, privateKey);
const announced = (
  next: NoteSigner,
  previous: NoteSigner,
  since = '2026-11-21T12:00:00.000Z',
): ChainedKey => ({
  vkey: vkey(next),
  since,
  rotation: signRotation(ORIGIN, { vkey: vkey(next), since }, previous),
});

describe('chain of audit keys', () => {
  const [first, second, third, foreign] = [signer(), signer(), signer(), signer()];
  const start: ChainedKey = { vkey: vkey(first), since: '2026-11-20T12:00:00.000Z' };
  const chain = [start, announced(second, first), announced(third, second)];

  it('leads from a trusted key to all that follow', () => {
    const vkeys = [first, second, third].map(vkey);
    expect(keyChain(ORIGIN, chain, [start.vkey])).to.deep.include({ vkeys, problems: [] });
    expect(keyChain(ORIGIN, chain)).to.deep.include({ vkeys, problems: [] });
  });

  it('may be entered at any key: the ones before it are not needed', () => {
    const { vkeys, problems } = keyChain(ORIGIN, chain.slice(1), [vkey(second)]);
    expect(vkeys).to.deep.equal([second, third].map(vkey));
    expect(problems).to.deep.equal([]);
    // When they are there all the same, nothing is believed of them.
    const entered = keyChain(ORIGIN, chain, [vkey(second)]);
    expect([entered.vkeys, entered.problems]).to.deep.equal([[second, third].map(vkey), []]);
    expect([...entered.successors.keys()]).to.deep.equal([vkey(second)]);
  });

  for (const [what, keys, problem] of [
    [
      'begins with a key that nobody trusts',
      [{ ...start, vkey: vkey(foreign) }, announced(second, foreign)],
      'key 1',
    ],
    ['has a key without a note', [start, { vkey: vkey(foreign), since: start.since }], 'without a note'],
    ['has a key that another one announced', [start, announced(second, foreign)], 'none of the keys'],
    [
      'has the note of another key',
      [start, { ...announced(second, first), vkey: vkey(foreign) }],
      'not the one that',
    ],
    ['has another time', [start, { ...announced(second, first), since: start.since }], 'not the one that'],
    ['misses a key', [start, announced(third, second)], 'none of the keys'],
    ['goes on with a key of another log', [start, announced(signer('elsewhere'), first)], 'is not a key of'],
  ] as const)
    it(`says so when it ${what}`, () => {
      const found = keyChain(ORIGIN, keys, [start.vkey]);
      expect(found.problems[0]).to.include(problem);
      expect(found.vkeys).to.deep.equal([start.vkey]);
    });

  it('refuses a second successor, beside one that is known', () => {
    const own = keyChain(ORIGIN, chain.slice(0, 2));
    expect(own.problems).to.deep.equal([]);
    const other = announced(third, first);
    const found = keyChain(ORIGIN, [start, other], own);
    expect(found.problems[0]).to.include('another one than the key before it announced already');
    expect(found.vkeys).to.deep.equal([first, second].map(vkey));
    // Nor may the key that was replaced move the end of its own time.
    const later = announced(second, first, '2027-11-21T12:00:00.000Z');
    const moved = keyChain(ORIGIN, [start, later], own);
    expect(moved.problems).to.have.length(1);
    expect(moved.successors.get(start.vkey)?.since).to.equal('2026-11-21T12:00:00.000Z');
  });

  it('says from where on a key that was replaced vouches for nothing', () => {
    const since = '2026-11-21T12:00:00.000Z';
    const stated = { vkey: vkey(second), since, size: 40 };
    const next = { vkey: stated.vkey, since, rotation: signRotation(ORIGIN, stated, first) };
    const { problems, successors } = keyChain(ORIGIN, [start, next]);
    expect(problems).to.deep.equal([]);
    const says = (size: number, time: string) => outlived(start.vkey, { size, time }, successors);
    expect(says(40, since)).to.equal(undefined);
    expect(says(41, since)).to.include('replaced at size 40');
    expect(says(1, '2026-11-21T12:06:00.000Z')).to.include(`replaced at ${since}`);
    expect(outlived(stated.vkey, { size: 1000, time: '2030-01-01T00:00:00.000Z' }, successors)).to.equal(
      undefined,
    );
  });
});
