import { isPublished } from '../catalog/catalog-item.ts';
import { plainValue } from '../catalog/parameter-values.ts';
import { PARAMETERS } from '../catalog/spec-shape.ts';
import type { AddressPool, CatalogueObject } from '../clusters/catalogue.ts';
import { invalid, reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { byKey, objectAt } from '../json-tools.ts';

/** What orders of machines, virtual and bare metal, come from. */
export type Source = {
  readonly item?: CatalogueObject;
  readonly template: CatalogueObject | undefined;
};

export const factsOf = ({ id, name, revision }: CatalogueObject) => ({ id, name, revision });

export const itemRejection = (item: CatalogueObject | undefined): Rejection | undefined =>
  item === undefined || isPublished(item.document)
    ? undefined
    : reject('not-found', 'ITEM_NOT_PUBLISHED', `catalog item '${item.name}' is not published`, {
        field: 'spec.catalog_item',
      });

export const templateRejection = ({ deleting, name }: CatalogueObject): Rejection | undefined =>
  deleting ? invalid('TEMPLATE_DELETED', 'spec.template', `template '${name}' is being deleted`) : undefined;

/** `pools`: on the hub of its subnet, the one with most free addresses first. `words`: of the machine. */
export const poolFor = (pools: readonly AddressPool[], hub: string, words: string): AddressPool | Rejection =>
  pools.find((pool) => pool.hub === hub) ??
  reject(
    'failed-precondition',
    'NO_EXTERNAL_IP_POOL',
    `no external IP pool on the hub of its subnet is ready with a free address: the ${words} cannot get an external address automatically`,
    { field: 'spec.auto_external_ip_attachment' },
  );

/** Template parameters as playbooks read them. */
export const plainParameters = (spec: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(objectAt(spec, PARAMETERS))
      .sort(byKey)
      .map(([name, value]) => [name, plainValue(value as JsonObject)]),
  );
