import { extendRange, type GrowingRange } from '../merkle/compact-range.ts';
import { emptyRoot, nodeHash } from '../merkle/hashing.ts';
import { tenantKey, tenantLeafHash } from '../merkle/tenants.ts';

/**
 * The trees of all tenants and the root over them, event by event. A root costs what has changed since the last one:
 * a store has up to 100,000 heads, and each names the root over all tenants.
 */
export type TenantRoots = {
  readonly append: (tenant: string, leaf: Buffer) => void;
  readonly count: () => number;
  /** Over all of them, sorted by key. */
  readonly root: () => Buffer;
  /** Each tenant's tree as it is by now. */
  readonly heads: () => readonly { readonly tenant: string; readonly size: number; readonly root: Buffer }[];
};

type Known = { readonly key: Buffer; readonly tree: GrowingRange; place: number };

export const createTenantRoots = (): TenantRoots => {
  const tenants = new Map<string, Known>();
  const changed = new Set<Known>();
  /** Hashes of each level, the leaves first; a last one without a neighbour goes up as it is (RFC 6962 §2.1). */
  let levels: Buffer[][] = [];
  let sorted = true;

  const leafOf = ({ key, tree }: Known): Buffer =>
    tenantLeafHash({ key, size: tree.size(), root: tree.root() });

  const parentAt = (level: readonly Buffer[], place: number): Buffer => {
    const [left, right] = [level[2 * place] as Buffer, level[2 * place + 1]];
    return right === undefined ? left : nodeHash(left, right);
  };

  const build = (): void => {
    const inOrder = [...tenants.values()].sort((left, right) => left.key.compare(right.key));
    for (const [place, known] of inOrder.entries()) known.place = place;
    levels = [inOrder.map(leafOf)];
    for (let level = levels[0] as Buffer[]; level.length > 1; ) {
      const below = level;
      level = Array.from({ length: Math.ceil(below.length / 2) }, (_, place) => parentAt(below, place));
      levels.push(level);
    }
    sorted = true;
  };

  const update = (known: Known): void => {
    let { place } = known;
    (levels[0] as Buffer[])[place] = leafOf(known);
    for (const [at, level] of levels.entries()) {
      const above = levels[at + 1];
      if (above === undefined) return;
      place = Math.floor(place / 2);
      above[place] = parentAt(level, place);
    }
  };

  return {
    append: (tenant, leaf) => {
      let known = tenants.get(tenant);
      if (known === undefined) {
        known = { key: tenantKey(tenant), tree: extendRange(), place: -1 };
        tenants.set(tenant, known);
        sorted = false;
      }
      known.tree.append(leaf);
      changed.add(known);
    },
    count: () => tenants.size,
    heads: () => [...tenants].map(([tenant, { tree }]) => ({ tenant, size: tree.size(), root: tree.root() })),
    root: () => {
      if (sorted) for (const known of changed) update(known);
      else build();
      changed.clear();
      return levels.at(-1)?.[0] ?? emptyRoot();
    },
  };
};
