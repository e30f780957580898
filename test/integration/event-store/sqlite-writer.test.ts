import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import {
  OutcomeUnknown,
  StoreUnavailable,
  type SubscriptionItem,
  WrongExpectedRevision,
} from '../../../src/app/log/event-store.ts';
import {
  createWriterFaults,
  type CommitFault,
  type WriterFaults,
} from '../../../src/adapters/event-store/sqlite/faults.ts';
import { openSqliteLogReader } from '../../../src/adapters/event-store/sqlite/open-log-reader.ts';
import type { SqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { all, errorOf, event, follow, numbered, within } from './contract/fixture.ts';
import { resources } from './support/files.ts';

describe('sqlite event store: the writer', function () {
  this.timeout(30_000);
  const made = resources();
  let dataDir = '';
  let faults: WriterFaults;
  let store: SqliteEventStore;
  beforeEach(async () => {
    dataDir = await made.dataDir();
    faults = createWriterFaults();
    store = await made.openStore(dataDir, { faults, stuckMs: 1000 });
  });
  afterEach(async () => {
    faults.resume();
    faults.refuseStart(false);
    await made.endAll();
  });

  it('syncs every COMMIT: read on the live writing connection', async () => {
    expect(await store.pragmas()).to.include({ journalMode: 'wal', synchronous: 2, userVersion: 1 });
  });

  describe('patient appends', () => {
    const LONG_MS = 20_000;

    it('are committed when their patience ends', async () => {
      const { revision } = await store.append('a', 'no_stream', [event('New')], { patienceMs: 5 });
      expect(revision).to.equal(0);
    });

    it('go with the first one that is not patient, together', async () => {
      const patient = ['a', 'b', 'c'].map((stream) =>
        store.append(stream, 'no_stream', [event('New')], { patienceMs: LONG_MS }),
      );
      const urgent = store.append('d', 'no_stream', [event('New')]);
      const positions = (await within(5000, 'patient appends', Promise.all([...patient, urgent]))).map(
        ({ position }) => position,
      );
      expect(positions).to.deep.equal(positions.toSorted());
      const times = new Set((await all(store.readAll({ limit: 10 }))).map(({ recordedAt }) => recordedAt));
      expect(times.size, 'one commit has one recorded time').to.equal(1);
    });

    it('that come while a batch is under way do not wait longer than they said', async () => {
      const first = store.append('a', 'no_stream', [event('New')]);
      const second = store.append('b', 'no_stream', [event('New')], { patienceMs: 1 });
      expect((await within(5000, 'both', Promise.all([first, second]))).length).to.equal(2);
    });

    it('are committed by a close', async () => {
      const patient = store.append('a', 'no_stream', [event('New')], { patienceMs: LONG_MS });
      await store.close();
      expect((await within(5000, 'the append', patient)).revision).to.equal(0);
    });
  });

  describe('when COMMIT fails', () => {
    const failingAppends = async (fault: CommitFault): Promise<PromiseSettledResult<unknown>[]> => {
      await store.append('before', 'no_stream', numbered('Before', 2));
      faults.failNextCommit(fault);
      return await Promise.allSettled([
        store.append('a', 'no_stream', numbered('New', 2)),
        store.append('before', 'no_stream', [event('Conflict')]),
        store.append('b', 'no_stream', [event('New')]),
      ]);
    };

    it('answers what is stored when it had taken effect', async () => {
      const [a, conflict, b] = await failingAppends('fails-stored');
      expect(a).to.have.nested.property('value.revision', 1);
      expect(b).to.have.nested.property('value.revision', 0);
      expect(conflict).to.have.property('reason').that.is.instanceOf(WrongExpectedRevision);
      expect(await all(store.readStream('a'))).to.have.lengthOf(2);
    });

    it('refuses the whole batch when nothing was stored; the same appends succeed when repeated', async () => {
      for (const outcome of await failingAppends('fails-unstored')) {
        expect(outcome).to.have.property('reason').that.is.instanceOf(StoreUnavailable);
        expect(outcome).to.have.nested.property('reason.reason', 'down');
      }
      expect(await store.currentRevision('a')).to.equal('no_stream');
      const again = await store.append('a', 'no_stream', numbered('New', 2));
      expect(again).to.include({ revision: 1, duplicate: false });
      expect((await all(store.readAll({ limit: 100 }))).map((e) => Number(e.position))).to.deep.equal([
        1, 2, 3, 4,
      ]);
    });

    it('reports an unknown outcome when that cannot be found out, and replaces the writer', async () => {
      for (const outcome of await failingAppends('stays-unknown'))
        expect(outcome).to.have.property('reason').that.is.instanceOf(OutcomeUnknown);
      await untilWritable(store);
      expect(await store.currentRevision('a')).to.equal('no_stream');
      expect((await store.fullCheck()).findings).to.deep.equal([]);
    });

    it('shows subscribers nothing that is not committed', async () => {
      const follower = follow(store);
      await follower.untilCaughtUp();
      await failingAppends('fails-unstored');
      await store.append('after', 'no_stream', [event('After')]);
      await follower.untilEvents(3);
      await follower.stop();
      expect(follower.events().map((e) => e.stream)).to.deep.equal(['before', 'before', 'after']);
    });
  });

  describe('without space', () => {
    const large = () => [event('Large', { text: 'x'.repeat(100_000) })];

    it('refuses as full, acknowledges nothing, and goes on by itself when there is space', async () => {
      await store.append('before', 'no_stream', large());
      faults.maxPages(1);
      const refused = await errorOf(store.append('refused', 'no_stream', large()));
      expect(refused).to.be.instanceOf(StoreUnavailable);
      expect(refused).to.have.property('reason', 'full');
      expect(await errorOf(store.ping())).to.have.property('reason', 'full');
      expect(await store.currentRevision('refused')).to.equal('no_stream');
      expect(await all(store.readStream('before')), 'reads go on').to.have.lengthOf(1);
      faults.maxPages(100_000);
      await store.ping();
      const stored = await store.append('refused', 'no_stream', large());
      expect(stored).to.include({ revision: 0, duplicate: false });
      expect((await store.fullCheck()).findings).to.deep.equal([]);
    });

    it('refuses everything that was in the batch, conflicts too: they were decided on what was not stored', async () => {
      faults.maxPages(1);
      const outcomes = await Promise.allSettled([
        store.append('one', 'no_stream', [event('Small')]),
        store.append('one', 'no_stream', [event('Conflict')]),
        store.append('two', 'no_stream', large()),
      ]);
      for (const outcome of outcomes) expect(outcome).to.have.nested.property('reason.reason', 'full');
      faults.maxPages(100_000);
      await store.append('one', 'no_stream', [event('Small')]);
      expect((await store.fullCheck()).findings, 'no position was lost').to.deep.equal([]);
    });
  });

  describe('when the thread hangs or dies', () => {
    it('refuses at the deadline what was never sent, and does not know about what was', async () => {
      faults.hang();
      const sent = errorOf(store.append('sent', 'no_stream', [event('Sent')], { deadlineMs: 200 }));
      await new Promise(setImmediate);
      const waiting = errorOf(store.append('waiting', 'no_stream', [event('Waiting')], { deadlineMs: 100 }));
      const withdrawn = new AbortController();
      const aborted = errorOf(
        store.append('aborted', 'no_stream', [event('Aborted')], { signal: withdrawn.signal }),
      );
      const reason = new Error('the caller went away');
      withdrawn.abort(reason);
      expect(await aborted).to.equal(reason);
      expect(await waiting).to.be.instanceOf(StoreUnavailable);
      expect(await sent).to.be.instanceOf(OutcomeUnknown);
      faults.resume();
      await untilWritable(store);
      expect(await store.currentRevision('sent')).to.equal(0);
      expect(await store.currentRevision('waiting')).to.equal('no_stream');
      expect(await store.currentRevision('aborted')).to.equal('no_stream');
    });

    it('stores what was sent before what is appended after it: a repetition finds the append that nobody knows of', async () => {
      const given = [event('Sent')];
      faults.hang();
      const sent = errorOf(store.append('sent', 'no_stream', given, { deadlineMs: 50 }));
      await new Promise(setImmediate);
      expect(await sent).to.be.instanceOf(OutcomeUnknown);
      const later = [
        store.append('sent', 'no_stream', given),
        store.append('sent', 0, [event('Next')]),
        errorOf(store.append('sent', 'no_stream', [event('Other')])),
      ] as const;
      faults.resume();
      expect(await later[0]).to.include({ revision: 0, duplicate: true });
      expect(await later[1]).to.include({ revision: 1, duplicate: false });
      expect(await later[2]).to.be.instanceOf(WrongExpectedRevision);
    });

    it('replaces a thread that is stuck', async () => {
      faults.hang();
      const lost = await errorOf(store.append('lost', 'no_stream', [event('Lost')]));
      expect(lost).to.be.instanceOf(OutcomeUnknown);
      faults.resume();
      await untilWritable(store);
      await store.append('next', 'no_stream', [event('Next')]);
    });

    it('does not know about what was sent when it dies, refuses until it is replaced, and reads meanwhile', async () => {
      await store.append('before', 'no_stream', [event('Before')]);
      faults.refuseStart(true);
      faults.crashNext();
      expect(await errorOf(store.append('sent', 'no_stream', [event('Sent')]))).to.be.instanceOf(
        OutcomeUnknown,
      );
      const refused = await errorOf(store.append('refused', 'no_stream', [event('Refused')]));
      expect(refused).to.be.instanceOf(StoreUnavailable);
      expect(refused).to.have.property('reason', 'down');
      expect(await all(store.readStream('before'))).to.have.lengthOf(1);
      faults.refuseStart(false);
      await untilWritable(store);
      await store.append('refused', 'no_stream', [event('Accepted')]);
    });

    it('can be closed while it is down', async () => {
      faults.refuseStart(true);
      faults.crashNext();
      await store.ping().catch(() => undefined);
      await within(5000, 'close', store.close());
    });

    it('can be closed while it hangs: it waits for the batch under way', async () => {
      faults.hang();
      const append = store.append('last', 'no_stream', [event('Last')]);
      await new Promise(setImmediate);
      const closed = store.close();
      faults.resume();
      expect(await append).to.include({ revision: 0 });
      await within(5000, 'close', closed);
    });
  });

  describe('read in another thread', () => {
    it('arrives there after COMMIT, without waiting for the poll', async () => {
      await store.append('old', 'no_stream', [event('Old')]);
      const worker = new Worker(new URL('./support/worker-reader.ts', import.meta.url), {
        workerData: dataDir,
      });
      made.atEnd(() => worker.terminate());
      const items: SubscriptionItem[] = [];
      const until = async (condition: () => boolean): Promise<void> => {
        while (!condition()) await within(10_000, 'an item in the other thread', once(worker, 'message'));
      };
      worker.on('message', (item: SubscriptionItem) => items.push(item));
      await until(() => items.some((item) => item.kind === 'caught-up'));
      const started = performance.now();
      for (let n = 0; n < 10; n += 1) {
        await store.append('new', n === 0 ? 'no_stream' : n - 1, [event('New', { n })]);
        await until(() => items.filter((item) => item.kind === 'event').length === n + 2);
      }
      expect(performance.now() - started, 'ten round trips, each far below the poll of 1 s').to.be.below(
        5000,
      );
      worker.postMessage('stop');
      await once(worker, 'exit');
      const streams = items.flatMap((item) => (item.kind === 'event' ? [item.event.stream] : []));
      expect(streams).to.deep.equal(['old', ...Array.from({ length: 10 }, () => 'new')]);
    });

    it('is refused where there is no log, and names the directory', async () => {
      const empty = await made.dataDir();
      expect(() => openSqliteLogReader({ dataDir: empty })).to.throw(empty);
    });

    it('has the id of the store, and only reads', async () => {
      const reader = openSqliteLogReader({ dataDir });
      await store.append('a', 'no_stream', numbered('A', 3));
      expect(reader.storeId).to.equal(store.storeId);
      expect(await reader.currentRevision('a')).to.equal(2);
      expect(await reader.lastPosition()).to.equal(await store.lastPosition());
      expect(reader).to.not.have.property('append');
      await reader.close();
      await reader.close();
      expect(await errorOf(reader.lastPosition())).to.have.property('reason', 'closed');
    });
  });

  it('leaves the thread to others while it reads much', async () => {
    for (let n = 0; n < 12; n += 1)
      await store.append('large', n === 0 ? 'no_stream' : n - 1, [
        event('Large', { text: 'x'.repeat(300_000) }),
      ]);
    let turns = 0;
    let counting = true;
    const count = (): void => {
      turns += 1;
      if (counting) setImmediate(count);
    };
    setImmediate(count);
    const read = await all(store.readStream('large'));
    counting = false;
    expect(read).to.have.lengthOf(12);
    expect(turns, 'turns of the event loop during the read').to.be.at.least(11);
  });

  it('refuses a subscription behind the end of the log: the log it came from was another', async () => {
    await store.append('a', 'no_stream', [event('A')]);
    const { signal } = new AbortController();
    const error = await errorOf(all(store.subscribe({ after: '0000000000000009', signal })));
    expect(error).to.have.property('name', 'PositionBeyondEnd');
  });
});

const untilWritable = async (store: SqliteEventStore): Promise<void> => {
  const end = performance.now() + 10_000;
  for (;;) {
    try {
      return await store.ping();
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
};
