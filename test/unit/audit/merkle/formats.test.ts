import { expect } from 'chai';
import fc from 'fast-check';
import { generateKeyPairSync } from 'node:crypto';
import {
  checkpointText,
  InvalidCheckpoint,
  parseCheckpoint,
} from '../../../../src/app/audit/merkle/checkpoint.ts';
import { leafHash, sha256 } from '../../../../src/app/audit/merkle/hashing.ts';
import { createMemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import {
  InvalidNote,
  parseVkey,
  signNote,
  verifyNote,
  vkeyOf,
} from '../../../../src/app/audit/merkle/note.ts';
import { tenantKey, tenantLeafHash } from '../../../../src/app/audit/merkle/tenants.ts';
import { tenantsRoot, tenantsTree } from '../../../support/audit/tenants-tree.ts';
import { verifyInclusion } from '../../../../src/app/audit/merkle/proofs.ts';
import {
  decodeEntries,
  encodeEntries,
  hashAtOfTiles,
  parseTilePath,
  tilePath,
  tileWidthAt,
} from '../../../../src/app/audit/merkle/tiles.ts';
import { edgeOf } from '../../../../src/app/audit/bundle/tile-reading.ts';
import { tilesOf } from '../../../support/audit/tile-files.ts';
import { check } from '../../../support/property.ts';

const newKey = (name: string) => {
  const { privateKey } = generateKeyPairSync('ed25519');
  return { name, privateKey, vkey: vkeyOf(name, privateKey) };
};

describe('signed notes', () => {
  const [ours, next, foreign] = [newKey('ledger/1'), newKey('ledger/1'), newKey('elsewhere')];
  const TEXT = 'origin\n5\nroot\n';

  it('say who signed them, and pass over keys that nobody trusts', () => {
    const note = signNote(TEXT, ours, foreign, next);
    expect(verifyNote(note, [ours.vkey])).to.deep.equal({ text: TEXT, signers: [ours.vkey] });
    expect(verifyNote(note, [next.vkey, ours.vkey]).signers).to.deep.equal([ours.vkey, next.vkey]);
    expect(() => verifyNote(note, [newKey('ledger/1').vkey])).to.throw(InvalidNote, 'none of the keys');
    expect(() => verifyNote(note, [])).to.throw(InvalidNote, 'none of the keys');
  });

  it('keep empty lines of their text', () => {
    const text = 'one\n\n\ntwo\n';
    expect(verifyNote(signNote(text, ours), [ours.vkey]).text).to.equal(text);
  });

  it('are refused with any character changed', () => {
    const note = signNote(TEXT, ours);
    check(
      fc.property(fc.nat(note.length - 1), fc.integer({ min: 32, max: 126 }), (at, code) => {
        const changed = note.slice(0, at) + String.fromCharCode(code) + note.slice(at + 1);
        fc.pre(changed !== note);
        expect(() => verifyNote(changed, [ours.vkey])).to.throw(InvalidNote);
      }),
    );
  });

  for (const [what, note] of [
    ['nothing', ''],
    ['a text alone', 'text\n'],
    ['no signature', 'text\n\n'],
    ['a cut line', signNote(TEXT, ours).slice(0, -1)],
    ['a hyphen for the dash', signNote(TEXT, ours).replace('\u2014', '-')],
    ['control characters', signNote(TEXT, ours).replace('5', '\t')],
    ['a lone surrogate', signNote(TEXT, ours).replace('5', '\ud800')],
    ['a megabyte', 'x'.repeat(2 ** 20) + signNote(TEXT, ours)],
    ['too many signatures', signNote(TEXT, ...Array.from({ length: 101 }, () => ours))],
  ] as const)
    it(`refuses ${what}`, () => {
      expect(() => verifyNote(note, [ours.vkey])).to.throw(InvalidNote);
    });

  it('are not made of what no note can hold', () => {
    expect(() => signNote('no newline', ours)).to.throw(InvalidNote, 'newline');
    expect(() => signNote('tab\t\n', ours)).to.throw(InvalidNote, 'control');
    expect(() => signNote(TEXT, { ...ours, name: 'two words' })).to.throw(InvalidNote, 'cannot name a key');
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expect(() => signNote(TEXT, { name: 'curve', privateKey })).to.throw(InvalidNote, 'Ed25519');
  });

  it('have verifier keys that name themselves', () => {
    const { name, keyId } = parseVkey(ours.vkey);
    expect(name).to.equal('ledger/1');
    expect(ours.vkey)
      .to.match(/^ledger\/1\+[0-9a-f]{8}\+[A-Za-z0-9+/=]{44}$/)
      .and.to.include(keyId);
    for (const wrong of [
      '',
      'a+b+c',
      ours.vkey.slice(0, -4),
      ours.vkey.replace('ledger', 'other'),
      `${ours.vkey} `,
    ])
      expect(() => parseVkey(wrong), wrong).to.throw(InvalidNote);
  });
});

describe('checkpoints', () => {
  const CHECKPOINT = {
    origin: 'fulfillment-ledger/0190fdc2-bf52-71b8-8c36-977f348f4436',
    size: 20852163,
    root: sha256('root'),
    tenants: { count: 3, root: sha256('tenants') },
    position: '0000000020852170',
    time: '2026-11-21T12:00:00.000Z',
  };
  const TEXT = checkpointText(CHECKPOINT);

  it('are origin, size, root and three extension lines', () => {
    expect(TEXT).to.equal(
      'fulfillment-ledger/0190fdc2-bf52-71b8-8c36-977f348f4436\n20852163\n' +
        `${sha256('root').toString('base64')}\ntenants 3 ${sha256('tenants').toString('base64')}\n` +
        'position 0000000020852170\ntime 2026-11-21T12:00:00.000Z\n',
    );
    expect(parseCheckpoint(TEXT)).to.deep.equal(CHECKPOINT);
  });

  for (const [what, text] of [
    ['nothing', ''],
    ['a line too few', TEXT.split('\n').toSpliced(3, 1).join('\n')],
    ['a line too many', `${TEXT}more\n`],
    ['no last newline', TEXT.slice(0, -1)],
    ['a size with a zero before it', TEXT.replace('\n2085', '\n02085')],
    ['a negative size', TEXT.replace('\n2085', '\n-2085')],
    ['a size beyond what numbers hold', TEXT.replace('\n20852163', '\n9007199254740993')],
    [
      'a root that is cut',
      TEXT.replace(sha256('root').toString('base64'), sha256('r').toString('base64', 0, 30)),
    ],
    [
      'a root in another spelling',
      TEXT.replace(sha256('root').toString('base64'), sha256('root').toString('base64url')),
    ],
    ['a time that is none', TEXT.replace('2026-11-21T', 'yesterday ')],
    // Other readers take them for other times, or for none.
    ['a day that there is not', TEXT.replace('2026-11-21T', '2026-02-30T')],
    ['an hour that there is not', TEXT.replace('T12:', 'T25:')],
    ['the end of a day as an hour of it', TEXT.replace('T12:', 'T24:')],
  ] as const)
    it(`do not hold ${what}`, () => {
      expect(() => parseCheckpoint(text)).to.throw(InvalidCheckpoint);
    });
});

describe('tiles', () => {
  it('have the paths of the specification', () => {
    expect(tilePath({ level: 0, index: 1234067, width: 256 })).to.equal('tile/0/x001/x234/067');
    expect(tilePath({ level: 1, index: 0, width: 17 })).to.equal('tile/1/000.p/17');
    expect(tilePath({ level: 'entries', index: 1000, width: 256 })).to.equal('tile/entries/x001/000');
  });

  it('are found again by their path', () => {
    check(
      fc.property(
        fc.oneof(fc.nat(63), fc.constant('entries' as const)),
        fc.maxSafeNat(),
        fc.integer({ min: 1, max: 256 }),
        (level, index, width) => {
          const address = { level, index, width };
          expect(parseTilePath(tilePath(address))).to.deep.equal(address);
        },
      ),
    );
  });

  for (const path of [
    'tile/0',
    'tile/00/000',
    'tile/64/000',
    'tile/-1/000',
    'tile/0/00',
    'tile/0/0000',
    'tile/0/x000/001',
    'tile/0/001/x234/067',
    'tile/0/000.p/0',
    'tile/0/000.p/256',
    'tile/0/000.p/07',
    'tile/0/x999/x999/x999/x999/x999/999',
    'tile/data/000',
    'tile/0/000\n',
    'tile/0/../000',
  ])
    it(`are not at ${JSON.stringify(path)}`, () => expect(parseTilePath(path)).to.equal(undefined));

  it('are no tiles outside of their bounds', () => {
    for (const address of [
      { level: 64, index: 0, width: 1 },
      { level: 0, index: -1, width: 1 },
      { level: 0, index: 0, width: 0 },
      { level: 0, index: 0, width: 257 },
    ])
      expect(() => tilePath(address), JSON.stringify(address)).to.throw(RangeError);
  });

  it('are as many and as wide as the specification says for 70,000 leaves', () => {
    const tiles = [...tilesOf(70_000)];
    const count = (level: number, full: boolean): number =>
      tiles.filter((tile) => tile.level === level && (tile.width === 256) === full).length;
    expect([count(0, true), count(1, true), count(2, true)]).to.deep.equal([273, 1, 0]);
    expect(tiles.filter(({ width }) => width < 256).map(({ level, width }) => [level, width])).to.deep.equal([
      [0, 112],
      [1, 17],
      [2, 1],
    ]);
    expect([...tilesOf(256)].map(({ level, width }) => [level, width])).to.deep.equal([
      [0, 256],
      [1, 1],
    ]);
    expect([...tilesOf(0)]).to.deep.equal([]);
    // Those that make the root, and that a log has to serve for a size that it signed.
    expect(edgeOf(70_000).map(tilePath)).to.deep.equal([
      'tile/0/273.p/112',
      'tile/1/001.p/17',
      'tile/2/000.p/1',
    ]);
    expect(edgeOf(256).map(tilePath)).to.deep.equal(['tile/1/000.p/1']);
  });

  it('give every hash of the tree that they were made of', () => {
    const leaves = Array.from({ length: 1000 }, (_, n) => leafHash(Buffer.from(String(n))));
    const tree = createMemoryTree(leaves);
    const stored = new Map<string, Buffer>();
    for (const { level, index, width } of tilesOf(leaves.length))
      stored.set(
        `${level}/${index}`,
        Buffer.concat(Array.from({ length: width }, (_, at) => tree.hashAt(level * 8, index * 256 + at))),
      );
    const hashAt = hashAtOfTiles((level, index) => stored.get(`${level}/${index}`));
    for (let level = 0; 2 ** level <= leaves.length; level += 1)
      for (let index = 0; (index + 1) * 2 ** level <= leaves.length; index += 1)
        expect(hashAt(level, index).equals(tree.hashAt(level, index)), `${level}/${index}`).to.equal(true);
    expect(() => hashAt(0, 1000)).to.throw(RangeError, 'does not hold');
    expect(() => hashAt(0, 5000)).to.throw(RangeError, 'does not hold');
    expect(tileWidthAt(1, 0, 1000)).to.equal(3);
  });

  it('keep their entries, and notice one that is cut off', () => {
    check(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (entries) => {
        const encoded = encodeEntries(entries);
        expect(decodeEntries(encoded)?.map((entry) => [...entry])).to.deep.equal(
          entries.map((entry) => [...entry]),
        );
        if (entries.length > 0) {
          const cut = decodeEntries(encoded.subarray(0, -1));
          expect(cut === undefined || cut.length < entries.length).to.equal(true);
        }
      }),
    );
    expect(() => encodeEntries([Buffer.alloc(65_536)])).to.throw(RangeError);
    // A bundle holds no more than a tile: of others nobody knows how many there may be.
    const entries = (count: number) => Array.from({ length: count }, () => Buffer.of(1));
    expect(decodeEntries(encodeEntries(entries(256)))).to.have.length(256);
    expect(decodeEntries(Buffer.concat([256, 1].map((n) => encodeEntries(entries(n)))))).to.equal(undefined);
  });
});

describe('tree of the tenants', () => {
  const head = (tenant: string, size: number) => ({
    key: tenantKey(tenant),
    size,
    root: sha256(`${tenant} ${size}`),
  });
  const heads = [head('acme', 5), head('', 1), head('globex', 2 ** 40), head('ümlaut', 7)];

  it('has one root, whatever the order the tenants come in', () => {
    expect(tenantsRoot(heads).equals(tenantsRoot(heads.toReversed()))).to.equal(true);
    expect(tenantsRoot(heads).equals(tenantsRoot(heads.slice(1)))).to.equal(false);
    expect(tenantsRoot([...heads.slice(1), head('acme', 6)]).equals(tenantsRoot(heads))).to.equal(false);
    expect(() => tenantsRoot([...heads, head('acme', 6)])).to.throw(TypeError);
  });

  it('proves the tree of each tenant', () => {
    const { count, root, proofOf } = tenantsTree(heads);
    for (const [n, tenant] of ['acme', '', 'globex', 'ümlaut'].entries()) {
      const proof = proofOf(tenant);
      const leaf = heads[n] as (typeof heads)[number];
      expect(proof).to.not.equal(undefined);
      const inclusion = { index: proof?.index ?? -1, path: proof?.path ?? [], size: count, root };
      expect(verifyInclusion({ ...inclusion, leafHash: tenantLeafHash(leaf) })).to.equal(true);
      expect(
        verifyInclusion({ ...inclusion, leafHash: tenantLeafHash({ ...leaf, size: leaf.size + 1 }) }),
      ).to.equal(false);
    }
    expect(proofOf('nobody')).to.equal(undefined);
  });
});
