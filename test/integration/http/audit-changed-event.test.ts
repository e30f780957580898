import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { LogDamaged, type EventStore, type RecordedEvent } from '../../../src/app/event-store.ts';
import {
  AUDIT,
  detailOf,
  reasonOf,
  startAuditStage,
  until,
  type AuditStage,
} from '../../support/audit-callers.ts';
import { textAt } from '../../support/http-service.ts';

const CREATED = 'ClusterOrdered';

/** Somebody wrote to the store beneath the service: what callers are told, and who learns of it. */
describe('audit API: an event that was changed in the store', () => {
  let stage: AuditStage;
  /** What reading the order of a cluster gives. */
  let forge: (event: RecordedEvent) => RecordedEvent;
  let changed: RecordedEvent | undefined;

  beforeEach(async () => {
    const store = createMemoryEventStore();
    forge = (event) => event;
    changed = undefined;
    const each = async function* (events: AsyncIterable<RecordedEvent>): AsyncIterable<RecordedEvent> {
      for await (const event of events) {
        if (event.type === CREATED) changed = event;
        yield event === changed ? forge(event) : event;
      }
    };
    const forged: EventStore = {
      ...store,
      readStream: (stream, options) => each(store.readStream(stream, options)),
      readAll: (options) => each(store.readAll(options)),
    };
    stage = await startAuditStage({ store: forged });
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

  const WAYS: readonly (readonly [string, (event: RecordedEvent) => RecordedEvent])[] = [
    ['and its checksum with it', (event) => ({ ...event, data: { ...event.data, name: 'other' } })],
    ['and not its checksum', damaged],
  ];
  for (const [how, change] of WAYS)
    it(`${how}, is shown to nobody, who are told why, and everybody is alarmed`, async () => {
      const found = await stage.auditor('GET', `${AUDIT}/events?type=${CREATED}`);
      expect(found.status, found.text).to.equal(200);
      const event = changed as RecordedEvent;
      forge = change;
      for (const path of [
        `events?type=${CREATED}`,
        `events/${encodeURIComponent(nameOf(event))}`,
        `events/${encodeURIComponent(nameOf(event))}/proof`,
      ]) {
        const reply = await stage.auditor('GET', `${AUDIT}/${path}`);
        expect(reasonOf(reply), path).to.equal('500 EVENT_CHANGED');
        expect(detailOf(reply)).to.include(`at position ${event.position} is not the one that was recorded`);
        expect(reply.text).not.to.include('secret');
      }
      await until(async () => stage.service.audit?.auditing.status().state === 'mismatch');
      const errors = stage.service.logger.lines.filter(({ level }) => level === 'error');
      expect(errors.length).to.be.greaterThan(0);
      expect(JSON.stringify(errors)).to.include(nameOf(event)).and.not.include('"stack"');
      // No head will come that it could wait for.
      const state = await stage.exported(stage.auditor, {});
      expect(textAt(state, 'state')).to.equal('failed');
      expect(textAt(state, 'reason')).to.match(/is not the one that was recorded|the log has changed/);
      expect(textAt(state, 'reason')).not.to.include('secret');
    });
});
