import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { openAuditReader } from '../../../src/projections/audit/audit-reader.ts';
import { blocksOf, firstInBlocks } from '../../../src/projections/audit/event-ids.ts';
import { AUDIT_SCHEMA } from '../../../src/projections/audit/schema.ts';
import { AUDIT_STATEMENTS } from '../../../src/projections/audit/statements.ts';

const BLOCK = 32_768;
const idOf = (n: number): string => `0190f000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** A view with leaves of these numbers only, each of an event with the id that it is given. */
const viewWith = (leaves: readonly (readonly [index: number, id: string])[], size: number): DatabaseSync => {
  const db = new DatabaseSync(':memory:');
  db.exec(AUDIT_SCHEMA);
  db.prepare('INSERT INTO names VALUES (1, ?)').run('a');
  db.prepare('INSERT INTO trees VALUES (0, NULL, ?, ?)').run(size, Buffer.alloc(0));
  const insert = db.prepare(
    `INSERT INTO leaves VALUES (?, '1', 1, 0, ?, 1, 0, 0, 1, 0, 1, NULL, NULL, 0, ?, ?, '', NULL)`,
  );
  for (const [index, id] of leaves)
    insert.run(index, Buffer.from(id.replaceAll('-', ''), 'hex'), Buffer.alloc(32), Buffer.alloc(64));
  return db;
};

describe('leaves by the id of their event', () => {
  it('are found in whichever block they lie, each once', () => {
    const places = [0, BLOCK - 1, BLOCK, 5 * BLOCK + 7, 9 * BLOCK - 1];
    const { reader, close } = openAuditReader(
      viewWith(
        places.map((index) => [index, idOf(index)]),
        9 * BLOCK,
      ),
    );
    for (const index of places) {
      const { leaves, next } = reader.find({ tenants: 'all', eventId: idOf(index), limit: 10 });
      expect(leaves.map((leaf) => leaf.index)).to.deep.equal([index]);
      expect(next).to.equal(undefined);
      expect(leaves[0]?.record.id).to.equal(idOf(index));
    }
    expect(reader.find({ tenants: 'all', eventId: idOf(3), limit: 10 }).leaves).to.deep.equal([]);
    close();
  });

  it('come in their order when several events have one id, and from where one goes on', () => {
    const places = [3, 3 * BLOCK, 3 * BLOCK + 1];
    const { reader, close } = openAuditReader(
      viewWith(
        places.map((index) => [index, idOf(1)]),
        4 * BLOCK,
      ),
    );
    const found = (after?: number) =>
      reader
        .find({ tenants: 'all', eventId: idOf(1), limit: 10, ...(after !== undefined && { after }) })
        .leaves.map(({ index }) => index);
    expect(found()).to.deep.equal(places);
    expect(found(3)).to.deep.equal(places.slice(1));
    expect(found(3 * BLOCK)).to.deep.equal(places.slice(2));
    expect(reader.find({ tenants: 'all', eventId: idOf(1), below: BLOCK, limit: 10 }).leaves).to.have.length(
      1,
    );
    close();
  });

  it('are looked for in the index of each block from the first that counts, and in none behind the end', () => {
    const looked: number[] = [];
    const look = (block: number): undefined => {
      looked.push(block);
    };
    expect(firstInBlocks(2 * BLOCK + 5, 4 * BLOCK + 1, look)).to.equal(undefined);
    expect(looked).to.deep.equal([2, 3, 4]);
    expect([0, 1, BLOCK, BLOCK + 1].map(blocksOf)).to.deep.equal([0, 1, 1, 2]);
    const db = viewWith([], 0);
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${AUDIT_STATEMENTS.nextOfId}`).all();
    expect(plan.map(({ detail }) => detail).join('\n')).to.contain(
      'USING COVERING INDEX leaves_by_id (<expr>=? AND event_id=?',
    );
  });
});
