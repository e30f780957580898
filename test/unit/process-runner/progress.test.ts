import { expect } from 'chai';
import fc from 'fast-check';
import { check } from '../../support/property.ts';
import { createProgress } from '../../../src/app/process-runner/intake.ts';
import type { Anchor } from '../../../src/app/log/resume-point.ts';

const position = (n: number): string => String(n).padStart(6, '0');
const anchor = (n: number): Anchor => ({ position: position(n), id: `e${n}` });

describe('progress of the process runner', () => {
  it('starts where it resumed', () => {
    expect(createProgress(undefined).checkpoint()).to.equal(undefined);
    expect(createProgress(anchor(7)).checkpoint()).to.equal(position(7));
  });

  it('waits before the oldest input that is not settled', () => {
    const progress = createProgress(anchor(1));
    progress.passed(position(2));
    const settleThird = progress.begun(position(3));
    const settleFourth = progress.begun(position(4));
    progress.passed(position(5));
    settleFourth();
    expect(progress.checkpoint()).to.equal(position(2));
    settleThird();
    expect(progress.checkpoint()).to.equal(position(5));
    expect(progress.open()).to.equal(0);
  });

  it('resumes after the last event that an unsettled input follows, not where the store only passed something over', () => {
    const progress = createProgress(anchor(1));
    progress.passed(position(2));
    expect(progress.anchor()).to.deep.equal(anchor(1));
    progress.passed(position(3), anchor(3));
    progress.passed(position(4));
    const settle = progress.begun(position(5), anchor(5));
    progress.passed(position(6), anchor(6));
    expect(progress.anchor()).to.deep.equal(anchor(3));
    settle();
    expect(progress.anchor()).to.deep.equal(anchor(6));
  });

  it('waits for every reader of one input', () => {
    const progress = createProgress(anchor(1));
    const settleOne = progress.begun(position(2));
    const settleOther = progress.begun(position(2));
    settleOne();
    settleOne();
    expect(progress.checkpoint()).to.equal(position(1));
    settleOther();
    expect(progress.checkpoint()).to.equal(position(2));
  });

  it('waits for a reader that begins after another is done with the same input, or after it was passed', () => {
    const progress = createProgress(anchor(1));
    progress.begun(position(2))();
    progress.passed(position(2));
    const settle = progress.begun(position(2));
    progress.passed(position(3));
    expect(progress.checkpoint()).to.equal(position(1));
    settle();
    expect(progress.checkpoint()).to.equal(position(3));
  });

  it('is the newest position before which everything is settled, whatever the order', () => {
    check(
      fc.property(
        fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }),
        fc.infiniteStream(fc.nat()),
        (isInput, picks) => {
          const progress = createProgress(undefined);
          const open = new Map<number, () => void>();
          isInput.forEach((input, i) => {
            if (input) open.set(i, progress.begun(position(i)));
            else progress.passed(position(i));
          });
          while (open.size > 0) {
            const oldest = Math.min(...open.keys());
            expect(progress.checkpoint()).to.equal(oldest === 0 ? undefined : position(oldest - 1));
            const keys = [...open.keys()];
            const key = keys[(picks.next().value ?? 0) % keys.length] ?? oldest;
            open.get(key)?.();
            open.delete(key);
          }
          expect(progress.checkpoint()).to.equal(position(isInput.length - 1));
        },
      ),
    );
  });
});
