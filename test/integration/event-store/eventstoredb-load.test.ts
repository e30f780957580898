import { expect } from 'chai';
import { OutcomeUnknown, StoreUnavailable } from '../../../src/app/log/event-store.ts';
import {
  collect,
  createBench,
  event,
  idsIn,
  rejection,
  timed,
} from '../../support/eventstoredb-peer/fixture.ts';
import { eventually } from '../../support/eventually.ts';

/** A real server is fast with some hundreds of calls at once, and answers none of some thousands. */
describe('EventStoreDB adapter: thousands of calls at once', function () {
  this.timeout(60_000);
  const bench = createBench();
  afterEach(() => bench.clean());
  // More than a server answers at once; `npm run test:faults` makes it 8,000.
  const MANY = Number(process.env['LEDGER_TEST_CALLS'] ?? 4_500);

  describe('appends', () => {
    it('wait in a queue: all end as stored or as refused, within seconds, none unknown', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 10_000 });
      // A server under load. Beyond some thousands at once the peer answers nobody, as a real one.
      peer.faults.add({ on: 'append', do: { kind: 'late-work', ms: 100 }, stream: 'load-' });
      const { connections } = store.stats();
      const started = performance.now();
      const outcomes = await Promise.allSettled(
        Array.from({ length: MANY }, (_, n) => store.append(`load-${n}`, 'no_stream', [event('Loaded')])),
      );
      expect(performance.now() - started).to.be.below(30_000);
      const failures = outcomes.flatMap((o) => (o.status === 'rejected' ? [o.reason as unknown] : []));
      expect(failures.filter((error) => !(error instanceof StoreUnavailable))).to.deep.equal([]);
      expect(peer.stats.commits - 1, 'all that were not refused').to.equal(MANY - failures.length);
      expect(peer.stats.mostQueued, 'at once').to.be.within(100, 512);
      expect(peer.stats.dropped).to.equal(0);
      expect(store.stats().connections, 'and on the connection that there was').to.equal(connections);
    });

    it('that wait too long for a silent server fail early and once: nothing of them was sent', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 2_000 });
      const lift = peer.faults.add({ on: 'append', do: { kind: 'never-answer' }, stream: 'full-' });
      const placed = event('Placed');
      const calls = Array.from({ length: 1_000 }, (_, n) =>
        timed(store.append(`full-${n}`, 'no_stream', [placed])),
      );
      const all = await Promise.all(calls);
      const unknown = all.filter(({ error }) => error instanceof OutcomeUnknown);
      const refused = all.filter(({ error }) => error instanceof StoreUnavailable);
      expect(unknown.length, 'those that were under way').to.be.within(100, 512);
      expect(unknown.length + refused.length).to.equal(1_000);
      expect(Math.max(...refused.map(({ ms }) => ms)), 'half of the deadline').to.be.below(1_900);
      lift();
      const sent = new Set(peer.log.all.map(({ stream }) => stream));
      expect([...sent].filter((stream) => stream.startsWith('full-'))).to.deep.equal([]);
      expect(await store.append('order-1', 'no_stream', [event('Placed')])).to.include({ revision: 0 });
    });

    it('leave no listener each on the signal that they share', async () => {
      const peer = await bench.peer();
      // Listeners are counted here: a slow machine is no matter.
      const store = await bench.store(peer, { deadlineMs: 20_000 });
      const controller = new AbortController();
      const { signal } = controller;
      let listeners = 0;
      let most = 0;
      const add = signal.addEventListener.bind(signal);
      const remove = signal.removeEventListener.bind(signal);
      signal.addEventListener = (...args: Parameters<typeof add>) => {
        listeners += 1;
        most = Math.max(most, listeners);
        add(...args);
      };
      signal.removeEventListener = (...args: Parameters<typeof remove>) => {
        listeners -= 1;
        remove(...args);
      };
      const appends = Array.from({ length: 1_000 }, (_, n) =>
        store.append(`shared-${n}`, 'no_stream', [event('Placed')], { signal }),
      );
      await Promise.all(appends);
      expect(most).to.equal(1);
      expect(listeners, 'and none afterwards').to.equal(0);
    });

    it('end at once when their signal is aborted: those that wait were not sent', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 20_000 });
      peer.faults.add({ on: 'append', do: { kind: 'never-answer' }, stream: 'gone-' });
      const controller = new AbortController();
      const reason = new Error('the caller went away');
      const calls = Array.from({ length: 600 }, (_, n) =>
        rejection(store.append(`gone-${n}`, 'no_stream', [event('Placed')], { signal: controller.signal })),
      );
      await eventually('some were sent', () => peer.faults.hits() > 100);
      controller.abort(reason);
      const errors = await Promise.all(calls);
      expect(errors.filter((error) => error === reason).length).to.be.greaterThan(0);
      expect(errors.every((error) => error === reason || error instanceof OutcomeUnknown)).to.equal(true);
    });
  });

  describe('reads', () => {
    it('wait in a queue: all loads answer, on the connection that there is', async () => {
      const peer = await bench.peer();
      // A deadline shorter than the whole takes: patience counts from the start of a read.
      const store = await bench.store(peer, { deadlineMs: 2_500 });
      await store.append('order-1', 'no_stream', [event('Placed'), event('Paid')]);
      peer.faults.add({ on: 'read', do: { kind: 'late', ms: 10 }, stream: 'order-' });
      const { connections } = store.stats();
      const loads = await Promise.all(
        Array.from({ length: MANY }, () => collect(store.readStream('order-1'))),
      );
      expect(loads.every((events) => events.length === 2)).to.equal(true);
      expect(store.stats().connections).to.equal(connections);
      expect(peer.stats.mostReads, 'at once').to.be.within(16, 64);
    });

    it('one slow read fails by itself: those that are answered keep their connection', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 2_400 });
      await store.append('order-1', 'no_stream', [event('Placed')]);
      peer.faults.add({ on: 'read', do: { kind: 'never-answer' }, stream: 'slow-' });
      const { connections } = store.stats();
      let isOver = false;
      const slow = rejection(store.currentRevision('slow-1')).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        expect(await store.currentRevision('order-1')).to.equal(0);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect(await slow).to.be.instanceOf(StoreUnavailable);
      expect(store.stats().connections).to.equal(connections);
    });

    it('a ping does not wait for the queue', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 20_000, pingMs: 5_000 });
      const lift = peer.faults.add({ on: 'read', do: { kind: 'never-answer' }, stream: 'slow-' });
      const controller = new AbortController();
      const { signal } = controller;
      const loads = Array.from({ length: 200 }, (_, n) =>
        rejection(collect(store.readStream(`slow-${n}`, { signal }))),
      );
      await eventually('as many as may are read', () => peer.faults.hits() >= 16);
      await store.ping();
      controller.abort(new Error('enough'));
      await Promise.all(loads);
      lift();
    });

    it('readers whose consumers take their time keep nobody out, nor do reads within reads', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 5_000 });
      await store.append('order-1', 'no_stream', [event('Placed'), event('Paid')]);
      const nested = async (): Promise<number> => {
        let seen = 0;
        for await (const { revision } of store.readStream('order-1'))
          for await (const inner of store.readStream('order-1', { from: revision }))
            seen += inner.type === 'Paid' ? 1 : 0;
        return seen;
      };
      const counts = await Promise.all(Array.from({ length: 100 }, nested));
      expect(counts.every((seen) => seen === 2)).to.equal(true);
    });

    it('of 150 slow consumers hold few streams: one more read is answered', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 5_000 });
      // Longer than what a connection takes in ahead of its readers: a stream ends only when its reader has read.
      for (let from = 0; from < 600; from += 50)
        await store.append(
          'order-1',
          from === 0 ? 'no_stream' : from - 1,
          Array.from({ length: 50 }, () => event('Noted', { pad: 'x'.repeat(16_000) })),
        );
      const stop = new AbortController();
      const seen = new Map<number, number>();
      const slow = Array.from({ length: 150 }, async (_, n) => {
        for await (const { revision } of store.readStream('order-1', { signal: stop.signal })) {
          seen.set(n, revision);
          await new Promise((resolve) => setTimeout(resolve, 400));
        }
      });
      const ended = Promise.all(slow.map((one) => rejection(one)));
      await eventually('each of them gets on', () => seen.size === 150);
      const started = performance.now();
      const more = await collect(store.readStream('order-1', { limit: 1 }));
      const ms = performance.now() - started;
      stop.abort(new Error('enough'));
      expect(more).to.have.lengthOf(1);
      expect(ms).to.be.below(2_000);
      expect(peer.stats.mostReads, 'streams at once').to.be.below(90);
      for (const error of await ended) expect(error).to.equal(stop.signal.reason);
    });

    it('that were ended for others while their consumers rested go on where they stopped', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 20_000 });
      const EVENTS = 500;
      await store.append(
        'order-1',
        'no_stream',
        Array.from({ length: EVENTS }, (_, n) => event('Noted', { n })),
      );
      const { connections } = store.stats();
      const readers = Array.from({ length: 80 }, async (_, n) => {
        const backward = n % 2 === 1;
        const revisions: number[] = [];
        const options = backward ? ({ direction: 'backward' } as const) : {};
        for await (const { revision } of store.readStream('order-1', options)) {
          revisions.push(revision);
          if (revisions.length % 100 === 1) await new Promise((resolve) => setTimeout(resolve, 300));
        }
        return backward ? revisions.toReversed() : revisions;
      });
      const started = performance.now();
      const all = Array.from({ length: EVENTS }, (_, n) => n);
      for (const revisions of await Promise.all(readers)) expect(revisions).to.deep.equal(all);
      expect(performance.now() - started, 'none waited in vain').to.be.below(10_000);
      expect(peer.stats.calls.read, 'and were resumed').to.be.greaterThan(80 + 32);
      expect(store.stats().connections).to.equal(connections);
    });

    it('end when the server is dead: all at the deadline, not one after the other', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 1_200 });
      peer.faults.add({ on: 'read', do: { kind: 'never-answer' } });
      const loads = await Promise.all(
        Array.from({ length: 500 }, () => timed(collect(store.readStream('order-1')))),
      );
      for (const { error } of loads) expect(error).to.be.instanceOf(StoreUnavailable);
      expect(Math.max(...loads.map(({ ms }) => ms))).to.be.below(10_000);
    });
  });

  it('identical appends at once share one answer', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer, { deadlineMs: 20_000 });
    // Of two such the server answers only the first.
    peer.faults.add({ on: 'append', do: { kind: 'late-work', ms: 100 }, stream: 'order-' });
    const given = [event('Placed')];
    const started = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 3 }, () => store.append('order-1', 'no_stream', given)),
    );
    expect(performance.now() - started).to.be.below(2_000);
    expect(answers.filter(({ duplicate }) => !duplicate)).to.have.lengthOf(1);
    expect(new Set(answers.map(({ position }) => position))).to.have.property('size', 1);
    expect(peer.stats.dropped).to.equal(0);
    expect(idsIn(peer, 'order-1')).to.deep.equal([given[0]?.id]);
  });

  it('the same append goes on by itself when the caller of the first goes away', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer, { deadlineMs: 5_000 });
    peer.faults.add({ on: 'append', do: { kind: 'late-work', ms: 300 }, stream: 'order-' });
    const controller = new AbortController();
    const given = [event('Placed')];
    const first = rejection(store.append('order-1', 'no_stream', given, { signal: controller.signal }));
    const second = store.append('order-1', 'no_stream', given);
    await eventually('it was sent', () => peer.stats.queued === 1);
    controller.abort();
    expect(await first).to.be.instanceOf(OutcomeUnknown);
    expect(await second).to.include({ revision: 0, duplicate: true });
  });
});
