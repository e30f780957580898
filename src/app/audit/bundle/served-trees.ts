import { leafBytes } from '../merkle/leaf.ts';
import { encodeEntries, parseTilePath, TILE_WIDTH } from '../merkle/tiles.ts';
import type { AuditTree } from '../tree.ts';
import { collectFindings, findingText, type Findings } from './findings.ts';
import { scopeName } from './format.ts';
import { hashTiles, type ReadTile } from './tile-reading.ts';
import type { TenantRoots } from './tenant-roots.ts';
import { verifyTiles } from './verify-tiles.ts';

/** The trees as the service keeps them beside the log: from these it serves tiles and proofs, and signs. */
export type ServedTrees = Pick<AuditTree, 'size' | 'tile' | 'leaves' | 'tenants' | 'tenantTree'>;

/** What the log has at the size of the kept tree. */
export type TreesOfLog = {
  readonly size: number;
  readonly root: Buffer;
  readonly tenants: ReturnType<TenantRoots['heads']>;
};

/**
 * Whether what is kept is what the log gives: all tiles and entries of the main tree, and all tiles of each tenant's. To be
 * asked when the log itself is right. Returns how many tiles were looked at.
 */
export const checkServedTrees = async (
  served: ServedTrees,
  log: TreesOfLog,
  findings: Findings,
): Promise<number> => {
  let looked = 0;
  const check = async (
    what: string,
    tree: Pick<TreesOfLog, 'size' | 'root'>,
    read: ReadTile,
    entries: boolean,
  ): Promise<void> => {
    const own = collectFindings();
    try {
      const { tiles, bundles } = await verifyTiles(tree, read, { findings: own, entries });
      looked += tiles + bundles;
    } catch (error) {
      own.add({ code: 'unreadable', message: error instanceof Error ? error.message : String(error) });
    }
    for (const finding of own.list())
      findings.add({
        code: 'served',
        ...(entries && finding.place !== undefined ? { place: finding.place } : {}),
        ...(finding.event === undefined ? {} : { event: finding.event }),
        message: `in ${what} as the service keeps and serves it, ${REST} (${findingText(finding)})`,
      });
  };
  const checkTenants = async (): Promise<void> => {
    for (const { tenant, size, root } of log.tenants) {
      const kept = served.tenantTree(tenant);
      const what = `the tree of ${scopeName({ kind: 'tenant', tenant })}`;
      if (kept.size() !== size)
        findings.add({
          code: 'served',
          message: `${what} as the service keeps and serves it has ${kept.size()} leaves, not ${size}, ${REST}`,
        });
      else await check(what, { size, root }, hashTiles(kept.tile), false);
    }
    const more = tenantsOf(served) - log.tenants.length;
    if (more > 0)
      findings.add({
        code: 'served',
        message: `the service keeps trees of ${more} tenants without events, ${REST}`,
      });
  };
  await check('the tree of the log', log, mainTiles(served), true);
  try {
    await checkTenants();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    findings.add({
      code: 'served',
      message: `the trees of the tenants as the service keeps and serves them cannot be read, ${REST} (${why})`,
    });
  }
  return looked;
};

const REST = 'which is not what the log gives; the log is right: have the read model built again';

const mainTiles = (served: ServedTrees): ReadTile => {
  const hashes = hashTiles(served.tile);
  return (path) => {
    const address = parseTilePath(path);
    if (address?.level !== 'entries') return hashes(path);
    const leaves = served.leaves(address.index * TILE_WIDTH, address.width);
    return leaves.length === 0 ? undefined : encodeEntries(leaves.map(({ record }) => leafBytes(record)));
  };
};

const PAGE = 1000;

const tenantsOf = ({ tenants }: ServedTrees): number => {
  let count = 0;
  for (let page = tenants(0, PAGE); page.length > 0; page = tenants(page.at(-1)?.tree ?? 0, PAGE))
    count += page.length;
  return count;
};
