import { isPublished } from '../catalog/cluster-catalog-item.resource.ts';
import { isItemsOnly } from '../catalog/cluster-template.resource.ts';
import { governedSpec } from '../catalog/field-governance.ts';
import { invalid, isRefused, reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { referenceOf, unknownReference, type Reference } from '../references.ts';
import type { Catalogue, CatalogueObject } from './catalogue.ts';
import { clusterGovernance } from './item-governance.ts';

/** Where an order comes from: a template, or a catalogue item with its template (OSAC). */
export type OrderSource = {
  readonly template: CatalogueObject;
  readonly item?: CatalogueObject;
};

const ITEM = 'spec.catalog_item';

/** The template that an order speaks of, by itself or by its catalogue item. */
export const templateReference = (
  spec: JsonObject,
  catalogue: Pick<Catalogue, 'item'>,
): Reference | undefined => {
  const item = referenceOf(spec['catalog_item']);
  return item === undefined
    ? referenceOf(spec['template'])
    : referenceOf(catalogue.item(item)?.document['template']);
};

/** Exactly one of both must be there, and may be ordered. */
export const orderSource = (
  spec: JsonObject,
  catalogue: Pick<Catalogue, 'item' | 'template'>,
): OrderSource | Rejection => {
  const reference = referenceOf(spec['catalog_item']);
  if (reference === undefined) return withTemplate(referenceOf(spec['template']), catalogue);
  if (referenceOf(spec['template']) !== undefined)
    return invalid('TEMPLATE_AND_ITEM', ITEM, 'give either a template or a catalog item, not both');
  const item = catalogue.item(reference);
  if (item === undefined) return unknownReference('ClusterCatalogItem', `object.${ITEM}`, reference);
  if (item.deleting) return invalid('ITEM_DELETED', ITEM, `catalog item '${item.name}' is being deleted`);
  if (!isPublished(item.document))
    return reject('not-found', 'ITEM_NOT_PUBLISHED', `catalog item '${item.name}' is not published`, {
      field: ITEM,
    });
  const source = withTemplate(referenceOf(item.document['template']), catalogue);
  return isRefused(source) ? source : { ...source, item };
};

const withTemplate = (
  reference: Reference | undefined,
  catalogue: Pick<Catalogue, 'template'>,
): OrderSource | Rejection => {
  const template = reference === undefined ? undefined : catalogue.template(reference);
  if (template === undefined) return invalid('FIELD_REQUIRED', 'spec.template', 'template is mandatory');
  if (template.deleting)
    return invalid(
      'TEMPLATE_DELETED',
      'spec.template',
      `cluster template '${template.name}' is being deleted`,
    );
  return { template };
};

/**
 * Why a tenant may not order this way. Items of the template's own tenant count alone: those of `shared` are the
 * provider's,
 * and the bounds of any other item are the tenant's own to write.
 */
export const itemsOnlyRejection = ({ template, item }: OrderSource): Rejection | undefined =>
  !isItemsOnly(template.document) || item?.tenant === template.tenant
    ? undefined
    : invalid(
        'TEMPLATE_ITEMS_ONLY',
        item === undefined ? 'spec.template' : ITEM,
        `cluster template '${template.name}' is ordered through catalog items of its provider only: ` +
          "give 'spec.catalog_item' in place of 'spec.template'",
      );

/** The spec as the item governs it; without an item as it was sent. */
export const orderedSpec = (
  spec: JsonObject,
  { template, item }: OrderSource,
  { misfit }: Pick<Catalogue, 'misfit'>,
): JsonObject | Rejection =>
  item === undefined ? spec : governedSpec(spec, clusterGovernance(item, template, misfit));
