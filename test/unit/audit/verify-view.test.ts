import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { verifyAudit } from '../../../src/projections/audit/verify.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';
import { createHistoryWriter } from '../../support/audit/random-history.ts';

/** A file that was just built is looked at before it takes the place of the one that answers. */
describe('a new file of the audit view', () => {
  it('has the tiles of its trees, each of them', async () => {
    const store = createMemoryEventStore();
    const models = await openAuditView(store);
    try {
      const write = createHistoryWriter(store, 's');
      await write(
        Array.from({ length: 1200 }, (_, n) => ({
          stream: `cluster-c${n % 5}`,
          tenant: n % 3 === 0 ? 'acme' : 'globex',
          subject: 'alice',
          types: ['ClusterLabelled'],
          data: { n },
        })),
      );
      await followed(models, store);
      const db = audit(models).source();
      if (!(db instanceof DatabaseSync)) throw new Error('this view is kept in a file');
      const verify = () => verifyAudit(db, (stream) => store.readStream(stream));
      expect(await verify()).to.deep.equal([]);
      const tiles = db.prepare('SELECT tree, level, idx, hashes FROM tiles').all() as {
        tree: number;
        level: number;
        idx: number;
        hashes: Uint8Array;
      }[];
      expect(tiles.length).to.be.greaterThan(6);
      const put = db.prepare('UPDATE tiles SET hashes = ? WHERE tree = ? AND level = ? AND idx = ?');
      for (const { tree, level, idx, hashes } of tiles) {
        const changed = Buffer.from(hashes);
        changed.writeUInt8(changed.readUInt8(17) ^ 1, 17);
        put.run(changed, tree, level, idx);
        const problems = await verify();
        expect(problems.join('\n'), `${tree} ${level} ${idx}`)
          .to.include(`tree ${tree}: `)
          .and.include(`tile/${level}/00${idx}`);
        put.run(hashes, tree, level, idx);
      }
      expect(await verify()).to.deep.equal([]);
    } finally {
      await models.close();
      await store.close();
    }
  });
});
