import { expect } from 'chai';
import fc from 'fast-check';
import {
  annotationsRejection,
  immutableRejection,
  labelsRejection,
  metadataRejection,
  nameRejection,
} from '../../../src/domain/metadata-rules.ts';
import { check } from '../../support/property.ts';

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

describe('metadata rules', () => {
  it('names are DNS labels of 1 to 63 characters', () => {
    check(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'z', '0', '-', 'A', '.', 'é'), maxLength: 66 }),
        (name) => {
          expect(nameRejection(name) === undefined, name).to.equal(NAME.test(name));
        },
      ),
    );
  });
  it('every violation is named, in the form that clients match', () => {
    expect(nameRejection('')?.message).to.equal(
      'validation failed: validation errors:\n - object.metadata.name: must be at least 1 characters\n' +
        ' - object.metadata.name: does not match regex pattern `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`',
    );
    expect(nameRejection('A')?.message).to.match(
      /^validation failed: validation error: object\.metadata\.name/,
    );
    expect(nameRejection('a'.repeat(64))?.message).to.contain('must be at most 63 characters');
  });
  it('label keys have an optional prefix and a lower-case name', () => {
    const refused: [string, string][] = [
      ['', 'name must not be empty'],
      ['Bad Key', "but contains 'B' at position 0"],
      ['a'.repeat(64), 'name must be at most 63 characters long'],
      ['-a', 'name must start with a letter or a digit'],
      ['a.', 'name must end with a letter or a digit'],
      ['/a', 'prefix must not be empty'],
      ['ex ample.com/a', 'prefix must be a DNS name in lower case'],
      [`${'a.'.repeat(127)}a/x`, 'prefix must be at most 253 characters long'],
      ['example.com/', 'name must not be empty'],
    ];
    for (const [key, problem] of refused) {
      const rejection = labelsRejection({ [key]: '' });
      expect(rejection?.message, key).to.contain(problem);
      expect(rejection?.message).to.match(/^field 'metadata\.labels' key '/);
      expect(annotationsRejection({ [key]: '' })?.field).to.equal('metadata.annotations');
    }
    for (const key of ['a', 'a_b.c-d', 'example.com/a', '0']) {
      expect(labelsRejection({ [key]: '' }), key).to.equal(undefined);
    }
  });
  it('labels, annotations and finalizers are bounded in number and size', () => {
    const many = (count: number): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));
    expect(labelsRejection(many(128))).to.equal(undefined);
    expect(labelsRejection(many(129))?.message).to.equal(
      "field 'metadata.labels' may hold at most 128 labels",
    );
    expect(annotationsRejection(many(128))).to.equal(undefined);
    expect(annotationsRejection(many(129))?.code).to.equal('TOO_MANY');
    // Bytes of UTF-8, keys included: 1 + 2 * 131,071 = 262,143.
    expect(annotationsRejection({ a: 'é'.repeat(131_071) })).to.equal(undefined);
    expect(annotationsRejection({ a: 'é'.repeat(131_072) })?.message).to.equal(
      "field 'metadata.annotations' may hold at most 262144 bytes of keys and values, but it holds 262145",
    );
    const finalizers = Array.from({ length: 65 }, (_, i) => `f${i}`);
    expect(metadataRejection({ finalizers: finalizers.slice(1) })).to.equal(undefined);
    expect(metadataRejection({ finalizers })?.code).to.equal('TOO_MANY');
    for (const wrong of ['', 'x'.repeat(254)])
      expect(metadataRejection({ finalizers: [wrong] })?.code).to.equal('INVALID_FINALIZER');
  });
  it('a key of a megabyte is not repeated', () => {
    for (const key of ['A'.repeat(1024 * 1024), `${'a'.repeat(1024 * 1024)}/x`])
      expect(labelsRejection({ [key]: '' })?.message.length).to.be.lessThan(300);
  });
  it('label values are empty or like names; annotation values are anything', () => {
    expect(labelsRejection({ a: 'Upper' })?.code).to.equal('INVALID_LABEL_VALUE');
    expect(labelsRejection({ a: 'fine-1' })).to.equal(undefined);
    expect(annotationsRejection({ a: 'Any Text é\n' })).to.equal(undefined);
    expect(labelsRejection(undefined)).to.equal(undefined);
    expect(annotationsRejection('x')).to.equal(undefined);
  });
  it('texts are counted in characters, not in UTF-16 units', () => {
    expect(metadataRejection({ display_name: '😀'.repeat(63) })).to.equal(undefined);
    expect(metadataRejection({ display_name: 'a'.repeat(64) })?.message).to.contain('at most 63 characters');
    expect(metadataRejection({ description: 'a'.repeat(257) })?.message).to.contain('at most 256');
  });
  it('immutable fields are named one by one', () => {
    expect(immutableRejection(['metadata.name']).message).to.equal("field 'metadata.name' is immutable");
    expect(immutableRejection(['metadata.name', 'metadata.tenant']).message).to.equal(
      "fields 'metadata.name' and 'metadata.tenant' are immutable",
    );
    expect(immutableRejection([]).field).to.equal('');
  });
});
