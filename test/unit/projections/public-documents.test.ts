import { expect } from 'chai';
import fc from 'fast-check';
import { isObject } from '../../../src/domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
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

/** What is left, said plainly: a key goes where a private path ends, `*` standing for any. */
const left = (value: JsonValue, paths: readonly (readonly string[])[]): JsonValue => {
  if (!isObject(value)) return value;
  const kept = Object.entries(value).flatMap(([name, child]) => {
    const below = paths.filter(([head]) => head === name || head === '*').map(([, ...rest]) => rest);
    return below.some((rest) => rest.length === 0) ? [] : [[name, left(child as JsonValue, below)]];
  });
  return Object.fromEntries(kept) as JsonObject;
};

describe('public documents of the read model', () => {
  it('lack what lies on private paths, and nothing else, as those of the domain do', () => {
    check(
      fc.property(fc.dictionary(key, document), fc.array(path, { maxLength: 4 }), (value, paths) => {
        const before = JSON.stringify(value);
        const wanted = left(
          value as JsonObject,
          paths.map((text) => text.split('.')),
        );
        expect(withoutPrivate(value as JsonObject, privatePaths(paths))).to.deep.equal(wanted);
        expect(publicDocument(value as JsonObject, paths)).to.deep.equal(wanted);
        expect(JSON.stringify(value), 'the document itself').to.equal(before);
      }),
      { numRuns: 1000 },
    );
  });

  it('lack what lies on private paths in the entries of lists', () => {
    const value = { list: [{ a: 1, b: 2 }, { b: 3 }], other: [{ a: 4 }] };
    const wanted = { list: [{ b: 2 }, { b: 3 }], other: [{ a: 4 }] };
    expect(withoutPrivate(value, privatePaths(['list.*.a']))).to.deep.equal(wanted);
    expect(publicDocument(value, ['list.*.a'])).to.deep.equal(wanted);
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
