import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { caughtUpWith } from '../../../src/composition/system.ts';
import type { ProjectionStatus } from '../../../src/projections/read-models.ts';

/** What a deletion waits for (`src/composition/system.ts`). */
describe('the read model knows all resources of the log', () => {
  const open = () => {
    const store = createMemoryEventStore();
    const asked: string[] = [];
    let view: string | undefined;
    let serial = 0;
    const caughtUp = caughtUpWith(store, {
      status: () => [{ name: 'resources', position: view } as ProjectionStatus],
      waitFor: async (name, position) => {
        asked.push(`${name} ${position}`);
        return view !== undefined && view >= position;
      },
    });
    const append = async (category: string): Promise<string> => {
      serial += 1;
      const event = { id: `e${serial}`, type: 'Happened', data: '{}', metadata: '{}' };
      return (await store.append(`${category}-${serial}`, 'no_stream', [event])).position;
    };
    return { caughtUp, asked, append, shows: (position: string) => (view = position) };
  };

  it('waits for the last one of them, and not for what no view of resources shows', async () => {
    const { caughtUp, asked, append, shows } = open();
    expect(await caughtUp()).to.equal(true);
    const first = await append('role');
    const second = await append('cluster');
    await append('sys');
    await append('process');
    expect(await caughtUp()).to.equal(false);
    shows(first);
    expect(await caughtUp()).to.equal(false);
    shows(second);
    asked.length = 0;
    expect(await caughtUp()).to.equal(true);
    expect(asked).to.deep.equal([]);
  });

  it('does not wait for a view that is far behind', async () => {
    const { caughtUp, asked, append } = open();
    for (let i = 0; i < 2_000; i += 1) await append('role');
    expect(await caughtUp()).to.equal(false);
    expect(asked).to.deep.equal([]);
  });
});
