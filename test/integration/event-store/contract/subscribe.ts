import { expect } from 'chai';
import {
  reachedBy,
  type Position,
  type RecordedEvent,
  type SubscriptionItem,
} from '../../../../src/app/log/event-store.ts';
import { all, event, follow, numbered, numberOf, within, type Contract } from './fixture.ts';

const count = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** Events in log order, each once; a checkpoint stands behind all events up to its position and before later ones. */
const expectOrdered = (items: readonly SubscriptionItem[]): void => {
  let reached: Position = '';
  for (const item of items) {
    if (item.kind === 'event') {
      expect(item.event.position > reached, `event at ${item.event.position} after ${reached}`).to.equal(
        true,
      );
      reached = item.event.position;
    } else if (item.kind === 'checkpoint') {
      expect(item.position >= reached, `checkpoint at ${item.position} after ${reached}`).to.equal(true);
      reached = item.position;
    }
  }
};

export const subscribeContract = ({ store, stream, prefix, type }: Contract): void => {
  describe('subscribe', () => {
    /** A place in the log before which nothing of this test lies. */
    const begin = async (): Promise<Position> =>
      (await store().append(stream('begin', 'mark'), 'no_stream', [event(type('Mark'))])).position;
    const ofType = (events: RecordedEvent[], name: string): RecordedEvent[] =>
      events.filter((e) => e.type === type(name));

    it('yields what is in the log, says caught-up, then yields what is appended', async () => {
      const after = await begin();
      await store().append(stream('a'), 'no_stream', numbered(type('Numbered'), 3));
      const follower = follow(store(), { after });
      await follower.untilCaughtUp();
      const before = follower.items.findIndex((item) => item.kind === 'caught-up');
      const old = follower.items.slice(0, before).flatMap((i) => (i.kind === 'event' ? [i.event] : []));
      expect(ofType(old, 'Numbered').map(numberOf)).to.deep.equal([0, 1, 2]);
      await store().append(stream('b'), 'no_stream', numbered(type('Numbered'), 2, 3));
      await follower.until('5 events', (f) => ofType(f.events(), 'Numbered').length === 5);
      await follower.stop();
      expect(ofType(follower.events(), 'Numbered').map(numberOf)).to.deep.equal(count(5));
      expectOrdered(follower.items);
    });

    it('says caught-up only behind everything that was there, however much', async () => {
      const after = await begin();
      for (let n = 0; n < 3; n += 1)
        await store().append(
          stream('much'),
          n === 0 ? 'no_stream' : n * 400 - 1,
          numbered(type('Much'), 400, n * 400),
        );
      const follower = follow(store(), { after, filter: { streamPrefixes: [stream('much')] } });
      await follower.untilCaughtUp();
      await follower.stop();
      const before = follower.items.findIndex((item) => item.kind === 'caught-up');
      expect(follower.items.slice(0, before).filter((item) => item.kind === 'event')).to.have.lengthOf(1200);
    });

    it('says caught-up with the position reached, also when nothing matched', async () => {
      const after = await begin();
      const last = await store().append(stream('a'), 'no_stream', numbered(type('Numbered'), 2));
      const follower = follow(store(), { after, filter: { streamPrefixes: [prefix('nothing')] } });
      await follower.untilCaughtUp();
      await follower.stop();
      expect(follower.events()).to.deep.equal([]);
      const caughtUp = follower.items.find((item) => item.kind === 'caught-up');
      expect((caughtUp?.position ?? after) >= after).to.equal(true);
      expect((caughtUp?.position ?? '') <= ((await store().lastPosition()) ?? last.position)).to.equal(true);
    });

    it('yields the same events that readAll and readStream return', async () => {
      const after = await begin();
      const { position } = await store().append(stream('a'), 'no_stream', [
        event(type('Numbered'), { n: 1 }, { tenant: 'acme' }),
      ]);
      const follower = follow(store(), { after, filter: { streamPrefixes: [stream('a')] } });
      const [subscribed] = await follower.untilEvents(1);
      await follower.stop();
      const [fromStream] = await all(store().readStream(stream('a')));
      // Others may write to the same log: what lies between is theirs.
      let fromAll: RecordedEvent | undefined;
      for await (const read of store().readAll({ after, limit: Number.MAX_SAFE_INTEGER })) {
        if (read.id === fromStream?.id) fromAll = read;
        if (read.position >= position) break;
      }
      expect(subscribed).to.deep.equal(fromStream);
      expect(subscribed).to.deep.equal(fromAll);
    });

    it('continues after any position it yielded, without loss or repetition', async () => {
      const after = await begin();
      await store().append(stream('a'), 'no_stream', numbered(type('Numbered'), 10));
      const filter = { streamPrefixes: [prefix()] };
      const first = follow(store(), { after, filter });
      const events = await first.untilEvents(10);
      await first.stop();
      const middle = events[4];
      if (middle === undefined) throw new Error('ten events were seen');
      const second = follow(store(), { after: middle.position, filter });
      expect((await second.untilEvents(5)).map(numberOf)).to.deep.equal([5, 6, 7, 8, 9]);
      await second.stop();
    });

    it('filters by stream prefixes', async () => {
      const after = await begin();
      const follower = follow(store(), {
        after,
        filter: { streamPrefixes: [prefix('red'), prefix('blue')] },
      });
      await store().append(stream('1', 'red'), 'no_stream', [event(type('Numbered'), { n: 0 })]);
      await store().append(stream('1', 'green'), 'no_stream', [event(type('Numbered'), { n: 99 })]);
      await store().append(stream('1', 'blue'), 'no_stream', [event(type('Numbered'), { n: 1 })]);
      await store().append(stream('1', 'red'), 0, [event(type('Numbered'), { n: 2 })]);
      expect((await follower.untilEvents(3)).map(numberOf)).to.deep.equal([0, 1, 2]);
      await follower.stop();
    });

    it('filters by type prefixes', async () => {
      const after = await begin();
      const follower = follow(store(), { after, filter: { typePrefixes: [type('Cluster'), type('Node')] } });
      await store().append(stream('a'), 'no_stream', [
        event(type('ClusterOrdered'), { n: 0 }),
        event(type('LeaseActivated'), { n: 99 }),
        event(type('NodeJoined'), { n: 1 }),
        event(type('ClusterReady'), { n: 2 }),
      ]);
      expect((await follower.untilEvents(3)).map(numberOf)).to.deep.equal([0, 1, 2]);
      await follower.stop();
    });

    it('takes prefixes literally', async () => {
      const after = await begin();
      const follower = follow(store(), { after, filter: { streamPrefixes: [`${prefix('odd')}-a.b_%*`] } });
      await store().append(stream('axb_%*', 'odd'), 'no_stream', [event(type('Numbered'), { n: 99 })]);
      await store().append(stream('a.bX%*', 'odd'), 'no_stream', [event(type('Numbered'), { n: 98 })]);
      await store().append(stream('a.b_%*1', 'odd'), 'no_stream', [event(type('Numbered'), { n: 0 })]);
      expect((await follower.untilEvents(1)).map(numberOf)).to.deep.equal([0]);
      await follower.stop();
    });

    it('yields checkpoints behind the events they cover while nothing matches', async () => {
      const after = await begin();
      const filter = { streamPrefixes: [prefix('wanted')] };
      await store().append(stream('old', 'noise'), 'no_stream', numbered(type('Noise'), 200));
      const wanted = await store().append(stream('1', 'wanted'), 'no_stream', [event(type('Wanted'))]);
      const follower = follow(store(), { after, filter });
      await follower.untilEvents(1);
      await follower.untilCaughtUp();
      await store().append(stream('new', 'noise'), 'no_stream', numbered(type('Noise'), 200));
      await follower.until('a checkpoint behind the event', (f) =>
        f.items.some((item) => item.kind === 'checkpoint' && item.position > wanted.position),
      );
      await follower.stop();
      expectOrdered(follower.items);
      expect(follower.events()).to.have.lengthOf(1);
    });

    it('a subscription resumed from where it was told to be misses nothing behind it', async () => {
      const after = await begin();
      const filter = { streamPrefixes: [prefix('wanted')] };
      await store().append(stream('noise', 'noise'), 'no_stream', numbered(type('Noise'), 200));
      const first = follow(store(), { after, filter });
      // A checkpoint, or the end: what nobody wanted may be covered by either.
      const told = (items: readonly SubscriptionItem[]): Position | undefined =>
        items.map(reachedBy).find((position) => position !== undefined && position > after);
      await first.until('a position behind the noise', (f) => told(f.items) !== undefined);
      await first.stop();
      await store().append(stream('1', 'wanted'), 'no_stream', numbered(type('Wanted'), 2));
      const second = follow(store(), { after: told(first.items) ?? after, filter });
      expect((await second.untilEvents(2)).map(numberOf)).to.deep.equal([0, 1]);
      await second.stop();
    });

    it('yields events that are appended while it catches up exactly once and in order', async () => {
      const after = await begin();
      const filter = { streamPrefixes: [prefix('busy')] };
      const writer = async (w: number): Promise<void> => {
        for (let n = 0; n < 40; n += 1)
          await store().append(stream(`w${w}`, 'busy'), n === 0 ? 'no_stream' : n - 1, [
            event(type('Busy'), { n }),
          ]);
      };
      const writers = [0, 1, 2, 3].map(writer);
      const early = follow(store(), { after, filter });
      await early.untilEvents(20);
      const late = follow(store(), { after, filter });
      await Promise.all(writers);
      await Promise.all([early.untilEvents(160), late.untilEvents(160)]);
      await Promise.all([early.stop(), late.stop()]);
      for (const follower of [early, late]) {
        expectOrdered(follower.items);
        expect(follower.events()).to.have.lengthOf(160);
        for (let w = 0; w < 4; w += 1) {
          const ofWriter = follower.events().filter((e) => e.stream === stream(`w${w}`, 'busy'));
          expect(ofWriter.map((e) => e.revision)).to.deep.equal(count(40));
        }
      }
      const positions = early.events().map((e) => e.position);
      expect(late.events().map((e) => e.position)).to.deep.equal(positions);
    });

    it('loses nothing for a consumer that is slower than the writers', async () => {
      const after = await begin();
      const written = Promise.withResolvers<void>();
      const slow = follow(store(), { after, filter: { streamPrefixes: [prefix('fast')] } }, (item) =>
        item.kind === 'event' ? written.promise : Promise.resolve(),
      );
      for (let n = 0; n < 20; n += 1)
        await store().append(
          stream('f', 'fast'),
          n === 0 ? 'no_stream' : n * 100 - 1,
          numbered(type('F'), 100, n * 100),
        );
      await slow.untilEvents(1);
      expect(slow.events(), 'what it has taken so far').to.have.lengthOf(1);
      written.resolve();
      expect((await slow.untilEvents(2000)).map(numberOf)).to.deep.equal(count(2000));
      await slow.stop();
    });

    it('yields an event only when it can be read', async () => {
      const after = await begin();
      const unreadable: string[] = [];
      const filter = { streamPrefixes: [prefix('durable')] };
      const follower = follow(store(), { after, filter }, async (item) => {
        if (item.kind !== 'event') return;
        const [read] = await all(
          store().readStream(item.event.stream, { from: item.event.revision, limit: 1 }),
        );
        if (read?.id !== item.event.id) unreadable.push(item.event.id);
      });
      for (let n = 0; n < 10; n += 1)
        await store().append(stream(String(n), 'durable'), 'no_stream', [event(type('Durable'))]);
      await follower.untilEvents(10);
      await follower.stop();
      expect(unreadable).to.deep.equal([]);
    });

    it('includes sys- streams unless the filter says otherwise', async () => {
      const after = await begin();
      const follower = follow(store(), { after, filter: { typePrefixes: [type('Lease')] } });
      await store().append(`sys-${stream('lease')}`, 'no_stream', [event(type('LeaseTaken'))]);
      const [seen] = await follower.untilEvents(1);
      await follower.stop();
      expect(seen?.stream).to.equal(`sys-${stream('lease')}`);
    });

    it('ends without an error on its signal: waiting, before it starts, and in the middle of old events', async () => {
      const after = await begin();
      await store().append(stream('a'), 'no_stream', numbered(type('Numbered'), 50));
      const waiting = follow(store(), { after });
      await waiting.untilCaughtUp();
      await waiting.stop();
      const never = all(store().subscribe({ after, signal: AbortSignal.abort() }));
      expect(await within(5000, 'the end of an aborted subscription', never)).to.deep.equal([]);
      const controller = new AbortController();
      const seen: SubscriptionItem[] = [];
      for await (const item of store().subscribe({ after, signal: controller.signal })) {
        seen.push(item);
        if (seen.length === 3) controller.abort();
      }
      expect(seen).to.have.lengthOf(3);
    });

    it('can be left early; others go on', async () => {
      const after = await begin();
      const other = follow(store(), { after, filter: { streamPrefixes: [prefix()] } });
      await store().append(stream('a'), 'no_stream', numbered(type('Numbered'), 5));
      const { signal } = new AbortController();
      for await (const item of store().subscribe({ after, signal })) if (item.kind === 'event') break;
      await store().append(stream('a'), 4, numbered(type('Numbered'), 5, 5));
      expect((await other.untilEvents(10)).map(numberOf)).to.deep.equal(count(10));
      await other.stop();
    });
  });
};
