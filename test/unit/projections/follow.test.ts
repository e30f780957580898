import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type {
  EventToAppend,
  Position,
  RecordedEvent,
  SubscriptionItem,
} from '../../../src/app/event-store.ts';
import type { LogReader } from '../../../src/projections/log-reader.ts';
import type { Applier } from '../../../src/projections/runner/applier.ts';
import { follow } from '../../../src/projections/runner/follow.ts';
import type { View } from '../../../src/projections/view.ts';

const MIB = 1024 * 1024;

/** Sizes of the batches in which a log is applied that was there before. */
const batchesOf = async (events: number, textOf: (n: number) => string): Promise<number[]> => {
  const store = createMemoryEventStore();
  const given = Array.from(
    { length: events },
    (_, n): EventToAppend => ({
      id: `e${n}`,
      type: 'NoteWritten',
      data: JSON.stringify({ nested: { texts: [textOf(n)] } }),
      metadata: '{}',
    }),
  );
  await store.append('note-a', 'no_stream', given);
  const batches: number[] = [];
  let position: Position | undefined;
  const applier = {
    checkpoint: () => ({ position, recordedAt: undefined, events: 0, anchor: undefined }),
    parked: () => [],
    rewind: () => undefined,
    apply: (batch, to) => {
      batches.push(batch.length);
      position = to;
      return batch.length;
    },
    retry: () => true,
  } satisfies Applier;
  const until = await store.lastPosition();
  await follow({
    view: { name: 'notes' } as unknown as View,
    reader: store,
    applier,
    signal: new AbortController().signal,
    ...(until !== undefined && { until }),
    onProgress: () => undefined,
    pace: 'event-loop',
  }).done;
  return batches;
};

describe('following the log', () => {
  it('commits batches of a bounded number of events', async () => {
    const batches = await batchesOf(9000, () => '');
    expect(Math.max(...batches)).to.equal(4096);
    expect(batches.reduce((sum, size) => sum + size, 0)).to.equal(9000);
  });

  it('and of a bounded size: 4,096 of the largest events would not fit into memory', async () => {
    const text = 'x'.repeat(MIB - 100);
    const batches = await batchesOf(50, () => text);
    expect(Math.max(...batches)).to.be.at.most(17);
    expect(batches.reduce((sum, size) => sum + size, 0)).to.equal(50);
  });

  it('gathers what is not urgent as long as its view says, however many pages it comes in', async () => {
    const { batches, stop } = await followPages({ gatherMs: 3_600_000, pages: 100, eventsOfPage: 50 });
    expect(batches).to.have.length(1);
    expect(batches[0]).to.be.within(4000, 4096);
    await stop();
  });

  it('and then commits it, whether the end of the log was reached meanwhile or not', async () => {
    const { applied, batches, stop } = await followPages({ gatherMs: 1, pages: 3, eventsOfPage: 50 });
    await applied(150);
    expect(batches.reduce((sum, size) => sum + size, 0)).to.equal(150);
    await stop();
  });
});

/** Follows a log that grows by pages after its end was reached; resolves when the last page was handed over. */
const followPages = async (options: { gatherMs: number; pages: number; eventsOfPage: number }) => {
  const { gatherMs, pages, eventsOfPage } = options;
  const batches: number[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const handedOver = Promise.withResolvers<void>();
  let position: Position | undefined;
  const sum = (): number => batches.reduce((total, size) => total + size, 0);
  async function* subscribe(signal: AbortSignal): AsyncGenerator<SubscriptionItem> {
    yield { kind: 'caught-up', position: undefined };
    for (let page = 0; page < pages; page += 1) {
      for (let n = 0; n < eventsOfPage; n += 1)
        yield { kind: 'event', event: noteAt(1 + page * eventsOfPage + n) };
      await new Promise((resolve) => setImmediate(resolve));
    }
    handedOver.resolve();
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  }
  const stopping = new AbortController();
  const follower = follow({
    view: { name: 'notes', isUrgent: false, gatherMs } as unknown as View,
    reader: {
      lastPosition: async () => undefined,
      subscribe: ({ signal }: { signal: AbortSignal }) => subscribe(signal),
    } as unknown as LogReader,
    applier: {
      checkpoint: () => ({ position, recordedAt: undefined, events: 0, anchor: undefined }),
      parked: () => [],
      rewind: () => undefined,
      apply: (batch, to) => {
        batches.push(batch.length);
        position = to;
        for (const { count, resolve } of waiting) if (sum() >= count) resolve();
        return batch.length;
      },
      retry: () => true,
    },
    signal: stopping.signal,
    onProgress: () => undefined,
    pace: 'event-loop',
  });
  await handedOver.promise;
  return {
    batches,
    applied: (count: number): Promise<void> =>
      sum() >= count ? Promise.resolve() : new Promise((resolve) => waiting.push({ count, resolve })),
    stop: async (): Promise<void> => {
      stopping.abort();
      await follower.done;
    },
  };
};

const noteAt = (n: number): RecordedEvent => ({
  position: String(n).padStart(16, '0'),
  stream: 'note-a',
  revision: n - 1,
  id: `e${n}`,
  type: 'NoteWritten',
  data: {},
  metadata: {},
  recordedAt: '2026-11-22T10:00:00.000Z',
});
