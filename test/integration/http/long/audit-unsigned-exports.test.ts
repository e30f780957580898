import { expect } from 'chai';
import { createMemoryEventStore } from '../../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore, RecordedEvent } from '../../../../src/app/log/event-store.ts';
import { AUDIT, startAuditStage, until, type AuditStage } from '../../../support/audit/stage.ts';
import { textAt, type Caller } from '../../../support/http/service.ts';

/** While nothing is signed, an export would lack what was stored since the last head: it is not made, and says why. */
describe('audit API: exports while nothing is signed', function () {
  this.timeout(60_000);
  let stage: AuditStage;
  let bob: Caller;
  let auditor: Caller;
  let forged: RecordedEvent | undefined;
  /** Times of the store, a second apart. */
  let seconds: number;

  beforeEach(async () => {
    seconds = 0;
    const now = (): string => new Date(Date.UTC(2026, 0, 1, 12, 0, seconds)).toISOString();
    const store = createMemoryEventStore({ now });
    forged = undefined;
    const each = async function* (events: AsyncIterable<RecordedEvent>): AsyncIterable<RecordedEvent> {
      for await (const event of events)
        yield event.position === forged?.position ? { ...event, data: { forged: true } } : event;
    };
    const changed: EventStore = {
      ...store,
      readStream: (stream, options) => each(store.readStream(stream, options)),
    };
    stage = await startAuditStage({ store: changed, audit: { sampleMs: 86_400_000 } });
    bob = await stage.callerFor({ user: 'bob', tenants: ['t2'] });
    auditor = await stage.callerFor({ user: 'anna', tenants: ['t2'], roles: ['auditor'] });
    const id = await stage.order(stage.alice, 'forged');
    seconds = 1;
    await stage.order(bob, 'before');
    seconds = 2;
    await stage.order(bob, 'then');
    await stage.settled();
    seconds = 3;
    // Of another tenant, whose auditor looks at it: that raises the alarm.
    for await (const event of store.readStream(`cluster-${id}`, { from: 0, limit: 1 })) forged = event;
    const look = await stage.auditor('GET', `${AUDIT}/events?type=ClusterOrdered`);
    expect(look.status, look.text).to.equal(500);
    await until(async () => stage.service.audit?.auditing.status().state === 'mismatch');
    seconds = 4;
    await stage.order(bob, 'after');
    await stage.settled(false);
  });
  afterEach(() => stage.service.close());

  it('one that would lack what is not signed fails, and says why and what to do', async () => {
    for (const body of [{}, { to: '2999-01-01T00:00:00Z' }, { to: '2026-01-01T12:00:05Z', format: 'ocsf' }]) {
      const state = await stage.exported(auditor, body);
      expect(textAt(state, 'state'), JSON.stringify(body)).to.equal('failed');
      expect(textAt(state, 'reason'))
        .to.include(`the event at position ${forged?.position} is not the one that was recorded`)
        .and.include('operators of this service are alarmed')
        // The look that raised the alarm may have been signed before it did.
        .and.match(/before 2026-01-01T12:00:0[23]Z alone \('to', --to\)/);
    }
  });

  it('one that ends before, as it is advised, is made', async () => {
    const state = await stage.exported(auditor, { to: '2026-01-01T12:00:02Z' });
    expect(textAt(state, 'state'), JSON.stringify(state)).to.equal('complete');
    const events = Number(state['events']);
    expect(events).to.be.greaterThan(0);
    // With what was recorded in that second, too: the head covers it, and more has come since.
    const more = await stage.exported(auditor, { to: '2026-01-01T12:00:03Z' });
    expect(textAt(more, 'state'), JSON.stringify(more)).to.equal('complete');
    expect(Number(more['events'])).to.be.greaterThan(events);
  });

  it('one is made again once the event is right', async () => {
    forged = undefined;
    await until(async () => stage.service.audit?.auditing.status().state === 'signing');
    const state = await stage.exported(auditor, {});
    expect(textAt(state, 'state'), JSON.stringify(state)).to.equal('complete');
  });
});
