import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { LogDamaged, type EventStore, type RecordedEvent } from '../../../src/app/log/event-store.ts';
import { AUDIT, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { PUBLIC } from '../../support/http/service.ts';

/** Whatever call comes upon an event that is not the one that was recorded, the instance learns of it, whoever signs. */
describe('reads that come upon a damaged event', () => {
  let stage: AuditStage;
  let id: string;
  let position: string;
  let wrong: RecordedEvent | undefined;
  const nameOf = ({ stream, revision }: RecordedEvent): string => `${stream}@${revision}`;

  beforeEach(async () => {
    const store = createMemoryEventStore();
    wrong = undefined;
    const each = async function* (events: AsyncIterable<RecordedEvent>): AsyncIterable<RecordedEvent> {
      for await (const event of events) {
        if (event.position === wrong?.position)
          throw new LogDamaged('its checksum', { event: nameOf(event), position: event.position });
        yield event;
      }
    };
    const forged: EventStore = {
      ...store,
      readStream: (stream, options) => each(store.readStream(stream, options)),
    };
    stage = await startAuditStage({ store: forged, audit: { signs: false } });
    id = await stage.order(stage.alice, 'one');
    position = stage.service.positions.format((await store.lastPosition()) ?? '');
    // What it is now is known without reading; what it was is not.
    const changed = await stage.alice('PATCH', `${PUBLIC}/clusters/${id}`, {
      metadata: { labels: { tier: 'gold' } },
    });
    expect(changed.status, changed.text).to.equal(200);
    await stage.settled(false);
    for await (const event of store.readStream(`cluster-${id}`, { from: 0, limit: 1 })) wrong = event;
  });
  afterEach(() => stage.service.close());

  const CALLS: readonly (readonly [what: string, path: () => string, who: () => AuditStage['alice']])[] = [
    ['an object as of a moment', () => `${PUBLIC}/clusters/${id}?as_of=${position}`, () => stage.alice],
    ['events', () => `${AUDIT}/events?type=ClusterOrdered`, () => stage.auditor],
    ['an entry of the history', () => `${AUDIT}/events/cluster-${id}@0`, () => stage.auditor],
    [
      'an object of the history',
      () => `${AUDIT}/resources/clusters/${id}?as_of=${position}`,
      () => stage.auditor,
    ],
  ];
  for (const [what, path, who] of CALLS)
    it(`tell the service which it is, and the caller no more than that: ${what}`, async () => {
      const event = wrong as RecordedEvent;
      const reply = await who()('GET', path());
      expect([reply.status, reply.text.includes('EVENT_CHANGED')], reply.text).to.deep.equal([500, true]);
      expect(reply.text).not.to.include('checksum');
      expect(stage.service.suspected).to.deep.equal([nameOf(event)]);
    });

  it('say nothing of what is as it was recorded', async () => {
    wrong = undefined;
    for (const [, path, who] of CALLS) {
      const reply = await who()('GET', path());
      expect(reply.status, reply.text).to.equal(200);
    }
    expect(stage.service.suspected).to.deep.equal([]);
  });
});
