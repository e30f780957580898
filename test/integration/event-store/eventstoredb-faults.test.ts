import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import type { EventStoreDbStore } from '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import {
  OutcomeUnknown,
  StoreUnavailable,
  type Appended,
  type EventToAppend,
  type ExpectedRevision,
} from '../../../src/app/log/event-store.ts';
import type { Behaviour } from '../../support/eventstoredb-peer/faults.ts';
import { collect, createBench, event } from '../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../support/eventstoredb-peer/peer.ts';
import { eventually } from '../../support/eventually.ts';

/**
 * Whatever the server and the network do: each acknowledged event is in the log exactly once, at the revision that was
 * answered; what was answered as unavailable and not repeated is not there; what is unknown is settled by repeating it.
 */
describe('EventStoreDB adapter: random faults during concurrent appends', function () {
  this.timeout(60_000);
  const WRITERS = 4;
  const APPENDS = 8;
  const seed = Number(process.env['LEDGER_TEST_SEED'] ?? randomInt(2 ** 31));
  const bench = createBench();
  afterEach(() => bench.clean());

  const behaviour: fc.Arbitrary<Behaviour> = fc.oneof(
    fc.constantFrom<Behaviour>(
      { kind: 'never-answer' },
      { kind: 'lose-answer' },
      { kind: 'lose-answer', cut: true },
      { kind: 'drop' },
      { kind: 'end-ok' },
      { kind: 'cut' },
      { kind: 'stray-answer' },
      { kind: 'no-position' },
    ),
    fc
      .constantFrom('busy', 'unknown', 'timeout', 'unavailable')
      .map((as): Behaviour => ({ kind: 'refuse', as })),
    fc.integer({ min: 1, max: 120 }).map((ms): Behaviour => ({ kind: 'late', ms })),
    fc.integer({ min: 1, max: 120 }).map((ms): Behaviour => ({ kind: 'late-work', ms })),
  );
  /** One entry per call of the server about the streams of the test, in the order in which they arrive. */
  const script = fc.array(fc.option(behaviour, { freq: 2, nil: undefined }), { minLength: 5, maxLength: 60 });
  /** Before which appends (counted over all writers) the server restarts, or forgets the ids it has seen. */
  const restarts = fc.uniqueArray(fc.integer({ min: 1, max: WRITERS * APPENDS - 1 }), { maxLength: 2 });

  type Acknowledged = { stream: string; events: readonly EventToAppend[]; appended: Appended };

  /** A writer that repeats an unknown append with the same ids, and an unavailable one as a new one. */
  const write = async (
    store: EventStoreDbStore,
    stream: string,
    beforeAppend: () => Promise<void>,
  ): Promise<{ acknowledged: Acknowledged[]; abandoned: string[] }> => {
    const acknowledged: Acknowledged[] = [];
    const abandoned: string[] = [];
    let expected: ExpectedRevision = 'no_stream';
    for (let n = 0; n < APPENDS; n += 1) {
      await beforeAppend();
      let events = Array.from({ length: 1 + (n % 3) }, () => event('Written', { n }));
      for (;;) {
        try {
          const appended: Appended = await store.append(stream, expected, events, { deadlineMs: 90 });
          acknowledged.push({ stream, events, appended });
          expected = appended.revision;
          break;
        } catch (error) {
          if (error instanceof OutcomeUnknown) continue;
          if (!(error instanceof StoreUnavailable)) throw error;
          // Nothing of it may be in the log: decide anew, with new ids.
          abandoned.push(...events.map((e) => e.id));
          events = events.map(() => event('Written', { n }));
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      }
    }
    return { acknowledged, abandoned };
  };

  const check = (peer: Peer, results: Awaited<ReturnType<typeof write>>[]): void => {
    for (const { acknowledged, abandoned } of results) {
      const stored = peer.log.all.filter((e) => e.stream === acknowledged[0]?.stream).map((e) => e.id);
      expect(stored).to.deep.equal(acknowledged.flatMap(({ events }) => events.map((e) => e.id)));
      for (const { events, appended } of acknowledged)
        expect(stored[appended.revision], `the last of ${events.length}`).to.equal(events.at(-1)?.id);
      expect(stored.filter((id) => abandoned.includes(id))).to.deep.equal([]);
    }
  };

  it(`keeps every acknowledged event exactly once (LEDGER_TEST_SEED=${seed})`, async () => {
    const property = fc.asyncProperty(script, restarts, async (steps, restartBefore) => {
      const peer = await bench.peer();
      const first = await bench.store(peer, { deadlineMs: 4000 });
      const second = await bench.store(peer, { deadlineMs: 4000, instance: 'second' });
      const remaining = [...steps];
      peer.faults.chooseWith((on, stream) =>
        on === 'append' && stream.startsWith('writer-') ? remaining.shift() : undefined,
      );
      let appends = 0;
      const beforeAppend = async (): Promise<void> => {
        appends += 1;
        if (restartBefore.includes(appends)) await peer.restart();
      };
      const writing = Array.from({ length: WRITERS }, (_, w) => {
        return write(w % 2 === 0 ? first : second, `writer-${w}`, beforeAppend);
      });
      const results = await Promise.all(writing);
      // Attempts that still wait in the server's queue must not store anything a second time.
      await eventually('late work is done', () => peer.stats.queued === 0);
      peer.faults.clear();
      const read = await collect(first.readAll({ limit: 10_000 }));
      expect(read).to.have.lengthOf(results.flatMap((r) => r.acknowledged.flatMap((a) => a.events)).length);
      check(peer, results);
      await bench.clean();
    });
    await fc.assert(property, { numRuns: 15, seed, endOnFailure: true });
  });
});
