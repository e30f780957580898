import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type {
  EventToAppend,
  Position,
  RecordedEvent,
  SubscriptionItem,
} from '../../../src/app/log/event-store.ts';
import type { LogReader } from '../../../src/projections/log-reader.ts';
import { createApplier, type Applier } from '../../../src/projections/runner/applier.ts';
import { digestOf } from '../../../src/projections/runner/digest.ts';
import { follow } from '../../../src/projections/runner/follow.ts';
import { openViewFile } from '../../../src/projections/runner/view-file.ts';
import type { View } from '../../../src/projections/view.ts';
import { changed, createTestLog, poisoned, written } from '../../support/projections/log.ts';
import { notesView } from '../../support/projections/open-notes.ts';

const MIB = 1024 * 1024;

/** Sizes of the batches in which a log is applied that was there before. */
const batchesOf = async (
  events: number,
  textOf: (n: number) => string,
  soon?: number[],
): Promise<number[]> => {
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
  for (const [n, event] of given.entries())
    await store.append('note-a', n === 0 ? 'no_stream' : n - 1, [event]);
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
    applyOn: (batch, to) => {
      soon?.push(batch.length);
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
    longTransactions: soon !== undefined,
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

  it('applies what it reads soon where transactions are long, and bounds them by number and size', async () => {
    const soon: number[] = [];
    const batches = await batchesOf(20_000, () => '', soon);
    expect(Math.max(...soon)).to.equal(512);
    expect([...soon, ...batches].reduce((sum, size) => sum + size, 0)).to.equal(20_000);
    expect(batches, 'transactions').to.have.length.within(2, 40);

    const text = 'x'.repeat(MIB - 100);
    expect(await batchesOf(50, () => text, []), 'transactions').to.have.length.of.at.least(3);
  });

  it('pauses within one transaction where nothing is urgent, and parks what any other does', async () => {
    const log = createTestLog();
    for (let i = 0; i < 60; i += 1)
      await log.append(`note-${i % 7}`, i < 7 ? written(String(i)) : changed('2'));
    await log.append('note-3', poisoned());
    await log.append('note-3', changed('after'));
    await log.append('note-4', changed('last'));
    const plain = notesView({ poison: () => true });
    const slow: View = {
      ...plain,
      isUrgent: false,
      gatherMs: 5,
      open: (db) => {
        const apply = plain.open(db);
        return Object.assign((event: RecordedEvent) => {
          for (const until = performance.now() + 1; performance.now() < until; );
          apply(event);
        }, apply);
      },
    };
    const db = openViewFile(':memory:', slow, log.store.storeId);
    const applier = createApplier(db, slow);
    const events = await log.all();
    const commits: number[] = [];
    const stopping = new AbortController();
    const last = events.at(-1)?.position;
    async function* subscribe(signal: AbortSignal): AsyncGenerator<SubscriptionItem> {
      yield { kind: 'caught-up', position: undefined };
      for (const event of events) yield { kind: 'event', event };
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    }
    const follower = follow({
      view: slow,
      reader: {
        subscribe: ({ signal }: { signal: AbortSignal }) => subscribe(signal),
      } as unknown as LogReader,
      applier,
      signal: stopping.signal,
      onProgress: ({ batchEvents, position }) => {
        if (batchEvents > 0) commits.push(batchEvents);
        if (position === last) stopping.abort();
      },
      pace: 'event-loop',
    });
    await follower.done;
    expect(commits).to.deep.equal([events.length]);
    const clean = openViewFile(':memory:', plain, log.store.storeId);
    createApplier(clean, plain).apply(events, last ?? '');
    expect(digestOf(db, slow)).to.deep.equal(digestOf(clean, plain));
    expect(applier.parked().map(({ stream }) => stream)).to.deep.equal(['note-3']);
    db.close();
    clean.close();
  });

  it('gathers no longer than others do while somebody waits', async () => {
    const { applied, hurry, stop } = await followPages({ gatherMs: 3_600_000, pages: 3, eventsOfPage: 50 });
    hurry(noteAt(150).position);
    await applied(150);
    await stop();
    const early = await followPages({ gatherMs: 3_600_000, pages: 3, eventsOfPage: 50, wanted: 120 });
    await early.applied(120);
    await early.stop();
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

  it('reads on between short transactions once the view has caught up, and says so when all of them are done', async () => {
    const events = Array.from({ length: 300 }, (_, n) => noteAt(n + 1));
    const reports: { events: number; caughtUp: boolean }[] = [];
    let applied = 0;
    let appliedAtSecondPage = Infinity;
    const done = Promise.withResolvers<void>();
    async function* subscribe(signal: AbortSignal): AsyncGenerator<SubscriptionItem> {
      for (const event of events.slice(0, 100)) yield { kind: 'event', event };
      yield { kind: 'caught-up', position: noteAt(100).position };
      for (const event of events.slice(100, 200)) yield { kind: 'event', event };
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
      appliedAtSecondPage = applied;
      for (const event of events.slice(200)) yield { kind: 'event', event };
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    }
    const view = {
      name: 'slow',
      version: 1,
      schema: 'CREATE TABLE seen (n INTEGER PRIMARY KEY) STRICT',
      tables: ['seen'],
      rowsBelongToOneStream: true,
      open: () => () => {
        for (const until = performance.now() + 1; performance.now() < until; );
        applied += 1;
      },
    } satisfies View;
    const stopping = new AbortController();
    const follower = follow({
      view,
      reader: {
        subscribe: ({ signal }: { signal: AbortSignal }) => subscribe(signal),
      } as unknown as LogReader,
      applier: createApplier(openViewFile(':memory:', view, 'store'), view),
      signal: stopping.signal,
      onProgress: ({ batchEvents, caughtUp }) => {
        reports.push({ events: batchEvents, caughtUp });
        if (applied === 300) done.resolve();
      },
      pace: 'event-loop',
    });
    await done.promise;
    stopping.abort();
    await follower.done;
    // Each event takes a millisecond: five of them, and one that begins within the last.
    expect(Math.max(...reports.map((report) => report.events))).to.be.at.most(6);
    expect(reports.reduce((sum, report) => sum + report.events, 0)).to.equal(300);
    expect(appliedAtSecondPage, 'read while the first page was applied').to.be.below(200);
    expect(
      reports.findIndex(({ caughtUp }) => caughtUp),
      'caught up with all that had come',
    ).to.be.at.least(16);
  });
});

/** Follows a log that grows by pages after its end was reached; resolves when the last page was handed over. */
const followPages = async (options: {
  gatherMs: number;
  pages: number;
  eventsOfPage: number;
  /** Number of the event that somebody waits for before it is there. */
  wanted?: number;
}) => {
  const { gatherMs, pages, eventsOfPage, wanted } = options;
  const batches: number[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const handedOver = Promise.withResolvers<void>();
  let position: Position | undefined;
  /** Applied in the transaction that is open. */
  let open = 0;
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
        batches.push(open + batch.length);
        open = 0;
        position = to;
        for (const { count, resolve } of waiting) if (sum() >= count) resolve();
        return batch.length;
      },
      applyOn: (batch, to) => {
        open += batch.length;
        position = to;
        return batch.length;
      },
      retry: () => true,
    },
    signal: stopping.signal,
    onProgress: () => undefined,
    pace: 'event-loop',
  });
  if (wanted !== undefined) follower.hurry(noteAt(wanted).position);
  await handedOver.promise;
  return {
    batches,
    hurry: follower.hurry,
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
