import { expect } from 'chai';
import fc from 'fast-check';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { edgeOf, rootOfEdge } from '../../../../src/app/audit/bundle/tile-reading.ts';
import { verifyTiles } from '../../../../src/app/audit/bundle/verify-tiles.ts';
import { leafHash } from '../../../../src/app/audit/merkle/hashing.ts';
import { createMemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import { tilePath } from '../../../../src/app/audit/merkle/tiles.ts';
import { tileFiles } from '../../../support/audit/tile-files.ts';
import { checkAsync } from '../../../support/property.ts';

const SIZE = 600;
const entries = Array.from({ length: SIZE }, (_, n) => Buffer.from(`entry ${n}`));
const tree = createMemoryTree(entries.map(leafHash));
const files = tileFiles(tree, entries);
const verify = (of: ReadonlyMap<string, Buffer>, root = tree.rootAt(SIZE), size = SIZE) =>
  verifyTiles({ size, root }, (path) => of.get(path));

const flipped = (path: string, at: number, of: ReadonlyMap<string, Buffer> = files): Map<string, Buffer> => {
  const bytes = Buffer.from(of.get(path) as Buffer);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 4, at);
  return new Map(of).set(path, bytes);
};

describe('verifying tiles', () => {
  it('finds nothing in sound ones, at any size', async () => {
    expect([...files.keys()]).to.include.members([
      'tile/0/000',
      'tile/0/002.p/88',
      'tile/1/000.p/2',
      'tile/entries/001',
    ]);
    expect(await verify(files)).to.deep.equal({ ok: true, findings: [], count: 0, tiles: 4, bundles: 3 });
    for (const size of [0, 1, 255, 256, 257, 512]) {
      const part = entries.slice(0, size);
      const small = tileFiles(createMemoryTree(part.map(leafHash)), part);
      expect((await verify(small, tree.rootAt(size), size)).findings, `${size}`).to.deep.equal([]);
    }
  });

  it('names the one file that was changed, be it an entry, a tile or one above', async () => {
    expect((await verify(flipped('tile/entries/001', 8))).findings).to.deep.equal([
      {
        code: 'changed-event',
        file: 'tile/entries/001',
        place: 256,
        message: 'the entry has not the hash that the tile has for it',
      },
    ]);
    for (const [path, place] of [
      ['tile/0/001', [256, 512]],
      ['tile/0/002.p/88', [512, 600]],
      ['tile/1/000.p/2', [0, 512]],
    ] as const)
      expect((await verify(flipped(path, 5))).findings).to.deep.equal([
        { code: 'leaves', file: path, place, message: 'this tile is not the one that was signed' },
      ]);
  });

  it('names the event that an entry says that it is of', async () => {
    const records = entries.map((_, n) => Buffer.from(`{"revision":${n},"stream":"cluster-a"}`));
    const named = createMemoryTree(records.map(leafHash));
    const sound = tileFiles(named, records);
    const other = records.with(300, Buffer.from('{"revision":300,"stream":"cluster-b"}'));
    const entry = tileFiles(named, other).get('tile/entries/001') as Buffer;
    const { findings } = await verify(new Map(sound).set('tile/entries/001', entry), named.rootAt(SIZE));
    expect(findings.map(findingText)).to.deep.equal([
      'event cluster-b@300, place 300, tile/entries/001: the entry has not the hash that the tile has for it',
    ]);
  });

  it('names a bundle once when most of it is something else, so that others are named, too', async () => {
    const swapped = new Map(files);
    for (const [path, other] of [
      ['tile/entries/000', 'tile/entries/001'],
      ['tile/entries/001', 'tile/entries/000'],
    ] as const)
      swapped.set(path, files.get(other) as Buffer);
    expect((await verify(swapped)).findings.map(findingText)).to.deep.equal([
      'places 0 to 256, tile/entries/000: 256 of its entries have not the hashes that the tile has for them',
      'places 256 to 512, tile/entries/001: 256 of its entries have not the hashes that the tile has for them',
    ]);
  });

  it('names an event whose entry and tile were changed together', async () => {
    const changed = entries.with(300, Buffer.from('entry of mine'));
    const forged = tileFiles(createMemoryTree(changed.map(leafHash)), changed);
    const both = new Map(files);
    for (const path of ['tile/0/001', 'tile/entries/001']) both.set(path, forged.get(path) as Buffer);
    expect((await verify(both)).findings.map(findingText)).to.deep.equal([
      'places 256 to 512, tile/0/001: this tile is not the one that was signed',
    ]);
    // With the tile above too, it is the right edge that does not lead to the root.
    const { findings } = await verify(
      new Map(both).set('tile/1/000.p/2', forged.get('tile/1/000.p/2') as Buffer),
    );
    expect(findings.map(({ code }) => code)).to.deep.equal(['root']);
  });

  it('names what is missing or cut off, and nothing else', async () => {
    for (const path of files.keys()) {
      const without = new Map(files);
      without.delete(path);
      const missing = await verify(without);
      expect(missing.findings.map(({ code, file }) => [code, file])).to.deep.equal([['missing-file', path]]);
      const cut = new Map(files).set(path, (files.get(path) as Buffer).subarray(0, -1));
      const shorter = await verify(cut);
      expect(shorter.findings.map(({ code, file }) => [code, file])).to.deep.equal([['malformed', path]]);
    }
  });

  it('takes the full tile where the partial one is gone', async () => {
    // The specification lets a log delete partial tiles once there are full ones.
    const part = entries.slice(0, 300);
    const head = { size: 300, root: tree.rootAt(300) };
    const grown = new Map(
      [...tileFiles(createMemoryTree(part.map(leafHash)), part)].filter(
        ([path]) => !path.includes('/001.p/'),
      ),
    );
    for (const path of ['tile/0/001', 'tile/entries/001']) grown.set(path, files.get(path) as Buffer);
    const read = (path: string) => grown.get(path);
    expect((await verifyTiles(head, read)).findings).to.deep.equal([]);
    const damaged = flipped('tile/0/001', 0, grown);
    expect((await verifyTiles(head, (path) => damaged.get(path))).findings[0]).to.include({
      file: 'tile/0/001.p/44',
    });
  });

  it('ends where a head claims more than anybody can hold', async () => {
    // Whoever signs can make the partial tiles of any size; what stands below them need not be anywhere.
    const size = 2 ** 52 + 3 * 2 ** 40 + 1;
    const claimed = new Map(
      edgeOf(size).map((tile) => [
        tile.level,
        Array.from({ length: tile.width }, () => leafHash(Buffer.alloc(0))),
      ]),
    );
    const paths = new Map(edgeOf(size).map((tile) => [tilePath(tile), tile.level]));
    let asked = 0;
    const { ok, findings } = await verifyTiles(
      { size, root: rootOfEdge(size, claimed) as Buffer },
      (path) => {
        asked += 1;
        if (asked > 20_000) throw new Error('it does not end');
        const level = paths.get(path);
        return level === undefined ? undefined : Buffer.concat(claimed.get(level) ?? []);
      },
    );
    expect(ok).to.equal(false);
    expect(findings.at(-1)?.message).to.include('so much is wrong');
    expect(findings.map(({ code }) => code)).to.include('missing-file');
  });

  it('says so when they are those of another tree', async () => {
    expect((await verify(files, tree.rootAt(SIZE - 1))).findings[0]).to.include({ code: 'root' });
  });

  it('tells two files that were changed from all that were not', () =>
    checkAsync(
      fc.asyncProperty(fc.nat(6), fc.nat(6), fc.nat(10_000), async (one, two, at) => {
        const names = [...files.keys()];
        const picked = [...new Set([names[one % names.length], names[two % names.length]])] as string[];
        let of: ReadonlyMap<string, Buffer> = files;
        for (const path of picked) of = flipped(path, at % (files.get(path) as Buffer).length, of);
        const { findings } = await verify(of);
        const told = new Set(findings.map(({ file }) => file));
        for (const path of picked) {
          // Of a tile that is wrong, below one that is wrong, nothing is left that tells.
          if (!told.has(path)) expect(findings.map(({ code }) => code)).to.include('root');
        }
      }),
      { numRuns: 60 },
    ));
});
