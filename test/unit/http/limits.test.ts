import { expect } from 'chai';
import fc from 'fast-check';
import { addressKey, createUnread } from '../../../src/http/limits/admission.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { check } from '../../support/property.ts';

describe('answers that nobody reads', () => {
  const statusOf = (act: () => void): number => {
    try {
      act();
    } catch (error) {
      if (error instanceof ApiError) return error.status;
      throw error;
    }
    return 200;
  };

  it('are bounded for one payer, and for all together', () => {
    const unread = createUnread({ ofAll: 100, ofOne: 40 });
    const asked = (payer: string): number => statusOf(() => unread.assertRoom(payer));
    const read = unread.hold('a', 50);
    expect([asked('a'), asked('b')]).to.deep.equal([429, 200]);
    for (const payer of ['b', 'c']) unread.hold(payer, 25);
    expect([asked('a'), asked('b'), asked('d')]).to.deep.equal([429, 503, 503]);
    read();
    read();
    expect(unread.bytes).to.equal(50);
    expect([asked('a'), asked('b'), asked('d')]).to.deep.equal([200, 200, 200]);
  });

  it('leave nothing behind once they are read', () => {
    check(
      fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b', '__proto__'), fc.nat(1000))), (answers) => {
        const unread = createUnread({ ofAll: 10, ofOne: 1 });
        const reads = answers.map(([payer, bytes]) => unread.hold(payer, bytes));
        expect(unread.bytes).to.equal(answers.reduce((sum, [, bytes]) => sum + bytes, 0));
        for (const read of reads) read();
        expect(unread.bytes).to.equal(0);
        for (const payer of ['a', 'b', '__proto__']) unread.assertRoom(payer);
      }),
    );
  });
});

describe('the address that strangers are counted by', () => {
  for (const [address, key] of [
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['', ''],
  ] as const)
    it(`of ${address === '' ? 'nothing' : address} is ${key}`, () =>
      expect(addressKey(address)).to.equal(key));
});
