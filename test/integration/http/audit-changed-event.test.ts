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
import { textAt } from '../../support/http/service.ts';

const CREATED = 'ClusterOrdered';
/** The first event of who ordered: names of people are looked for in those. */
const FIRST = 'NameReserved';

/** Somebody wrote to the store beneath the service: what callers are told, and who learns of it. */
describe('audit API: an event that was changed in the store', function () {
  // Exports write each of some hundred schemas to the disk.
  this.timeout(60_000);
  let stage: AuditStage;
  /** What reading the event gives that was changed. */
  let forge: (event: RecordedEvent) => RecordedEvent;
  let changed: RecordedEvent | undefined;

  beforeEach(async () => {
    const store = createMemoryEventStore();
    forge = (event) => event;
    changed = undefined;
    const each = async function* (events: AsyncIterable<RecordedEvent>): AsyncIterable<RecordedEvent> {
      for await (const event of events) {
        yield event.position === changed?.position ? forge(event) : event;
      }
    };
    const forged: EventStore = {
      ...store,
      readStream: (stream, options) => each(store.readStream(stream, options)),
      readAll: (options) => each(store.readAll(options)),
    };
    // Who signs does not come upon it by itself.
    stage = await startAuditStage({ store: forged, audit: { sampleMs: 86_400_000 } });
    await stage.order(stage.alice, 'before');
    await stage.settled();
  });
  afterEach(() => stage.service.close());

  const newest = async (type: string): Promise<RecordedEvent> => {
    let found: RecordedEvent | undefined;
    for await (const event of stage.service.store.readAll({ limit: 1000 }))
      if (event.type === type) found = event;
    return found as RecordedEvent;
  };
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
      const [created, first] = [await newest(CREATED), await newest(FIRST)];
      const id = encodeURIComponent(nameOf(created));
      const comesToBe = (state: string): Promise<void> =>
        until(async () => stage.service.audit?.auditing.status().state === state);
      const calls: readonly (readonly [event: RecordedEvent, verb: string, path: string, body?: object])[] = [
        [first, 'GET', 'events?subject=alice'],
        [first, 'POST', 'exports', { filter: { subject: 'alice' } }],
        [created, 'GET', `events?type=${CREATED}`],
        [created, 'GET', `events/${id}`],
        [created, 'GET', `events/${id}/proof`],
      ];
      for (const [event, verb, path, body] of calls) {
        forge = (known) => known;
        await comesToBe('signing');
        changed = event;
        forge = change;
        const reply = await stage.auditor(verb, `${AUDIT}/${path}`, body);
        expect(reasonOf(reply), path).to.equal('500 EVENT_CHANGED');
        expect(detailOf(reply)).to.include(`at position ${event.position} is not the one that was recorded`);
        expect(reply.text).not.to.include('secret');
        await comesToBe('mismatch');
      }
      const errors = stage.service.logger.lines.filter(({ level }) => level === 'error');
      expect(errors.length).to.be.greaterThan(0);
      expect(JSON.stringify(errors)).to.include(nameOf(created)).and.not.include('"stack"');
      // No head will come that it could wait for.
      const state = await stage.exported(stage.auditor, {});
      expect(textAt(state, 'state')).to.equal('failed');
      expect(textAt(state, 'reason')).to.match(/is not the one that was recorded|the log has changed/);
      expect(textAt(state, 'reason')).not.to.include('secret');
      // An export is made behind its answer: it tells who signs as well.
      forge = (known) => known;
      await comesToBe('signing');
      forge = change;
      await stage.exported(stage.auditor, {});
      await comesToBe('mismatch');
    });
});
