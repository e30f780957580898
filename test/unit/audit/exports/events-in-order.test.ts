import { expect } from 'chai';
import { createMemoryEventStore } from '../../../../src/adapters/event-store/memory/memory-event-store.ts';
import { openEventsInOrder } from '../../../../src/app/audit/exports/events-in-order.ts';
import type { AuditLeaf } from '../../../../src/app/audit/tree.ts';
import type { EventStore, RecordedEvent } from '../../../../src/app/log/event-store.ts';

const SIGNAL = new AbortController().signal;

const leafOf = ({ position, stream, revision, id }: RecordedEvent): AuditLeaf =>
  ({ position, record: { stream, revision, id } }) as unknown as AuditLeaf;

describe('events of an export in the order of the log', () => {
  let store: EventStore;
  let events: RecordedEvent[];
  let looked: string[];
  let read: { after?: string; limit: number }[];
  beforeEach(async () => {
    store = createMemoryEventStore();
    for (let n = 0; n < 12; n += 1) {
      const stream = n % 4 === 3 ? 'sys-x' : `note-${n % 4}`;
      const revision = await store.currentRevision(stream);
      await store.append(stream, revision, [
        { id: `e${n}`, type: 'Noted', data: `{"n":${n}}`, metadata: '{}' },
      ]);
    }
    events = [];
    for await (const event of store.readAll({ limit: 100 })) events.push(event);
    looked = [];
    read = [];
  });
  afterEach(() => store.close());

  /** A log that says what was asked of it; `hides`: what it does not show in its order. */
  const log = (hides: readonly string[] = []): Pick<EventStore, 'readStream' | 'readAll'> => ({
    readStream: (stream, options) => {
      looked.push(`${stream}@${options?.from}`);
      return store.readStream(stream, options);
    },
    readAll: async function* (options) {
      read.push(options);
      for await (const event of store.readAll(options)) if (!hides.includes(event.id)) yield event;
    },
  });
  const notes = (): RecordedEvent[] => events.filter(({ stream }) => stream.startsWith('note-'));

  it('are read once, in one go, past what is no leaf', async () => {
    const reader = openEventsInOrder(log(), undefined, SIGNAL);
    const [first, rest] = [notes().slice(0, 4), notes().slice(4)];
    expect(await reader.of(first.map(leafOf))).to.deep.equal(first);
    expect(await reader.of(rest.map(leafOf))).to.deep.equal(rest);
    await reader.close();
    expect(looked).to.deep.equal([]);
    expect(read).to.have.length(1);
  });

  it('are read from behind a position', async () => {
    const reader = openEventsInOrder(log(), events[4]?.position, SIGNAL);
    const rest = notes().filter(({ position }) => position > (events[4]?.position ?? ''));
    expect(await reader.of(rest.map(leafOf))).to.deep.equal(rest);
    expect(read[0]?.after).to.equal(events[4]?.position);
    await reader.close();
  });

  it('are looked up where they are not at their place, and missing where they are nowhere', async () => {
    const reader = openEventsInOrder(log(['e2', 'e10']), undefined, SIGNAL);
    const asked = notes().map(leafOf);
    const nowhere = { ...asked[1], record: { ...asked[1]?.record, revision: 99, id: 'gone' } } as AuditLeaf;
    const [head, , ...tail] = asked;
    const found = await reader.of([head as AuditLeaf, nowhere, ...tail]);
    expect(found.map((event) => event?.id)).to.deep.equal(
      notes().map(({ id }, n) => (n === 1 ? undefined : id)),
    );
    expect(looked).to.include.members(['note-2@0', 'note-2@2', 'note-1@99']);
    await reader.close();
  });

  it('are looked up one by one in a log that cannot be read in its order', async () => {
    const { readStream } = log();
    const reader = openEventsInOrder({ readStream }, undefined, SIGNAL);
    expect(await reader.of(notes().map(leafOf))).to.deep.equal(notes());
    expect(read).to.deep.equal([]);
    await reader.close();
  });
});
