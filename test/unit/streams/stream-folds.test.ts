import { expect } from 'chai';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { createTurns } from '../../../src/app/fairness/slicer.ts';
import { createFoldMemory, createStreamFolds } from '../../../src/app/streams/stream-folds.ts';
import { recorded } from '../../support/streams/samples.ts';

const EVENTS = 200;
const history = Array.from({ length: EVENTS }, (_, revision) =>
  recorded('ClusterLabelled', { labels: { at: 'x'.repeat(revision) } }, { revision }),
);

/** Folds that count their events, over a store that has all of them in memory; each takes a millisecond. */
const counting = () => {
  let now = 0;
  const turn = createTurns({ monotonicMs: () => now });
  const memory = createFoldMemory();
  const folds = createStreamFolds<number>({
    name: 'count',
    memory,
    initial: () => 0,
    fold: (count) => {
      now += 1;
      return count + 1;
    },
    async *readStream(_stream, { from = 0, limit = Infinity } = {}) {
      yield* history.slice(from, from + limit);
    },
    turn,
  });
  return { folds, memory, now: () => now };
};

describe('folds of streams', () => {
  it('of a long one let other work in every few milliseconds', async () => {
    const { folds, now } = counting();
    const last = history.at(-1) as RecordedEvent;
    const gaps: number[] = [];
    let before = 0;
    let done = false;
    const work = (): void => {
      gaps.push(now() - before);
      before = now();
      if (!done) setImmediate(work);
    };
    setImmediate(work);
    const { state } = await folds.before(last);
    done = true;
    expect(state).to.equal(EVENTS - 1);
    expect(gaps.length).to.be.greaterThan(EVENTS / 10);
    expect(Math.max(...gaps), 'milliseconds without other work').to.be.at.most(5);
  });

  it('weigh about as much as the JSON text of the largest event', async () => {
    const { folds, memory } = counting();
    const [first] = history;
    const last = history.at(-1) as RecordedEvent;
    if (first === undefined) throw new Error('no history');
    folds.apply(await folds.before(last), last);
    const weight = memory.calculatedSize;
    const text = JSON.stringify(last.data).length;
    expect(weight)
      .to.be.greaterThan(text)
      .and.lessThan(text + 250);
  });
});
