import { LRUCache } from 'lru-cache';
import type { CommandRunner } from '../../app/commands/command.ts';
import { aggregateOf, clusterTemplateAggregate, secret } from '../../domain/kinds.ts';
import { pullSecretIn } from '../../domain/clusters/pull-secret.ts';
import type { CheckValue } from '../../domain/catalog/field-governance.ts';
import type { Rejection } from '../../domain/decider.ts';
import type { Catalogue, CatalogueObject } from '../../domain/clusters/resolve.ts';
import { isStored } from '../../domain/catalog/document.ts';
import { DEFAULT_MARK } from '../../domain/catalog/cluster-version.resource.ts';
import { valueAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Reference } from '../../domain/references.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import type { ResourceReader, ResourceRow, Visibility } from '../../projections/read-models.ts';
import { find, problemText, referencesInvalid } from './references.ts';
import { HIDDEN } from './secrets.ts';

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
