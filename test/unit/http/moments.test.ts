import { expect } from 'chai';
import { createMoments } from '../../../src/http/past-moments.ts';

/** Leaves of which the read model knows so far: the running maximum of recorded time, and the position. */
const KNOWN = [
  { time: '2026-11-22T10:00:00.000Z', position: '0000000000000010' },
  { time: '2026-11-22T10:00:05.000Z', position: '0000000000000020' },
];

const momentsOf = (applied: boolean) => {
  const waited: string[] = [];
  const sizeAtTime = (time: string): number => KNOWN.filter((leaf) => leaf.time <= time).length;
  const moments = createMoments({
    store: { lastPosition: async () => '0000000000000030', end: async () => '0000000000000035' },
    positions: { parse: (text) => text.slice(-16) },
    audit: () => ({
      size: () => KNOWN.length,
      sizeAtTime,
      positionAt: (time) => KNOWN[sizeAtTime(time) - 1]?.position,
    }),
    waitFor: async (_view, position) => {
      waited.push(position);
      return applied;
    },
    clock: { now: () => '2026-11-22T10:00:10.000Z' },
  });
  return { moments, waited };
};

describe('moments of the past', () => {
  it('are known at once when something later is known: what is still to come is later too', async () => {
    const { moments, waited } = momentsOf(false);
    expect(await moments.resolve('2026-11-22T10:00:04.999Z', 'as_of')).to.equal('0000000000000010');
    expect(waited).to.deep.equal([]);
  });

  it('wait for what was stored when nothing later is known', async () => {
    const { moments, waited } = momentsOf(true);
    expect(await moments.resolve('2026-11-22T10:00:05.000Z', 'as_of')).to.equal('0000000000000020');
    expect(waited).to.deep.equal(['0000000000000030']);
  });

  it("may be positions up to the end of the log, whose last records are the store's own", async () => {
    const { moments } = momentsOf(true);
    expect(await moments.resolve('store.0000000000000035', 'as_of')).to.equal('0000000000000035');
    const behind = await moments
      .resolve('store.0000000000000036', 'as_of')
      .catch((thrown: unknown) => thrown);
    expect(behind).to.have.property('reason', 'IN_THE_FUTURE');
  });

  it('and are refused when that takes too long', async () => {
    const { moments } = momentsOf(false);
    const error = await moments.resolve('2026-11-22T10:00:06Z', 'as_of').catch((thrown: unknown) => thrown);
    expect(error).to.have.property('reason', 'POSITION_NOT_REACHED');
  });
});
