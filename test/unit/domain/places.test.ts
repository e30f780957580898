import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/domain/json.ts';
import {
  placesOf,
  valueAtPlace,
  withoutValueAtPlace,
  withValueAtPlace,
} from '../../../src/domain/document-places.ts';
import { INHERITED_NAMES } from '../../support/arbitraries/hostile-names.ts';
import { check } from '../../support/property.ts';

describe('places in a document', () => {
  const document = {
    spec: {
      one: { id: 'x' },
      sets: { 'a.b': { host: { id: 'h1' } }, plain: { host: { id: 'h2' } }, none: {} },
      list: [{ ref: { id: 'r1' } }, {}, { ref: { id: 'r2' } }],
    },
  };

  it('a plain path names one place, and none where nothing stands', () => {
    expect(placesOf(document, 'spec.one')).to.deep.equal([['spec', 'one']]);
    expect(placesOf(document, 'spec.two')).to.deep.equal([]);
  });

  it('* stands for every key of a map and every index of a list', () => {
    expect(placesOf(document, 'spec.sets.*.host')).to.deep.equal([
      ['spec', 'sets', 'a.b', 'host'],
      ['spec', 'sets', 'plain', 'host'],
    ]);
    expect(placesOf(document, 'spec.list.*.ref')).to.deep.equal([
      ['spec', 'list', '0', 'ref'],
      ['spec', 'list', '2', 'ref'],
    ]);
    expect(placesOf(document, 'spec.one.id.*')).to.deep.equal([]);
  });

  it('a value is put where it belongs and nothing else moves', () => {
    const changed = withValueAtPlace(document, ['spec', 'list', '2', 'ref'], { id: 'new' }) as JsonObject;
    expect(valueAtPlace(changed, ['spec', 'list', '2', 'ref', 'id'])).to.equal('new');
    expect(valueAtPlace(changed, ['spec', 'list', '0'])).to.equal(document.spec.list[0]);
    expect(document.spec.list[2]).to.deep.equal({ ref: { id: 'r2' } });
    expect(withoutValueAtPlace(document, ['spec', 'sets', 'a.b']))
      .to.have.nested.property('spec.sets')
      .that.has.all.keys('plain', 'none');
  });

  it('any key keeps its meaning, also one that every object has', () => {
    check(
      fc.property(fc.oneof(fc.constantFrom(...INHERITED_NAMES), fc.string()), fc.string(), (key, text) => {
        const put = withValueAtPlace({ map: {} }, ['map', key], text);
        expect(placesOf(put, 'map.*')).to.deep.equal([['map', key]]);
        expect(valueAtPlace(put, ['map', key])).to.equal(text);
        expect(withoutValueAtPlace(put as JsonObject, ['map', key])).to.deep.equal({ map: {} });
        expect(Object.getPrototypeOf((put as { map: object }).map)).to.equal(Object.prototype);
      }),
    );
  });
});
