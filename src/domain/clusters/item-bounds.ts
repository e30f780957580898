import { changeRejection } from '../catalog/field-governance.ts';
import type { Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, own, sameJson, withoutValueAt } from '../json-tools.ts';
import type { Catalogue, CatalogueObject } from './catalogue.ts';
import { CLUSTER_SPEC } from './spec-paths.ts';
import { itemGovernance } from '../catalog/item-governance.ts';

/**
 * Why a cluster that was ordered from an item may not be changed this way: the item governs what its customers set, whenever
 * they set it. It counts as it is now, and only for what changes. `before` and `after` are specs of the cluster.
 */
export const outsideItem = (
  before: JsonObject,
  after: JsonObject,
  { item, template }: { readonly item: CatalogueObject; readonly template: CatalogueObject },
  { misfit }: Pick<Catalogue, 'misfit'>,
): Rejection | undefined =>
  changeRejection(
    asAsked(before, after),
    asAsked(after, before),
    itemGovernance(CLUSTER_SPEC, item, template, misfit),
  );

/** Node sets as customers write them: a host type that stays is the template's word, not theirs. */
const asAsked = (spec: JsonObject, other: JsonObject): JsonObject => {
  const sets = objectAt(spec, 'node_sets');
  if (Object.keys(sets).length === 0) return spec;
  const others = objectAt(other, 'node_sets');
  const asked = Object.keys(sets).map((name) => {
    const set = objectAt(sets, name);
    const stays = sameJson(set['host_type'], own(objectAt(others, name), 'host_type'));
    return [name, stays ? withoutValueAt(set, 'host_type') : set] as const;
  });
  return { ...spec, node_sets: Object.fromEntries(asked) };
};
