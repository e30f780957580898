import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore, Position, RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { NoteEvent } from './notes.ts';

/** A log for specs of the read models: appends keep track of revisions and commands by themselves. */
export type TestLog = {
  readonly store: EventStore;
  /** One append: its events share a command. Returns the position of the last. */
  readonly append: (stream: string, ...events: { type: string; data: unknown }[]) => Promise<Position>;
  /** Days by which the recorded time moves on before the next append. */
  readonly passDays: (days: number) => void;
  readonly lastPosition: () => Promise<Position | undefined>;
  readonly all: () => Promise<RecordedEvent[]>;
  readonly commandIds: string[];
};

const START = Date.parse('2026-01-01T00:00:00.000Z');

export const createTestLog = (store?: EventStore): TestLog => {
  let time = START;
  const log = store ?? createMemoryEventStore({ now: () => new Date(time).toISOString() });
  const revisions = new Map<string, number>();
  const commandIds: string[] = [];
  let count = 0;
  return {
    store: log,
    commandIds,
    append: async (stream, ...events) => {
      count += 1;
      time += 1000;
      const commandId = `00000000-0000-5000-8000-${String(count).padStart(12, '0')}`;
      commandIds.push(commandId);
      const revision = revisions.get(stream);
      const { revision: last, position } = await log.append(
        stream,
        revision ?? 'no_stream',
        events.map(({ type, data }, index) => ({
          id: `${commandId}-${index}`,
          type,
          data: JSON.stringify(data),
          metadata: JSON.stringify({
            commandId,
            requestHash: `hash-${count}`,
            correlationId: `correlation-${count}`,
            actor: { subjectId: 'somebody' },
            occurredAt: new Date(time).toISOString(),
          }),
        })),
      );
      revisions.set(stream, last);
      return position;
    },
    passDays: (days) => {
      time += days * 86_400_000;
    },
    lastPosition: () => log.lastPosition(),
    all: async () => {
      const events: RecordedEvent[] = [];
      for await (const event of log.readAll({ limit: 1_000_000 })) events.push(event);
      return events;
    },
  };
};

export const written = (
  id: string,
  more: { tenant?: string; name?: string; text?: string } = {},
): NoteEvent => ({
  type: 'NoteWritten',
  data: { id, tenant: 't1', name: `name-${id}`, text: 'first', at: '2026-01-01T00:00:00Z', ...more },
});
export const changed = (text: string): NoteEvent => ({ type: 'NoteChanged', data: { text } });
export const marked = (...marks: string[]): NoteEvent => ({ type: 'NoteMarked', data: { marks } });
export const linked = (...to: string[]): NoteEvent => ({ type: 'NoteLinked', data: { to } });
export const touched: NoteEvent = { type: 'NoteTouched', data: {} };
export const lent = (...to: string[]): NoteEvent => ({ type: 'NoteLent', data: { to } });
/** Says which notes the next event will link to. */
export const announced = (...to: string[]) => ({
  type: 'ReferencesAnnounced',
  data: { targets: to.map((id) => ({ kind: 'note', id })) },
});
export const deletionRequested: NoteEvent = {
  type: 'NoteDeletionRequested',
  data: { at: '2026-01-02T00:00:00Z' },
};
export const removed: NoteEvent = { type: 'NoteRemoved', data: {} };
export const poisoned = (text = 'poison'): NoteEvent => ({ type: 'NotePoisoned', data: { text } });
