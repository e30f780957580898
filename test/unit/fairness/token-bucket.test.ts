import { expect } from 'chai';
import fc from 'fast-check';
import { createCallCounts } from '../../../src/app/process-runner/lanes.ts';
import { createRateLimit, createTokenBucket } from '../../../src/app/fairness/token-bucket.ts';
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

describe('rate limit', () => {
  const limitOf = (quota: number, windowSeconds = 60, maxKeys = 10) => {
    const time = { ms: 0 };
    const limit = createRateLimit({ quota, windowSeconds, maxKeys, monotonicMs: () => time.ms });
    return { time, take: (key = 'a', cost = 1) => limit.take(key, cost) };
  };

  it('lets the quota through at once, and then says when to come again', () => {
    const { take } = limitOf(3);
    expect([take(), take(), take()].map(({ allowed, remaining }) => [allowed, remaining])).to.deep.equal([
      [true, 2],
      [true, 1],
      [true, 0],
    ]);
    expect(take()).to.deep.equal({ allowed: false, remaining: 0, fullAfter: 60, retryAfter: 20 });
  });

  it('gives back evenly, and a refusal costs nothing', () => {
    const { time, take } = limitOf(3);
    for (let i = 0; i < 10; i += 1) take();
    time.ms = 19_000;
    expect(take().allowed).to.equal(false);
    time.ms = 20_000;
    expect(take().allowed).to.equal(true);
    expect(take().allowed).to.equal(false);
  });

  it('what costs more takes more, and never more than a full bucket', () => {
    const { time, take } = limitOf(12);
    expect(take('a', 10)).to.deep.include({ allowed: true, remaining: 2 });
    expect(take('a', 10), 'one token comes back every 5 seconds').to.deep.include({
      allowed: false,
      remaining: 2,
      retryAfter: 40,
    });
    expect(take('a', 2).allowed).to.equal(true);
    time.ms = 60_000;
    expect(take('a', 1_000), 'a full bucket is enough for anything').to.deep.include({
      allowed: true,
      remaining: 0,
    });
  });

  it('keys do not know of each other, and forgotten ones begin anew', () => {
    const { take } = limitOf(1, 60, 2);
    expect(take('a').allowed).to.equal(true);
    expect(take('b').allowed).to.equal(true);
    expect(take('a').allowed).to.equal(false);
    take('c');
    expect(take('b').allowed).to.equal(true);
  });

  it('never lets more through than the quota and what has flowed back', () => {
    check(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 200 }),
        (quota, pauses) => {
          const { time, take } = limitOf(quota, 10);
          let allowed = 0;
          for (const pause of pauses) {
            time.ms += pause;
            if (take().allowed) allowed += 1;
          }
          expect(allowed).to.be.at.most(quota + (time.ms / 10_000) * quota + 1e-6);
        },
      ),
    );
  });

  it('takes room for the keys that it knows, not for those that it may know', () => {
    const { take } = limitOf(1, 60, 2 ** 40);
    expect([take('a'), take('a'), take('b')].map(({ allowed }) => allowed)).to.deep.equal([
      true,
      false,
      true,
    ]);
  });
});
