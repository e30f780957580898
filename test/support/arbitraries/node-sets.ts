import fc from 'fast-check';
import type { ClusterChanges } from '../../../src/domain/clusters/commands.ts';
import { own } from '../../../src/domain/json-tools.ts';
import { INHERITED_NAMES } from './hostile-names.ts';

const HOST_TYPES: { readonly [set: string]: string } = { workers: 'fc430', gpu: 'g5' };
const size = fc.oneof(fc.integer({ min: -1, max: 6 }), fc.constantFrom(2 ** 31 - 1, 2 ** 31, 0.5));

/** Node-set changes as callers send them, right and wrong: known and new sets, odd sizes, other host types. */
export const nodeSetChanges = (known: readonly string[]): fc.Arbitrary<ClusterChanges> =>
  fc
    .uniqueArray(fc.constantFrom(...known, 'extra', ...INHERITED_NAMES), { maxLength: 3 })
    .chain((names) =>
      fc.tuple(
        fc.tuple(...names.map(() => fc.tuple(size, fc.constantFrom('same', 'other', 'none')))),
        fc.subarray(names),
        fc.constant(names),
      ),
    )
    .map(([sets, resized, names]) => ({
      resized,
      nodeSets: Object.fromEntries(
        sets.map(([wanted, host], index) => {
          const name = names[index] ?? '';
          const id = host === 'same' ? (own(HOST_TYPES, name) ?? 'h1') : 'h2';
          return [name, { size: wanted, hostType: host === 'none' ? {} : { id, name: id } }];
        }),
      ),
    }));
