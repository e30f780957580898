import type { Store } from '../store.ts';
import { apiVersionOf, type JsonObject, type Kind } from '../types.ts';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** The documents by which clients learn what the server serves; undefined: no such path. */
export const discoveryDocument = (store: Store, path: string, gitVersion: string): JsonObject | undefined => {
  const parts = path.split('/').filter((part) => part !== '');
  const [root, group, version, ...more] = parts;
  if (path === '/version') return versionDocument(gitVersion);
  if (root === 'api' && parts.length === 1)
    return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  if (root === 'api' && group === 'v1' && parts.length === 2) return resourceList(store, '', 'v1');
  if (root !== 'apis' || more.length > 0) return undefined;
  const groups = groupsOf(store);
  if (group === undefined) return { kind: 'APIGroupList', apiVersion: 'v1', groups };
  const found = groups.find(({ name }) => name === group);
  if (found === undefined) return undefined;
  if (version === undefined) return { kind: 'APIGroup', apiVersion: 'v1', ...found };
  return resourceList(store, group, version);
};

const versionDocument = (gitVersion: string): JsonObject => {
  const [major = '1', minor = '36'] = gitVersion.replace(/^v/, '').split('.');
  return { major, minor, gitVersion, gitTreeState: 'clean', platform: 'linux/amd64', compiler: 'gc' };
};

type GroupDocument = { name: string; versions: JsonObject[]; preferredVersion: JsonObject };

/** Groups whose kinds are calculated, not stored. */
const REVIEW_GROUPS = [
  ['authorization.k8s.io', 'v1'],
  ['authentication.k8s.io', 'v1'],
] as const;

const groupsOf = (store: Store): GroupDocument[] => {
  const pairs = new Map<string, string>(REVIEW_GROUPS);
  for (const { group, version } of store.kinds()) if (group !== '') pairs.set(group, version);
  return [...pairs].map(([name, version]) => {
    const entry = { groupVersion: `${name}/${version}`, version };
    return { name, versions: [entry], preferredVersion: entry };
  });
};

const resourceList = (store: Store, group: string, version: string): JsonObject | undefined => {
  const kinds = store.kinds().filter((kind) => kind.group === group && kind.version === version);
  const reviews = REVIEWS.filter((review) => review.group === group && version === 'v1');
  if (kinds.length === 0 && reviews.length === 0) return undefined;
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf({ group, version }),
    resources: [
      ...kinds.flatMap(resourceEntries),
      ...reviews.map(({ plural, kind }) => ({
        name: plural,
        singularName: '',
        namespaced: false,
        kind,
        verbs: ['create'],
      })),
    ],
  };
};

const REVIEWS = [
  { group: 'authorization.k8s.io', plural: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview' },
  { group: 'authorization.k8s.io', plural: 'selfsubjectrulesreviews', kind: 'SelfSubjectRulesReview' },
  { group: 'authentication.k8s.io', plural: 'selfsubjectreviews', kind: 'SelfSubjectReview' },
] as const;

const resourceEntries = (kind: Kind): JsonObject[] => {
  const base = { singularName: kind.singular, namespaced: kind.namespaced, kind: kind.kind };
  const main = {
    name: kind.plural,
    ...base,
    verbs: VERBS,
    ...(kind.shortNames.length === 0 ? {} : { shortNames: [...kind.shortNames] }),
  };
  const status = {
    name: `${kind.plural}/status`,
    ...base,
    singularName: '',
    verbs: ['get', 'patch', 'update'],
  };
  return kind.statusSubresource ? [main, status] : [main];
};
