import { expect } from 'chai';
import { createPlaces, isAnother, isEmpty, type Places } from '../../../../src/app/publisher/written-ends.ts';
import type { Ends } from '../../../../src/app/publisher/ports.ts';

describe('where records of a topic went', () => {
  const ends = (...all: readonly number[]): Ends => ({
    offsets: new Map(all.map((end, partition) => [partition, BigInt(end)])),
    topicId: undefined,
  });
  const placesAt = (...all: readonly (readonly [number, bigint])[]): Places => ({
    offsets: new Map(all),
    topicId: undefined,
  });

  it('a topic that holds nothing, or ends in front of it, is another one', () => {
    const places = placesAt([0, 4n], [2, 0n]);
    expect(isAnother(ends(5, 0, 1), places)).to.equal(false);
    expect(isAnother(ends(9, 3, 7), places)).to.equal(false);
    for (const other of [ends(0, 0, 0), ends(4, 9, 9), ends(5, 0, 0), ends(5, 9), ends()])
      expect(isAnother(other, places), [...other.offsets.values()].join()).to.equal(true);
  });

  it('a topic of another id is another one, wherever it ends; one of the same id that has lost records is, too', () => {
    const places = { ...placesAt([0, 4n]), topicId: 'first' };
    expect(isAnother({ ...ends(9), topicId: 'first' }, places)).to.equal(false);
    expect(isAnother({ ...ends(9), topicId: 'second' }, places)).to.equal(true);
    expect(isAnother({ ...ends(4), topicId: 'first' }, places)).to.equal(true);
  });

  it('where only one of the ids is known, offsets tell', () => {
    const places = placesAt([0, 4n]);
    expect(isAnother({ ...ends(9), topicId: 'first' }, places)).to.equal(false);
    expect(isAnother(ends(9), { ...places, topicId: 'first' })).to.equal(false);
    expect(isAnother(ends(4), { ...places, topicId: 'first' })).to.equal(true);
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
    expect(() => places.add(stored('5'), false)).to.throw(/is empty or was recreated/);
    expect(places.all()).to.deep.equal(placesAt());
    expect(() => places.add(stored('0'), true)).to.throw(/is empty or was recreated/);
  });

  it('the id that was known first stays until the topic is found to be another one', () => {
    const places = createPlaces('t');
    places.goTo(ends(0));
    expect(places.all().topicId).to.equal(undefined);
    places.goTo({ ...ends(0), topicId: 'first' });
    places.goTo({ ...ends(0), topicId: 'second' });
    expect(places.all().topicId).to.equal('first');
    places.forget();
    places.goTo({ ...ends(0), topicId: 'second' });
    expect(places.all().topicId).to.equal('second');
    places.start({ ...placesAt([0, 4n]), topicId: 'stored' });
    expect(places.all()).to.deep.equal({ ...placesAt([0, 4n]), topicId: 'stored' });
  });
});
