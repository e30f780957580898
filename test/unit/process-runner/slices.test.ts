import { expect } from 'chai';
import { createSlices } from '../../../src/app/process-runner/slices.ts';

describe('slices of work on the HTTP thread', () => {
  const restsAfter = (msOfEach: number, steps: number): number[] => {
    let now = 0;
    const slice = createSlices({ now: () => '', monotonicMs: () => now });
    const rests: number[] = [];
    for (let i = 1; i <= steps; i += 1) {
      const rest = slice(() => {
        now += msOfEach;
      });
      if (rest !== undefined) rests.push(i);
      now += 100; // what others do in between does not count
    }
    return rests;
  };

  it('wait for the next turn after some milliseconds of their own', () => {
    expect(restsAfter(0.25, 20)).to.deep.equal([8, 16]);
  });

  it('do some in each turn, however long each takes', () => {
    expect(restsAfter(50, 9)).to.deep.equal([4, 8]);
  });
});
