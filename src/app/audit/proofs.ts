import { LRUCache } from 'lru-cache';
import type { AuditKeys } from './audit-keys.ts';
import { HASH_BYTES } from './merkle/hashing.ts';
import type { Trust } from './merkle/key-chain.ts';
import { leafBytes, leafHashOf, type LeafRecord } from './merkle/leaf.ts';
import { consistencyPath, inclusionPath } from './merkle/proofs.ts';
import { standingOf, type SortedHeads, type TenantHead } from './merkle/tenants.ts';
import { encodeEntries, parseTilePath, TILE_WIDTH } from './merkle/tiles.ts';
import { createTenantHeads, type Rest } from './tenant-heads.ts';
import type { AuditHeads, TreeHead } from './tree-heads.ts';
import type { AuditTree } from './tree.ts';

/** That an event is in the tree of a head. */
export type EventProof = {
  readonly index: number;
  readonly leaf: LeafRecord;
  readonly leafHash: Buffer;
  readonly path: readonly Buffer[];
  readonly head: TreeHead;
};

/** That a tenant's tree of this size and root is the one of a head, at `index` of its `count` tenants. */
export type TenantProof = {
  readonly tenant: string;
  readonly tree: TenantHead;
  readonly index: number;
  readonly count: number;
  readonly path: readonly Buffer[];
  readonly head: TreeHead;
};

export type AuditProofs = {
  readonly heads: AuditHeads;
  /** Undefined when the head does not cover the leaf, or this instance does not have it yet. */
  proofOf(index: number, head: TreeHead): EventProof | undefined;
  /** Undefined when the tenant had no event by then, or this instance is not as far as the head. */
  tenantProof(tenant: string, head: TreeHead): Promise<TenantProof | undefined>;
  /** Path of a leaf of a tenant in the tenant's tree of `size` leaves; undefined outside of it. */
  inTenantTree(tenant: string, index: number, size: number): readonly Buffer[] | undefined;
  /** Undefined unless 0 <= from <= to <= size of the tree. */
  consistency(from: number, to: number): readonly Buffer[] | undefined;
  /** `tile/<level>/<n>[.p/<w>]` or `tile/entries/<n>[.p/<w>]`; undefined for one that is not there. */
  tile(path: string): Promise<Buffer | undefined>;
  /** What an auditor pins: origin, all keys, and the newest head. */
  trust(signal?: AbortSignal): Promise<Trust>;
};

/** Entries of a tile that are read in one go: a millisecond or two. */
const ENTRIES_AT_ONCE = 64;
/** Heads whose tenants are remembered: a proof of one costs a look at every tenant. */
const REMEMBERED_HEADS = 2;

/** Proofs from the tree of this instance. Every call is bounded, or lets others have the thread in between. */
export const createAuditProofs = ({
  tree,
  heads,
  keys,
  origin,
  rest,
}: {
  readonly tree: AuditTree;
  readonly heads: AuditHeads;
  readonly keys: Pick<AuditKeys, 'chain'>;
  readonly origin: string;
  readonly rest: Rest;
}): AuditProofs => {
  const remembered = new LRUCache<number, Promise<SortedHeads>>({ max: REMEMBERED_HEADS });
  const compute = async (size: number): Promise<SortedHeads> => {
    const tenants = createTenantHeads(tree, rest);
    await tenants.advance(size);
    return tenants.sorted();
  };
  const tenantsAt = (size: number): Promise<SortedHeads> => {
    const known = remembered.get(size);
    if (known !== undefined) return known;
    const made = compute(size);
    remembered.set(size, made);
    made.catch(() => remembered.delete(size));
    return made;
  };

  return {
    heads,
    proofOf: (index, head) => {
      if (!isIndex(index) || index >= head.size || head.size > tree.size()) return undefined;
      const leaf = tree.leaf(index)?.record;
      if (leaf === undefined) return undefined;
      const path = inclusionPath(index, head.size, tree.hashAt);
      return { index, leaf, leafHash: leafHashOf(leaf), path, head };
    },
    tenantProof: async (tenant, head) => {
      if (head.size > tree.size()) return undefined;
      const tenants = await tenantsAt(head.size);
      const standing = standingOf(tenant, tenants);
      if (!('there' in standing)) return undefined;
      const { head: kept, index, path } = standing.there;
      return { tenant, tree: kept, index, path, count: tenants.count, head };
    },
    inTenantTree: (tenant, index, size) => {
      const kept = tree.tenantTree(tenant);
      if (!isIndex(index) || !isIndex(size) || index >= size || size > kept.size()) return undefined;
      return inclusionPath(index, size, kept.hashAt);
    },
    consistency: (from, to) => {
      if (!isIndex(from) || !isIndex(to) || from > to || to > tree.size()) return undefined;
      return consistencyPath(from, to, tree.hashAt);
    },
    tile: async (path) => {
      const address = parseTilePath(path);
      if (address === undefined) return undefined;
      const { level, index, width } = address;
      if (level === 'entries') {
        const entries: Uint8Array[] = [];
        while (entries.length < width) {
          const from = index * TILE_WIDTH + entries.length;
          const leaves = tree.leaves(from, Math.min(ENTRIES_AT_ONCE, width - entries.length));
          if (leaves.length === 0) return undefined;
          for (const { record } of leaves) entries.push(leafBytes(record));
          await rest();
        }
        return encodeEntries(entries);
      }
      const hashes = tree.tile(level, index);
      if (hashes === undefined || hashes.length < width * HASH_BYTES) return undefined;
      return Buffer.from(hashes.subarray(0, width * HASH_BYTES));
    },
    trust: async (signal) => {
      const pin = (await heads.latest(signal))?.note;
      return { origin, keys: await keys.chain(signal), ...(pin !== undefined && { pin }) };
    },
  };
};

const isIndex = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
