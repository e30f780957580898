import { expect } from 'chai';
import { OutcomeUnknown, StoreUnavailable, WrongExpectedRevision } from '../../../src/app/log/event-store.ts';
import type { Behaviour } from '../../support/eventstoredb-peer/faults.ts';
import {
  collect,
  createBench,
  event,
  idsIn,
  rejection,
  timed,
} from '../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../support/eventstoredb-peer/peer.ts';
import { eventually } from '../../support/eventually.ts';

/** Each rule about appends, against a peer that breaks it. */
describe('EventStoreDB adapter: appends', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  describe('the same ids are tried again', () => {
    const cures: Record<string, Behaviour> = {
      'after a call that broke before the commit': { kind: 'drop' },
      'after a call that the server ended with OK': { kind: 'end-ok' },
      'after a connection that was cut before the commit': { kind: 'cut' },
      'after a server that was not ready': { kind: 'refuse', as: 'unavailable' },
      'after a server that was busy (an error the client does not know)': { kind: 'refuse', as: 'busy' },
      'after an unknown error': { kind: 'refuse', as: 'unknown' },
      'after a timeout of the server': { kind: 'refuse', as: 'timeout' },
    };
    for (const [when, behaviour] of Object.entries(cures))
      it(when, async () => {
        const peer = await bench.peer();
        const store = await bench.store(peer, { deadlineMs: 15_000 });
        peer.faults.add({ on: 'append', do: behaviour, stream: 'order-', times: 1 });
        const given = [event('Placed'), event('Paid')];
        const started = performance.now();
        expect(await store.append('order-1', 'no_stream', given)).to.include({ revision: 1 });
        expect(performance.now() - started, 'without waiting for the deadline').to.be.below(14_000);
        expect(idsIn(peer, 'order-1')).to.deep.equal(given.map((e) => e.id));
      });

    it('after an answer that was lost: not stored again, and nothing is read', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      for (const cut of [true, false]) {
        const stream = `order-${cut}`;
        peer.faults.add({ on: 'append', do: { kind: 'lose-answer', cut }, stream, times: 1 });
        const given = [event('Placed')];
        const { read } = peer.stats.calls;
        expect(await store.append(stream, 'no_stream', given)).to.include({ revision: 0, duplicate: true });
        expect(idsIn(peer, stream)).to.deep.equal([given[0]?.id]);
        expect(peer.stats.calls.read, 'the server knows the ids').to.equal(read);
      }
    });

    it('until the deadline, however often, and an outcome that stays open is unknown', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 2_500 });
      peer.faults.add({ on: 'append', do: { kind: 'refuse', as: 'busy' }, stream: 'order-' });
      const before = peer.stats.calls.append;
      const { error, ms } = await timed(store.append('order-1', 'no_stream', [event('Placed')]));
      expect(error).to.be.instanceOf(OutcomeUnknown);
      expect(ms, 'quick failures are not the end').to.be.within(1_900, 10_000);
      expect(peer.stats.calls.append - before).to.be.greaterThan(4);
    });

    it('over an election: connections are refused for a second and a half, and the append is stored', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 10_000 });
      await peer.goDown();
      await eventually('the cut is noticed', () => !store.stats().appendConnected);
      const away = new Promise((resolve) => setTimeout(resolve, 1_500)).then(() => peer.restart());
      const reading = store.currentRevision('order-1');
      expect(await store.append('order-1', 'no_stream', [event('Placed')])).to.include({ revision: 0 });
      expect(await reading, 'reads too').to.be.oneOf(['no_stream', 0]);
      await away;
    });
  });

  describe('a conflict may be our own earlier success', () => {
    const lost = async (peer: Peer) => {
      const store = await bench.store(peer, { deadlineMs: 1_000 });
      peer.faults.add({ on: 'append', do: { kind: 'lose-answer' }, stream: 'order-', times: 1 });
      const given = [event('Placed'), event('Paid')];
      expect(await rejection(store.append('order-1', 'no_stream', given))).to.be.instanceOf(OutcomeUnknown);
      return { store, given };
    };

    it('found by reading the tail, on a server that no longer compares ids', async () => {
      const peer = await bench.peer();
      const { store, given } = await lost(peer);
      peer.log.forgetIds(true);
      const settled = await store.append('order-1', 'no_stream', given);
      const [, last] = await collect(store.readStream('order-1'));
      expect(settled).to.deep.equal({ revision: 1, position: last?.position, duplicate: true });
    });

    it('stays unknown while the tail cannot be read', async () => {
      const peer = await bench.peer();
      const { store, given } = await lost(peer);
      peer.log.forgetIds(true);
      const lift = peer.faults.add({ on: 'read', do: { kind: 'never-answer' } });
      expect(await rejection(store.append('order-1', 'no_stream', given))).to.be.instanceOf(OutcomeUnknown);
      lift();
      expect(await store.append('order-1', 'no_stream', given)).to.include({ revision: 1, duplicate: true });
    });

    it('is a conflict when other events stand there', async () => {
      const peer = await bench.peer();
      const { store } = await lost(peer);
      peer.log.forgetIds(true);
      const others = [event('Placed'), event('Paid')];
      const error = await rejection(store.append('order-1', 'no_stream', others));
      expect(error).to.be.instanceOf(WrongExpectedRevision).and.to.include({ actual: 1 });
    });
  });

  describe('unavailable means that nothing was stored', () => {
    it('a connection that is refused until the deadline says so, once', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 1_000 });
      await peer.goDown();
      await eventually('the cut is noticed', () => !store.stats().appendConnected);
      const error = await rejection(store.append('order-1', 'no_stream', [event('Placed')]));
      expect(error).to.be.instanceOf(StoreUnavailable).and.to.include({ reason: 'down' });
      const { message } = error as Error;
      expect(message.split('append to order-1')).to.have.lengthOf(2);
      expect(message.split('ECONNREFUSED')).to.have.lengthOf(2);
      expect(message).to.not.include('no answer');
      await peer.restart();
      expect(await store.append('order-1', 'no_stream', [event('Placed')])).to.include({ duplicate: false });
    });

    it('an attempt that was sent keeps the outcome unknown, even if later ones cannot be sent', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      peer.faults.add({ on: 'append', do: { kind: 'late-work', ms: 20 }, stream: 'order-' });
      const before = peer.stats.calls.append;
      const call = rejection(store.append('order-1', 'no_stream', [event('Placed')]));
      await eventually('it was sent', () => peer.stats.calls.append > before);
      await peer.goDown();
      expect(await call).to.be.instanceOf(OutcomeUnknown);
    });

    it('an append that ended as unknown stays unknown when it is repeated in vain, and knows itself when it is not', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 1_000 });
      peer.faults.add({ on: 'append', do: { kind: 'lose-answer' }, stream: 'order-', times: 1 });
      const given = [event('Placed')];
      const call = store.append('order-1', 'no_stream', given);
      expect(await rejection(call)).to.be.instanceOf(OutcomeUnknown);
      await peer.goDown();
      await eventually('the cut is noticed', () => !store.stats().appendConnected);
      expect(await rejection(store.append('order-1', 'no_stream', given))).to.be.instanceOf(OutcomeUnknown);
      await peer.restart();
      expect(await store.append('order-1', 'no_stream', given)).to.include({ revision: 0, duplicate: true });
    });
  });
});
