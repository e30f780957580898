import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { leafHashOf } from '../../../src/app/audit/merkle/leaf.ts';
import { verifyConsistency, verifyInclusion } from '../../../src/app/audit/merkle/proofs.ts';
import { tenantLeafHash } from '../../../src/app/audit/merkle/tenants.ts';
import type { TreeHead } from '../../../src/app/audit/tree-heads.ts';
import type { AuditTree } from '../../../src/app/audit/tree.ts';
import { createHistoryWriter, histories, leavesOf, TENANTS } from '../../support/audit/random-history.ts';
import { audit, followed, openAuditView, openSigning } from '../../support/audit/open-audit.ts';
import { manualTime } from '../../support/manual-time.ts';
import { checkAsync } from '../../support/property.ts';

const base64 = (text: string): Buffer => Buffer.from(text, 'base64');

describe('signer of tree heads', () => {
  it('gives proofs that hold against the signed heads, for every event, tenant and pair of heads', async function () {
    this.timeout(60_000);
    await checkAsync(
      fc.asyncProperty(fc.array(histories(25), { minLength: 1, maxLength: 4 }), async (parts) => {
        const log = createMemoryEventStore();
        const followers = await openAuditView(log);
        const moments = manualTime();
        const signing = openSigning({
          store: log,
          tree: audit(followers),
          ...moments,
          ownership: alone,
          settings: { everyLeaves: 1 },
        });
        const ended = new AbortController();
        const done = signing.signer.run(ended.signal);
        try {
          const writeTo = createHistoryWriter(log, 'q');
          for (const part of parts) {
            await writeTo(part);
            await followed(followers, log);
            await moments.pass(500);
          }
          await followers.rebuild('audit');
          const heads: TreeHead[] = [];
          for await (const head of signing.heads.all(0)) heads.push(head);
          expect(heads.at(-1)?.size ?? 0).to.equal((await leavesOf(log)).length);
          for (const head of heads) await checkHead(signing, audit(followers), head, heads);
        } finally {
          ended.abort();
          await moments.pass(0);
          await done;
          await followers.close();
          await log.close();
        }
      }),
      { numRuns: 12 },
    );
  });
});

/** Everything that can be proven of a head, by the verifiers of auditors. */
const checkHead = async (
  { proofs }: ReturnType<typeof openSigning>,
  reader: AuditTree,
  head: TreeHead,
  heads: readonly TreeHead[],
): Promise<void> => {
  for (let index = 0; index < head.size; index += 1) {
    const proof = proofs.proofOf(index, head);
    expect(proof).not.to.equal(undefined);
    if (proof === undefined) return;
    expect(proof.leafHash).to.deep.equal(leafHashOf(proof.leaf));
    expect(verifyInclusion({ ...proof, size: head.size, root: base64(head.root) })).to.equal(true);
  }
  expect(proofs.proofOf(head.size, head)).to.equal(undefined);
  let leaves = 0;
  for (const tenant of TENANTS) {
    const proof = await proofs.tenantProof(tenant, head);
    if (proof === undefined) {
      expect(reader.tenantTree(tenant).indexBelow(head.size)).to.equal(0);
      continue;
    }
    const { tree, index, count, path } = proof;
    leaves += tree.size;
    const root = base64(head.tenantsRoot);
    expect(count).to.equal(head.tenants);
    expect(verifyInclusion({ index, size: count, leafHash: tenantLeafHash(tree), path, root })).to.equal(
      true,
    );
    const kept = reader.tenantTree(tenant);
    for (let at = 0; at < tree.size; at += 1)
      expect(
        verifyInclusion({
          index: at,
          size: tree.size,
          leafHash: kept.hashAt(0, at),
          path: proofs.inTenantTree(tenant, at, tree.size) ?? [],
          root: tree.root,
        }),
      ).to.equal(true);
  }
  expect(leaves).to.equal(head.size);
  for (const older of heads.filter(({ size }) => size <= head.size))
    expect(
      verifyConsistency({
        from: older.size,
        to: head.size,
        fromRoot: base64(older.root),
        toRoot: base64(head.root),
        path: proofs.consistency(older.size, head.size) ?? [],
      }),
    ).to.equal(true);
};

/** Owns at once, whoever else does. */
const alone = {
  hold: (signal: AbortSignal, whileOwner: (lease: { epoch: number; signal: AbortSignal }) => Promise<void>) =>
    whileOwner({ epoch: 1, signal }),
};
