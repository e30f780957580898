import { expect } from 'chai';
import fc from 'fast-check';
import { AUDIT, detailOf, reasonOf, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { itemsOf, textAt, type Caller, type Json } from '../../support/http/service.ts';
import { checkAsync } from '../../support/property.ts';

describe('audit API: events newest first', () => {
  let stage: AuditStage;
  let cluster: string;

  beforeEach(async () => {
    stage = await startAuditStage();
    cluster = await stage.order(stage.alice, 'a');
    for (const name of ['b', 'c']) await stage.order(stage.alice, name);
    await stage.settled();
  });
  afterEach(() => stage.service.close());

  /** All pages of a list, and the size that all of them are of. `between`: what happens before the next one is asked for. */
  const pagesOf = async (
    caller: Caller,
    path: string,
    between: () => Promise<unknown> = async () => undefined,
  ): Promise<{ readonly items: readonly Json[]; readonly size: number }> => {
    const items: Json[] = [];
    for (let cursor = ''; ; ) {
      const reply = await caller('GET', `${AUDIT}/${path}${cursor}`);
      expect(reply.status, reply.text).to.equal(200);
      items.push(...itemsOf(reply));
      if (reply.json['next_cursor'] === undefined) return { items, size: Number(reply.json['size']) };
      cursor = `&cursor=${textAt(reply.json, 'next_cursor')}`;
      await between();
    }
  };
  const namesOf = (items: readonly Json[]): string[] => items.map((item) => textAt(item, 'event'));

  it('are those oldest first, the other way round, whatever the page, while events arrive', async function () {
    this.timeout(60_000);
    let ordered = 0;
    await checkAsync(
      fc.asyncProperty(
        fc.constantFrom(
          'events?',
          'events?type=ClusterOrdered',
          'events?subject=alice',
          'events?kind=cluster',
          `resources/cluster/${cluster}/events?`,
        ),
        fc.constantFrom(stage.auditor, stage.admin),
        fc.integer({ min: 3, max: 60 }),
        async (list, caller, limit) => {
          let pages = 0;
          // Each page is an event of the same history, too: what is looked at is recorded.
          const arrives = async (): Promise<void> => {
            pages += 1;
            if (pages > 2) return;
            ordered += 1;
            await stage.order(stage.alice, `later-${ordered}`);
          };
          const newest = await pagesOf(caller, `${list}&limit=${limit}&order=desc`, arrives);
          const oldest = await pagesOf(caller, `${list}&limit=500&order=asc`);
          const before = oldest.items.filter(({ index }) => Number(index) < newest.size);
          expect(namesOf(newest.items)).to.deep.equal(namesOf(before).toReversed());
          expect(newest.items.length).to.be.greaterThan(0);
        },
      ),
      { numRuns: 12 },
    );
  });

  it('have cursors that are good for their own order only', async () => {
    for (const [order, other] of [
      ['&order=desc', ''],
      ['&order=desc', '&order=asc'],
      ['', '&order=desc'],
    ] as const) {
      const first = await stage.auditor('GET', `${AUDIT}/events?limit=2${order}`);
      const next = `${AUDIT}/events?limit=2&cursor=${textAt(first.json, 'next_cursor')}`;
      expect((await stage.auditor('GET', next + order)).status).to.equal(200);
      expect(reasonOf(await stage.auditor('GET', next + other))).to.equal('400 CURSOR_MISMATCH');
    }
    const wrong = await stage.auditor('GET', `${AUDIT}/events?order=newest`);
    expect(reasonOf(wrong)).to.equal('400 INVALID_ARGUMENT');
    expect(detailOf(wrong)).to.include("'order' must be asc (oldest first) or desc (newest first)");
  });

  it('are recorded as such', async () => {
    await stage.auditor('GET', `${AUDIT}/events?type=ClusterOrdered&order=desc&limit=1`);
    await stage.settled();
    const looks = await stage.admin('GET', `${AUDIT}/events?type=AuditRead&order=desc&limit=1`);
    expect(itemsOf(looks)[0]?.['data']?.['query']).to.deep.equal({
      type: ['ClusterOrdered'],
      order: 'desc',
      limit: 1,
    });
  });
});
