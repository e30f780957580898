import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import type { EventStoreDbStore } from '../../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import type { EventStore, Position, SubscriptionItem } from '../../../../src/app/log/event-store.ts';
import type { Behaviour } from '../../../support/eventstoredb-peer/faults.ts';
import { createBench, event } from '../../../support/eventstoredb-peer/fixture.ts';
import { createLog } from '../../../support/eventstoredb-peer/log.ts';
import { follow, numberOf } from '../contract/fixture.ts';
import { eventually } from '../../../support/eventually.ts';

/** Each rule about subscriptions, against a peer that breaks it. */
describe('EventStoreDB adapter: subscriptions', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  const append = async (store: EventStore, count: number, stream = 'order-1'): Promise<Position> => {
    const revision = await store.currentRevision(stream);
    const first = revision === 'no_stream' ? 0 : revision + 1;
    const events = Array.from({ length: count }, (_, n) => event('Counted', { n: first + n }));
    return (await store.append(stream, revision, events)).position;
  };
  const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
  /** Follows the whole log; `stop` also checks that nothing came twice. */
  const followed = (store: EventStoreDbStore, options: Parameters<typeof follow>[1] = {}) =>
    follow(store, options);

  it('A: leaving a subscription ends it at the server', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    await append(store, 50);
    const { signal } = new AbortController();
    for await (const item of store.subscribe({ signal })) if (item.kind === 'event') break;
    await eventually('no subscription is open', () => peer.stats.openSubscriptions === 0);
    expect(store.stats().openSubscriptions).to.equal(0);
    expect(getEventListeners(signal, 'abort')).to.have.lengthOf(0);
  });

  it('C: a checkpoint stands behind every event it covers, however slow the consumer', async () => {
    const peer = await bench.peer({ defaultWindow: 8 });
    const store = await bench.store(peer);
    for (let n = 0; n < 10; n += 1) {
      await append(store, 10);
      await append(store, 20, 'noise-1');
    }
    const items: SubscriptionItem[] = [];
    const follower = follow(store, { filter: { streamPrefixes: ['order-'] } }, async (item) => {
      items.push(item);
      await new Promise(setImmediate);
    });
    await follower.untilCaughtUp();
    await follower.stop();
    let seen = 0;
    for (const item of items) {
      if (item.kind === 'event') seen += 1;
      if (item.kind !== 'checkpoint') continue;
      const covered = peer.log.all.filter(
        (e) => e.stream === 'order-1' && String(e.offset).padStart(20, '0') <= item.position.slice(0, 20),
      );
      expect(seen, `events before the checkpoint at ${item.position}`).to.equal(covered.length);
    }
    expect(items.filter((item) => item.kind === 'checkpoint').length).to.be.greaterThan(5);
    expect(items.at(-1)?.kind, 'caught-up comes last').to.equal('caught-up');
  });

  it('D: the next event waits until the last one was handled, and the server waits with it', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    const data = { text: 'x'.repeat(2000) };
    for (let n = 0; n < 20; n += 1)
      await store.append(
        'order-1',
        n === 0 ? 'no_stream' : n * 200 - 1,
        Array.from({ length: 200 }, () => event('Large', data)),
      );
    const controller = new AbortController();
    let [running, most, handled] = [0, 0, 0];
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const consuming = (async () => {
      for await (const item of store.subscribe({ signal: controller.signal })) {
        if (item.kind !== 'event') continue;
        running += 1;
        most = Math.max(most, running);
        if (handled === 10) await held;
        await new Promise(setImmediate);
        running -= 1;
        handled += 1;
        if (handled === 4000) return;
      }
    })();
    await eventually('the consumer is stuck', () => handled === 10);
    await store.ping();
    await store.ping();
    expect(peer.stats.eventsSent, 'sent while the consumer is stuck').to.be.below(2000);
    release();
    await consuming;
    expect(most).to.equal(1);
    controller.abort();
  });

  describe('E–H: whatever ends it, it goes on after the last position, without loss or repetition', () => {
    const drops: Record<string, Behaviour> = {
      'an error': { kind: 'drop', events: 7 },
      'an error that is not about the connection': { kind: 'drop', events: 7, code: 13 },
      'an end with OK': { kind: 'end-ok', events: 7 },
      'a cut connection': { kind: 'cut', events: 7 },
      'an end before the first event': { kind: 'end-ok', events: 0 },
      'silence instead of a confirmation': { kind: 'never-answer' },
      'a server that is not ready': { kind: 'refuse', as: 'unavailable' },
      'an unknown error': { kind: 'refuse', as: 'unknown' },
    };
    for (const [what, behaviour] of Object.entries(drops))
      it(what, async () => {
        const peer = await bench.peer();
        const store = await bench.store(peer, behaviour.kind === 'never-answer' ? { deadlineMs: 300 } : {});
        await append(store, 20);
        peer.faults.add({ on: 'subscribe', do: behaviour, times: 2 });
        const follower = followed(store);
        await follower.untilEvents(20);
        await append(store, 10);
        expect((await follower.untilEvents(30)).map(numberOf)).to.deep.equal(upTo(30));
        await follower.stop();
        expect(store.stats().resubscribed).to.equal(2);
      });

    it('a server that is down when it begins, and one that restarts later', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      await append(store, 5);
      await peer.goDown();
      const follower = followed(store);
      await eventually('it tries again', () => store.stats().resubscribed > 2);
      await peer.restart();
      await follower.untilEvents(5);
      await peer.restart();
      await append(store, 5);
      expect((await follower.untilEvents(10)).map(numberOf)).to.deep.equal(upTo(10));
      await follower.stop();
    });

    it('a follower that names the leader', async () => {
      const log = createLog();
      const [follower, leader] = [await bench.peer({ log }), await bench.peer({ log })];
      const store = await bench.store(follower);
      await append(store, 5);
      const behaviour = {
        kind: 'refuse',
        as: 'not-leader',
        leader: { host: '127.0.0.1', port: leader.port },
      } as const;
      follower.faults.add({ on: 'subscribe', do: behaviour });
      const following = followed(store);
      expect((await following.untilEvents(5)).map(numberOf)).to.deep.equal(upTo(5));
      await following.stop();
      expect(leader.stats.calls.subscribe).to.equal(1);
    });

    it('a drop behind checkpoints resumes one record before the checkpoint, not at the last event', async () => {
      const peer = await bench.peer({ defaultWindow: 8 });
      const store = await bench.store(peer);
      await append(store, 1, 'wanted-1');
      const follower = followed(store, { filter: { streamPrefixes: ['wanted-'] } });
      await follower.untilCaughtUp();
      await append(store, 100, 'noise-1');
      await follower.until('checkpoints', (f) => f.items.filter((i) => i.kind === 'checkpoint').length > 8);
      peer.cutConnections();
      await eventually('subscribed again', () => peer.stats.subscribedFrom.length === 2);
      const [wanted] = follower.events();
      const resumedFrom = peer.log.all.findIndex(
        ({ offset }) => `${offset}` === peer.stats.subscribedFrom[1],
      );
      const resumedAt = String(peer.log.all[resumedFrom + 1]?.offset).padStart(20, '0');
      const checkpoints = follower.items.flatMap((i) =>
        i.kind === 'checkpoint' ? [i.position.slice(0, 20)] : [],
      );
      expect(checkpoints).to.include(resumedAt);
      expect(resumedAt > (wanted?.position.slice(0, 20) ?? ''), 'behind the last event').to.equal(true);
      await append(store, 1, 'wanted-1');
      expect((await follower.untilEvents(2)).map(numberOf)).to.deep.equal([0, 1]);
      await follower.stop();
    });

    it('says caught-up again after a drop', async () => {
      const peer = await bench.peer();
      const store = await bench.store(peer);
      await append(store, 3);
      const follower = followed(store);
      await follower.untilCaughtUp();
      peer.cutConnections();
      await follower.until(
        'caught-up twice',
        (f) => f.items.filter((i) => i.kind === 'caught-up').length === 2,
      );
      await follower.stop();
      expect(follower.events()).to.have.lengthOf(3);
    });
  });

  it('caught-up names the end of the log, also when nothing in it matched', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    const end = await append(store, 3);
    const follower = followed(store, { filter: { streamPrefixes: ['nothing-'] } });
    await follower.untilCaughtUp();
    await follower.stop();
    expect(follower.items).to.deep.equal([{ kind: 'caught-up', position: end }]);
  });

  it("yields none of the store's own events, and nothing for an empty list of prefixes", async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    const nothing = followed(store, { filter: { streamPrefixes: [] } });
    const everything = followed(store);
    const links = followed(store, { filter: { streamPrefixes: ['order-'] } });
    peer.log.inject('order-1', { type: '$>', data: Buffer.from('0@order-2'), contentType: 'text/plain' });
    peer.log.inject('$et-Counted', { type: 'Counted' });
    await append(store, 2, 'order-2');
    await everything.untilEvents(2);
    await links.untilEvents(2);
    await Promise.all([nothing.stop(), everything.stop(), links.stop()]);
    for (const follower of [everything, links])
      expect(follower.events().map((e) => e.stream)).to.deep.equal(['order-2', 'order-2']);
    expect(nothing.events()).to.deep.equal([]);
  });

  it('an event that cannot be read is yielded as unreadable, with its place, and what follows comes', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    await append(store, 2);
    peer.log.inject('order-1', { type: 'Strange', data: Buffer.from('{') });
    const last = await append(store, 1, 'order-2');
    const follower = followed(store);
    await follower.untilEvents(3);
    await follower.stop();
    const [unreadable, ...more] = follower.items.flatMap((item) =>
      item.kind === 'unreadable' ? [item.event] : [],
    );
    expect(more).to.deep.equal([]);
    expect(unreadable).to.include({ stream: 'order-1', revision: 2, type: 'Strange' });
    expect(unreadable?.reason).to.equal('its data is not a JSON object');
    expect((unreadable?.position ?? last) < last).to.equal(true);
  });

  it('a message without an event id is a drop, not the end of the process', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    await append(store, 2);
    const follower = followed(store);
    await follower.untilEvents(2);
    peer.log.inject('order-1', { type: 'Strange', id: '' });
    await eventually('it drops', () => store.stats().resubscribed > 1);
    await follower.stop();
  });

  it('hundreds of drops leave no listener, connection or subscription behind', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer, { resubscribeMs: { first: 0.5, longest: 0.5 } });
    await append(store, 2);
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on('warning', note);
    const controller = new AbortController();
    const filter = { streamPrefixes: ['order-'] };
    const following = (async () => {
      for await (const _ of store.subscribe({ signal: controller.signal, filter }));
    })();
    const drops = async (behaviour: Behaviour, rounds: number): Promise<number> => {
      const goal = store.stats().resubscribed + rounds;
      peer.faults.clear();
      peer.faults.add({ on: 'subscribe', do: behaviour });
      peer.cutConnections();
      await eventually(`${rounds} drops`, () => store.stats().resubscribed >= goal, 15_000);
      return getEventListeners(controller.signal, 'abort').length;
    };
    const early = await drops({ kind: 'drop', events: 0 }, 30);
    const late = [
      await drops({ kind: 'drop', events: 0 }, 80),
      await drops({ kind: 'end-ok', events: 0 }, 80),
      await drops({ kind: 'drop', events: 0, code: 13 }, 40),
    ];
    expect(Math.max(...late)).to.be.at.most(Math.max(early, 3));
    expect(peer.stats.openSubscriptions).to.be.at.most(1);
    expect(peer.stats.connections, 'appends, reads, this one and one that is closing').to.be.at.most(4);
    controller.abort();
    await following;
    process.off('warning', note);
    expect(warnings.map(String)).to.deep.equal([]);
    expect(getEventListeners(controller.signal, 'abort')).to.have.lengthOf(0);
  });
});
