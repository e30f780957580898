import { expect } from 'chai';
import { createFairTurns, type FairTurnsOptions } from '../../../src/app/fairness/fair-turns.ts';

/** A thread whose turns are taken by hand; a request takes the milliseconds that it is given. */
const threadOf = (sliceMs: number, own: Partial<FairTurnsOptions> = {}) => {
  let now = 0;
  const next: (() => void)[] = [];
  const began: string[] = [];
  const turns = createFairTurns({
    sliceMs,
    monotonicMs: () => now,
    nextTurn: (go) => void next.push(go),
    ...own,
  });
  const request = async (key: string, ms: number): Promise<void> => {
    const turn = turns.enter(key);
    if (turn !== undefined) await turn;
    began.push(key);
    await Promise.resolve(); // what it does lies behind other microtasks
    now += ms;
  };
  return {
    turns,
    began,
    next,
    send: (key: string, ms: number) => void request(key, ms),
    /** What begins in the next turn of the thread, and how long that takes. */
    turn: async (): Promise<{ began: string[]; ms: number }> => {
      const [from, at] = [began.length, now];
      for (const go of next.splice(0)) go();
      await new Promise<void>((resolve) => setImmediate(resolve));
      return { began: began.slice(from), ms: now - at };
    },
  };
};
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('fair turns', () => {
  it('begin at once as long as the turn has room, and ask the thread for one turn only', async () => {
    const { send, turn, turns, next } = threadOf(4);
    for (let i = 0; i < 3; i += 1) send('a', 0);
    expect(next).to.have.length(1);
    expect((await turn()).began, 'they have begun before').to.deep.equal([]);
    expect(turns.waiting).to.equal(0);
    expect(next, 'who is idle asks for nothing').to.have.length(0);
  });

  it('end after their milliseconds: the rest waits, and no turn is longer than that and one request', async () => {
    const { send, turn, turns, began } = threadOf(4);
    send('a', 5);
    await settled();
    for (let i = 0; i < 9; i += 1) send('a', 3);
    expect(began).to.have.length(1);
    expect(turns.waiting).to.equal(9);
    for (let left = 9; left > 0; left -= Math.min(2, left)) {
      const { began: now, ms } = await turn();
      expect(now).to.have.length(Math.min(2, left));
      expect(ms).to.be.at.most(4 + 3);
    }
    expect(turns.waiting).to.equal(0);
  });

  it('go round: one who has much to do delays another by one of its requests', async () => {
    const { send, turn, began } = threadOf(1);
    send('hog', 5);
    await settled();
    for (let i = 0; i < 200; i += 1) send('hog', 5);
    send('quiet', 0);
    send('other', 0);
    await turn();
    await turn();
    expect(began.slice(0, 5)).to.deep.equal(['hog', 'hog', 'quiet', 'other', 'hog']);
    send('quiet', 0);
    await turn();
    await turn();
    expect(began.slice(5)).to.deep.equal(['hog', 'quiet', 'hog']);
  });

  it('do not let one who comes later overtake those who wait', async () => {
    const { send, turn, turns, began } = threadOf(4);
    send('a', 5);
    await settled();
    send('a', 1);
    await settled();
    send('b', 1);
    expect(turns.waiting).to.equal(2);
    await turn();
    expect(began).to.deep.equal(['a', 'a', 'b']);
  });

  it('keep the order of one key, and take names of any kind', async () => {
    const { turns, turn, send } = threadOf(1);
    send('x', 2);
    await settled();
    const order: number[] = [];
    for (const n of [1, 2, 3]) void turns.enter('__proto__')?.then(() => order.push(n));
    await turn();
    expect(order).to.deep.equal([1, 2, 3]);
    expect(turns.waiting).to.equal(0);
  });
});
