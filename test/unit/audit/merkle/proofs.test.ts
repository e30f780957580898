import { expect } from 'chai';
import fc from 'fast-check';
import {
  compactRange,
  extendRange,
  rangeHashes,
  rootOf,
  rootOfRange,
} from '../../../../src/app/audit/merkle/compact-range.ts';
import { emptyRoot, leafHash, nodeHash } from '../../../../src/app/audit/merkle/hashing.ts';
import { createMemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import {
  consistencyPath,
  inclusionPath,
  rootFromInclusion,
  verifyConsistency,
  verifyInclusion,
} from '../../../../src/app/audit/merkle/proofs.ts';
import { verifyRange } from '../../../support/audit/range-proof.ts';
import { check } from '../../../support/property.ts';

/** The tree as RFC 6962 §2.1 words it, without any cleverness: what everything else is compared with. */
const recursiveRoot = (leaves: readonly Buffer[]): Buffer => {
  if (leaves.length === 0) return emptyRoot();
  if (leaves.length === 1) return leaves[0] as Buffer;
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return nodeHash(recursiveRoot(leaves.slice(0, split)), recursiveRoot(leaves.slice(split)));
};

const MOST = 300;
const LEAVES = Array.from({ length: MOST }, (_, n) => leafHash(Buffer.from(`leaf ${n}`)));
const tree = createMemoryTree(LEAVES);

const size = fc.integer({ min: 1, max: MOST });
const leafOfTree = size.chain((n) => fc.tuple(fc.nat(n - 1), fc.constant(n)));
const twoSizes = fc
  .tuple(fc.nat(MOST), fc.nat(MOST))
  .map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);

const flipped = (bytes: Buffer, bit: number): Buffer => {
  const copy = Buffer.from(bytes);
  const at = (bit >> 3) % copy.length;
  copy.writeUInt8(copy.readUInt8(at) ^ (1 << (bit & 7)), at);
  return copy;
};
const withFlipped = (hashes: readonly Buffer[], bit: number): Buffer[] => {
  const at = Math.floor(bit / 256) % hashes.length;
  return hashes.map((hash, i) => (i === at ? flipped(hash, bit) : hash));
};

describe('merkle trees', () => {
  it('have the root of the definition, however they are built', () => {
    check(
      fc.property(fc.nat(MOST), (n) => {
        const leaves = LEAVES.slice(0, n);
        const expected = recursiveRoot(leaves);
        expect(rootOf(leaves).equals(expected)).to.equal(true);
        expect(tree.rootAt(n).equals(expected)).to.equal(true);
        expect(rootOfRange(rangeHashes(n, tree.hashAt), n).equals(expected)).to.equal(true);
      }),
    );
  });

  it('can be continued from their compact range at any size', () => {
    check(
      fc.property(twoSizes, ([from, to]) => {
        const range = extendRange({ size: from, hashes: rangeHashes(from, tree.hashAt) });
        for (const leaf of LEAVES.slice(from, to)) range.append(leaf);
        expect(range.size()).to.equal(to);
        expect(range.root().equals(tree.rootAt(to))).to.equal(true);
        expect(range.hashes()).to.deep.equal(rangeHashes(to, tree.hashAt));
      }),
    );
  });

  it('tell of each subtree that a leaf completes, once', () => {
    const seen = new Map<string, Buffer>();
    const range = extendRange();
    for (const leaf of LEAVES)
      range.append(leaf, (level, index, hash) => {
        expect(seen.has(`${level}/${index}`)).to.equal(false);
        seen.set(`${level}/${index}`, hash);
      });
    for (const [key, hash] of seen) {
      const [level = 0, index = 0] = key.split('/').map(Number);
      expect(hash.equals(recursiveRoot(LEAVES.slice(index * 2 ** level, (index + 1) * 2 ** level)))).to.equal(
        true,
      );
    }
    for (let level = 0; 2 ** level <= MOST; level += 1)
      expect(seen.has(`${level}/${Math.floor(MOST / 2 ** level) - 1}`)).to.equal(true);
  });

  it('cover any size with complete subtrees, beyond 32 bits too', () => {
    check(
      fc.property(fc.maxSafeNat(), (n) => {
        let reached = 0;
        for (const { level, index } of compactRange(n)) {
          expect(index * 2 ** level).to.equal(reached);
          reached += 2 ** level;
        }
        expect(reached).to.equal(n);
      }),
    );
  });

  it('refuse what is no size, leaf or range', () => {
    expect(() => compactRange(-1)).to.throw(RangeError);
    expect(() => compactRange(2 ** 53)).to.throw(RangeError);
    expect(() => inclusionPath(3, 3, tree.hashAt)).to.throw(RangeError, 'has no leaf 3');
    expect(() => consistencyPath(4, 3, tree.hashAt)).to.throw(RangeError);
    expect(() => rootOfRange([], 1)).to.throw(RangeError);
    expect(() => extendRange({ size: 3, hashes: LEAVES.slice(0, 1) })).to.throw(RangeError, 'has 2 hashes');
    expect(() => extendRange().append(Buffer.alloc(31))).to.throw(TypeError);
    expect(() => tree.hashAt(0, MOST)).to.throw(RangeError);
  });
});

describe('inclusion proofs', () => {
  it('verify, and lead to the root', () => {
    check(
      fc.property(leafOfTree, ([index, n]) => {
        const proof = {
          index,
          size: n,
          leafHash: LEAVES[index] as Buffer,
          path: inclusionPath(index, n, tree.hashAt),
        };
        expect(verifyInclusion({ ...proof, root: tree.rootAt(n) })).to.equal(true);
        expect(rootFromInclusion(proof)?.equals(tree.rootAt(n))).to.equal(true);
      }),
    );
  });

  it('fail with any bit, the index or the size changed', () => {
    check(
      fc.property(leafOfTree, fc.nat(2 ** 20), fc.nat(MOST), fc.nat(MOST), ([index, n], bit, other, more) => {
        const root = tree.rootAt(n);
        const leaf = LEAVES[index] as Buffer;
        const path = inclusionPath(index, n, tree.hashAt);
        const proof = { index, size: n, leafHash: leaf, path, root };
        expect(verifyInclusion({ ...proof, leafHash: flipped(leaf, bit) })).to.equal(false);
        expect(verifyInclusion({ ...proof, root: flipped(root, bit) })).to.equal(false);
        if (path.length > 0) {
          expect(verifyInclusion({ ...proof, path: withFlipped(path, bit) })).to.equal(false);
          expect(verifyInclusion({ ...proof, path: path.slice(1) })).to.equal(false);
        }
        expect(verifyInclusion({ ...proof, path: [...path, leaf] })).to.equal(false);
        if (other !== index) expect(verifyInclusion({ ...proof, index: other })).to.equal(false);
        // Another size is another tree: with its own root the path of this one leads elsewhere.
        if (more !== n && more > 0)
          expect(verifyInclusion({ ...proof, size: more, root: tree.rootAt(more) })).to.equal(false);
      }),
    );
  });

  it('fail for numbers and hashes that are none', () => {
    const proof = { index: 0, size: 1, leafHash: LEAVES[0] as Buffer, path: [], root: LEAVES[0] as Buffer };
    expect(verifyInclusion(proof)).to.equal(true);
    for (const wrong of [
      { index: -1 },
      { index: 0.5 },
      { index: 1 },
      { size: 0 },
      { size: NaN },
      { size: 2 ** 53 },
    ])
      expect(verifyInclusion({ ...proof, ...wrong }), JSON.stringify(wrong)).to.equal(false);
    expect(verifyInclusion({ ...proof, leafHash: Buffer.alloc(0) })).to.equal(false);
    expect(verifyInclusion({ ...proof, size: 2, path: [Buffer.alloc(33)] })).to.equal(false);
  });
});

describe('consistency proofs', () => {
  it('verify between any two sizes', () => {
    check(
      fc.property(twoSizes, ([from, to]) => {
        const path = consistencyPath(from, to, tree.hashAt);
        const roots = { fromRoot: tree.rootAt(from), toRoot: tree.rootAt(to) };
        expect(verifyConsistency({ from, to, ...roots, path })).to.equal(true);
      }),
    );
  });

  it('fail with any bit or a size changed, or one history passed off as another', () => {
    check(
      fc.property(twoSizes, fc.nat(2 ** 20), fc.nat(MOST), ([from, to], bit, other) => {
        fc.pre(from > 0);
        const path = consistencyPath(from, to, tree.hashAt);
        const proof = { from, to, fromRoot: tree.rootAt(from), toRoot: tree.rootAt(to), path };
        expect(verifyConsistency({ ...proof, fromRoot: flipped(proof.fromRoot, bit) })).to.equal(false);
        expect(verifyConsistency({ ...proof, toRoot: flipped(proof.toRoot, bit) })).to.equal(false);
        if (path.length > 0) {
          expect(verifyConsistency({ ...proof, path: withFlipped(path, bit) })).to.equal(false);
          expect(verifyConsistency({ ...proof, path: path.slice(0, -1) })).to.equal(false);
        }
        expect(verifyConsistency({ ...proof, path: [...path, tree.rootAt(1)] })).to.equal(false);
        if (other !== from && other > 0)
          expect(verifyConsistency({ ...proof, from: other, fromRoot: tree.rootAt(other) })).to.equal(false);
        if (other !== to)
          expect(verifyConsistency({ ...proof, to: other, toRoot: tree.rootAt(other) })).to.equal(false);
        const history = LEAVES.slice(0, to);
        history[bit % from] = leafHash(Buffer.from('rewritten'));
        const rewritten = createMemoryTree(history);
        const forged = consistencyPath(from, to, rewritten.hashAt);
        expect(verifyConsistency({ ...proof, path: forged, toRoot: rewritten.rootAt(to) })).to.equal(false);
      }),
    );
  });

  it('say nothing of sizes in the wrong order', () => {
    const roots = { fromRoot: tree.rootAt(5), toRoot: tree.rootAt(4) };
    expect(verifyConsistency({ from: 5, to: 4, ...roots, path: [] })).to.equal(false);
    expect(
      verifyConsistency({ from: 0, to: 4, fromRoot: tree.rootAt(4), toRoot: tree.rootAt(4), path: [] }),
    ).to.equal(false);
  });
});

describe('range proofs', () => {
  const proofOf = (from: number, to: number) => ({
    from,
    hashes: rangeHashes(from, tree.hashAt),
    leaves: LEAVES.slice(from, to),
    root: tree.rootAt(to),
  });

  it('verify for any part of the log', () => {
    check(
      fc.property(twoSizes, ([from, to]) => {
        expect(verifyRange(proofOf(from, to))).to.equal(true);
      }),
    );
  });

  it('fail when a leaf is dropped, added, swapped or changed, or when another start is named', () => {
    check(
      fc.property(twoSizes, fc.nat(2 ** 20), ([from, to], seed) => {
        fc.pre(to - from >= 2);
        const proof = proofOf(from, to);
        const at = seed % (proof.leaves.length - 1);
        const fails = (leaves: Buffer[]): void =>
          expect(verifyRange({ ...proof, leaves })).to.equal(false) as never;
        fails(proof.leaves.toSpliced(at, 1));
        fails(proof.leaves.toSpliced(at, 0, leafHash(Buffer.from('added'))));
        fails(proof.leaves.toSpliced(at, 2, proof.leaves[at + 1] as Buffer, proof.leaves[at] as Buffer));
        fails(proof.leaves.with(at, flipped(proof.leaves[at] as Buffer, seed)));
        expect(verifyRange({ ...proof, from: from + 1 })).to.equal(false);
        if (proof.hashes.length > 0)
          expect(verifyRange({ ...proof, hashes: withFlipped(proof.hashes, seed) })).to.equal(false);
      }),
    );
  });
});
