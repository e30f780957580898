import type { JsonObject } from '../../domain/json.ts';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import { isDefaultPart } from '../../domain/networks/default-ids.ts';
import type { ResourceReader, ResourceRow } from '../../projections/read-models.ts';

export const createdAtOf = ({ privateJson }: ResourceRow): string =>
  stringAt(objectAt(JSON.parse(privateJson) as JsonObject, 'metadata'), 'creation_timestamp');

/** What the service made with the tenant, by the first of these names. Labels and names are the tenant's to give. */
export const defaultPart = (
  resources: Pick<ResourceReader, 'get' | 'findByName'>,
  tenant: string,
  kind: string,
  names: readonly string[],
): ResourceRow | undefined => {
  const owner = resources.get('tenant', tenant, { all: true });
  if (owner === undefined) return undefined;
  const createdAt = createdAtOf(owner);
  return names
    .flatMap((name) => resources.findByName(kind, name, { tenants: [tenant] }))
    .find(({ id }) => isDefaultPart(id, tenant, createdAt));
};
