import { expect } from 'chai';
import fc from 'fast-check';
import { createTenantRoots } from '../../../../src/app/audit/bundle/tenant-roots.ts';
import { leafHash } from '../../../../src/app/audit/merkle/hashing.ts';
import { createMemoryTree, type MemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import { tenantKey } from '../../../../src/app/audit/merkle/tenants.ts';
import { tenantsRoot } from '../../../support/audit/tenants-tree.ts';
import { check } from '../../../support/property.ts';

describe('roots over all tenants, event by event', () => {
  it('are those of the tenants at any time', () => {
    const steps = fc.array(fc.record({ tenant: fc.nat(12), ask: fc.boolean() }), { maxLength: 60 });
    check(
      fc.property(steps, (all) => {
        const roots = createTenantRoots();
        const trees = new Map<string, MemoryTree>();
        const expected = () =>
          tenantsRoot(
            [...trees].map(([tenant, tree]) => ({
              key: tenantKey(tenant),
              size: tree.size(),
              root: tree.rootAt(tree.size()),
            })),
          );
        for (const [n, { tenant, ask }] of all.entries()) {
          const leaf = leafHash(Buffer.from(String(n)));
          const name = `tenant ${tenant}`;
          const tree = trees.get(name) ?? createMemoryTree();
          trees.set(name, tree);
          tree.append(leaf);
          roots.append(name, leaf);
          if (ask) expect(roots.root().equals(expected())).to.equal(true);
        }
        expect(roots.root().equals(expected())).to.equal(true);
        expect(roots.count()).to.equal(trees.size);
      }),
    );
  });
});
