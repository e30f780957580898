import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { LogDamaged, type EventStore, type RecordedEvent } from '../../../src/app/log/event-store.ts';
import {
  AUDIT,
  detailOf,
  reasonOf,
  startAuditStage,
  until,
  type AuditStage,
} from '../../support/audit/stage.ts';
import type { Reply } from '../../support/http/service.ts';

type Read = (event: RecordedEvent) => RecordedEvent;
const asRecorded: Read = (event) => event;

/** Nothing is signed over a log that was changed: who asks for what is yet to be signed is not kept waiting for it. */
describe('audit API: trust over a log that was changed', () => {
  let stage: AuditStage;
  /** What everybody is given who reads an event, and what read models are given of the next ones. */
  let read: Read;
  let follow: Read;

  beforeEach(async () => {
    [read, follow] = [asRecorded, asRecorded];
    const store = createMemoryEventStore();
    const each = async function* (events: AsyncIterable<RecordedEvent>): AsyncIterable<RecordedEvent> {
      for await (const event of events) yield read(event);
    };
    const changed: EventStore = {
      ...store,
      readStream: (stream, options) => each(store.readStream(stream, options)),
      readAll: (options) => each(store.readAll(options)),
      subscribe: async function* (options) {
        for await (const item of store.subscribe(options))
          yield item.kind === 'event' ? { ...item, event: follow(item.event) } : item;
      },
    };
    stage = await startAuditStage({ store: changed });
    await stage.order(stage.alice, 'before');
    await stage.settled();
  });
  afterEach(() => stage.service.close());

  const nameOf = ({ stream, revision }: RecordedEvent): string => `${stream}@${revision}`;
  const damaged = (event: RecordedEvent): never => {
    throw new LogDamaged('the event log /secret/place/events.db is damaged', {
      event: nameOf(event),
      position: event.position,
    });
  };
  const trust = (query = ''): Promise<Reply> => stage.auditor('GET', `${AUDIT}/trust.json${query}`);
  const tellsOf = (reply: Reply, event: RecordedEvent): void => {
    expect(reasonOf(reply), reply.text).to.equal('500 EVENT_CHANGED');
    expect(detailOf(reply))
      .to.include(`the event that is stored at position ${event.position} is not what was recorded`)
      .and.include('Keep your trust.json, exports and mirrors as evidence');
    expect(reply.text).not.to.include('secret').and.not.include(nameOf(event));
  };

  it('says that an event is another one, and gives what was signed before', async () => {
    let ordered: RecordedEvent | undefined;
    for await (const event of stage.service.store.readAll({ limit: 1000 }))
      if (event.type === 'ClusterOrdered') ordered = event;
    const { position } = ordered as RecordedEvent;
    read = (event) =>
      event.position === position ? { ...event, data: { ...event.data, name: 'x' } } : event;
    await until(async () => stage.service.audit?.auditing.status().state === 'mismatch');
    tellsOf(await trust(), ordered as RecordedEvent);
    expect((await trust('?newest=true')).status).to.equal(200);
  });

  it('says that the tree has stopped in front of a damaged event, and goes on once that is mended', async () => {
    let met: RecordedEvent | undefined;
    follow = (event) => damaged((met ??= event));
    // The look is the event at which it stops.
    const reply = await trust();
    tellsOf(reply, met as unknown as RecordedEvent);
    expect((await trust('?newest=true')).status).to.equal(200);
    follow = asRecorded;
    await until(async () => (await trust()).status === 200);
  });
});
