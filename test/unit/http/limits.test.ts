import { expect } from 'chai';
import fc from 'fast-check';
import { addressKey } from '../../../src/http/limits/admission.ts';
import { createRateLimit } from '../../../src/http/limits/rate-limit.ts';
import { createTurnstile, type Leave } from '../../../src/http/limits/turnstile.ts';
import { createUnread } from '../../../src/http/limits/unread.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { check } from '../../support/property.ts';

const never = (): AbortSignal => new AbortController().signal;

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
});

describe('turnstile', () => {
  it('lets so many run, makes the next wait in order, and refuses past its bound', async () => {
    const turnstile = createTurnstile({ running: 1, waiting: 2 });
    const first = turnstile.enter('t', never) as Leave;
    const order: string[] = [];
    const second = (turnstile.enter('t', never) as Promise<Leave>).then((leave) => {
      order.push('second');
      return leave;
    });
    const third = (turnstile.enter('t', never) as Promise<Leave>).then((leave) => {
      order.push('third');
      return leave;
    });
    expect(turnstile.enter('t', never)).to.equal(undefined);
    expect(turnstile.enter('other', never), 'others are not held back').to.be.a('function');
    first();
    first();
    (await second)();
    (await third)();
    expect(order).to.deep.equal(['second', 'third']);
  });

  it('a caller who goes away while waiting takes no turn', async () => {
    const turnstile = createTurnstile({ running: 1, waiting: 5 });
    const first = turnstile.enter('t', never) as Leave;
    const gone = new AbortController();
    const waiting = turnstile.enter('t', () => gone.signal) as Promise<Leave>;
    const after = turnstile.enter('t', never) as Promise<Leave>;
    gone.abort(new Error('left'));
    await waiting.then(
      () => expect.fail('it was let in'),
      (error: unknown) => expect(String(error)).to.contain('left'),
    );
    first();
    (await after)();
    expect(turnstile.size).to.equal(0);
  });

  it('remembers nobody who has left', () => {
    const turnstile = createTurnstile({ running: 2, waiting: 1 });
    const leaves = ['a', 'b', 'c'].map((key) => turnstile.enter(key, never) as Leave);
    expect(turnstile.size).to.equal(3);
    for (const leave of leaves) leave();
    expect(turnstile.size).to.equal(0);
  });
});

describe('answers that nobody reads', () => {
  const statusOf = (act: () => void): number => {
    try {
      act();
    } catch (error) {
      if (error instanceof ApiError) return error.status;
      throw error;
    }
    return 200;
  };

  it('are bounded for one payer, and for all together', () => {
    const unread = createUnread({ ofAll: 100, ofOne: 40 });
    const asked = (payer: string): number => statusOf(() => unread.assertRoom(payer));
    const read = unread.hold('a', 50);
    expect([asked('a'), asked('b')]).to.deep.equal([429, 200]);
    for (const payer of ['b', 'c']) unread.hold(payer, 25);
    expect([asked('a'), asked('b'), asked('d')]).to.deep.equal([429, 503, 503]);
    read();
    read();
    expect(unread.bytes).to.equal(50);
    expect([asked('a'), asked('b'), asked('d')]).to.deep.equal([200, 200, 200]);
  });

  it('leave nothing behind once they are read', () => {
    check(
      fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b', '__proto__'), fc.nat(1000))), (answers) => {
        const unread = createUnread({ ofAll: 10, ofOne: 1 });
        const reads = answers.map(([payer, bytes]) => unread.hold(payer, bytes));
        expect(unread.bytes).to.equal(answers.reduce((sum, [, bytes]) => sum + bytes, 0));
        for (const read of reads) read();
        expect(unread.bytes).to.equal(0);
        for (const payer of ['a', 'b', '__proto__']) unread.assertRoom(payer);
      }),
    );
  });
});

describe('the address that strangers are counted by', () => {
  for (const [address, key] of [
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['', ''],
  ] as const)
    it(`of ${address === '' ? 'nothing' : address} is ${key}`, () =>
      expect(addressKey(address)).to.equal(key));
});
