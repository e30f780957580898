import { expect } from 'chai';
import fc from 'fast-check';
import { createSlicer, createSlices, createTasks, TASK_SLICE_MS } from '../../../src/app/fairness/slicer.ts';
import { checkAsync } from '../../support/property.ts';

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

describe('slicer', () => {
  it('takes all that waits in order, some in each turn, and begins nothing in one that is used up', async () => {
    const sliceMs = 4;
    const costs = fc.array(fc.nat(6), { maxLength: 20 });
    await checkAsync(
      fc.asyncProperty(costs, fc.integer({ min: 1, max: 3 }), async (waiting, atLeast) => {
        const left = [...waiting];
        const later: (() => void)[] = [];
        const turns: number[][] = [[]];
        let now = 0;
        const { serve } = createSlicer({
          take: () => {
            const cost = left.shift();
            if (cost === undefined) return undefined;
            return () => {
              now += cost;
              turns.at(-1)?.push(cost);
            };
          },
          nowMs: () => now,
          sliceMs,
          atLeast,
          nextTurn: (go) => void later.push(go),
        });
        serve();
        for (;;) {
          await new Promise((resolve) => setImmediate(resolve));
          const go = later.shift();
          if (go === undefined) break;
          turns.push([]);
          go();
        }
        expect(turns.flat()).to.deep.equal(waiting);
        for (const turn of turns.filter(({ length }) => length > atLeast))
          expect(turn.slice(0, -1).reduce((sum, cost) => sum + cost, 0)).to.be.lessThan(sliceMs);
        expect(turns.slice(0, -1).every(({ length }) => length >= atLeast)).to.equal(true);
      }),
    );
  });
});

describe('tasks in slices', () => {
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('give the loop back after a few milliseconds, and take turns', async () => {
    let now = 0;
    const add = createTasks(() => now);
    const done: string[] = [];
    function* work(name: string): Generator<void, void> {
      for (let i = 0; i < 10; i += 1) {
        done.push(name);
        now += 1;
        yield;
      }
    }
    const failed = (error: unknown): void => {
      throw error;
    };
    add(work('a'), failed);
    add(work('b'), failed);
    const counts: number[] = [];
    while (done.length < 20) {
      const before = done.length;
      await turn();
      counts.push(done.length - before);
    }
    expect(Math.max(...counts)).to.be.at.most(TASK_SLICE_MS);
    expect(done.slice(0, TASK_SLICE_MS)).to.deep.equal(Array(TASK_SLICE_MS).fill('a'));
    expect(done.slice(TASK_SLICE_MS, 2 * TASK_SLICE_MS)).to.deep.equal(Array(TASK_SLICE_MS).fill('b'));
  });

  it('rest after a slice that was used up, when told to', async () => {
    let now = 0;
    const add = createTasks(() => now, 20);
    let pieces = 0;
    function* work(): Generator<void, void> {
      for (let i = 0; i < 2 * TASK_SLICE_MS; i += 1) {
        pieces += 1;
        now += 1;
        yield;
      }
    }
    const ended = new Promise<void>((resolve, reject) => {
      add(work(), reject);
      add(
        (function* last(): Generator<void, void> {
          yield;
          resolve();
        })(),
        reject,
      );
    });
    for (let i = 0; i < 5; i += 1) await turn();
    expect(pieces).to.equal(TASK_SLICE_MS);
    await ended;
  });

  it('end a task that throws, tell of it, and go on with the others', async () => {
    const add = createTasks(() => 0);
    const errors: unknown[] = [];
    let others = 0;
    function* broken(): Generator<void, void> {
      yield;
      throw new Error('broken');
    }
    function* whole(): Generator<void, void> {
      yield;
      others += 1;
    }
    add(broken(), (error) => errors.push(error));
    add(whole(), (error) => errors.push(error));
    await turn();
    expect(errors).to.have.length(1);
    expect(others).to.equal(1);
  });
});
