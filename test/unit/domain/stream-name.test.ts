import { expect } from 'chai';
import fc from 'fast-check';
import { decodeId, encodeId, parseStreamName, streamName } from '../../../src/domain/stream-name.ts';
import { check } from '../../support/property.ts';

const ids = fc.oneof(
  fc.uuid(),
  fc.string({ minLength: 1, maxLength: 120, unit: 'grapheme' }),
  fc.constantFrom('../../etc/passwd', '~abc', 'a/b', 'ü', 'osac.templates.small', 'x'.repeat(101)),
);
const categories = fc.constantFrom('cluster', 'hub', 'clusterOrder', 'name');

describe('stream names', () => {
  it('come back as they went in', () => {
    check(
      fc.property(categories, ids, (category, id) => {
        expect(parseStreamName(streamName(category, id))).to.deep.equal({ category, id });
        expect(decodeId(encodeId(id))).to.equal(id);
      }),
    );
  });
  it('are different for different ids, and hold safe characters only', () => {
    check(
      fc.property(ids, ids, (left, right) => {
        expect(encodeId(left) === encodeId(right)).to.equal(left === right);
        expect(streamName('cluster', left)).to.match(/^cluster-~?[A-Za-z0-9._-]+$/);
      }),
    );
  });
  it('take no other category, and tell one without an id', () => {
    expect(() => streamName('Bad-Category', 'x')).to.throw(TypeError);
    expect(parseStreamName('nohyphen')).to.deep.equal({ category: 'nohyphen', id: '' });
  });
});
