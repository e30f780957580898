import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore, Position } from '../../../src/app/log/event-store.ts';
import { createLogTail } from '../../../src/app/commands/log-tail.ts';
import { event } from '../../support/eventstoredb-peer/fixture.ts';
import { checkAsync } from '../../support/property.ts';

const orderOf = (revision: number | 'no_stream'): number => (revision === 'no_stream' ? -1 : revision);

/** A log that counts how often it was read, and whose reads may show less than it holds. */
const observed = () => {
  const store = createMemoryEventStore({ singleWriter: false });
  const node = { behind: '' as Position, reads: 0 };
  const shown = (position: Position): boolean => node.behind === '' || position <= node.behind;
  const log: Pick<EventStore, 'readAll' | 'end'> = {
    async *readAll(options) {
      node.reads += 1;
      for await (const one of store.readAll(options)) if (shown(one.position)) yield one;
    },
    end: async () => (node.behind === '' ? store.end() : node.behind),
  };
  const append = async (stream: string): Promise<Position> =>
    (await store.append(stream, await store.currentRevision(stream), [event('Moved')])).position;
  return { store, node, append, tail: createLogTail(log) };
};

describe('the tail of a log with other writers', () => {
  it('knows without a read of the stream that it has not moved on, and that it has', async () => {
    const { store, node, append, tail } = observed();
    const first = await append('order-1');
    expect(await tail.newest('order-1', first), 'not watched yet').to.equal(Infinity);
    tail.watch('order-1')(orderOf(await store.currentRevision('order-1')));
    const other = await append('order-2');
    expect(await tail.newest('order-1', other)).to.equal(0);
    const moved = await append('order-1');
    expect(await tail.newest('order-1', moved)).to.equal(1);
    expect(node.reads).to.equal(2);
  });

  it('reads the log once for all who ask at the same time', async () => {
    const { node, append, tail } = observed();
    await tail.newest('order-1', await append('order-1'));
    tail.watch('order-1')(0);
    const positions = await Promise.all([2, 3, 4, 5, 6].map((n) => append(`order-${n}`)));
    const newest = await Promise.all(positions.map((position) => tail.newest('order-1', position)));
    expect(newest).to.deep.equal([0, 0, 0, 0, 0]);
    expect(node.reads).to.equal(1);
  });

  it('knows nothing when the log went on too far, or when a node that is behind is asked', async () => {
    const { node, append, tail } = observed();
    const first = await append('order-1');
    await tail.newest('order-1', first);
    tail.watch('order-1')(0);
    node.behind = first;
    const unseen = await append('order-2');
    expect(await tail.newest('order-1', unseen), 'behind').to.equal(Infinity);
    node.behind = '';
    expect(await tail.newest('order-1', unseen), 'no longer').to.equal(0);
    let last = unseen;
    for (let n = 0; n < 200; n += 1) last = await append('order-2');
    expect(await tail.newest('order-1', last), 'too far').to.equal(Infinity);
  });

  it('knows nothing of a stream whose read failed', async () => {
    const { append, tail } = observed();
    const first = await append('order-1');
    await tail.newest('order-1', first);
    tail.watch('order-1');
    expect(await tail.newest('order-1', await append('order-2'))).to.equal(Infinity);
  });

  it('never says less than the log held at that position, whatever happens meanwhile', async () => {
    const STEPS = fc.array(
      fc.record({
        what: fc.constantFrom('append', 'append', 'read', 'ask', 'ask', 'fall behind', 'catch up'),
        stream: fc.constantFrom('order-1', 'order-2', 'order-3'),
      }),
      { maxLength: 60 },
    );
    const holds = fc.asyncProperty(STEPS, async (steps) => {
      const { store, node, append, tail } = observed();
      const ends: Promise<unknown>[] = [];
      let last = await append('order-1');
      for (const { what, stream } of steps) {
        if (what === 'append') last = await append(stream);
        else if (what === 'fall behind') node.behind = last;
        else if (what === 'catch up') node.behind = '';
        else if (what === 'read' && node.behind === '') {
          const found = tail.watch(stream);
          ends.push(store.currentRevision(stream).then((revision) => found(orderOf(revision))));
        } else if (what === 'ask') {
          const held = orderOf(await store.currentRevision(stream));
          ends.push(tail.newest(stream, last).then((newest) => expect(newest).to.be.at.least(held)));
        }
      }
      await Promise.all(ends);
    });
    await checkAsync(holds, { numRuns: 200 });
  });
});
