import { expect } from 'chai';
import { CorruptEvent } from '../../../src/adapters/event-store/eventstoredb/convert.ts';
import { LogDamaged } from '../../../src/app/log/event-store.ts';
import type { Logger } from '../../../src/app/ports.ts';
import { collect, createBench, event, rejection } from '../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../support/eventstoredb-peer/peer.ts';
import { follow } from './contract/fixture.ts';

/** A log to which others write, too, and whose server keeps records of its own in it. */
describe('EventStoreDB adapter: a log that is shared', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  const CATEGORIES = ['order', 'sys'];
  const BROKEN = { type: 'Strange', contentType: 'application/octet-stream', data: Buffer.from([0, 255]) };
  const LINK = { type: '$>', contentType: 'application/octet-stream', data: Buffer.from('0@order-9') };

  /** Ours, theirs with and without JSON, ours. */
  const shared = async () => {
    const lines: string[] = [];
    const note = (_fields: object, message: string): void => void lines.push(message);
    const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
    const peer = await bench.peer();
    const store = await bench.store(peer, { categories: CATEGORIES, logger });
    await store.append('order-1', 'no_stream', [event('Placed')]);
    for (const stream of ['other-app-2', 'orders', 'shop-1']) {
      peer.log.inject(stream, BROKEN);
      peer.log.inject(stream, { type: 'Placed' });
    }
    await store.append('order-1', 0, [event('Shipped')]);
    return { peer, store, passed: () => lines.filter((line) => line.startsWith('passing over')) };
  };
  const OURS = ['order-1@0', 'order-1@1'];
  const named = ({ stream, revision }: { stream: string; revision: number }) => `${stream}@${revision}`;

  describe('events of others', () => {
    it('are in no read of the log; they are counted, and said once', async () => {
      const { store, passed } = await shared();
      for (const times of [1, 2]) {
        expect((await collect(store.readAll({ limit: 10 }))).map(named)).to.deep.equal(OURS);
        expect(store.stats().foreignEvents).to.equal(6 * times);
      }
      expect(passed()).to.have.lengthOf(1);
    });

    it('are in no subscription, whatever its filter; the server leaves them out where a filter says so', async () => {
      const { peer, store } = await shared();
      const filters = [
        undefined,
        { typePrefixes: ['Placed', 'Shipped', 'Strange'] },
        { streamPrefixes: ['o'] },
      ];
      for (const filter of filters) {
        const sent = peer.stats.eventsSent;
        const follower = follow(store, filter === undefined ? {} : { filter });
        await follower.untilCaughtUp();
        await follower.stop();
        expect(follower.items.map(({ kind }) => kind)).to.not.include('unreadable');
        expect(follower.events().map(named)).to.deep.equal(OURS);
        // Two events, the look at the end and the one before the position.
        if (filter === undefined) expect(peer.stats.eventsSent - sent).to.be.at.most(4);
      }
      expect(store.stats().foreignEvents).to.be.greaterThan(0);
    });

    it('are not its last position, and are walked over once', async () => {
      const { peer, store } = await shared();
      const last = (await collect(store.readStream('order-1'))).at(-1)?.position;
      for (let n = 0; n < 1000; n += 1) peer.log.inject('shop-1', { type: 'Sold' });
      const other = await bench.store(peer, { categories: CATEGORIES });
      expect(await other.lastPosition()).to.equal(last);
      const sent = peer.stats.eventsSent;
      expect(await other.lastPosition()).to.equal(last);
      expect(peer.stats.eventsSent - sent).to.be.at.most(8);
    });

    it('cannot be written by mistake', async () => {
      const { store } = await shared();
      const error = await rejection(store.append('other-1', 'no_stream', [event('Placed')]));
      expect(error).to.be.instanceOf(TypeError);
    });
  });

  it('an event of ours that cannot be read says where it is, wherever it is read', async () => {
    const { peer, store } = await shared();
    peer.log.inject('order-2', BROKEN);
    const follower = follow(store);
    await follower.untilCaughtUp();
    await follower.stop();
    const [unreadable] = follower.items.flatMap((item) => (item.kind === 'unreadable' ? [item.event] : []));
    expect(unreadable).to.include({ stream: 'order-2', revision: 0, type: 'Strange' });
    for (const read of [store.readStream('order-2'), store.readAll({ limit: 10 })]) {
      const error = await rejection(collect(read));
      expect(error).to.be.instanceOf(CorruptEvent).and.instanceOf(LogDamaged);
      expect((error as LogDamaged).at).to.deep.equal({ event: 'order-2@0', position: unreadable?.position });
      expect((error as Error).message)
        .to.include('order-2')
        .and.include(unreadable?.position ?? 'none');
    }
  });

  describe("the store's own records in one of our streams", () => {
    const linked = async (records: readonly Parameters<Peer['log']['inject']>[1][]) => {
      const peer = await bench.peer();
      const store = await bench.store(peer, { categories: CATEGORIES });
      await store.append('order-1', 'no_stream', [event('Placed'), event('Paid')]);
      for (const record of records) peer.log.inject('order-1', record);
      return { peer, store };
    };
    const SYSTEM = { type: '$Noted' };

    for (const [what, record] of Object.entries({ 'a link': LINK, 'a system event': SYSTEM }))
      it(`${what}: streams, log and subscriptions show the same events`, async () => {
        const { store } = await linked([record]);
        await store.append('order-1', 2, [event('Shipped')]);
        const expected = ['order-1@0', 'order-1@1', 'order-1@3'];
        expect((await collect(store.readStream('order-1'))).map(named)).to.deep.equal(expected);
        const backward = await collect(store.readStream('order-1', { direction: 'backward' }));
        expect(backward.map(named)).to.deep.equal(expected.toReversed());
        expect((await collect(store.readAll({ limit: 10 }))).map(named)).to.deep.equal(expected);
        for (const filter of [undefined, { streamPrefixes: ['order-'] }]) {
          const follower = follow(store, filter === undefined ? {} : { filter });
          await follower.untilEvents(3);
          await follower.stop();
          expect(follower.events().map(named)).to.deep.equal(expected);
        }
      });

    it('leave holes in a stretch that is read forward, and do not count backward', async () => {
      const { store } = await linked([LINK, SYSTEM, LINK]);
      await store.append('order-1', 4, [event('Shipped')]);
      const forward = await collect(store.readStream('order-1', { from: 1, limit: 3 }));
      expect(forward.map(named)).to.deep.equal(['order-1@1']);
      const newest = await collect(store.readStream('order-1', { direction: 'backward', limit: 2 }));
      expect(newest.map(named)).to.deep.equal(['order-1@5', 'order-1@1']);
      const before = await collect(store.readStream('order-1', { direction: 'backward', from: 4, limit: 1 }));
      expect(before.map(named)).to.deep.equal(['order-1@1']);
    });

    it('are given to who asks for them, as events without data', async () => {
      const { store } = await linked([LINK]);
      await store.append('order-1', 2, [event('Shipped')]);
      const follower = follow(store, { filter: { alsoStoreRecords: true } });
      await follower.until('four', (f) => f.events().filter((e) => e.stream === 'order-1').length === 4);
      await follower.stop();
      const ofOrder = follower.events().filter((e) => e.stream === 'order-1');
      expect(ofOrder[2]).to.deep.include({ revision: 2, type: '$>', data: {}, metadata: {} });
      expect(new Set(follower.events().map((e) => e.stream))).to.deep.equal(new Set(['order-1']));
    });
  });
});
