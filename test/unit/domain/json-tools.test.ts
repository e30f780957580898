import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import {
  byKey,
  defined,
  listAt,
  mergePaths,
  numberAt,
  objectAt,
  sameJson,
  stringAt,
  textOf,
  textsAt,
  valueAt,
  without as withoutKeys,
  withoutEmpty,
  withoutPaths,
  withoutValueAt,
  withValueAt,
} from '../../../src/domain/json-tools.ts';
import { check } from '../../support/property.ts';

const json = fc.jsonValue() as fc.Arbitrary<JsonValue>;

describe('JSON tools', () => {
  it('leaves out what is undefined, and nothing else', () => {
    expect(defined({ one: 1, none: undefined, empty: '', no: false, nothing: null })).to.deep.equal({
      one: 1,
      empty: '',
      no: false,
      nothing: null,
    });
  });
  it('gives a copy without some keys, and the value itself where it has none of them', () => {
    const whole: { kept: number; gone?: number; other?: number } = { kept: 1, gone: 2 };
    expect(withoutKeys(whole, 'gone', 'other')).to.deep.equal({ kept: 1 });
    expect(whole).to.deep.equal({ kept: 1, gone: 2 });
    expect(withoutKeys(whole, 'other')).to.equal(whole);
  });

  it('equality is that of canonical JSON', () => {
    check(
      fc.property(json, json, (left, right) => {
        expect(sameJson(left, structuredClone(left))).to.equal(true);
        const canonical = (value: JsonValue): string =>
          JSON.stringify(value, (_key, each: unknown) =>
            typeof each === 'object' && each !== null && !Array.isArray(each)
              ? Object.fromEntries(Object.entries(each).sort(byKey))
              : each,
          );
        expect(sameJson(left, right)).to.equal(canonical(left) === canonical(right));
      }),
    );
    expect(sameJson([], {})).to.equal(false);
    expect(sameJson({ a: 1 }, { b: 1 })).to.equal(false);
  });
  it('a value that was put is found, and gone once it is removed', () => {
    check(
      fc.property(fc.constantFrom('a', 'a.b', 'a.b.c'), json, (path, value) => {
        const put = withValueAt({ x: 1 }, path, value);
        expect(valueAt(put, path)).to.deep.equal(value);
        expect(valueAt(withoutValueAt(put, path), path)).to.equal(undefined);
        expect(put['x']).to.equal(1);
      }),
    );
    const there: JsonObject = { a: { b: 1 } };
    expect(withoutValueAt(there, 'x.y')).to.equal(there);
  });
  it('merges only the named paths', () => {
    const current = { spec: { a: 1, b: 2 }, other: true };
    expect(mergePaths(current, { spec: { a: 5, c: 7 } }, ['spec.a', 'spec.b'])).to.deep.equal({
      spec: { a: 5 },
      other: true,
    });
  });
  it('reads what is there and stands in for what is not', () => {
    const value = { text: 'x', number: 1, list: [1], object: { k: 'v', n: 1 } };
    expect([stringAt(value, 'text'), stringAt(value, 'number'), stringAt(undefined, 'x')]).to.deep.equal([
      'x',
      '',
      '',
    ]);
    expect([numberAt(value, 'number'), numberAt(value, 'text'), numberAt('x', 'y')]).to.deep.equal([1, 0, 0]);
    expect([listAt(value, 'list'), listAt(value, 'text'), listAt(null, 'x')]).to.deep.equal([[1], [], []]);
    expect([objectAt(value, 'object'), objectAt(value, 'list')]).to.deep.equal([{ k: 'v', n: 1 }, {}]);
    expect(objectAt(undefined, 'x')).to.deep.equal({});
    expect(textsAt(value, 'object')).to.deep.equal({ k: 'v', n: '1' });
    expect(textOf(undefined)).to.equal('');
    const sparse = { a: '', b: [], c: {}, d: null, e: undefined, f: 0, g: false };
    expect(withoutEmpty(sparse)).to.deep.equal({ f: 0, g: false });
  });

  it('takes out all paths at once as one after the other, and changes nothing that it was given', () => {
    const names = ['a', 'b', '0', '1', '__proto__', 'constructor'];
    const key = fc.constantFrom(...names);
    const tree = fc.letrec<{ node: JsonValue }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<JsonValue>('x', 1, null),
        fc.array(tie('node'), { maxLength: 3 }),
        fc.array(fc.tuple(key, tie('node')), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
      ),
    })).node;
    const path = fc.array(fc.oneof(key, fc.constant('*')), { minLength: 1, maxLength: 4 });
    check(
      fc.property(tree, fc.array(path, { maxLength: 4 }), (value, paths) => {
        const before = JSON.stringify(value);
        const expected = paths.reduce<JsonValue>((left, steps) => without(left, steps), value);
        const shown = withoutPaths(paths.map((steps) => steps.join('.')))(value);
        expect(JSON.stringify(shown)).to.equal(JSON.stringify(expected));
        expect(JSON.stringify(value)).to.equal(before);
      }),
    );
  });
});

/** One path, as plainly as it can be said. A list keeps the places of the others. */
const without = (node: JsonValue, [head = '', ...rest]: readonly string[]): JsonValue => {
  if (typeof node !== 'object' || node === null) return node;
  const isMeant = (name: string): boolean => head === '*' || head === name;
  if (Array.isArray(node))
    return node.map((item: JsonValue, i) =>
      !isMeant(String(i)) ? item : rest.length === 0 ? null : without(item, rest),
    );
  return Object.fromEntries(
    Object.entries(node).flatMap(([name, item]): [string, JsonValue][] => {
      if (!isMeant(name)) return [[name, item]];
      return rest.length === 0 ? [] : [[name, without(item, rest)]];
    }),
  );
};
