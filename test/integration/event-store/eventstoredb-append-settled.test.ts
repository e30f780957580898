import { expect } from 'chai';
import {
  EventTooLarge,
  MAX_APPEND_BYTES,
  OutcomeUnknown,
  StoreUnavailable,
  StreamDeleted,
  WrongExpectedRevision,
} from '../../../src/app/log/event-store.ts';
import {
  collect,
  createBench,
  event,
  idsIn,
  rejection,
  timed,
} from '../../support/eventstoredb-peer/fixture.ts';
import { eventually } from '../../support/eventually.ts';

/** What a real server answers, and what it means for the append (docs/administration.md "EventStoreDB"). */
describe('EventStoreDB adapter: what an answer settles', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  describe('sizes', () => {
    const text = (length: number): string => 'x'.repeat(length);
    /** An event of exactly so many bytes, as a server counts them that counts most. */
    const sized = (bytes: number, type = 'Sized') => {
      const empty = event(type, { text: '' });
      const taken = Buffer.byteLength(empty.data) + Buffer.byteLength(empty.metadata) + 2 * type.length;
      return { ...empty, data: JSON.stringify({ text: text(bytes - taken) }) };
    };

    for (const version of ['23.10', '24.10', '25.0'] as const)
      it(`${version}: the limit is stored; one byte more, alone or together, is refused before anything is sent`, async () => {
        const peer = await bench.peer({ version });
        const store = await bench.store(peer, { deadlineMs: 10_000 });
        await store.append('order-1', 'no_stream', [sized(MAX_APPEND_BYTES)]);
        await store.append('order-2', 'no_stream', [sized(MAX_APPEND_BYTES - 1000), sized(1000)]);
        const { append } = peer.stats.calls;
        const alone = await rejection(store.append('order-3', 'no_stream', [sized(MAX_APPEND_BYTES + 1)]));
        expect(alone).to.be.instanceOf(EventTooLarge);
        expect((alone as Error).message)
          .to.include('event Sized')
          .and.to.include(String(MAX_APPEND_BYTES));
        const pair = [sized(MAX_APPEND_BYTES - 1000), sized(1001)];
        const together = await rejection(store.append('order-3', 'no_stream', pair));
        expect(together).to.be.instanceOf(EventTooLarge);
        expect((together as Error).message).to.include('append of 2 events to order-3');
        expect(peer.stats.calls.append).to.equal(append);
      });

    it('the names that the adapter adds to the metadata count as well', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 10_000 });
      const metadata = JSON.stringify({ correlationId: text(100), causationId: text(100) });
      const bare = sized(MAX_APPEND_BYTES - Buffer.byteLength(metadata) + 2);
      const { append } = peer.stats.calls;
      const error = await rejection(store.append('order-1', 'no_stream', [{ ...bare, metadata }]));
      expect(error).to.be.instanceOf(EventTooLarge);
      expect(peer.stats.calls.append).to.equal(append);
    });

    it('a message that would end the call of all is never sent', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 10_000 });
      const small = { ...event('E'), data: '{}', metadata: '{}' };
      const many = Array.from({ length: 150_000 }, () => small);
      const { append } = peer.stats.calls;
      const error = await rejection(store.append('order-1', 'no_stream', many));
      expect(error).to.be.instanceOf(EventTooLarge);
      expect((error as Error).message).to.include('150000 events');
      expect(peer.stats.calls.append).to.equal(append);
      await store.append('order-1', 'no_stream', [small]);
    });

    it('a server with a smaller limit, for appends or for one event, says so at once', async () => {
      const small = await bench.peer({ maxAppendSize: 2000 });
      const strict = await bench.peer({ maxAppendEventSize: 1000 });
      for (const [peer, says] of [
        [small, 'append of 2 events to order-1'],
        [strict, 'event Large has 1200 bytes; the event store takes at most 1000'],
      ] as const) {
        const store = await bench.store(peer, { deadlineMs: 10_000 });
        const { append } = peer.stats.calls;
        const call = store.append('order-1', 'no_stream', [sized(900), sized(1200, 'Large')]);
        const { error, ms } = await timed(call);
        expect(error).to.be.instanceOf(EventTooLarge);
        expect((error as Error).message).to.include(says);
        expect(ms, 'not at the deadline').to.be.below(9_000);
        expect(peer.stats.calls.append - append, 'sent once').to.equal(1);
        expect(idsIn(peer, 'order-1')).to.deep.equal([]);
      }
    });
  });

  describe('an answer without a position', () => {
    it('is an earlier success: of events that the stream bound took', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 10_000 });
      await store.setMaxCount('sys-lease', 1);
      const first = [event('Taken')];
      await store.append('sys-lease', 'no_stream', first);
      for (let n = 0; n < 3; n += 1) await store.append('sys-lease', n, [event('Renewed')]);
      const { error, ms, value } = await answer(store.append('sys-lease', 'no_stream', first));
      expect(error).to.equal(undefined);
      expect(value).to.include({ revision: 0, duplicate: true });
      expect(value?.position).to.match(/^\d{40}$/);
      expect(ms, 'not at the deadline').to.be.below(9_000);
    });

    it('is one also when the stream cannot be read, and has its position when it can', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 1_000 });
      peer.faults.add({ on: 'append', do: { kind: 'no-position' }, stream: 'order-' });
      const given = [event('Placed')];
      const appended = await store.append('order-1', 'no_stream', given);
      const [stored] = await collect(store.readStream('order-1'));
      expect(appended).to.deep.equal({ revision: 0, position: stored?.position, duplicate: true });
      peer.faults.add({ on: 'read', do: { kind: 'never-answer' } });
      expect(await store.append('order-2', 'no_stream', given)).to.include({ revision: 0, duplicate: true });
    });
  });

  describe('a stream that was deleted', () => {
    it('and begun again goes on at its old numbers; the repeat is settled by its ids', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 10_000 });
      await store.append('order-1', 'no_stream', [event('Placed'), event('Paid'), event('Gone')]);
      peer.log.softDelete('order-1');
      peer.faults.add({ on: 'append', do: { kind: 'lose-answer', cut: true }, stream: 'order-', times: 1 });
      const given = [event('Placed'), event('Paid')];
      const settled = await store.append('order-1', 'no_stream', given);
      expect(settled).to.include({ revision: 4, duplicate: true });
      expect(idsIn(peer, 'order-1').slice(3)).to.deep.equal(given.map(({ id }) => id));
      const other = await rejection(store.append('order-1', 'no_stream', [event('Placed')]));
      expect(other).to.be.instanceOf(WrongExpectedRevision).and.to.include({ actual: 4 });
    });

    it('for good takes nothing any more, and says so', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 10_000 });
      await store.append('order-1', 'no_stream', [event('Placed')]);
      peer.log.tombstone('order-1');
      const { append } = peer.stats.calls;
      const { error, ms } = await timed(store.append('order-1', 0, [event('Paid')]));
      expect(error).to.be.instanceOf(StreamDeleted).and.to.include({ stream: 'order-1' });
      expect(error).to.not.be.instanceOf(StoreUnavailable);
      expect(ms, 'not at the deadline').to.be.below(9_000);
      expect(peer.stats.calls.append - append).to.equal(1);
    });
  });

  describe('a conflict', () => {
    const strangers = {
      'a link': { type: '$>', data: Buffer.from('0@other-1') },
      'an event of a reserved type': { type: '$note' },
      'an event that is no JSON': { type: 'Strange', data: Buffer.from('\u0001') },
    };
    for (const [what, fields] of Object.entries(strangers))
      it(`with ${what} is one, and never unknown`, async () => {
        const peer = await bench.peer();
        const store = await bench.store(peer, { deadlineMs: 30_000 });
        await store.append('order-1', 'no_stream', [event('Placed')]);
        peer.log.inject('order-1', fields);
        const { error, ms } = await timed(store.append('order-1', 0, [event('Paid')]));
        expect(error).to.be.instanceOf(WrongExpectedRevision).and.to.include({ expected: 0, actual: 1 });
        expect(ms, 'not at the deadline').to.be.below(25_000);
      });

    it('is one also when nothing can be read', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 1_000 });
      await store.append('order-1', 'no_stream', [event('Placed')]);
      peer.faults.add({ on: 'read', do: { kind: 'never-answer' } });
      const error = await rejection(store.append('order-1', 'no_stream', [event('Paid')]));
      expect(error).to.be.instanceOf(WrongExpectedRevision);
    });
  });

  describe('the current revision', () => {
    it('is that of the last event that a read shows: nothing is decoded, links and `$` events are passed over', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      expect(await store.currentRevision('order-1')).to.equal('no_stream');
      await store.append('order-1', 'no_stream', [event('Placed'), event('Paid')]);
      peer.log.inject('order-1', { type: '$>', data: Buffer.from('0@other-1') });
      for (let n = 0; n < 300; n += 1) peer.log.inject('order-1', { type: '$note' });
      expect(await store.currentRevision('order-1')).to.equal(1);
      peer.log.inject('order-1', { type: 'Strange', data: Buffer.from('\u0001') });
      expect(await store.currentRevision('order-1')).to.equal(303);
      peer.log.inject('order-2', { type: '$note' });
      expect(await store.currentRevision('order-2')).to.equal('no_stream');
    });
  });

  it('an append with little time left leaves the connection of the others alone', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer, { deadlineMs: 10_000 });
    peer.faults.add({ on: 'append', do: { kind: 'late-work', ms: 600 }, stream: 'order-' });
    const { connections } = store.stats();
    const others = Array.from({ length: 20 }, (_, n) =>
      store.append(`order-${n}`, 'no_stream', [event('Placed')]),
    );
    await eventually('they are on their way', () => peer.stats.queued === 20);
    const hasty = rejection(store.append('order-hasty', 'no_stream', [event('Placed')], { deadlineMs: 80 }));
    expect(await hasty).to.be.instanceOf(OutcomeUnknown);
    for (const { revision, duplicate } of await Promise.all(others))
      expect({ revision, duplicate }).to.deep.equal({ revision: 0, duplicate: false });
    expect(store.stats()).to.include({ connections, retriedAppends: 0 });
  });
});

/** What a call was answered, and after how many milliseconds. */
const answer = async <T>(call: Promise<T>): Promise<{ value?: T; error?: unknown; ms: number }> => {
  const started = performance.now();
  try {
    const value = await call;
    return { value, ms: performance.now() - started };
  } catch (error) {
    return { error, ms: performance.now() - started };
  }
};
