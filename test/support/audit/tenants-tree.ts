import { createMemoryTree } from '../../../src/app/audit/merkle/memory-tree.ts';
import { inclusionPath } from '../../../src/app/audit/merkle/proofs.ts';
import { tenantKey, tenantLeafHash, type TenantHead } from '../../../src/app/audit/merkle/tenants.ts';

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
