import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { isObject, listAt, objectAt, stringAt } from '../../../domain/json-tools.ts';
import { OSAC_GROUP } from './api.ts';

/** Fields that we write or read: an API server drops, without a word, what its CRD does not know. */
export const CLUSTER_ORDER_FIELDS: readonly (readonly string[])[] = [
  ['spec', 'templateID'],
  ['spec', 'templateParameters'],
  ['spec', 'nodeRequests', 'resourceClass'],
  ['spec', 'nodeRequests', 'numberOfNodes'],
  ['spec', 'pullSecret'],
  ['spec', 'sshPublicKey'],
  ['spec', 'releaseImage'],
  ['spec', 'network', 'podCIDR'],
  ['spec', 'network', 'serviceCIDR'],
  ['status', 'phase'],
  ['status', 'conditions'],
  ['status', 'desiredConfigVersion'],
  ['status', 'clusterReference', 'namespace'],
  ['status', 'clusterReference', 'hostedClusterName'],
  ['status', 'provisioningJobs'],
];

/** The schema of ClusterOrder in an OpenAPI v3 document of its group; undefined when it is not there. */
export const schemaInOpenApi = (document: JsonObject): JsonObject | undefined =>
  Object.values(objectAt(objectAt(document, 'components'), 'schemas'))
    .filter(isObject)
    .find((schema) =>
      listAt(schema, 'x-kubernetes-group-version-kind').some(
        (kind) => stringAt(kind, 'group') === OSAC_GROUP && stringAt(kind, 'kind') === 'ClusterOrder',
      ),
    );

/** Paths of fields that the schema does not have, as `spec.network.podCIDR`. */
export const missingFields = (schema: JsonObject, document: JsonObject): readonly string[] =>
  CLUSTER_ORDER_FIELDS.filter((path) => !hasField(schema, path, document)).map((path) => path.join('.'));

const hasField = (schema: JsonObject, path: readonly string[], document: JsonObject): boolean => {
  const [field, ...rest] = path;
  const here = itemsOf(resolved(schema, document), document);
  if (field === undefined || here['x-kubernetes-preserve-unknown-fields'] === true) return true;
  const next = objectAt(here, 'properties')[field];
  return isObject(next) && hasField(next, rest, document);
};

const itemsOf = (schema: JsonObject, document: JsonObject): JsonObject =>
  stringAt(schema, 'type') === 'array' ? resolved(objectAt(schema, 'items'), document) : schema;

/** Follows `$ref` and a single `allOf`, as the API server writes them. */
const resolved = (schema: JsonObject, document: JsonObject, depth = 0): JsonObject => {
  const [only] = listAt(schema, 'allOf');
  const target: JsonValue | undefined = isObject(only) ? only : schema;
  const ref = stringAt(target, '$ref');
  if (ref === '' || depth > 10) return isObject(target) ? target : {};
  const name = ref.slice(ref.lastIndexOf('/') + 1);
  return resolved(objectAt(objectAt(objectAt(document, 'components'), 'schemas'), name), document, depth + 1);
};
