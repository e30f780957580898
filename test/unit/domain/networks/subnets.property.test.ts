import { expect } from 'chai';
import fc from 'fast-check';
import { isRejection } from '../../../../src/domain/decider.ts';
import { parseRange, type Range } from '../../../../src/domain/ranges.ts';
import {
  claimOf,
  claimsOf,
  decidePlan,
  emptyPlan,
  evolvePlan,
  type SubnetPlan,
} from '../../../../src/domain/networks/subnet-plan.ts';
import { isInside } from '../../../../src/domain/networks/ranges-of-spec.ts';
import { cases, check } from '../../../support/property.ts';

const at = '2026-11-23T09:00:00.000Z';
const WITHIN = ['10.0.0.0/24', 'fd00::/56'].flatMap((text) => parseRange(text) ?? []);
const ranges = fc
  .tuple(
    fc.option(fc.tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 24, max: 32 })), {
      nil: undefined,
    }),
    fc.option(fc.tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 56, max: 66 })), {
      nil: undefined,
    }),
  )
  .map(([four, six]) => [
    ...(four === undefined ? [] : [parseRange(`10.0.0.${four[0]}/${four[1]}`)?.text ?? '']),
    ...(six === undefined ? [] : [parseRange(`fd00:0:0:${six[0].toString(16)}::/${six[1]}`)?.text ?? '']),
  ]);
const step = fc.record({
  who: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
  isRelease: fc.boolean(),
  /** Of a release: so many generations ago. */
  ago: fc.constantFrom(0, 0, 1, 2),
  by: fc.constantFrom('c1', 'c1', 'c2', undefined),
  ranges,
});

const overlap = (left: Range, right: Range): boolean =>
  left.family === right.family && left.from <= right.to && right.from <= left.to;
const rangesIn = (plan: SubnetPlan): readonly Range[] =>
  claimsOf(plan).flatMap((claim) => claim.ranges.flatMap((text) => parseRange(text) ?? []));

describe('the subnets of a network', () => {
  it('property: no two overlap, all lie inside, and only the present holder gives its ranges back', () => {
    check(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let plan = emptyPlan();
        for (const { who, isRelease, ago, by, ranges: wanted } of steps) {
          const holder = { kind: 'subnet', id: who };
          const former = claimOf(plan, holder);
          const generation = (former?.generation ?? plan.generation) - ago;
          const decision = decidePlan(
            plan,
            isRelease
              ? { type: 'ReleaseRanges', at, holder, generation }
              : { type: 'ClaimRanges', at, holder, ranges: wanted, ...(by === undefined ? {} : { by }) },
            WITHIN,
          );
          const others = rangesIn(plan).filter(({ text }) => former?.ranges.includes(text) !== true);
          const parsed = wanted.flatMap((text) => parseRange(text) ?? []);
          const isFree = parsed.every((one) => !others.some((other) => overlap(one, other)));
          if (!isRelease && isRejection(decision))
            expect(isFree && (former === undefined || former.by === by), decision.message).to.equal(false);
          if (isRejection(decision)) continue;
          if (isRelease) expect(decision.length === 1).to.equal(former?.generation === generation);
          plan = decision.reduce(evolvePlan, plan);
          const all = rangesIn(plan);
          for (const [i, one] of all.entries()) {
            expect(WITHIN.some((outer) => isInside(one, outer))).to.equal(true);
            for (const other of all.slice(i + 1))
              expect(overlap(one, other), `${one.text} ${other.text}`).to.equal(false);
          }
          const kept = [...plan.taken.ipv4, ...plan.taken.ipv6].map(({ text }) => text).toSorted();
          expect(kept).to.deep.equal(all.map(({ text }) => text).toSorted());
        }
      }),
      { numRuns: cases(300) },
    );
  });

  it('thousands of them fold in little room', () => {
    const within = ['10.0.0.0/8'].flatMap((text) => parseRange(text) ?? []);
    let plan = emptyPlan();
    for (let i = 0; i < 2_000; i += 1) {
      const claim = {
        type: 'ClaimRanges',
        at,
        holder: { kind: 'subnet', id: `s${i}` },
        ranges: [`10.${i % 8}.${Math.floor(i / 8)}.0/24`],
        by: `c${i}`,
      } as const;
      const decision = decidePlan(plan, claim, within);
      if (isRejection(decision)) throw new Error(decision.message);
      plan = decision.reduce(evolvePlan, plan);
    }
    expect(claimsOf(plan)).to.have.lengthOf(2_000);
    expect(JSON.stringify(plan).length).to.be.lessThan(2_000 * 300);
  });
});
