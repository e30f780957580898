import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { rootAt, rootOf } from '../../../src/app/audit/merkle/compact-range.ts';
import { leafBytes, leafHashOf, leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import { createHistoryWriter, histories, leavesOf, TENANTS } from '../../support/audit/random-history.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';
import { checkAsync } from '../../support/property.ts';

const tenantOf = ({ metadata }: RecordedEvent): string => stringAt(metadata, 'tenant');

describe('audit view', () => {
  it('gives the same trees in one go, piece by piece and after a rebuild', async function () {
    this.timeout(60_000);
    await checkAsync(
      fc.asyncProperty(fc.array(histories(40), { minLength: 1, maxLength: 4 }), async (parts) => {
        const log = createMemoryEventStore();
        const followers = await openAuditView(log);
        try {
          const write = createHistoryWriter(log, 'p');
          for (const part of parts) {
            await write(part);
            await followed(followers, log);
          }
          const events = await leavesOf(log);
          const hashes = events.map((event) => leafHashOf(leafOf(event)));
          const tree = audit(followers);
          expect(tree.size()).to.equal(events.length);
          expect(rootAt(events.length, tree.hashAt)).to.deep.equal(rootOf(hashes));
          for (const tenant of TENANTS) {
            const own = events.flatMap((event, index) => (tenantOf(event) === tenant ? [index] : []));
            const kept = tree.tenantTree(tenant);
            expect(kept.size()).to.equal(own.length);
            expect(kept.rootAt(own.length)).to.deep.equal(
              rootOf(own.map((index) => hashes[index] as Buffer)),
            );
            for (const [at, index] of own.entries()) {
              expect(kept.mainIndexOf(at)).to.equal(index);
              expect(kept.indexBelow(index)).to.equal(at);
            }
            expect(kept.leaves(0, 1000).map(({ index }) => index)).to.deep.equal(own);
          }
          const once = await openAuditView(log);
          await followed(once, log);
          const [byParts, atOnce] = [await followers.digest('audit'), await once.digest('audit')];
          expect(atOnce.digest).to.equal(byParts.digest);
          await once.close();
          expect((await followers.rebuild('audit')).outcome).to.equal('switched');
        } finally {
          await followers.close();
          await log.close();
        }
      }),
      { numRuns: 15 },
    );
  });

  it('fills tiles of several levels', async () => {
    const store = createMemoryEventStore();
    const models = await openAuditView(store);
    const reader = audit(models);
    for (let n = 0; n < 700; n += 1) {
      const stream = `cluster-c${n % 3}`;
      const metadata = JSON.stringify({ tenant: `t${n % 2}`, actor: { subjectId: 'alice' } });
      const event = { id: `e${n}`, type: 'T', data: '{}', metadata };
      await store.append(stream, await store.currentRevision(stream), [event]);
    }
    await followed(models, store);
    const hashes = (await leavesOf(store)).map((event) => leafHashOf(leafOf(event)));
    expect(reader.tile(0, 0)).to.have.length(256 * 32);
    expect(reader.tile(0, 2)).to.have.length((700 - 512) * 32);
    expect(reader.tile(1, 0)).to.have.length(2 * 32);
    expect(reader.tile(1, 1)).to.equal(undefined);
    expect(Buffer.from(reader.tile(0, 1) ?? [])).to.deep.equal(Buffer.concat(hashes.slice(256, 512)));
    for (const size of [1, 2, 255, 256, 257, 511, 513, 700])
      expect(rootAt(size, reader.hashAt)).to.deep.equal(rootOf(hashes.slice(0, size)));
    expect(() => reader.hashAt(0, 700)).to.throw(RangeError);
    const entries = reader.leaves(0, 2).map(({ record }) => leafBytes(record).toString());
    expect(entries[0]).to.contain('"stream":"cluster-c0"');
    await models.close();
    await store.close();
  });
});
