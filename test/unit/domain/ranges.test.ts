import { expect } from 'chai';
import fc from 'fast-check';
import {
  addressText,
  holds,
  isPrivate,
  parseAddress,
  parseRange,
  parseRanges,
  sizeOf,
} from '../../../src/domain/ranges.ts';
import { check } from '../../support/property.ts';

const rangeOf = (text: string) => {
  const range = parseRange(text);
  if (range === undefined) throw new Error(`${text} is no range`);
  return range;
};
const given = (text: string): readonly (string | bigint)[] => {
  const range = rangeOf(text);
  const { first, last } = range;
  return [addressText(first), addressText(last), sizeOf([range])];
};

describe('ranges of addresses', () => {
  it('give out what OSAC counts: all of IPv6, of IPv4 neither network nor broadcast address', () => {
    expect(given('192.0.2.0/24')).to.deep.equal(['192.0.2.1', '192.0.2.254', 254n]);
    expect(given('192.0.2.0/29')).to.deep.equal(['192.0.2.1', '192.0.2.6', 6n]);
    expect(given('192.0.2.7/32')).to.deep.equal(['192.0.2.7', '192.0.2.7', 1n]);
    expect(given('10.0.0.0/8')[2]).to.equal(2n ** 24n - 2n);
    expect(given('2001:db8::/126')).to.deep.equal(['2001:db8::', '2001:db8::3', 4n]);
    expect(given('2001:db8::/48')[2]).to.equal(2n ** 80n);
    expect(given('::/0')[2]).to.equal(2n ** 128n);
  });

  it('of two addresses have no network and no broadcast address', () => {
    expect(given('192.0.2.4/31')).to.deep.equal(['192.0.2.4', '192.0.2.5', 2n]);
  });

  it('lose their host bits, and are sorted by number', () => {
    expect(rangeOf('10.4.0.1/16').text).to.equal('10.4.0.0/16');
    expect(rangeOf('FD00:0::1/48').text).to.equal('fd00::/48');
    const sorted = parseRanges(['10.9.0.0/24', '10.10.0.0/24', '9.0.0.0/30']).map(({ text }) => text);
    expect(sorted).to.deep.equal(['9.0.0.0/30', '10.9.0.0/24', '10.10.0.0/24']);
  });

  it('hold only what may be given out', () => {
    const ranges = parseRanges(['192.0.2.0/30', '192.0.2.8/32']);
    const held = (text: string): boolean => {
      const address = parseAddress(text);
      return address !== undefined && holds(ranges, address);
    };
    expect(['192.0.2.1', '192.0.2.2', '192.0.2.8'].every(held)).to.equal(true);
    expect(['192.0.2.0', '192.0.2.3', '192.0.2.7', '::c000:201', 'x', ''].some(held)).to.equal(false);
  });

  it('are private where nobody reaches them from the internet', () => {
    expect(
      ['10.1.0.0/16', '172.31.0.0/24', '100.64.0.0/10', 'fd00::/48'].map(rangeOf).every(isPrivate),
    ).to.equal(true);
    expect(
      ['8.0.0.0/6', '172.32.0.0/24', '2001:db8::/32', '192.0.2.0/24'].map(rangeOf).some(isPrivate),
    ).to.equal(false);
  });

  it('property: an address and its text are the same thing', () => {
    check(
      fc.property(
        fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }),
        fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }),
        (v4, v6) => {
          for (const address of [v4.toString(16).padStart(8, '0'), v6.toString(16).padStart(32, '0')])
            expect(parseAddress(addressText(address))).to.deep.equal(address);
        },
      ),
    );
  });
});
