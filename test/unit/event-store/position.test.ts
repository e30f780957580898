import { expect } from 'chai';
import fc from 'fast-check';
import { formatPosition, parsePosition } from '../../../src/adapters/event-store/shared/position.ts';
import { check } from '../../support/property.ts';

describe('event store: positions', () => {
  it('come back as the number they were made of, and sort as text', () => {
    const number = fc.nat({ max: Number.MAX_SAFE_INTEGER });
    check(
      fc.property(number, number, (a, b) => {
        expect(parsePosition(formatPosition(a))).to.equal(a);
        expect(formatPosition(a) < formatPosition(b)).to.equal(a < b);
      }),
    );
  });

  it('undefined is the beginning', () => {
    expect(parsePosition(undefined)).to.equal(0);
  });

  for (const foreign of ['', '1', 'abc', '00000000000000001', '-000000000000001', '0000000000000001x'])
    it(`"${foreign}" is none`, () => {
      expect(() => parsePosition(foreign)).to.throw(TypeError);
    });
});
