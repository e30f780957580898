import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect } from 'chai';
import { OutcomeUnknown, StoreUnavailable, WrongExpectedRevision } from '../../../src/app/log/event-store.ts';
import {
  collect,
  createBench,
  event,
  idsIn,
  rejection,
  timed,
} from '../../support/eventstoredb-peer/fixture.ts';
import { createLog } from '../../support/eventstoredb-peer/log.ts';
import { eventually } from '../../support/eventually.ts';

/** Each rule about appends, against a peer that breaks it. */
describe('EventStoreDB adapter: appends', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  describe('B1: what a conflict says', () => {
    it('names the actual revision, also when the connection string turns exceptions off', async () => {
      const peer = await bench.peer();
      const store = await bench.store(`${peer.connectionString}&throwOnAppendFailure=false`);
      await store.append(
        'order-1',
        'no_stream',
        Array.from({ length: 6 }, () => event('Placed')),
      );
      const error = await rejection(store.append('order-1', 2, [event('Late')]));
      expect(error).to.be.instanceOf(WrongExpectedRevision).and.to.include({ expected: 2, actual: 5 });
    });
  });

  describe('B2: silence', () => {
    it('of the server ends at the deadline as an unknown outcome, after the same ids were tried again', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 1_500 });
      peer.faults.add({ on: 'append', do: { kind: 'never-answer' }, stream: 'order-' });
      const before = peer.stats.calls.append;
      const { error, ms } = await timed(store.append('order-1', 'no_stream', [event('Placed')]));
      expect(error).to.be.instanceOf(OutcomeUnknown);
      expect(ms).to.be.at.least(1_400);
      expect(peer.stats.calls.append - before, 'attempts').to.be.at.least(2);
      expect(store.stats().unknownOutcomes).to.equal(1);
    });

    it('is cured by a retry within the same call, on a new connection', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      peer.faults.add({ on: 'append', do: { kind: 'never-answer' }, stream: 'order-', times: 1 });
      const given = event('Placed');
      const connections = peer.stats.connected;
      expect(await store.append('order-1', 'no_stream', [given])).to.include({ revision: 0 });
      expect(idsIn(peer, 'order-1')).to.deep.equal([given.id]);
      expect(peer.stats.connected, 'the silent connection was given up').to.be.greaterThan(connections);
    });

    it('of one append among others that are answered does not cost them their connection', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 1_000 });
      peer.faults.add({ on: 'append', do: { kind: 'never-answer' }, stream: 'order-mute' });
      await store.append('order-0', 'no_stream', [event('Placed')]);
      const { connections } = store.stats();
      const mute = rejection(store.append('order-mute', 'no_stream', [event('Placed')]));
      let ended = false;
      void mute.then(() => (ended = true));
      // Until its end: a connection on which nobody asks and nobody answers is a silent one.
      let n = 0;
      await eventually('the silent append ends', async () => {
        await store.append(`other-${(n += 1)}`, 'no_stream', [event('Placed')]);
        return ended;
      });
      expect(await mute).to.be.instanceOf(OutcomeUnknown);
      await store.append('order-20', 'no_stream', [event('Placed')]);
      expect(store.stats().connections).to.equal(connections);
    });

    it('of a port that accepts and says nothing ends as unavailable: nothing was sent', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 1_000 });
      await store.append('order-1', 'no_stream', [event('Placed')]);
      peer.blackHole();
      peer.cutConnections();
      await eventually('the cut is noticed', () => !store.stats().appendConnected);
      const error = await rejection(store.append('order-1', 0, [event('Late')]));
      expect(error).to.be.instanceOf(StoreUnavailable);
    });

    it('of a connection that froze ends as an unknown outcome', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { deadlineMs: 1_000 });
      await store.append('order-1', 'no_stream', [event('Placed')]);
      const thaw = peer.blackHole();
      const late = event('Late');
      const { error, ms } = await timed(store.append('order-1', 0, [late]));
      expect(error).to.be.instanceOf(OutcomeUnknown);
      expect(ms).to.be.at.least(990);
      thaw();
      expect(await store.append('order-1', 0, [late])).to.include({ revision: 1 });
      expect(idsIn(peer, 'order-1')).to.have.lengthOf(2);
    });
  });

  describe('B3: what is sent was checked first', () => {
    for (const [what, data, metadata] of [
      ['data that is no JSON', '{"a":', '{}'],
      ['data that is no object', '[1]', '{}'],
      ['metadata that is no JSON', '{}', 'undefined'],
      ['metadata with a reserved name', '{}', '{"$correlationId":"x"}'],
    ] as const)
      it(`${what} is refused before anything leaves`, async () => {
        const peer = await bench.peer();
        const store = await bench.store(peer);
        const before = peer.stats.calls.append;
        const bad = { ...event('Placed'), data, metadata };
        expect(
          await rejection(store.append('order-1', 'no_stream', [event('Placed'), bad])),
        ).to.be.instanceOf(TypeError);
        expect(peer.stats.calls.append).to.equal(before);
      });

    it('data arrives byte for byte, as JSON; metadata gains the reserved names and loses them on the way back', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      const data = '{ "z":1.0,\n"a":"\\u00e9é","big":123456789012345678901 }';
      const metadata = '{"correlationId":"c-1","causationId":"k-1","tenant":"acme"}';
      await store.append('order-1', 'no_stream', [{ ...event('Placed'), data, metadata }]);
      await store.append('order-1', 0, [{ ...event('Placed'), metadata: '{}' }]);
      const [stored] = peer.log.all.filter((e) => e.stream === 'order-1');
      expect(Buffer.from(stored?.data ?? []).toString()).to.equal(data);
      expect(stored?.contentType).to.equal('application/json');
      expect(JSON.parse(Buffer.from(stored?.metadata ?? []).toString())).to.deep.equal({
        $correlationId: 'c-1',
        $causationId: 'k-1',
        ...(JSON.parse(metadata) as object),
      });
      const read = await collect(store.readStream('order-1'));
      expect(read.map((e) => e.metadata)).to.deep.equal([JSON.parse(metadata), {}]);
    });
  });

  describe('B4: one connection for appends, and nothing shared with other stores of the process', () => {
    it('the death of one server leaves an append that waits for another alone', async () => {
      const [one, two] = [await bench.peer(), await bench.peer()];
      const first = await bench.store(one);
      const second = await bench.store(two);
      one.faults.add({ on: 'append', do: { kind: 'never-answer' } });
      two.faults.add({ on: 'append', do: { kind: 'late-work', ms: 150 } });
      const dying = rejection(first.append('order-1', 'no_stream', [event('Placed')]));
      const waiting = second.append('order-1', 'no_stream', [event('Placed')]);
      await eventually('both wait', () => one.stats.calls.append === 2 && two.stats.calls.append === 2);
      one.cutConnections();
      expect(await dying).to.be.instanceOf(OutcomeUnknown);
      expect(await waiting).to.include({ revision: 0 });
    });

    it('appends, reads and each subscription have a TCP connection of their own', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      await store.append('order-1', 'no_stream', [event('Placed')]);
      const controller = new AbortController();
      const subscriptions = [store, store].map(async (s) => {
        for await (const item of s.subscribe({ signal: controller.signal }))
          if (item.kind === 'caught-up') return;
      });
      await Promise.all(subscriptions);
      expect(peer.stats.connected).to.equal(4);
    });
  });

  it('a connection cut under load settles every append, stores each once and rejects nothing unseen', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer, { deadlineMs: 5000 });
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const text = 'x'.repeat(20_000);
    const appends = Array.from({ length: 200 }, (_, n) =>
      store.append(`load-${n}`, 'no_stream', [event('Loaded', { text })]),
    );
    await eventually('some are stored', () => peer.stats.commits > 20);
    peer.cutConnections();
    const outcomes = await Promise.allSettled(appends);
    await new Promise(setImmediate);
    process.off('unhandledRejection', note);
    expect(unhandled).to.deep.equal([]);
    expect(outcomes.filter((o) => o.status === 'rejected')).to.deep.equal([]);
    for (let n = 0; n < 200; n += 1) expect(idsIn(peer, `load-${n}`)).to.have.lengthOf(1);
    expect(store.stats().retriedAppends).to.be.greaterThan(0);
  });

  it('an answer to nobody, and one that comes too late, are ignored', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer, { deadlineMs: 600 });
    peer.faults.add({ on: 'append', do: { kind: 'stray-answer' }, stream: 'order-stray', times: 1 });
    expect(await store.append('order-stray', 'no_stream', [event('Placed')])).to.include({ revision: 0 });
    peer.faults.add({ on: 'append', do: { kind: 'late', ms: 900 }, stream: 'order-late', times: 1 });
    peer.faults.add({ on: 'append', do: { kind: 'late', ms: 350 }, stream: 'order-other' });
    const late = rejection(store.append('order-late', 'no_stream', [event('Placed')]));
    // Answered meanwhile, so that the connection is not given up and the late answer really arrives.
    await store.append('order-other', 'no_stream', [event('Placed')]);
    expect(await late).to.be.instanceOf(OutcomeUnknown);
    for (let n = 0; n < 2; n += 1) await store.append('order-other', n, [event('Placed')]);
    expect(store.stats().connections).to.equal(2);
  });

  it('a client whose clock is minutes behind the server still appends', async () => {
    const peer = await bench.peer({ clockAheadMs: 5 * 60_000 });
    const store = await bench.store(peer);
    expect(await store.append('order-1', 'no_stream', [event('Placed')])).to.include({ revision: 0 });
  });

  it('goes to the leader when it is told to', async () => {
    const log = createLog();
    const [follower, leader] = [await bench.peer({ log }), await bench.peer({ log })];
    const store = await bench.store(follower);
    const host = '127.0.0.1';
    follower.faults.add({
      on: 'append',
      do: { kind: 'refuse', as: 'not-leader', leader: { host, port: leader.port } },
    });
    expect(await store.append('order-1', 'no_stream', [event('Placed')])).to.include({ revision: 0 });
    expect(leader.stats.commits).to.equal(1);
    expect(await store.append('order-1', 0, [event('Paid')])).to.include({ revision: 1 });
    expect(leader.stats.commits, 'and stays there').to.equal(2);
  });

  it('says which process appends, and asks for the leader: a follower would hand on to one that may be dead', async () => {
    const peer = await bench.peer();
    await bench.store(peer, { instance: 'node 7' });
    expect(peer.stats.lastAppendHeaders).to.include({
      'connection-name': 'ledger-node 7',
      'requires-leader': 'true',
    });
  });

  it('a port that speaks something else is unavailable', async () => {
    const sockets = new Set<Socket>();
    const other = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    expect(await rejection(bench.store(`esdb://127.0.0.1:${port}?tls=false`))).to.be.instanceOf(
      StoreUnavailable,
    );
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => other.close(resolve));
  });
});
