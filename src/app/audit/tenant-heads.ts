import { extendRange } from './merkle/compact-range.ts';
import { createMemoryTree } from './merkle/memory-tree.ts';
import {
  standingOf,
  tenantKey,
  tenantLeafHash,
  type SortedHeads,
  type TenantHead,
  type TenantStanding,
} from './merkle/tenants.ts';
import type { AuditTree } from './tree.ts';

/** Lets others have the thread for a moment. */
export type Rest = () => Promise<void>;

/** The trees of all tenants as they were when the main tree had a certain size. */
export type TenantHeads = {
  /** Goes on to a larger size; looks only at tenants that have new leaves. */
  advance(mainSize: number): Promise<void>;
  readonly mainSize: () => number;
  readonly count: () => number;
  /** Root over all of them, sorted by key. */
  root(): Promise<Buffer>;
  /** All of them as they are now, and the tree over them. */
  sorted(): Promise<SortedHeads>;
  /** Which tree a tenant has now, or between which it would stand. */
  standingOf(tenant: string): Promise<TenantStanding>;
};

/** Tenants whose roots are computed in one go: some milliseconds at worst. */
const TENANTS_AT_ONCE = 8;
/** Hashes over tenants in one go. */
const HASHES_AT_ONCE = 1000;
const LEAVES_AT_ONCE = 1000;
/** With more new leaves than this it is cheaper to look at every tenant. */
const MOST_LEAVES_TO_WALK = 50_000;

type Known = { readonly head: TenantHead; readonly leaf: Buffer };

export const createTenantHeads = (tree: AuditTree, rest: Rest): TenantHeads => {
  /** By key in hexadecimal, which sorts as the keys do. */
  const known = new Map<string, Known>();
  let order: string[] = [];
  let at = 0;

  const look = (tenant: string, mainSize: number): void => {
    const kept = tree.tenantTree(tenant);
    const size = kept.indexBelow(mainSize);
    if (size === 0) return;
    const key = tenantKey(tenant);
    const hex = key.toString('hex');
    if (known.get(hex)?.head.size === size) return;
    const head = { key, size, root: kept.rootAt(size) };
    if (!known.has(hex)) order.push(hex);
    known.set(hex, { head, leaf: tenantLeafHash(head) });
  };
  const everybody = async (mainSize: number): Promise<void> => {
    for (let after = 0; ; ) {
      const page = tree.tenants(after, TENANTS_AT_ONCE);
      if (page.length === 0) return;
      for (const { tree: number, tenant } of page) {
        look(tenant, mainSize);
        after = number;
      }
      await rest();
    }
  };
  const thoseOfLeaves = async (mainSize: number): Promise<void> => {
    const changed = new Set<string>();
    for (let from = at; from < mainSize; from += LEAVES_AT_ONCE) {
      const to = Math.min(mainSize, from + LEAVES_AT_ONCE);
      for (const tenant of tree.tenantsBetween(from, to)) changed.add(tenant);
      await rest();
    }
    let looked = 0;
    for (const tenant of changed) {
      look(tenant, mainSize);
      looked += 1;
      if (looked % TENANTS_AT_ONCE === 0) await rest();
    }
  };
  const eachLeaf = async (take: (leaf: Buffer) => void): Promise<void> => {
    for (const [index, hex] of order.entries()) {
      take((known.get(hex) as Known).leaf);
      if (index % HASHES_AT_ONCE === HASHES_AT_ONCE - 1) await rest();
    }
  };

  const sorted = async (): Promise<SortedHeads> => {
    const leaves = createMemoryTree();
    await eachLeaf(leaves.append);
    const heads = order.map((hex) => (known.get(hex) as Known).head);
    const headAt = (index: number): TenantHead => heads[index] as TenantHead;
    return { count: heads.length, headAt, hashAt: leaves.hashAt };
  };

  return {
    advance: async (mainSize) => {
      if (mainSize < at) throw new RangeError(`the tenants are at ${at} already, behind ${mainSize}`);
      if (mainSize === at) return;
      if (at === 0 || mainSize - at > MOST_LEAVES_TO_WALK) await everybody(mainSize);
      else await thoseOfLeaves(mainSize);
      order = order.toSorted();
      at = mainSize;
    },
    mainSize: () => at,
    count: () => order.length,
    root: async () => {
      const range = extendRange();
      await eachLeaf(range.append);
      return range.root();
    },
    sorted,
    standingOf: async (tenant) => standingOf(tenant, await sorted()),
  };
};
