import { expect } from 'chai';
import fc from 'fast-check';
import { outsideItem } from '../../../../src/domain/clusters/item-bounds.ts';
import type { CatalogueObject } from '../../../../src/domain/clusters/catalogue.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { check } from '../../../support/property.ts';

const object = (name: string, document: JsonObject): CatalogueObject => ({
  id: name,
  name,
  tenant: 'shared',
  document,
  secrets: {},
  revision: 0,
  deleting: false,
});
const TEMPLATE = object('small', { node_sets: { workers: { host_type: { id: 'h' }, size: 1 } } });
/** A schema is the largest number that it lets pass. */
const misfit = (schema: string, value: unknown): string | undefined =>
  typeof value === 'number' && value <= Number(schema) ? undefined : `must be at most ${schema}`;
const SIZE = { path: 'node_sets.workers.size', editable: true, default: 1, validation_schema: '4' };

describe('changes of a cluster that was ordered from an item', () => {
  const spec = (size: number, more: JsonObject = {}, hostType = 'h'): JsonObject => ({
    node_sets: { workers: { host_type: { id: hostType, name: hostType }, size } },
    catalog_item: { id: 'offer' },
    ...more,
  });
  const refusal = (before: JsonObject, after: JsonObject, ...definitions: JsonObject[]): string | undefined =>
    outsideItem(
      before,
      after,
      { item: object('offer', { field_definitions: definitions }), template: TEMPLATE },
      {
        misfit,
      },
    )?.code;
  const key = { ssh_public_key: 'k' };

  const CASES: readonly (readonly [what: string, code: string | undefined, found: string | undefined])[] = [
    ['a size inside the bounds', undefined, refusal(spec(1), spec(4), SIZE)],
    ['a size outside them', 'FIELD_INVALID', refusal(spec(1), spec(5), SIZE)],
    [
      'a size that stays, outside of what the item says now',
      undefined,
      refusal(spec(9), spec(9, key), SIZE, { path: 'ssh_public_key', editable: true }),
    ],
    ['a size of which the item does not speak', 'FIELD_NOT_ALLOWED', refusal(spec(1), spec(2))],
    ['a field of which it does not speak', 'FIELD_NOT_ALLOWED', refusal(spec(1), spec(1, key), SIZE)],
    [
      'what it has settled',
      'FIELD_NOT_EDITABLE',
      refusal(spec(1, key), spec(1, { ssh_public_key: 'x' }), { path: 'ssh_public_key', default: 'k' }),
    ],
    [
      'what it has settled, taken away',
      'FIELD_NOT_EDITABLE',
      refusal(spec(1, key), spec(1), { path: 'ssh_public_key', default: 'k' }),
    ],
    [
      'what must be given, taken away',
      'FIELD_REQUIRED',
      refusal(spec(1, key), spec(1), { path: 'ssh_public_key', editable: true }),
    ],
    [
      'what may be left out, taken away',
      undefined,
      refusal(spec(1, key), spec(1), { path: 'ssh_public_key', editable: true, default: 'd' }),
    ],
    [
      'another node set',
      'FIELD_NOT_ALLOWED',
      refusal(spec(1), { ...spec(1), node_sets: { more: { size: 1 } } }, SIZE),
    ],
    ['another host type', 'FIELD_NOT_ALLOWED', refusal(spec(1), spec(1, {}, 'other'), SIZE)],
  ];
  for (const [what, code, found] of CASES)
    it(`${what}: ${code ?? 'allowed'}`, () => expect(found).to.equal(code));

  it('the host type of a set is not the customer’s word, so no schema of the set speaks of it', () => {
    const judged: unknown[] = [];
    const item = object('offer', {
      field_definitions: [{ path: 'node_sets.workers', editable: true, validation_schema: '{}' }],
    });
    const look = (_schema: string, value: unknown): undefined => void judged.push(value);
    outsideItem(spec(1), spec(2), { item, template: TEMPLATE }, { misfit: look });
    expect(judged).to.deep.equal([{ size: 2 }]);
  });

  it('lead from one size to another exactly where the item lets an order have it', () => {
    const sizes = fc.integer({ min: 1, max: 8 });
    check(
      fc.property(sizes, sizes, (before, after) => {
        const allowed = before === after || after <= 4;
        expect(refusal(spec(before), spec(after), SIZE)).to.equal(allowed ? undefined : 'FIELD_INVALID');
      }),
    );
  });
});
