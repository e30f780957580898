import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { leafBytes } from '../../../src/app/audit/merkle/leaf.ts';
import { decodeEntries } from '../../../src/app/audit/merkle/tiles.ts';
import { createAuditProofs } from '../../../src/app/audit/proofs.ts';
import type { AuditTree } from '../../../src/app/audit/tree.ts';
import { createAuditHeads } from '../../../src/app/audit/tree-heads.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';
import { createHistoryWriter } from '../../support/audit/random-history.ts';

describe('entries of a tile', () => {
  it('are those of its leaves, read in pieces with a rest behind each', async () => {
    const store = createMemoryEventStore();
    const models = await openAuditView(store);
    try {
      const step = { tenant: 'acme', subject: 'alice', types: ['ClusterLabelled'], data: { n: 1 } };
      const steps = Array.from({ length: 300 }, (_, n) => ({ ...step, stream: `cluster-c${n}` }));
      await createHistoryWriter(store, 'e')(steps);
      await followed(models, store);
      const reader = audit(models);
      let [inOne, most] = [0, 0];
      const tree: AuditTree = {
        ...reader,
        leaves: (from, limit) => {
          const leaves = reader.leaves(from, limit);
          inOne += leaves.length;
          most = Math.max(most, inOne);
          return leaves;
        },
      };
      const proofs = createAuditProofs({
        tree,
        heads: createAuditHeads(store),
        keys: { chain: async () => [] },
        origin: 'entries',
        rest: async () => {
          inOne = 0;
        },
      });
      const whole = decodeEntries((await proofs.tile('tile/entries/000')) ?? Buffer.alloc(0));
      const wanted = (from: number, count: number) =>
        reader.leaves(from, count).map(({ record }) => Buffer.from(leafBytes(record)));
      expect(whole).to.deep.equal(wanted(0, 256));
      expect(most).to.equal(64);
      const part = decodeEntries((await proofs.tile('tile/entries/001.p/44')) ?? Buffer.alloc(0));
      expect(part).to.deep.equal(wanted(256, 44));
      expect(await proofs.tile('tile/entries/001.p/45')).to.equal(undefined);
      expect(await proofs.tile('tile/entries/002')).to.equal(undefined);
    } finally {
      await models.close();
      await store.close();
    }
  });
});
