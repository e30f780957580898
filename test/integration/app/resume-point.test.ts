import { expect } from 'chai';
import { LogReplaced } from '../../../src/app/log/event-store.ts';
import { resumeAfter, type Anchor } from '../../../src/app/log/resume-point.ts';
import { createBench, event, rejection } from '../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../support/eventstoredb-peer/peer.ts';
import { eventually } from '../../support/eventually.ts';

describe('where a reader of an EventStoreDB resumes', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  const open = async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer, { deadlineMs: 10_000, replacedMs: 5000 });
    const [one, two] = [event('Counted', { n: 0 }), event('Counted', { n: 1 })];
    const { position } = await store.append('order-1', 'no_stream', [one, two]);
    return { peer, store, anchor: { position, id: two.id } };
  };
  /** Lifts the fault once so many reads have met it. */
  const liftAfter = async (peer: Peer, reads: number, lift: () => void): Promise<void> => {
    await eventually('the reads met the fault', () => peer.faults.hits() >= reads);
    lift();
  };

  it('is behind its anchor, also while a node that lags, or fails, is asked', async () => {
    const { peer, store, anchor } = await open();
    for (const fault of [
      { kind: 'behind', records: 1 },
      { kind: 'refuse', as: 'unknown' },
    ] as const) {
      const before = peer.faults.hits();
      const lift = peer.faults.add({ on: 'read', do: fault });
      const resumed = resumeAfter(store, anchor);
      await liftAfter(peer, before + 4, lift);
      expect(await resumed, fault.kind).to.equal(anchor.position);
    }
  });

  it('is nowhere when another event stands at the anchor, or the log stays shorter', async () => {
    const { peer, anchor } = await open();
    const store = await bench.store(peer, { replacedMs: 200 });
    const refused = async (at: Anchor) => rejection(resumeAfter(store, at));
    expect(await refused({ ...anchor, id: 'another' })).to.be.instanceOf(LogReplaced);
    peer.faults.add({ on: 'read', do: { kind: 'behind', records: 1 } });
    expect(await refused(anchor)).to.be.instanceOf(LogReplaced);
  });
});
