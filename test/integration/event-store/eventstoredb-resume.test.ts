import { expect } from 'chai';
import type { EventStoreDbStore } from '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { LogReplaced, type Position } from '../../../src/app/log/event-store.ts';
import type { Logger } from '../../../src/app/ports.ts';
import type { ServerVersion } from '../../support/eventstoredb-peer/context.ts';
import { collect, createBench, event, rejection } from '../../support/eventstoredb-peer/fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { PLAYED_VERSIONS } from '../../support/eventstoredb-conformance/server.ts';
import { follow, numberOf, within } from './contract/fixture.ts';

const NOWHERE: Position = '1844674407370955161518446744073709551615';
const LIMIT = 2n ** 63n;

/** Where a subscription goes on after a stop, a drop, or a log that is not the one it was. */
describe('EventStoreDB adapter: resuming', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  const append = async (store: EventStoreDbStore, stream: string, count = 1): Promise<Position> => {
    const revision = await store.currentRevision(stream);
    const first = revision === 'no_stream' ? 0 : revision + 1;
    const events = Array.from({ length: count }, (_, n) => event('Counted', { n: first + n }));
    return (await store.append(stream, revision, events)).position;
  };
  const open = async (version: ServerVersion, options: Parameters<typeof bench.store>[1] = {}) => {
    const peer = await bench.peer({ version });
    return { peer, store: await bench.store(peer, options) };
  };

  for (const version of PLAYED_VERSIONS)
    describe(`on ${version}`, () => {
      it('loses no event behind a position whose record was scavenged', async () => {
        const { peer, store } = await open(version);
        await append(store, 'order-1');
        const gone = await append(store, 'sys-lease');
        await append(store, 'sys-lease');
        await append(store, 'order-1', 3);
        await store.setMaxCount('sys-lease', 1);
        peer.log.scavenge();
        const all = follow(store, { after: gone });
        const some = follow(store, { after: gone, filter: { streamPrefixes: ['order-'] } });
        expect((await all.untilEvents(4)).map(numberOf)).to.deep.equal([1, 1, 2, 3]);
        expect((await some.untilEvents(3)).map(numberOf)).to.deep.equal([1, 2, 3]);
        await Promise.all([all.stop(), some.stop()]);
      });

      it('yields each event once, from any position that it had yielded', async () => {
        const { store } = await open(version);
        for (let n = 0; n < 40; n += 1) await append(store, n % 3 === 0 ? 'order-1' : 'noise-1');
        const filter = { streamPrefixes: ['order-'] };
        const first = follow(store, { filter });
        const positions = (await first.untilEvents(14)).map((e) => e.position);
        await first.untilCaughtUp();
        await first.stop();
        for (const item of first.items) {
          const after = 'event' in item ? item.event.position : (item.position ?? '');
          const rest = follow(store, { after, filter });
          await rest.untilCaughtUp();
          await rest.stop();
          expect(rest.events().map((e) => e.position)).to.deep.equal(positions.filter((p) => p > after));
        }
      });

      it('never yields 2^64-1, and misses nothing that is appended while it is cut off', async () => {
        const { peer, store } = await open(version);
        const followers = [
          follow(store),
          follow(store, { filter: { streamPrefixes: ['order-'] } }),
          follow(store, { filter: { typePrefixes: ['Count'] } }),
        ];
        for (const follower of followers) await follower.untilCaughtUp();
        for (let round = 0; round < 3; round += 1) {
          peer.cutConnections();
          await append(store, `order-${round}`, 20);
          await append(store, `noise-${round}`, 40);
          peer.cutConnections();
        }
        for (const follower of followers) {
          await follower.until(
            'all orders',
            (f) => f.events().filter(({ stream }) => stream.startsWith('order-')).length === 60,
          );
          await follower.stop();
          for (const item of follower.items) {
            const position = 'event' in item ? item.event.position : item.position;
            expect(BigInt(position?.slice(0, 20) ?? 0) < LIMIT, `${item.kind} at ${position}`).to.equal(true);
          }
        }
      });
    });

  it('a position of 2^63 or more is none of this log', async () => {
    const { store } = await open('24.10');
    await append(store, 'order-1');
    const { signal } = new AbortController();
    for (const after of [NOWHERE, `${LIMIT}`.padStart(20, '0').repeat(2)]) {
      expect(await rejection(collect(store.subscribe({ after, signal })))).to.be.instanceOf(RangeError);
      expect(await rejection(collect(store.readAll({ after, limit: 1 })))).to.be.instanceOf(RangeError);
      expect(await rejection(store.idAt(after))).to.be.instanceOf(RangeError);
    }
  });

  describe('a log that was replaced', () => {
    it('by an older copy that was written on ends it with one sentence, and idAt finds nothing there', async () => {
      const { peer, store } = await open('23.10');
      const before = await append(store, 'order-1', 5);
      const after = await append(store, 'order-2', 20);
      const replaced = follow(store, { after, filter: { streamPrefixes: ['order-'] } });
      await replaced.untilCaughtUp();
      peer.log.goBack(20);
      for (let n = 0; n < 40; n += 1)
        peer.log.inject('noise-1', { type: 'Longer', data: Buffer.from(`{"n":"${'x'.repeat(n + 3)}"}`) });
      await peer.restart();
      const error = await within(10_000, 'the end of the subscription', replaced.ended);
      expect(error).to.be.instanceOf(LogReplaced);
      expect((error as Error).message).to.match(
        new RegExp(`^the log was replaced: .*${after}.*; what was made of it is built again$`),
      );
      expect(await store.idAt(after)).to.equal(undefined);
      expect(await store.idAt(before)).to.be.a('string');
    });

    it('by a shorter one ends it, once it stays so', async () => {
      const { peer, store } = await open('24.10', { replacedMs: 200 });
      const after = await append(store, 'order-1', 20);
      const replaced = follow(store, { after });
      await replaced.untilCaughtUp();
      peer.log.goBack(10);
      await peer.restart();
      const error = await within(10_000, 'the end of the subscription', replaced.ended);
      expect(error).to.be.instanceOf(LogReplaced);
      expect((error as Error).message).to.match(
        /^the log was replaced: the log ends at \d{40} and was read up to/,
      );
    });
  });

  describe('a node that lags', () => {
    const lagging = async () => {
      const { peer, store } = await open('23.10');
      const after = await append(store, 'order-1', 3);
      return { peer, store, after };
    };

    it('is waited for: what it receives later is not sent twice', async () => {
      const { peer, store, after } = await lagging();
      const follower = follow(store, { after });
      await follower.untilCaughtUp();
      const lift = peer.faults.add({ on: 'read', do: { kind: 'behind', records: 2 } });
      const also = peer.faults.add({ on: 'subscribe', do: { kind: 'behind', records: 2 } });
      peer.cutConnections();
      await eventually('it looked and waits', () => store.stats().resubscribed > 2);
      lift();
      also();
      await append(store, 'order-1');
      expect((await follower.untilEvents(1)).map(numberOf)).to.deep.equal([3]);
      await follower.stop();
      expect(follower.events()).to.have.lengthOf(1);
    });

    it('that sends again what was yielded is not heard', async () => {
      const { peer, store } = await lagging();
      const follower = follow(store);
      await follower.untilEvents(3);
      peer.faults.add({ on: 'subscribe', do: { kind: 'behind', records: 2 }, times: 1 });
      peer.cutConnections();
      await eventually('subscribed again', () => peer.stats.calls.subscribe === 2);
      await append(store, 'order-1');
      expect((await follower.untilEvents(4)).map(numberOf)).to.deep.equal([0, 1, 2, 3]);
      await follower.stop();
    });

    it('that sends an event where it was told that nothing comes ends it: who reads goes back', async () => {
      const { peer, store } = await lagging();
      const filter = { streamPrefixes: ['order-'] };
      const follower = follow(store, { filter });
      await follower.untilEvents(3);
      await follower.untilCaughtUp();
      peer.faults.add({ on: 'subscribe', do: { kind: 'stall' }, times: 1 });
      peer.cutConnections();
      await eventually('subscribed to a node that says nothing', () => peer.stats.calls.subscribe === 2);
      await append(store, 'order-1', 2);
      await append(store, 'noise-1', 1);
      // The next node claims the end before it has the orders.
      peer.faults.add({ on: 'subscribe', do: { kind: 'behind', records: 3 }, times: 1 });
      peer.cutConnections();
      const error = await within(10_000, 'the end of the subscription', follower.ended);
      expect(error).to.be.instanceOf(LogReplaced);
      expect((error as Error).message).to.match(/order-1@3 came at position \d{40}/);
    });
  });

  describe('asks the leader, not a node that stopped leading:', () => {
    const asked: Record<string, (store: EventStoreDbStore) => Promise<unknown>> = {
      lastPosition: (store) => store.lastPosition(),
      end: (store) => store.end(),
      idAt: (store) => store.idAt('1'.padStart(40, '0')),
      readAll: (store) => collect(store.readAll({ limit: 1 })),
      'the look before a subscription': async (store) => {
        const follower = follow(store);
        await follower.untilCaughtUp();
        await follower.stop();
      },
    };
    for (const [what, ask] of Object.entries(asked))
      it(what, async () => {
        const leader = await bench.peer();
        const old = await bench.peer({ log: leader.log });
        const store = await bench.store(old);
        const refusal = { as: 'not-leader', leader: { host: '127.0.0.1', port: leader.port } } as const;
        old.faults.add({ on: 'read', do: { kind: 'refuse', ...refusal } });
        const reads = leader.stats.calls.read;
        await ask(store);
        expect(old.faults.hits()).to.equal(1);
        expect(leader.stats.calls.read).to.be.greaterThan(reads);
      });
  });

  it('a consumer that is too slow for 23.10 is subscribed again at once', async () => {
    const { peer, store } = await open('23.10', { resubscribeMs: { first: 60_000, longest: 60_000 } });
    await append(store, 'order-1');
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const follower = follow(store, {}, async (item) => {
      if (item.kind === 'caught-up') await held;
    });
    await follower.untilCaughtUp();
    const text = 'x'.repeat(20_000);
    for (let n = 0; n < 20; n += 1)
      await store.append(
        'order-1',
        n * 20,
        Array.from({ length: 20 }, (_, m) => event('Large', { n: 1 + n * 20 + m, text })),
      );
    release();
    const events = await follower.untilEvents(401);
    expect(events.map(numberOf)).to.deep.equal(Array.from({ length: 401 }, (_, n) => n));
    expect(peer.stats.calls.subscribe, 'it was aborted').to.be.greaterThan(1);
    await follower.stop();
  });

  describe('a drop in the log', () => {
    type Line = { level: string; fields: Record<string, unknown>; message: string };
    const recorder = () => {
      const lines: Line[] = [];
      const at =
        (level: string) =>
        (fields: object, message: string): void =>
          void lines.push({ level, fields: fields as Line['fields'], message });
      const logger: Logger = {
        debug: at('debug'),
        info: at('info'),
        warn: at('warn'),
        error: at('error'),
        child: () => logger,
      };
      return { lines, logger };
    };

    it('is one line at info with the name of the subscriber and a count, however often it is tried', async () => {
      const { lines, logger } = recorder();
      const { peer, store } = await open('24.10', { logger });
      const follower = follow(store, { name: 'usage' });
      await follower.untilCaughtUp();
      for (const drops of [1, 2]) {
        await peer.goDown();
        const tries = store.stats().resubscribed;
        await eventually('it tries again and again', () => store.stats().resubscribed > tries + 3);
        await peer.restart();
        await follower.until(
          'back',
          (f) => f.items.filter(({ kind }) => kind === 'caught-up').length === drops + 1,
        );
      }
      await follower.stop();
      const told = lines.filter(({ message }) => message.startsWith('subscription'));
      expect(told.map(({ level, fields }) => [level, fields['subscriber']])).to.deep.equal([
        ['info', 'usage'],
        ['info', 'usage'],
      ]);
      expect(Number(told[1]?.fields['drops'])).to.be.greaterThan(Number(told[0]?.fields['drops']));
    });
  });

  describe('silence', () => {
    it('while the log goes on makes it subscribe again', async () => {
      const { peer, store } = await open('24.10', { silenceMs: 150 });
      await append(store, 'order-1');
      peer.faults.add({ on: 'subscribe', do: { kind: 'stall', events: 1 }, times: 1 });
      const follower = follow(store, { filter: { streamPrefixes: ['order-'] } });
      await follower.untilEvents(1);
      await append(store, 'order-1', 2);
      expect((await follower.untilEvents(3)).map(numberOf)).to.deep.equal([0, 1, 2]);
      await follower.stop();
    });

    it('while another process appends makes it subscribe again, too', async () => {
      const { peer, store } = await open('24.10', { silenceMs: 150 });
      const other = await bench.store(peer);
      await append(store, 'order-1');
      peer.faults.add({ on: 'subscribe', do: { kind: 'stall', events: 1 }, times: 1 });
      const follower = follow(store, { filter: { streamPrefixes: ['order-'] } });
      await follower.untilEvents(1);
      await append(other, 'order-1', 2);
      expect((await follower.untilEvents(3)).map(numberOf)).to.deep.equal([0, 1, 2]);
      await follower.stop();
    });

    it('of an idle log costs one small read each time for all subscriptions, and no subscription', async () => {
      const { peer, store } = await open('24.10', { silenceMs: 200 });
      await append(store, 'order-1');
      const followers = Array.from({ length: 5 }, () => follow(store));
      for (const follower of followers) await follower.untilCaughtUp();
      const { read, subscribe } = peer.stats.calls;
      const started = performance.now();
      await eventually('three looks', () => peer.stats.calls.read >= read + 3);
      const rounds = (performance.now() - started) / 200;
      expect(peer.stats.calls.read - read).to.be.at.most(rounds + 1);
      expect(peer.stats.calls.subscribe).to.equal(subscribe);
      for (const follower of followers) await follower.stop();
    });

    it('moves the position of a subscription on to the end when nothing of it came', async () => {
      const { store } = await open('24.10', { silenceMs: 150 });
      const follower = follow(store, { filter: { streamPrefixes: ['order-'] } });
      await follower.untilCaughtUp();
      const end = await append(store, 'noise-1');
      await follower.until('caught up with it', (f) =>
        f.items.some((item) => item.kind === 'caught-up' && item.position === end),
      );
      await follower.stop();
    });
  });
});
