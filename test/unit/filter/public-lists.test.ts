import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { withValueAt } from '../../../src/domain/json-tools.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { compileFilter } from '../../../src/http/osac/filter/compile.ts';
import { listTarget } from '../../../src/http/osac/filter/targets.ts';
import type { FieldPath } from '../../../src/projections/filter/ast.ts';
import { evaluate } from '../../../src/projections/filter/evaluate.ts';
import { fieldsOf, mentions } from '../../../src/projections/filter/walk.ts';
import { check } from '../../support/property.ts';

const valuesOf = ({ type, enumNumbers }: FieldPath): fc.Arbitrary<JsonValue | undefined> => {
  if (type === 'enum') return fc.constantFrom(undefined, ...Object.keys(enumNumbers ?? {}));
  if (type === 'bool') return fc.constantFrom(undefined, true);
  if (type === 'int64') return fc.constantFrom(undefined, '7');
  throw new Error(`say what values a field of type ${type} has`);
};

/** What decides too, although no filter of the public surface can say it: a pool that is not ready is not offered. */
const UNSEEN: { readonly [kind: string]: JsonObject } = {
  externalIpPool: { status: { state: 'EXTERNAL_IP_POOL_STATE_READY' } },
};

/** Public lists read an index of `listed`; what they are documented to show is `publicList`. */
describe('what public lists show by themselves', () => {
  for (const { kind, message, secrets, publicList = [], listed } of kinds) {
    if (publicList.length === 0) continue;
    const target = listTarget({ message, secrets }, 'public');
    if (target === undefined) throw new Error(`${kind} has public defaults but is not public`);
    const filters = publicList.map(({ filter }) => compileFilter(filter, target));

    it(`${kind}: the predicate says what its filters say`, () => {
      const fields = filters.flatMap(fieldsOf);
      const documents = fc
        .tuple(
          ...fields.map((field) => valuesOf(field).map((value) => ({ path: field.path.join('.'), value }))),
        )
        .map((values) =>
          values.reduce<JsonObject>(
            (document, { path, value }) =>
              value === undefined ? document : withValueAt(document, path, value),
            UNSEEN[kind] ?? {},
          ),
        );
      check(
        fc.property(documents, (document) => {
          expect(listed?.(document)).to.equal(filters.every((filter) => evaluate(filter, document, 0)));
        }),
      );
    });

    it(`${kind}: each filter is about the field that lets a caller's filter replace it`, () => {
      for (const [i, { when }] of publicList.entries()) {
        const filter = filters[i];
        if (when !== 'always')
          expect(filter !== undefined && mentions(filter, when.unlessMentioned)).to.equal(true);
      }
    });
  }
});
