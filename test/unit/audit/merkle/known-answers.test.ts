import { expect } from 'chai';
import { createPrivateKey } from 'node:crypto';
import { rootOf } from '../../../../src/app/audit/merkle/compact-range.ts';
import { emptyRoot, leafHash, nodeHash, sha256 } from '../../../../src/app/audit/merkle/hashing.ts';
import { createMemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import { signNote, verifyNote, vkeyOf } from '../../../../src/app/audit/merkle/note.ts';
import {
  consistencyPath,
  inclusionPath,
  verifyConsistency,
  verifyInclusion,
} from '../../../../src/app/audit/merkle/proofs.ts';
import { tenantKey, tenantLeafHash } from '../../../../src/app/audit/merkle/tenants.ts';
import { tenantsRoot } from '../../../support/audit/tenants-tree.ts';

/** The published test vectors of certificate transparency (RFC 6962): eight leaves, their roots and some proofs. */
const LEAVES = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
].map((hex) => leafHash(Buffer.from(hex, 'hex')));

const ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];

const LEAF_HASHES = [
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
  '0298d122906dcfc10892cb53a73992fc5b9f493ea4c9badb27b791b4127a7fe7',
  '07506a85fd9dd2f120eb694f86011e5bb4662e5c415a62917033d4a9624487e7',
  'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
  '4271a26be0d8a84f0bd54c8c302e7cb3a3b5d1fa6780a40bcce2873477dab658',
  'b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f',
  '46f6ffadd3d06a09ff3c5860d2755c8b9819db7df44251788c7d8e3180de8eb1',
];

const INCLUSION: readonly [index: number, size: number, path: readonly string[]][] = [
  [
    0,
    8,
    [
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ],
  ],
  [
    5,
    8,
    [
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ],
  ],
  [2, 3, ['fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125']],
  [
    1,
    5,
    [
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
    ],
  ],
];

const CONSISTENCY: readonly [from: number, to: number, path: readonly string[]][] = [
  [1, 1, []],
  [
    1,
    8,
    [
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ],
  ],
  [
    6,
    8,
    [
      '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ],
  ],
  [
    2,
    5,
    [
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
    ],
  ],
];

const hex = (hashes: readonly Buffer[]): string[] => hashes.map((hash) => hash.toString('hex'));
const bytes = (hashes: readonly string[]): Buffer[] => hashes.map((hash) => Buffer.from(hash, 'hex'));
const root = (size: number): Buffer => Buffer.from(ROOTS[size] ?? '', 'hex');

describe('merkle tree: published test vectors', () => {
  const tree = createMemoryTree(LEAVES);

  it('has their leaf hashes and the root of the empty tree', () => {
    expect(hex(LEAVES)).to.deep.equal(LEAF_HASHES);
    expect(emptyRoot().toString('hex')).to.equal(ROOTS[0]);
  });

  it('refuses to make a node of what are not two hashes', () => {
    expect(() => nodeHash(Buffer.alloc(31), Buffer.alloc(33))).to.throw(TypeError, '32 bytes');
  });

  for (const [size, expected] of ROOTS.entries())
    it(`has the root of ${size} leaves`, () => {
      expect(rootOf(LEAVES.slice(0, size)).toString('hex')).to.equal(expected);
      expect(tree.rootAt(size).toString('hex')).to.equal(expected);
    });

  for (const [index, size, path] of INCLUSION)
    it(`proves that leaf ${index} is in the tree of ${size}`, () => {
      expect(hex(inclusionPath(index, size, tree.hashAt))).to.deep.equal(path);
      const leaf = LEAVES[index] as Buffer;
      expect(verifyInclusion({ index, size, leafHash: leaf, path: bytes(path), root: root(size) })).to.equal(
        true,
      );
    });

  for (const [from, to, path] of CONSISTENCY)
    it(`proves that the tree of ${from} is the beginning of the one of ${to}`, () => {
      expect(hex(consistencyPath(from, to, tree.hashAt))).to.deep.equal(path);
      const roots = { fromRoot: root(from), toRoot: root(to) };
      expect(verifyConsistency({ from, to, ...roots, path: bytes(path) })).to.equal(true);
    });
});

/**
 * Over the trees of three tenants, by lines of Python that share nothing with this service:
 *
 *     H = lambda data: hashlib.sha256(data).digest()
 *     key = lambda name: H(name.encode())
 *     leaf = lambda name, size, root: H(b'\0' + key(name) + struct.pack('>Q', size) + root)
 *     node = lambda left, right: H(b'\1' + left + right)
 *     a, b, c = (leaf(*tree) for tree in sorted(TREES, key=lambda tree: key(tree[0])))
 *     node(node(a, b), c).hex()
 */
const TREES: readonly (readonly [tenant: string, size: number, of: string, leaf: string])[] = [
  ['acme', 258, 'root of acme', 'b9d6f5c691931a75f98484872f0184120c65be0a14511252676e95fc49760f50'],
  ['', 1, 'root of the service', '77ad65267e8e5a8f51d3908b0c001d53165d1d0891c366e993aecdf949ffadbe'],
  // More than 32 bits of size.
  [
    'globex',
    2 ** 32 + 5,
    'root of globex',
    '6c307c43c6a3a764ffb2b7fcde06139cec852ab969f11254ceba4e39df24662c',
  ],
];

describe('tree over the trees of tenants: known answers', () => {
  const heads = TREES.map(([tenant, size, of]) => ({ key: tenantKey(tenant), size, root: sha256(of) }));

  it('has their leaves: key, size with 64 bits, big end first, and root', () => {
    expect(hex(heads.map(tenantLeafHash))).to.deep.equal(TREES.map(([, , , leaf]) => leaf));
  });

  it('has their root, in the order of keys', () => {
    expect(tenantsRoot(heads).toString('hex')).to.equal(
      'cf869d0e95c0f6d115a4fe9738a6d1d004abcb445153790c88e29cacd14a8e57',
    );
  });
});

describe('signed notes: published example', () => {
  /** Of the package documentation of golang.org/x/mod/sumdb/note: a well-known key pair and note. */
  const VKEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
  const SECRET = 'AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz';
  const TEXT =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
  const NOTE =
    `${TEXT}\n\u2014 PeterNeumann ` +
    'x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';

  it('is verified', () => {
    expect(verifyNote(NOTE, [VKEY])).to.deep.equal({ text: TEXT, signers: [VKEY] });
  });

  it('is what signing gives', () => {
    // PKCS #8 of an Ed25519 key: a fixed head and the seed.
    const head = Buffer.from('302e020100300506032b657004220420', 'hex');
    const seed = Buffer.from(SECRET, 'base64').subarray(1);
    const privateKey = createPrivateKey({ key: Buffer.concat([head, seed]), format: 'der', type: 'pkcs8' });
    expect(vkeyOf('PeterNeumann', privateKey)).to.equal(VKEY);
    expect(signNote(TEXT, { name: 'PeterNeumann', privateKey })).to.equal(NOTE);
  });
});
