import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { heldBy } from '../../support/held-promise.ts';
import { AUDIT, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { createHistoryWriter } from '../../support/audit/random-history.ts';
import { itemsOf, textAt } from '../../support/http/service.ts';

const EVENTS = 600;

/** Long answers of auditors let others have the thread: what is read in one turn is counted, not timed. */
describe('audit API: turns of the thread', () => {
  let stage: AuditStage;
  let inTurn = 0;
  let most = 0;
  let next: NodeJS.Immediate;
  const turn = (): void => {
    inTurn = 0;
    next = setImmediate(turn);
  };
  beforeEach(async () => {
    const store = createMemoryEventStore();
    const counting: EventStore = {
      ...store,
      readStream: (stream, options) => {
        inTurn += 1;
        most = Math.max(most, inTurn);
        return store.readStream(stream, options);
      },
    };
    stage = await startAuditStage({ store: counting, audit: { signs: false, exports: false } });
    const step = { tenant: 't1', subject: 'alice', types: ['ClusterLabelled'], data: { n: 1 } };
    await createHistoryWriter(
      store,
      'turns',
    )(Array.from({ length: EVENTS }, (_, n) => ({ ...step, stream: `cluster-c${n}` })));
    await stage.settled(false);
    turn();
  });
  afterEach(async () => {
    clearImmediate(next);
    await stage.service.close();
  });

  it('a page of 500 events is read in pieces, and is the same as of smaller pages', async function () {
    this.timeout(30_000);
    const list = async (query: string) => {
      const reply = await stage.auditor('GET', `${AUDIT}/events?type=ClusterLabelled&${query}`);
      expect(reply.status, reply.text).to.equal(200);
      return reply;
    };
    most = 0;
    const whole = await list('limit=500');
    expect(itemsOf(whole)).to.have.length(500);
    expect(most, 'events that are read in one turn').to.be.within(1, 60);
    const small: string[] = [];
    for (let cursor = ''; small.length < 500; ) {
      const page = await list(`limit=50${cursor === '' ? '' : `&cursor=${cursor}`}`);
      small.push(...itemsOf(page).map((event) => textAt(event, 'id')));
      cursor = textAt(page.json, 'next_cursor');
    }
    expect(small).to.deep.equal(itemsOf(whole).map((event) => textAt(event, 'id')));
    const rest = await list(`limit=500&cursor=${textAt(whole.json, 'next_cursor')}`);
    expect(itemsOf(rest)).to.have.length(EVENTS - 500);
    expect(rest.json).not.to.have.property('next_cursor');
    const ms = await heldBy(() => list('limit=500'));
    console.log(`        longest turn of a page of 500 events, clients included: ${ms.toFixed(1)} ms`);
  });
});
