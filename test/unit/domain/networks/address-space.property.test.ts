import { expect } from 'chai';
import fc from 'fast-check';
import { isRejection } from '../../../../src/domain/decider.ts';
import { addressSpace, addressSpaceDecider } from '../../../../src/domain/networks/address-space.ts';
import { parseRange, type Range } from '../../../../src/domain/ranges.ts';
import { defined } from '../../../../src/domain/json-tools.ts';
import { check } from '../../../support/property.ts';

const at = '2026-11-23T09:00:00.000Z';
const { decide, evolve, initialState } = addressSpaceDecider;
const step = fc.record({
  who: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  isRelease: fc.boolean(),
  ago: fc.constantFrom(0, 0, 1),
  by: fc.constantFrom('c1', 'c1', 'c2', undefined),
  hub: fc.constantFrom('east', 'west', undefined),
  ranges: fc.array(
    fc
      .tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 26, max: 32 }), fc.boolean())
      .map(([host, bits, isSix]) =>
        isSix
          ? `fd00::${host.toString(16)}/${bits + 96}`
          : (parseRange(`10.0.0.${host}/${bits}`)?.text ?? ''),
      ),
    { minLength: 1, maxLength: 3 },
  ),
});
type Held = {
  readonly holder: { readonly id: string };
  readonly ranges: readonly string[];
  readonly hub?: string;
};
const meet = (left: Range, right: Range): boolean =>
  left.family === right.family && left.from <= right.to && right.from <= left.to;
const parsed = ({ ranges }: Pick<Held, 'ranges'>) => ranges.flatMap((text) => parseRange(text) ?? []);
const clash = (left: Held, right: Held): boolean =>
  left.holder.id !== right.holder.id &&
  (left.hub === undefined || right.hub === undefined || left.hub === right.hub) &&
  parsed(left).some((one) => parsed(right).some((other) => meet(one, other)));

describe('the ranges of external IP pools', () => {
  it('property: no two overlap but on different hubs, and what is refused was taken', () => {
    check(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        let state = initialState();
        const held = (): readonly Held[] =>
          (addressSpace.lends?.held(state) ?? []) as unknown as readonly Held[];
        for (const { who, isRelease, ago, by, hub, ranges } of steps) {
          const holder = { kind: 'externalIpPool', id: who };
          const former = addressSpace.lends?.heldBy(state, holder);
          const generation = (former ?? state.generation) - ago;
          const before = held();
          const decision = decide(
            state,
            isRelease
              ? { type: 'ReleasePoolRanges', at, holder, generation }
              : { type: 'ClaimPoolRanges', at, holder, ranges, ...defined({ hub, by }) },
          );
          if (isRejection(decision)) {
            const wanted = { holder, ranges, ...defined({ hub }) };
            const isTaken = before.some((other) => clash(other, wanted));
            expect(isTaken || former !== undefined, decision.message).to.equal(true);
            continue;
          }
          if (isRelease) expect(decision.length === 1).to.equal(former === generation);
          state = decision.reduce(evolve, state);
          for (const one of held()) for (const other of held()) expect(clash(one, other)).to.equal(false);
        }
      }),
    );
  });
});
