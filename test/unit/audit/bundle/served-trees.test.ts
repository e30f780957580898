import { expect } from 'chai';
import { collectFindings, findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { checkServedTrees, type ServedTrees } from '../../../../src/app/audit/bundle/served-trees.ts';
import { createTenantRoots } from '../../../../src/app/audit/bundle/tenant-roots.ts';
import { leafOf } from '../../../../src/app/audit/merkle/leaf.ts';
import type { MemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import { parseTilePath, tilePath } from '../../../../src/app/audit/merkle/tiles.ts';
import { tileFiles } from '../../../support/audit/tile-files.ts';
import { eventsOf, historyOf, tenantOf } from '../../../support/audit/signed-history.ts';

const SIZE = 1200;
const history = historyOf(eventsOf(SIZE));
const TENANTS = ['', 'acme', 'globex'];

type Change = (of: string, path: string, bytes: Buffer) => Uint8Array | undefined;

/** The trees as a service keeps them; `change`: what it has instead of some tile. */
const servedWith = (change: Change = (_of, _path, bytes) => bytes): ServedTrees => {
  const tileOf = (of: string, tree: MemoryTree) => {
    const files = new Map(
      [...tileFiles(tree, [])].flatMap(([path, bytes]) => {
        const address = parseTilePath(path);
        return address === undefined || address.level === 'entries'
          ? []
          : [[`${address.level}/${address.index}`, { path, bytes }] as const];
      }),
    );
    return (level: number, index: number) => {
      const tile = files.get(`${level}/${index}`);
      return tile === undefined ? undefined : change(of, tile.path, Buffer.from(tile.bytes));
    };
  };
  return {
    size: () => SIZE,
    tile: tileOf('log', history.tree),
    leaves: (from, limit) =>
      history.events.slice(from, from + limit).map((event) => ({ record: leafOf(event) }) as never),
    tenants: (after) => (after === 0 ? TENANTS.map((tenant, n) => ({ tree: n + 1, tenant })) : []),
    tenantTree: (tenant) => {
      const tree = history.tenantTree(tenant);
      return { ...tree, tile: tileOf(tenant, tree) } as never;
    },
  };
};

const roots = createTenantRoots();
for (const [place, event] of history.events.entries())
  roots.append(tenantOf(event), history.tree.hashAt(0, place));

const check = async (served: ServedTrees, tenants = roots.heads()): Promise<[number, string]> => {
  const findings = collectFindings();
  const log = { size: SIZE, root: history.tree.rootAt(SIZE), tenants };
  const tiles = await checkServedTrees(served, log, findings);
  return [tiles, findings.list().map(findingText).join('\n')];
};

const flipped: (of: string, path: string) => Change = (of, path) => (tree, tile, bytes) => {
  if (tree === of && tile === path) bytes.writeUInt8(bytes.readUInt8(33) ^ 1, 33);
  return bytes;
};

describe('the trees that a service keeps', () => {
  it('are those of the log, each tile of them', async () => {
    // 5 tiles, 1 above and 5 bundles of the log; of each tenant two at least, and one above.
    const [tiles, said] = await check(servedWith());
    expect([tiles >= 11 + 9, said]).to.deep.equal([true, '']);
  });

  it('are named where one tile is another', async () => {
    for (const [of, path, what] of [
      ['log', 'tile/0/002', 'the tree of the log'],
      ['log', 'tile/1/000.p/4', 'the tree of the log'],
      ['acme', 'tile/0/000', 'the tree of tenant acme'],
      ['', 'tile/0/000', 'the tree of the service itself'],
    ] as const) {
      const [, said] = await check(servedWith(flipped(of, path)));
      expect(said)
        .to.include(`in ${what} as the service keeps and serves it`)
        .and.include(`${path}: this tile is not`);
    }
  });

  it('are wrong when that of a tenant has more leaves, or fewer, than the log gives it', async () => {
    const { size } = roots.heads().find(({ tenant }) => tenant === 'acme') ?? { size: 0 };
    expect(size).to.be.greaterThan(0);
    for (const kept of [size + 1, size - 1, 0]) {
      const whole = servedWith();
      const other: ServedTrees = {
        ...whole,
        tenantTree: (tenant) =>
          tenant === 'acme' ? { ...whole.tenantTree(tenant), size: () => kept } : whole.tenantTree(tenant),
      };
      expect((await check(other))[1]).to.include(
        `the tree of tenant acme as the service keeps and serves it has ${kept} leaves, not ${size}`,
      );
    }
  });

  it('are wrong when one is missing, cannot be read, has other leaves, or belongs to nobody', async () => {
    const gone: Change = (of, path, bytes) => (of === 'log' && path === 'tile/0/001' ? undefined : bytes);
    expect((await check(servedWith(gone)))[1]).to.include('tile/0/001: this tile is missing');
    const broken = (): never => {
      throw new Error('database disk image is malformed');
    };
    expect((await check(servedWith(broken)))[1]).to.include('malformed');
    // Wherever it is that it cannot be read: that is said of what is kept, and never of the log.
    for (const unreadable of [{ tenants: broken }, { tenantTree: broken }] as const) {
      const [, said] = await check({ ...servedWith(), ...unreadable });
      expect(said).to.match(/as the service keeps and serves .*the log is right.*malformed/);
    }
    const leaves = servedWith();
    const short: ServedTrees = { ...leaves, leaves: (from, limit) => leaves.leaves(from, limit - 1) };
    expect((await check(short))[1]).to.include(
      `${tilePath({ level: 'entries', index: 0, width: 256 })}: these are not 256`,
    );
    expect((await check(leaves, roots.heads().slice(1)))[1]).to.include(
      'keeps trees of 1 tenants without events',
    );
  });
});
