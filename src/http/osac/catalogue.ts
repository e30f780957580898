import { LRUCache } from 'lru-cache';
import type { CommandRunner } from '../../app/commands/command.ts';
import { DEFAULT_MARK } from '../../domain/catalog/cluster-version.resource.ts';
import { isStored } from '../../domain/catalog/document.ts';
import type { CheckValue } from '../../domain/catalog/field-governance.ts';
import type { ClusterCommand } from '../../domain/clusters/commands.ts';
import { outsideItem } from '../../domain/clusters/item-bounds.ts';
import type { AddressPool } from '../../domain/clusters/catalogue.ts';
import {
  type Catalogue,
  type CatalogueObject,
  itemsOnlyRejection,
  templateReference,
} from '../../domain/clusters/resolve.ts';
import { pullSecretIn } from '../../domain/clusters/revise.ts';
import type { Rejection } from '../../domain/decider.ts';
import { valueAt, objectAt, stringAt, withoutValueAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { aggregateOf, clusterTemplateAggregate, secret } from '../../domain/kinds.ts';
import { DEFAULT_GROUP, DEFAULT_SUBNETS } from '../../domain/networks/default-networking.ts';
import { externalIpPool, isReady } from '../../domain/networks/external-ip-pool.resource.ts';
import { securityGroup } from '../../domain/networks/security-group.resource.ts';
import { subnet } from '../../domain/networks/subnet.resource.ts';
import { type Reference, referenceOf } from '../../domain/references.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import type { ResourceReader, ResourceRow, Visibility } from '../../projections/read-models.ts';
import { sees } from '../../projections/visibility.ts';
import { refused, type Creation } from './creates.ts';
import { defaultPart } from './default-parts.ts';
import { find, isOpenTo, problemText, referencesInvalid } from './references.ts';
import { HIDDEN } from './secrets.ts';
import type { Change, Revision } from './updates.ts';

/** What orders refer to, as the read model shows it now. Parsed documents are kept by revision: they rarely change. */
export type CatalogueReader = {
  /**
   * Look-ups for an object of this tenant and project. A name that more than one object has where it is looked for
   * throws ApiError 400.
   */
  of(tenant: string, visibility: Visibility, project?: string): Catalogue;
  /** Fills in the references of a template's own secrets, which read models do not hold. */
  withSecrets(object: CatalogueObject): Promise<CatalogueObject>;
  object(row: ResourceRow): CatalogueObject;
  /** What hubs are given of a secret object; undefined when there is no such object (any more). */
  pullSecretOf(id: string): Promise<SecretRef | Rejection | undefined>;
};

const REMEMBERED = 1_000;
const POOLS = 100;
/** One for each endpoint of a cluster. */
const OF_A_CLUSTER = 2n;

/** Those that external IPs of the order's tenant could be ordered from by hand and that have so many, most of them first. */
export const addressPools = (
  read: (row: ResourceRow) => CatalogueObject,
  resources: Pick<ResourceReader, 'pages'>,
  wanted: bigint,
  owner: string,
  visibility: Visibility,
): readonly AddressPool[] =>
  [...resources.pages(externalIpPool.kind, POOLS)]
    .flat()
    .filter((row) => !row.deleting && isOpenTo(owner, row) && sees(visibility, row.kind, row))
    .map(read)
    .filter(({ document }) => isReady(document))
    .map(({ id, name, document }) => {
      const status = objectAt(document, 'status');
      return {
        pool: { id, name },
        hub: stringAt(status, 'hub'),
        free: BigInt(stringAt(status, 'available')),
      };
    })
    .filter(({ free, hub }) => free >= wanted && hub !== '')
    .sort((left, right) => (left.free > right.free ? -1 : left.free < right.free ? 1 : 0))
    .map(({ pool, hub }) => ({ pool, hub }));

export const createCatalogueReader = (
  resources: ResourceReader,
  runner: CommandRunner,
  judge: () => CheckValue,
): CatalogueReader => {
  const parsed = new LRUCache<string, CatalogueObject>({ max: REMEMBERED });
  const found = new LRUCache<string, { readonly generation: number; readonly object: CatalogueObject }>({
    max: REMEMBERED,
  });

  const object = (row: ResourceRow): CatalogueObject => {
    const key = `${row.kind} ${row.id}`;
    const known = parsed.get(key);
    if (known?.revision === row.revision) return known;
    const read = {
      id: row.id,
      name: row.name,
      tenant: row.tenant,
      document: JSON.parse(row.privateJson) as JsonObject,
      secrets: {},
      revision: row.revision,
      deleting: row.deleting,
    };
    parsed.set(key, read);
    return read;
  };

  /** What was found before and can not have changed since. `question`: everything that the answer depends on. */
  const remember = (
    kind: string,
    question: string,
    ask: () => ResourceRow | undefined,
  ): CatalogueObject | undefined => {
    const generation = resources.generation(kind);
    const key = `${kind} ${question}`;
    const known = found.get(key);
    if (known?.generation === generation) return known.object;
    const row = ask();
    if (row === undefined) return undefined;
    const read = object(row);
    found.set(key, { generation, object: read });
    return read;
  };

  return {
    object,
    of: (tenant, visibility, project = '') => {
      // Most of each question, which an order asks several of.
      const scope = JSON.stringify([tenant, project, visibility]);
      const one =
        (kind: string, message: string, field: string, local = false) =>
        (reference: Reference): CatalogueObject | undefined =>
          remember(kind, `${scope} ${JSON.stringify(reference)}`, () => {
            const found = find({ kind, local }, reference, { tenant, project }, resources, visibility);
            if ('row' in found) return found.row;
            if (found.problem !== 'ambiguous') return undefined;
            throw referencesInvalid([{ field, description: problemText(message, reference, found.problem) }]);
          });
      return {
        template: one('clusterTemplate', 'ClusterTemplate', 'object.spec.template'),
        item: one('clusterCatalogItem', 'ClusterCatalogItem', 'object.spec.catalog_item'),
        secret: one('secret', 'Secret', 'object.spec.pull_secret_secret', true),
        subnet: one('subnet', 'Subnet', 'object.spec.network_attachment.subnet', true),
        securityGroup: one('securityGroup', 'SecurityGroup', 'object.spec.network_attachment', true),
        defaultNetwork: () => {
          const row = defaultPart(resources, tenant, subnet.kind, DEFAULT_SUBNETS);
          const group = defaultPart(resources, tenant, securityGroup.kind, [DEFAULT_GROUP]);
          if (row === undefined) return undefined;
          return { subnet: object(row), ...(group === undefined ? {} : { securityGroup: object(group) }) };
        },
        addressPools: () => addressPools(object, resources, OF_A_CLUSTER, tenant, visibility),
        misfit: judge(),
        version: one('clusterVersion', 'ClusterVersion', 'object.spec.version'),
        hostType: one('hostType', 'HostType', 'object.spec.node_sets'),
        defaultVersion: () =>
          remember(
            'clusterVersion',
            `${scope} ${DEFAULT_MARK}`,
            () => resources.marked('clusterVersion', DEFAULT_MARK, visibility)[0],
          ),
      };
    },
    pullSecretOf: async (id) => {
      const { state } = await runner.load(aggregateOf(secret), id);
      return isStored(state) && state.status !== 'retired' ? pullSecretIn(state) : undefined;
    },
    withSecrets: async (template) => {
      if (valueAt(template.document, 'spec_defaults.pull_secret') !== HIDDEN) return template;
      const { state } = await runner.load(clusterTemplateAggregate, template.id);
      return isStored(state) ? { ...template, secrets: state.secrets } : template;
    },
  };
};

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
