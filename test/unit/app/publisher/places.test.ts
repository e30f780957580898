import { expect } from 'chai';
import { createPlaces, isAnother, isEmpty, type Places } from '../../../../src/app/publisher/places.ts';
import type { Ends } from '../../../../src/app/publisher/ports.ts';

describe('where records of a topic went', () => {
  const ends = (...all: readonly number[]): Ends =>
    new Map(all.map((end, partition) => [partition, BigInt(end)]));
  const placesAt = (...all: readonly (readonly [number, bigint])[]): Places => new Map(all);

  it('a topic that holds nothing, or ends in front of it, is another one', () => {
    const places = placesAt([0, 4n], [2, 0n]);
    expect(isAnother(ends(5, 0, 1), places)).to.equal(false);
    expect(isAnother(ends(9, 3, 7), places)).to.equal(false);
    for (const other of [ends(0, 0, 0), ends(4, 9, 9), ends(5, 0, 0), ends(5, 9), ends()])
      expect(isAnother(other, places), [...other.values()].join()).to.equal(true);
  });

  it('nothing is known of a topic that holds something, where nobody has stored a place', () => {
    expect(isAnother(ends(0, 1), placesAt())).to.equal(false);
    expect([isEmpty(ends(0, 0)), isEmpty(ends(0, 1))]).to.deep.equal([true, false]);
  });

  it('a send that lies in front of an earlier one says so, also of one that was stored', () => {
    const places = createPlaces('t');
    places.start(placesAt([0, 4n]));
    const stored = (offset: string) => [{ topic: 't', partition: 0, offset }];
    places.add(stored('-1'), false);
    places.add(stored('5'), false);
    expect(places.all()).to.deep.equal(placesAt([0, 5n]));
    expect(() => places.add(stored('5'), false)).to.throw(/is empty or was made anew/);
    expect(places.all()).to.deep.equal(placesAt());
    expect(() => places.add(stored('0'), true)).to.throw(/is empty or was made anew/);
  });
});
