import { expect } from 'chai';
import fc from 'fast-check';
import { createCallCounts } from '../../../src/app/process-runner/call-counts.ts';
import { createTokenBucket } from '../../../src/app/process-runner/token-bucket.ts';
import { check } from '../../support/property.ts';

describe('token bucket', () => {
  it('gives a burst at once and then one at a time at its pace', () => {
    let now = 0;
    const bucket = createTokenBucket({ callsPerSecond: 20, burst: 3 }, () => now);
    expect([1, 2, 3, 4].map(() => bucket.take())).to.deep.equal([true, true, true, false]);
    expect(bucket.waitMs()).to.equal(50);
    now += 49;
    expect(bucket.take()).to.equal(false);
    now += 1;
    expect(bucket.take()).to.equal(true);
    bucket.giveBack();
    expect(bucket.take()).to.equal(true);
    expect(bucket.isFull()).to.equal(false);
    now += 10_000;
    expect(bucket.isFull()).to.equal(true);
    bucket.setPace({ callsPerSecond: 1, burst: 1 });
    expect([1, 2].map(() => bucket.take())).to.deep.equal([true, false]);
    expect(bucket.waitMs()).to.equal(1_000);
  });
  it('in no stretch of time gives more than its burst and what has come in since', () => {
    const pace = fc.record({
      callsPerSecond: fc.double({ min: 0.1, max: 1_000, noNaN: true }),
      burst: fc.integer({ min: 1, max: 50 }),
    });
    const waits = fc.array(fc.integer({ min: 0, max: 2_000 }), { minLength: 1, maxLength: 100 });
    check(
      fc.property(pace, waits, (pacing, steps) => {
        let now = 0;
        const bucket = createTokenBucket(pacing, () => now);
        const taken: number[] = [];
        for (const wait of steps) {
          now += wait;
          while (bucket.take()) taken.push(now);
          expect(bucket.waitMs()).to.be.greaterThan(0);
        }
        for (const [i, from] of taken.entries()) {
          const allowed = pacing.burst + ((now - from) * pacing.callsPerSecond) / 1000;
          expect(taken.length - i).to.be.at.most(allowed + 1e-6);
        }
      }),
    );
  });
  it('who waits as long as it says gets a token', () => {
    const rate = fc.double({ min: 0.1, max: 10_000, noNaN: true });
    check(
      fc.property(rate, fc.integer({ min: 1, max: 500 }), (callsPerSecond, count) => {
        let now = 0;
        const bucket = createTokenBucket({ callsPerSecond, burst: 1 }, () => now);
        for (let i = 0; i < count; i += 1) {
          now += bucket.waitMs();
          expect(bucket.take()).to.equal(true);
        }
      }),
    );
  });
});

describe('calls of the last hour', () => {
  it('are counted by lane and forgotten after the hour', () => {
    let now = 0;
    const counts = createCallCounts(() => now);
    expect(counts.of('hub:a')).to.equal(undefined);
    for (let i = 0; i < 10; i += 1) counts.note('hub:a', i % 5 !== 0);
    now += 30 * 60_000;
    counts.note('hub:a', true);
    expect(counts.of('hub:a')).to.deep.equal({ attempts: 11, failures: 2 });
    now += 30 * 60_000;
    expect(counts.of('hub:a')).to.deep.equal({ attempts: 1, failures: 0 });
    expect(counts.of('hub:b')).to.equal(undefined);
    now += 60 * 60_000;
    expect(counts.of('hub:a')).to.equal(undefined);
  });
});
