import { expect } from 'chai';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { verifyTiles } from '../../../../src/app/audit/bundle/verify-tiles.ts';
import { leafHash } from '../../../../src/app/audit/merkle/hashing.ts';
import { createMemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import { tileFiles } from '../../../support/audit/tile-files.ts';

const SIZE = 600;
const entries = Array.from({ length: SIZE }, (_, n) => Buffer.from(`entry ${n}`));
const tree = createMemoryTree(entries.map(leafHash));
const files = tileFiles(tree, entries);
const verify = (of: ReadonlyMap<string, Buffer>, root = tree.rootAt(SIZE)) =>
  verifyTiles({ size: SIZE, root }, (path) => of.get(path));

const flipped = (path: string, at: number): Map<string, Buffer> => {
  const bytes = Buffer.from(files.get(path) as Buffer);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 4, at);
  return new Map(files).set(path, bytes);
};

describe('verifying tiles', () => {
  it('finds nothing in sound ones, at any size', () => {
    expect([...files.keys()]).to.include.members([
      'tile/0/000',
      'tile/0/002.p/88',
      'tile/1/000.p/2',
      'tile/entries/001',
    ]);
    expect(verify(files)).to.deep.equal({ ok: true, findings: [], count: 0 });
    for (const size of [0, 1, 255, 256, 257]) {
      const part = entries.slice(0, size);
      const small = tileFiles(createMemoryTree(part.map(leafHash)), part);
      expect(
        verifyTiles({ size, root: tree.rootAt(size) }, (path) => small.get(path)).ok,
        `${size}`,
      ).to.equal(true);
    }
  });

  it('names the entry, the tile or the level above', () => {
    expect(verify(flipped('tile/entries/001', 8)).findings).to.deep.include.members([
      {
        code: 'changed-event',
        file: 'tile/entries/001',
        place: 256,
        message: 'the entry has not the hash that the tile has for it',
      },
    ]);
    const tile = verify(flipped('tile/0/001', 5 * 32));
    expect(tile.findings.map(findingText).join('\n')).to.include('places 256 to 512, tile/0/001');
    expect(tile.findings.some(({ place }) => place === 261)).to.equal(true);
    const above = verify(flipped('tile/1/000.p/2', 0));
    expect(above.findings[0]).to.deep.include({ file: 'tile/0/000', place: [0, 256] });
  });

  it('names what is missing or cut off', () => {
    for (const path of files.keys()) {
      const without = new Map(files);
      without.delete(path);
      expect(verify(without).findings[0], path).to.include({ code: 'missing-file', file: path });
      const cut = new Map(files).set(path, (files.get(path) as Buffer).subarray(0, -1));
      expect(verify(cut).findings[0], path).to.include({ code: 'malformed', file: path });
    }
  });

  it('says so when they are those of another tree', () => {
    expect(verify(files, tree.rootAt(SIZE - 1)).findings[0]).to.include({ code: 'root' });
  });
});
