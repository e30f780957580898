import { leafHash, sha256 } from './hashing.ts';
import { createMemoryTree } from './memory-tree.ts';
import { inclusionPath } from './proofs.ts';

/**
 * The tree over the trees of all tenants, which makes exports of one tenant complete: a checkpoint signs its root,
 * and with it the size and root of every tenant's own tree. Tenants appear by the hash of their name only.
 */
export type TenantHead = {
  /** SHA-256 of the tenant's name in UTF-8; see `tenantKey`. */
  readonly key: Buffer;
  readonly size: number;
  /** RFC 6962 root over the leaf hashes of this tenant's events, in log order. */
  readonly root: Buffer;
};

/** `''` stands for the service itself. */
export const tenantKey = (tenant: string): Buffer => sha256(Buffer.from(tenant, 'utf8'));

/** Leaf of a tenant: hash over key, size (unsigned, 64 bits, big endian) and root. */
export const tenantLeafHash = ({ key, size, root }: TenantHead): Buffer => {
  const encoded = Buffer.alloc(8);
  encoded.writeBigUInt64BE(BigInt(size));
  return leafHash(Buffer.concat([key, encoded, root]));
};

export type TenantsTree = {
  readonly count: number;
  readonly root: Buffer;
  /** Where a tenant stands and its path; undefined when it has no tree. */
  readonly proofOf: (
    tenant: string,
  ) => { readonly index: number; readonly path: readonly Buffer[] } | undefined;
};

/** In any order. Throws TypeError when a tenant comes twice. */
export const tenantsTree = (heads: Iterable<TenantHead>): TenantsTree => {
  const sorted = [...heads].sort((left, right) => left.key.compare(right.key));
  const indices = new Map(sorted.map(({ key }, index) => [key.toString('hex'), index]));
  if (indices.size !== sorted.length) throw new TypeError('a tenant has one tree, not two');
  const tree = createMemoryTree(sorted.map(tenantLeafHash));
  return {
    count: sorted.length,
    root: tree.rootAt(sorted.length),
    proofOf: (tenant) => {
      const index = indices.get(tenantKey(tenant).toString('hex'));
      return index === undefined
        ? undefined
        : { index, path: inclusionPath(index, sorted.length, tree.hashAt) };
    },
  };
};

export const tenantsRoot = (heads: Iterable<TenantHead>): Buffer => tenantsTree(heads).root;
