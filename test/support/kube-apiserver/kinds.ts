import { isObject, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { badRequest } from './errors.ts';
import { compileSchema } from './schema/compile.ts';
import type { Schema } from './schema/schema.ts';
import type { JsonObject, Kind } from './types.ts';

const builtIn = (group: string, plural: string, kind: string, options: Partial<Kind> = {}): Kind => ({
  group,
  version: 'v1',
  kind,
  listKind: `${kind}List`,
  plural,
  singular: kind.toLowerCase(),
  shortNames: [],
  namespaced: true,
  statusSubresource: false,
  counted: false,
  unconditionalUpdate: true,
  custom: false,
  ...options,
});

const RBAC = 'rbac.authorization.k8s.io';

/** What the server serves without any CustomResourceDefinition. Their fields are not validated. */
export const BUILT_IN_KINDS: readonly Kind[] = [
  builtIn('', 'namespaces', 'Namespace', { namespaced: false, statusSubresource: true, shortNames: ['ns'] }),
  builtIn('', 'serviceaccounts', 'ServiceAccount', { shortNames: ['sa'] }),
  builtIn('', 'secrets', 'Secret'),
  builtIn('', 'configmaps', 'ConfigMap', { shortNames: ['cm'] }),
  builtIn('', 'services', 'Service', { statusSubresource: true, shortNames: ['svc'] }),
  builtIn(RBAC, 'roles', 'Role'),
  builtIn(RBAC, 'rolebindings', 'RoleBinding'),
  builtIn(RBAC, 'clusterroles', 'ClusterRole', { namespaced: false }),
  builtIn(RBAC, 'clusterrolebindings', 'ClusterRoleBinding', { namespaced: false }),
  builtIn('coordination.k8s.io', 'leases', 'Lease', { unconditionalUpdate: false }),
  builtIn('apiextensions.k8s.io', 'customresourcedefinitions', 'CustomResourceDefinition', {
    namespaced: false,
    statusSubresource: true,
    counted: true,
    unconditionalUpdate: false,
    shortNames: ['crd'],
  }),
];

/** The kind that a CustomResourceDefinition defines, in its storage version. Throws 400 when it is not usable. */
export const kindOfDefinition = (definition: JsonObject): Kind => {
  const spec = objectAt(definition, 'spec');
  const names = objectAt(spec, 'names');
  const version = storageVersion(spec);
  const [plural, kind] = [stringAt(names, 'plural'), stringAt(names, 'kind')];
  const group = stringAt(spec, 'group');
  if (plural === '' || kind === '' || group === '')
    throw badRequest('spec.group and spec.names are required');
  const schema = objectAt(objectAt(version, 'schema'), 'openAPIV3Schema');
  const shortNames = names['shortNames'];
  return {
    group,
    version: stringAt(version, 'name'),
    kind,
    listKind: stringAt(names, 'listKind') || `${kind}List`,
    plural,
    singular: stringAt(names, 'singular') || kind.toLowerCase(),
    shortNames: Array.isArray(shortNames) ? shortNames.map(String) : [],
    namespaced: stringAt(spec, 'scope') !== 'Cluster',
    statusSubresource: isObject(objectAt(version, 'subresources')['status']),
    counted: true,
    unconditionalUpdate: false,
    custom: true,
    schema: compileSchema(schema as Schema),
  };
};

const storageVersion = (spec: JsonObject): JsonObject => {
  const { versions } = spec;
  const found = Array.isArray(versions)
    ? versions.filter(isObject).find((one) => one['storage'] === true && one['served'] === true)
    : undefined;
  if (found === undefined) throw badRequest('spec.versions: one version must be served and stored');
  return found;
};
