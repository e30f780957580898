import type { ClusterCommand } from '../../domain/clusters/commands.ts';
import { outsideItem } from '../../domain/clusters/item-bounds.ts';
import { itemsOnlyRejection, templateReference } from '../../domain/clusters/order-source.ts';
import type { Rejection } from '../../domain/decider.ts';
import { objectAt, stringAt, valueAt, withoutValueAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { referenceOf } from '../../domain/references.ts';
import type { ResourceReader } from '../../projections/read-models.ts';
import type { CatalogueReader } from './catalogue.ts';
import { refused, type Creation } from './creates.ts';
import type { Change, Revision } from './updates.ts';

/**
 * What holds tenants to catalogue items (OSAC): templates that are ordered through items only, and bounds that
 * outlive the order. The provider's admins are bound by neither.
 */
export const throughItems = (
  creation: Creation<ClusterCommand>,
  catalogue: CatalogueReader,
): Creation<ClusterCommand> => ({
  ...creation,
  resolve: (object) => {
    const { tenant, project, sent, principal } = object;
    if (!principal.admin) {
      const spec = objectAt(sent, 'spec');
      const known = catalogue.of(tenant, principal.visibility, project);
      const itemReference = referenceOf(spec['catalog_item']);
      const item = itemReference === undefined ? undefined : known.item(itemReference);
      const reference = templateReference(spec, known);
      const template = reference === undefined ? undefined : known.template(reference);
      if (template !== undefined)
        refuse(itemsOnlyRejection({ template, ...(item === undefined ? {} : { item }) }));
    }
    return creation.resolve(object);
  },
});

export const withinItem = (
  revision: Revision<ClusterCommand>,
  catalogue: CatalogueReader,
  resources: Pick<ResourceReader, 'get'>,
): Revision<ClusterCommand> => ({
  command: (change) => {
    if (!change.principal.admin) refuse(rejectionOf(change, catalogue, resources));
    return revision.command(change);
  },
});

const refuse = (rejection: Rejection | undefined): void => {
  if (rejection !== undefined) throw refused(rejection);
};

const ALL = { all: true } as const;
const PULL_SECRET = 'pull_secret';

/** The item governs also while it is no longer offered, so it is looked up as the provider sees it. */
const rejectionOf = (
  { before, after, tenant, principal, message, secrets }: Change,
  catalogue: CatalogueReader,
  resources: Pick<ResourceReader, 'get'>,
): Rejection | undefined => {
  const spec = objectAt(before, 'spec');
  const [item, template] = (['catalog_item', 'template'] as const).map((field) => {
    const kind = field === 'template' ? 'clusterTemplate' : 'clusterCatalogItem';
    const row = resources.get(kind, stringAt(objectAt(spec, field), 'id'), ALL);
    return row === undefined ? undefined : catalogue.object(row);
  });
  if (item === undefined || template === undefined) return undefined;
  const sent = valueAt(message.object, `spec.${PULL_SECRET}`);
  const given = secrets[`spec.${PULL_SECRET}`];
  const former = withoutValueAt(spec, PULL_SECRET);
  const wanted = withoutValueAt(objectAt(after, 'spec'), PULL_SECRET);
  const [was, is]: readonly [JsonObject, JsonObject] =
    given === undefined
      ? [former, wanted]
      : given === null
        ? [spec, wanted]
        : [former, { ...wanted, [PULL_SECRET]: sent ?? '' }];
  return outsideItem(was, is, { item, template }, catalogue.of(tenant, principal.visibility));
};
