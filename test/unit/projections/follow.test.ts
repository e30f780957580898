import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventToAppend, Position } from '../../../src/app/event-store.ts';
import type { Applier } from '../../../src/projections/runner/applier.ts';
import { follow } from '../../../src/projections/runner/follow.ts';
import type { View } from '../../../src/projections/view.ts';

const MIB = 1024 * 1024;

/** Sizes of the batches in which a log is applied that was there before. */
const batchesOf = async (events: number, textOf: (n: number) => string): Promise<number[]> => {
  const store = createMemoryEventStore();
  const given = Array.from(
    { length: events },
    (_, n): EventToAppend => ({
      id: `e${n}`,
      type: 'NoteWritten',
      data: JSON.stringify({ nested: { texts: [textOf(n)] } }),
      metadata: '{}',
    }),
  );
  await store.append('note-a', 'no_stream', given);
  const batches: number[] = [];
  let position: Position | undefined;
  const applier = {
    checkpoint: () => ({ position, recordedAt: undefined, events: 0 }),
    parked: () => [],
    apply: (batch, to) => {
      batches.push(batch.length);
      position = to;
    },
    retry: () => true,
  } satisfies Applier;
  const until = await store.lastPosition();
  await follow({
    view: { name: 'notes' } as unknown as View,
    reader: store,
    applier,
    signal: new AbortController().signal,
    ...(until !== undefined && { until }),
    onProgress: () => undefined,
    pace: 'event-loop',
  }).done;
  return batches;
};

describe('following the log', () => {
  it('commits batches of a bounded number of events', async () => {
    const batches = await batchesOf(9000, () => '');
    expect(Math.max(...batches)).to.equal(4096);
    expect(batches.reduce((sum, size) => sum + size, 0)).to.equal(9000);
  });

  it('and of a bounded size: 4,096 of the largest events would not fit into memory', async () => {
    const text = 'x'.repeat(MIB - 100);
    const batches = await batchesOf(50, () => text);
    expect(Math.max(...batches)).to.be.at.most(17);
    expect(batches.reduce((sum, size) => sum + size, 0)).to.equal(50);
  });
});
