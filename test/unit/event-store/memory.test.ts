import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventToAppend, SubscriptionItem } from '../../../src/app/log/event-store.ts';

const event = (id: string): EventToAppend => ({ id, type: 'Kept', data: '{"list":[1]}', metadata: '{}' });

const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};

describe('memory event store', () => {
  it('records the time of the clock it is given', async () => {
    const store = createMemoryEventStore({ now: () => '2026-01-02T03:04:05.678Z' });
    await store.append('a', 'no_stream', [event('1')]);
    const [read] = await all(store.readStream('a'));
    expect(read?.recordedAt).to.equal('2026-01-02T03:04:05.678Z');
  });

  it('takes effect in the call, so that the order of calls is the order of the log', async () => {
    const store = createMemoryEventStore();
    const appends = ['a', 'b', 'c'].map((stream) => store.append(stream, 'no_stream', [event(stream)]));
    const log = all(store.readAll({ limit: 10 }));
    expect((await log).map((e) => e.id)).to.deep.equal(['a', 'b', 'c']);
    await Promise.all(appends);
  });

  it('hands out events that nobody can change: they are shared', async () => {
    const store = createMemoryEventStore();
    await store.append('a', 'no_stream', [event('1')]);
    const [read] = await all(store.readStream('a'));
    const list = read?.data['list'] as number[];
    expect(list).to.deep.equal([1]);
    expect(() => list.push(2)).to.throw(TypeError);
  });

  it('yields one checkpoint for a run of events that do not match', async () => {
    const store = createMemoryEventStore();
    for (let n = 0; n < 20; n += 1) await store.append(`noise-${n}`, 'no_stream', [event(`n${n}`)]);
    await store.append('wanted-1', 'no_stream', [event('w')]);
    await store.append('noise-last', 'no_stream', [event('last')]);
    const controller = new AbortController();
    const items: SubscriptionItem[] = [];
    const filter = { streamPrefixes: ['wanted-'] };
    for await (const item of store.subscribe({ filter, signal: controller.signal })) {
      items.push(item);
      if (item.kind === 'caught-up') controller.abort();
    }
    expect(items.map((item) => item.kind)).to.deep.equal(['event', 'checkpoint', 'caught-up']);
    expect(items.at(-1)).to.have.property('position', '0000000000000022');
  });

  it('refuses a position behind its end', async () => {
    const store = createMemoryEventStore();
    const { signal } = new AbortController();
    try {
      await all(store.subscribe({ after: '0000000000000001', signal }));
    } catch (error) {
      expect(error).to.have.property('name', 'PositionBeyondEnd');
      return;
    }
    expect.fail('the subscription went on');
  });
});
