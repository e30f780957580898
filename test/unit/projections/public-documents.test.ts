import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/domain/json.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { publicDocument } from '../../../src/domain/resource.ts';
import { privatePaths, withoutPrivate } from '../../../src/projections/resources/fold.ts';
import { check } from '../../support/property.ts';

const key = fc.constantFrom('a', 'b', 'c', '0', '1');
const document = fc.letrec<{ value: JsonObject[string] }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, 1, 'text', true),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  ),
})).value;
const path = fc
  .array(fc.oneof(key, fc.constant('*')), { minLength: 1, maxLength: 4 })
  .map((keys) => keys.join('.'));

describe('public documents of the read model', () => {
  it('are those of the domain, whatever is private', () => {
    check(
      fc.property(fc.dictionary(key, document), fc.array(path, { maxLength: 4 }), (value, paths) => {
        const before = JSON.stringify(value);
        expect(withoutPrivate(value as JsonObject, privatePaths(paths))).to.deep.equal(
          publicDocument(value as JsonObject, paths),
        );
        expect(JSON.stringify(value), 'the document itself').to.equal(before);
      }),
      { numRuns: 1000 },
    );
  });

  for (const { kind, privateOnly } of kinds) {
    it(`of a ${kind} hold none of its private paths`, () => {
      const full: JsonObject = {};
      for (const text of privateOnly) fill(full, text.split('.'));
      const shown = withoutPrivate(full, privatePaths(privateOnly));
      expect(shown).to.deep.equal(publicDocument(full, privateOnly));
      expect(JSON.stringify(shown)).not.to.contain('private');
    });
  }
});

const fill = (node: JsonObject, [head = '', ...rest]: readonly string[]): void => {
  const name = head === '*' ? 'any' : head;
  if (rest.length === 0) node[name] = 'private';
  else fill((node[name] ??= {}) as JsonObject, rest);
};
