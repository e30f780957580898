import { expect } from 'chai';
import { createLeafGuard, heldRead, type LeafIndex } from '../../../src/app/audit/verified-reads.ts';
import { leafHashOf, leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import type { AuditLeaf } from '../../../src/app/audit/tree.ts';
import { LogDamaged, type ReadForward, type RecordedEvent } from '../../../src/app/log/event-store.ts';

const eventAt = (revision: number): RecordedEvent => ({
  position: String(revision * 10).padStart(16, '0'),
  stream: 'thing-a',
  revision,
  id: `event-${revision}`,
  type: 'ThingHappened',
  data: { revision },
  metadata: { tenant: 't1' },
  recordedAt: '2026-01-01T00:00:00.000Z',
});

describe('events that are held against their leaves', () => {
  const RECORDED = [0, 1, 2, 3].map(eventAt);
  /** Leaves that the tree has by now. */
  let leaves: number;
  let stored: readonly RecordedEvent[];
  const index: LeafIndex = {
    standing: (stream, revision) => {
      const event = stream === 'thing-a' && revision < leaves ? RECORDED[revision] : undefined;
      if (event === undefined) return undefined;
      return {
        index: revision,
        hash: leafHashOf(leafOf(event)),
        position: event.position,
        tenant: 't1',
      };
    },
    leaf: (at) => {
      const event = RECORDED[at];
      return event === undefined
        ? undefined
        : ({ index: at, position: event.position, record: leafOf(event) } as unknown as AuditLeaf);
    },
  };
  const read: ReadForward = async function* (_stream, { from = 0, limit = Infinity }) {
    yield* stored.filter(({ revision }) => revision >= from).slice(0, limit);
  };
  /** Revisions that were given, and the event that is wrong. */
  const given = async (
    options: { from?: number; limit?: number } = {},
    tree: LeafIndex | undefined = index,
  ) => {
    const guard = createLeafGuard(() => tree);
    const revisions: number[] = [];
    try {
      for await (const { revision } of heldRead(read, guard)('thing-a', options)) revisions.push(revision);
    } catch (error) {
      expect(error).to.be.instanceOf(LogDamaged);
      return { revisions, wrong: (error as LogDamaged).at?.event, says: (error as LogDamaged).message };
    }
    return { revisions };
  };
  const without = (revision: number) => RECORDED.filter((event) => event.revision !== revision);
  const forged = (revision: number) =>
    RECORDED.map((event) => (event.revision === revision ? { ...event, data: { forged: true } } : event));
  beforeEach(() => {
    [leaves, stored] = [4, RECORDED];
  });

  it('are given as they are while they are what was recorded', async () => {
    expect(await given()).to.deep.equal({ revisions: [0, 1, 2, 3] });
    expect(await given({ from: 1, limit: 2 })).to.deep.equal({ revisions: [1, 2] });
  });

  it('are given up to one that is another one, whatever of it was changed', async () => {
    stored = forged(2);
    expect(await given()).to.deep.include({ revisions: [0, 1], wrong: 'thing-a@2' });
    expect(await given({ limit: 2 })).to.deep.equal({ revisions: [0, 1] });
    for (const change of [{ id: 'other' }, { type: 'Other' }, { metadata: { tenant: 't2' } }]) {
      stored = RECORDED.map((event) => (event.revision === 1 ? { ...event, ...change } : event));
      expect(await given(), JSON.stringify(change)).to.deep.include({ revisions: [0], wrong: 'thing-a@1' });
    }
  });

  it('are given up to one that is gone, also where it is the first or the last that was asked for', async () => {
    for (const revision of [0, 1, 3]) {
      stored = without(revision);
      const { revisions, wrong, says } = await given({ limit: 4 });
      expect(wrong).to.equal(`thing-a@${revision}`);
      expect(says).to.include('is missing in the log');
      expect(revisions).to.deep.equal([0, 1, 2, 3].slice(0, revision));
    }
    // Nobody knows how far it should go.
    stored = without(3);
    expect(await given()).to.deep.equal({ revisions: [0, 1, 2] });
  });

  it('pass where the tree has no leaf of them yet, or there is no tree', async () => {
    leaves = 2;
    stored = forged(2);
    expect(await given()).to.deep.equal({ revisions: [0, 1, 2, 3] });
    stored = forged(0);
    const passing = createLeafGuard(() => undefined);
    expect(() => passing.assertUnchanged(stored[0] as RecordedEvent)).not.to.throw();
    expect(() => passing.assertNone('thing-a', 0)).not.to.throw();
  });

  it('are missed only as far as they were stored by then', () => {
    const guard = createLeafGuard(() => index);
    expect(() => guard.assertNone('thing-a', 2, eventAt(1).position)).not.to.throw();
    expect(() => guard.assertNone('thing-a', 2, eventAt(2).position)).to.throw(LogDamaged, 'thing-a@2');
    expect(() => guard.assertNone('thing-a', 4, eventAt(9).position)).not.to.throw();
  });

  it('are named also where their leaf is gone since, as when the tree is made anew', () => {
    const guard = createLeafGuard(() => ({ ...index, leaf: () => undefined }));
    expect(() => guard.assertUnchanged(forged(0)[0] as RecordedEvent))
      .to.throw(LogDamaged)
      .with.property('at')
      .that.deep.equals({ event: 'thing-a@0', position: eventAt(0).position });
  });
});
