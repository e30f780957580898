import canonicalize from 'canonicalize';
import { expect } from 'chai';
import fc from 'fast-check';
import { canonicalText } from '../../../../src/app/audit/merkle/canonical.ts';
import { leafHash, leafHashOfText } from '../../../../src/app/audit/merkle/hashing.ts';
import type { JsonValue } from '../../../../src/domain/json.ts';
import { check } from '../../../support/property.ts';

/** Keys that objects do not keep in the order in which they were put, or do not keep at all, among others. */
const keys = fc.oneof(
  fc.constantFrom(
    'b',
    'a',
    'B',
    '',
    '10',
    '9',
    '-1',
    '01',
    '1a',
    '__proto__',
    'constructor',
    'toJSON',
    'é',
    '\u{1f600}',
    '\ufb33',
  ),
  fc.string({ unit: 'grapheme' }),
);
const { value: values } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
    ),
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .array(fc.tuple(keys, tie('value')), { maxLength: 6 })
      .map((entries) => Object.fromEntries(entries) as JsonValue),
  ),
}));

const nested = (depth: number): JsonValue =>
  JSON.parse(`${'{"b":1,"a":['.repeat(depth)}0${']}'.repeat(depth)}`) as JsonValue;

describe('the hash of a leaf', () => {
  it('is that of the UTF-8 of its text, with nothing that a text may hold taken for another', () => {
    check(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.constant('\0')), (text) => {
        expect(leafHashOfText(text)).to.deep.equal(leafHash(Buffer.from(text, 'utf8')));
      }),
    );
  });
});

describe('canonical JSON', () => {
  it('is what RFC 8785 says, whatever the keys', () => {
    check(
      fc.property(values, (value) => {
        expect(canonicalText(value)).to.equal(canonicalize(value));
      }),
    );
  });

  it('sorts keys by UTF-16 units, as in the example of RFC 8785 §3.2.3', () => {
    const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '\u{1f600}': 4, '\u0080': 5, '\u00f6': 6 };
    expect(canonicalText(value)).to.equal('{"\\r":2,"\u0080":5,"ö":6,"€":1,"😀":4,"\ufb33":3}');
    expect(canonicalText({ '10': 1, '9': 2, '!': 3, b: { '1': 'x', '': 'y' } })).to.equal(
      '{"!":3,"10":1,"9":2,"b":{"":"y","1":"x"}}',
    );
    expect(canonicalText(JSON.parse('{"a":1,"__proto__":{"b":2}}') as JsonValue)).to.equal(
      '{"__proto__":{"b":2},"a":1}',
    );
  });

  it('holds what is nested deeper than any stack', () => {
    for (const depth of [1, 49, 50, 51, 20_000])
      expect(canonicalText(nested(depth)) === canonicalize(nested(depth)), `${depth}`).to.equal(true);
  });

  it('writes what RFC 8785 has no form for as JSON does, with its keys sorted', () => {
    for (const key of ['z', '1']) {
      expect(canonicalText({ [key]: '\ud800', a: Number.POSITIVE_INFINITY } as JsonValue)).to.equal(
        key === 'z' ? '{"a":null,"z":"\\ud800"}' : '{"1":"\\ud800","a":null}',
      );
    }
    expect(canonicalText({ '\udc00': 1, a: 2 })).to.equal('{"a":2,"\\udc00":1}');
    expect(() => canonicalText(undefined as unknown as JsonValue)).to.throw(TypeError);
  });
});
