import { expect } from 'chai';
import { createParts } from '../../../src/app/fairness/slicer.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('answers of a batch in parts', () => {
  it('come one after the other, each after what the one before it set off', async () => {
    const seen: string[] = [];
    const work = async (i: number): Promise<void> => {
      for (let step = 0; step < 3; step += 1) {
        seen.push(`${i}.${step}`);
        await Promise.resolve();
      }
    };
    createParts({ nowMs: () => 0 })(3, (i) => void work(i));
    await turn();
    expect(seen).to.deep.equal(['0.0', '0.1', '0.2', '1.0', '1.1', '1.2', '2.0', '2.1', '2.2']);
  });

  const slowly = () => {
    let now = 0;
    const waiting: (() => void)[] = [];
    const parts = createParts({ nowMs: () => now, nextTurn: (go) => void waiting.push(go) });
    let turns = 0;
    return {
      parts,
      take: (ms: number) => {
        now += ms;
        return turns;
      },
      rest: async () => {
        await turn();
        for (let go = waiting.shift(); go !== undefined; go = waiting.shift()) {
          turns += 1;
          now += 100; // what others do in between does not count
          go();
          await turn();
        }
      },
    };
  };

  it('leave the thread to others when they have used it for a while', async () => {
    const { parts, take, rest } = slowly();
    const doneIn: number[] = [];
    parts(13, () => doneIn.push(take(0.5)));
    await rest();
    expect(doneIn).to.deep.equal([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2]);
  });

  it('are some in each turn, however long each takes', async () => {
    const { parts, take, rest } = slowly();
    const doneIn: number[] = [];
    parts(6, () => doneIn.push(take(50)));
    await rest();
    expect(doneIn).to.deep.equal([0, 0, 0, 0, 1, 1]);
  });

  it('keep their order when the next batch is answered before all of the last were told', async () => {
    const { parts, take, rest } = slowly();
    const told: string[] = [];
    const tell = (batch: string) => (i: number) => {
      told.push(`${batch}${i} in ${take(2)}`);
    };
    parts(5, tell('a'));
    await turn();
    parts(4, tell('b'));
    await rest();
    const first = ['a0 in 0', 'a1 in 0', 'a2 in 0', 'a3 in 0'];
    expect(told).to.deep.equal([...first, 'a4 in 1', 'b0 in 1', 'b1 in 1', 'b2 in 1', 'b3 in 2']);
    parts(1, tell('c'));
    expect(told.at(-1)).to.equal('c0 in 2');
  });

  it('are nothing for a batch of nothing', async () => {
    createParts()(0, () => expect.fail('there is nothing to tell'));
    await turn();
  });
});
