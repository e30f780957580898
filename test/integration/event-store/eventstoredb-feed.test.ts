import { expect } from 'chai';
import { createFeedLines, type FeedEnd } from '../../../src/adapters/event-store/eventstoredb/feed-line.ts';
import type { EventStoreDbStore } from '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { openThreadStore } from '../../../src/adapters/event-store/eventstoredb/thread-store.ts';
import {
  GoesOnElsewhere,
  type EventStore,
  type RecordedEvent,
  type SubscriptionItem,
} from '../../../src/app/log/event-store.ts';
import type { Peer } from '../../support/eventstoredb-peer/peer.ts';
import { createBench, event } from '../../support/eventstoredb-peer/fixture.ts';
import { recordingLogger, silentLogger } from '../../support/loggers.ts';
import { eventually } from '../../support/eventually.ts';
import { follow, numberOf } from './contract/fixture.ts';

/** Threads of one process are played by stores in this one: what lies between them are ports in both cases. */
describe('EventStoreDB adapter: one subscription for all readers of a process', () => {
  const bench = createBench();
  let lines: ReturnType<typeof createFeedLines>;
  const leaving: (() => Promise<unknown>)[] = [];
  beforeEach(() => {
    lines = createFeedLines();
  });
  afterEach(async () => {
    for (const leave of leaving.splice(0)) await leave();
    lines.close();
    await bench.clean();
  });

  const SMALL: FeedEnd['bounds'] = { entries: 40, weight: 1e9 };
  const opened = async (peer: Peer, hosts: boolean, more = {}): Promise<EventStoreDbStore> =>
    bench.store(peer, { feed: { ...lines.open(hosts), bounds: SMALL }, ...more });
  const append = async (store: EventStore, from: number, count: number, stream = 'order-1') =>
    store.append(
      stream,
      from === 0 ? 'no_stream' : from - 1,
      Array.from({ length: count }, (_, n) => event('Counted', { n: from + n })),
    );
  const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
  const followed = (...[store, options, handle]: Parameters<typeof follow>) => {
    const follower = follow(store, options, handle);
    leaving.push(() => follower.stop());
    return follower;
  };
  const oneLeft = (peer: Peer) =>
    eventually('one subscription is left', () => peer.stats.openSubscriptions === 1);

  it('reads the log once for all, whatever they read of it and where they began', async () => {
    const peer = await bench.peer();
    const [host, other] = [await opened(peer, true), await opened(peer, false)];
    await append(other, 0, 30);
    const { position } = await append(other, 30, 10);
    const all = followed(host);
    const afar = followed(other);
    const orders = followed(other, { filter: { streamPrefixes: ['order-'] } });
    const late = followed(other, { after: position });
    const ofType = followed(host, { filter: { typePrefixes: ['Counted'] } });
    for (const each of [all, afar, orders, late, ofType]) await each.untilCaughtUp();
    await oneLeft(peer);
    const sent = peer.stats.eventsSent;
    await append(other, 0, 20, 'note-1');
    await append(other, 40, 10);
    for (const each of [all, afar, ofType]) await each.untilEvents(70);
    await orders.untilEvents(50);
    expect((await late.untilEvents(30)).map(numberOf)).to.deep.equal([
      ...upTo(20),
      ...upTo(10).map((n) => 40 + n),
    ]);
    expect(orders.events().map(numberOf)).to.deep.equal(upTo(50));
    expect(peer.stats.eventsSent - sent, 'sent by the server').to.equal(30);
    expect(peer.stats.openSubscriptions).to.equal(1);
  });

  it('tells a reader that the log went on without anything for it', async () => {
    const peer = await bench.peer();
    const [host, other] = [await opened(peer, true), await opened(peer, false)];
    const first = followed(host);
    const items: SubscriptionItem[] = [];
    const none = followed(
      other,
      { filter: { typePrefixes: ['Nothing'] } },
      async (item) => void items.push(item),
    );
    await Promise.all([first.untilCaughtUp(), none.untilCaughtUp()]);
    await oneLeft(peer);
    const { position } = await append(other, 0, 3);
    await eventually('told', () =>
      items.some((item) => item.kind === 'checkpoint' && item.position === position),
    );
  });

  it('goes on for others when one stands still, who then misses and repeats nothing', async () => {
    const peer = await bench.peer();
    const [host, other] = [await opened(peer, true), await opened(peer, false)];
    const held = Promise.withResolvers<void>();
    const quick = followed(host);
    let handled = 0;
    const slow = followed(other, {}, async (item) => {
      if (item.kind === 'event') handled += 1;
      if (handled === 5) await held.promise;
    });
    await Promise.all([quick.untilCaughtUp(), slow.untilCaughtUp()]);
    await oneLeft(peer);
    for (let n = 0; n < 1000; n += 20) await append(other, n, 20);
    expect((await quick.untilEvents(1000)).map(numberOf)).to.deep.equal(upTo(1000));
    expect(handled).to.equal(5);
    held.resolve();
    expect((await slow.untilEvents(1000)).map(numberOf)).to.deep.equal(upTo(1000));
    await oneLeft(peer);
    await append(other, 1000, 5);
    expect((await slow.untilEvents(1005)).map(numberOf)).to.deep.equal(upTo(1005));
  });

  it('catches up at full speed beside one that stood still from the beginning', async () => {
    const peer = await bench.peer();
    const [host, other] = [await opened(peer, true), await opened(peer, false)];
    for (let n = 0; n < 1000; n += 20) await append(other, n, 20);
    const held = Promise.withResolvers<void>();
    let handled = 0;
    const slow = followed(host, {}, async (item) => {
      if (item.kind === 'event') handled += 1;
      if (handled === 5) await held.promise;
    });
    const quick = followed(host);
    expect((await quick.untilEvents(1000)).map(numberOf)).to.deep.equal(upTo(1000));
    expect(handled).to.equal(5);
    held.resolve();
    expect((await slow.untilEvents(1000)).map(numberOf)).to.deep.equal(upTo(1000));
  });

  it('waits for a reader that goes on in another thread, and reads the log once', async () => {
    const peer = await bench.peer();
    const [host, other] = [await opened(peer, true), await opened(peer, false)];
    for (let n = 0; n < 400; n += 20) await append(other, n, 20);
    const beside = followed(host, { name: 'beside' });
    const elsewhere = new AbortController();
    const taken: RecordedEvent[] = [];
    for await (const item of host.subscribe({ signal: elsewhere.signal, name: 'moving' })) {
      if (item.kind !== 'event' || elsewhere.signal.aborted) continue;
      taken.push(item.event);
      if (taken.length === 30) elsewhere.abort(new GoesOnElsewhere());
    }
    await beside.until('read what there is', ({ items }) => items.length >= 40);
    const after = taken.at(-1)?.position ?? '';
    const moved = followed(other, { after, name: 'moving' });
    expect((await moved.untilEvents(370)).map(numberOf)).to.deep.equal(upTo(400).slice(30));
    expect((await beside.untilEvents(400)).map(numberOf)).to.deep.equal(upTo(400));
    expect(peer.stats.calls.subscribe).to.equal(1);
    const ours = peer.log.all.filter(({ stream }) => !stream.startsWith('$'));
    expect(peer.stats.eventsSubscribed, 'sent by the server').to.equal(ours.length);
  });

  it('waits for those who are about to read, so that all who start together read the log once', async () => {
    const peer = await bench.peer();
    const other = await opened(peer, false);
    for (let n = 0; n < 400; n += 20) await append(other, n, 20);
    const feed = { ...lines.open(true), bounds: SMALL };
    const { connectionString } = peer;
    const open = () => openThreadStore({ connectionString, instance: 'test', feed, logger: silentLogger });
    const [one, two] = await Promise.all([open(), open()]);
    const first = followed(one);
    await first.until('read what there is', ({ items }) => items.length >= 40);
    const second = followed(two);
    for (const each of [first, second])
      expect((await each.untilEvents(400)).map(numberOf)).to.deep.equal(upTo(400));
    expect(peer.stats.calls.subscribe).to.equal(1);
  });

  it('lets one in who comes late, and tells it when it has reached the end', async () => {
    const peer = await bench.peer();
    const [host, other] = [await opened(peer, true), await opened(peer, false)];
    const first = followed(host);
    await first.untilCaughtUp();
    await append(other, 0, 20);
    await first.untilEvents(20);
    const late = [followed(host), followed(other), followed(other, { filter: { typePrefixes: ['None'] } })];
    for (const each of late) await each.untilCaughtUp();
    expect(late.map((each) => each.events().length)).to.deep.equal([20, 20, 0]);
    expect(peer.stats.calls.subscribe).to.equal(1);
    await append(other, 20, 5);
    expect((await late[1]?.untilEvents(25))?.map(numberOf)).to.deep.equal(upTo(25));
  });

  it('loses and repeats nothing when its subscription drops, and names all who read from it', async () => {
    const peer = await bench.peer();
    const logger = recordingLogger();
    const [host, other] = [await opened(peer, true, { logger }), await opened(peer, false)];
    const readers = [followed(host, { name: 'usage' }), followed(other, { name: 'resources' })];
    for (const each of readers) await each.untilCaughtUp();
    await oneLeft(peer);
    await append(other, 0, 20);
    for (const each of readers) await each.untilEvents(20);
    peer.cutConnections();
    for (let n = 20; n < 200; n += 20) await append(other, n, 20);
    for (const each of readers) expect((await each.untilEvents(200)).map(numberOf)).to.deep.equal(upTo(200));
    expect(logger.lines.find(({ fields }) => 'drops' in fields)?.fields).to.include({
      subscriber: 'resources, usage',
    });
    await oneLeft(peer);
  });

  it('is taken on by another one when its thread ends', async () => {
    const peer = await bench.peer();
    const [host, other] = [await opened(peer, true), await opened(peer, false)];
    const first = followed(host);
    const afar = followed(other);
    await Promise.all([first.untilCaughtUp(), afar.untilCaughtUp()]);
    await oneLeft(peer);
    await append(other, 0, 10);
    await afar.untilEvents(10);
    await first.stop();
    await host.close();
    await append(other, 10, 10);
    expect((await afar.untilEvents(20)).map(numberOf)).to.deep.equal(upTo(20));
    const next = await opened(peer, true);
    const second = followed(next);
    await second.untilCaughtUp();
    await oneLeft(peer);
    await append(other, 20, 10);
    expect((await afar.untilEvents(30)).map(numberOf)).to.deep.equal(upTo(30));
    expect((await second.untilEvents(30)).map(numberOf)).to.deep.equal(upTo(30));
  });
});
