import type { Store } from './store.ts';
import type { JsonObject, Kind, User } from './types.ts';
import type { Objects } from './write/objects.ts';

const SYSTEM: User = { name: 'system:apiserver', groups: ['system:masters'] };
const RBAC = 'rbac.authorization.k8s.io';

/** What a new API server holds: the first namespaces and the roles that everybody refers to. */
export const bootstrap = (store: Store, objects: Objects): void => {
  const create = (group: string, plural: string, body: JsonObject): void => {
    const kind = store.find(group, plural) as Kind;
    objects.create(kind, '', body, { user: SYSTEM, manager: 'kube-apiserver' });
  };
  for (const name of ['default', 'kube-node-lease', 'kube-public', 'kube-system']) {
    create('', 'namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  for (const [name, rules] of Object.entries(ROLES)) {
    create(RBAC, 'clusterroles', {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name },
      rules,
    });
  }
  create(RBAC, 'clusterrolebindings', {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'cluster-admin' },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'Group', apiGroup: RBAC, name: 'system:masters' }],
  });
};

const READ = ['get', 'list', 'watch'];
const WRITE = [...READ, 'create', 'delete', 'deletecollection', 'patch', 'update'];

const rule = (apiGroup: string, resources: string[], verbs: string[]): JsonObject => ({
  apiGroups: [apiGroup],
  resources,
  verbs,
});

const ROLES: { readonly [name: string]: JsonObject[] } = {
  'cluster-admin': [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
  admin: [
    rule('', ['configmaps', 'secrets', 'services', 'serviceaccounts'], WRITE),
    rule('', ['namespaces'], READ),
    rule('coordination.k8s.io', ['leases'], WRITE),
    rule(RBAC, ['roles', 'rolebindings'], WRITE),
  ],
  edit: [rule('', ['configmaps', 'secrets', 'services', 'serviceaccounts'], WRITE)],
  view: [rule('', ['configmaps', 'services', 'serviceaccounts', 'namespaces'], READ)],
};
