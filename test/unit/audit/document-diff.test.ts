import { expect } from 'chai';
import fc from 'fast-check';
import { differences } from '../../../src/app/audit/document-diff.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { check } from '../../support/property.ts';

const document = fc.dictionary(
  fc.constantFrom('a', 'b', 'c/d', 'e~f', 'constructor', '__proto__'),
  fc.oneof(
    fc.constantFrom<unknown>(null, 1, 'x', true, {}, []),
    fc.array(fc.integer({ max: 2, min: 0 }), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'toString'), fc.constantFrom<unknown>(1, 2, { n: 1 }, { n: 2 })),
  ),
) as unknown as fc.Arbitrary<JsonObject>;

/** The other document: every change carried out, one after the other. */
const carriedOut = (before: JsonObject, changes: ReturnType<typeof differences>): JsonObject => {
  const made = JSON.parse(JSON.stringify(before)) as JsonObject;
  for (const { path, op, after } of changes) {
    const keys = path
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop() ?? '';
    const place = keys.reduce(
      (node, key) => Object.getOwnPropertyDescriptor(node, key)?.value as JsonObject,
      made,
    );
    if (op === 'remove') Reflect.deleteProperty(place, last);
    else
      Object.defineProperty(place, last, {
        value: after,
        configurable: true,
        enumerable: true,
        writable: true,
      });
  }
  return made;
};

describe('differences between two documents', () => {
  it('lead from one to the other, whatever their keys are called', () => {
    check(
      fc.property(document, document, (before, after) => {
        const changes = differences(before, after);
        const sorted = (value: JsonObject): string[] => Object.keys(value).toSorted();
        const made = carriedOut(before, changes);
        expect(sorted(made)).to.deep.equal(sorted(after));
        expect(differences(made, after)).to.deep.equal([]);
        expect(differences(after, after)).to.deep.equal([]);
      }),
    );
  });

  it('are as deep as objects go, and take lists as a whole', () => {
    expect(
      differences({ a: { b: 1, c: [1] }, gone: 0 }, { a: { b: 2, c: [1, 2] }, come: null }),
    ).to.deep.equal([
      { path: '/a/b', op: 'replace', before: 1, after: 2 },
      { path: '/a/c', op: 'replace', before: [1], after: [1, 2] },
      { path: '/gone', op: 'remove', before: 0 },
      { path: '/come', op: 'add', after: null },
    ]);
  });
});
