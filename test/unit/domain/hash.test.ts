import { expect } from 'chai';
import fc from 'fast-check';
import { base32, fnv1a32, fnv1a64, hex64, unitInterval } from '../../../src/domain/hash.ts';
import { check } from '../../support/property.ts';

/** The definition, as slow as it is short. */
const definition = (text: string): bigint =>
  new TextEncoder()
    .encode(text)
    .reduce(
      (hash, byte) => ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn,
      0xcbf29ce484222325n,
    );

describe('hashes', () => {
  it('are FNV-1a', () => {
    expect(hex64(fnv1a64(''))).to.equal('cbf29ce484222325');
    expect(hex64(fnv1a64('foobar'))).to.equal('85944171f73967e8');
    expect(fnv1a32('foobar')).to.equal(0xbf9cf968);
    check(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
        expect(fnv1a64(text)).to.equal(definition(text));
      }),
    );
  });
  it('are written without loss', () => {
    check(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (value) => {
        const digits = Array.from(base32(value)).map((digit) =>
          BigInt('abcdefghijklmnopqrstuvwxyz234567'.indexOf(digit)),
        );
        expect(digits.reduce((sum, digit) => sum * 32n + digit, 0n)).to.equal(value);
        expect(digits).to.have.lengthOf(13);
      }),
    );
  });
  it('spread over the unit interval', () => {
    const values = Array.from({ length: 1000 }, (_, index) => unitInterval(`apply:0.0.0#${index}`));
    expect(values.every((value) => value >= 0 && value < 1)).to.equal(true);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    expect(mean).to.be.within(0.45, 0.55);
  });
});
