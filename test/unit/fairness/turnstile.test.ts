import { expect } from 'chai';
import { createTurnstile, type Leave } from '../../../src/app/fairness/turnstile.ts';

const never = (): AbortSignal => new AbortController().signal;

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
