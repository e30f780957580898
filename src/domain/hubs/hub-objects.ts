import { OSAC_GROUP, type HubObject, type NeededRight, type ObjectType } from './hub-object.ts';
import { IDENTITY_NAMESPACE } from './identity.ts';

/** Kinds of objects that every hub has, whatever is ordered there. */
const read = (
  type: ObjectType,
  rights: readonly NeededRight[],
  more: Partial<HubObject<unknown>> = {},
): HubObject<unknown> => ({ ...type, shown: (object) => object, rights, ...more });

const everywhere = (setup: NeededRight['setup'], ...verbs: readonly string[]): NeededRight => ({
  verbs,
  within: 'anywhere',
  setup,
});

const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const;
const CORE = { group: '', version: 'v1' } as const;

export const NAMESPACE = read({ ...CORE, kind: 'Namespace', plural: 'namespaces' }, [
  { ...everywhere('hub-access', 'get'), names: [IDENTITY_NAMESPACE], optional: true },
  { ...everywhere('hub-access', 'create', 'delete', 'get'), optional: true },
  everywhere('tenant-namespaces', 'create', 'delete', 'get'),
  everywhere('controller-ledger', 'create', 'delete', 'get', 'list'),
]);

export const SECRET = read({ ...CORE, kind: 'Secret', plural: 'secrets' }, [everywhere('hub-access', 'get')]);

/** Name of the Lease that marks a hub; the right to it is granted by name. RBAC cannot grant a creation so. */
export const MARK_NAME = 'fulfillment-ledger';
export const LEASE = read({ group: 'coordination.k8s.io', version: 'v1', kind: 'Lease', plural: 'leases' }, [
  { verbs: ['create'], within: 'hub', setup: 'hub-access' },
  { verbs: ['get', 'update'], within: 'hub', setup: 'hub-access', names: [MARK_NAME] },
]);

export const SERVICE_ACCOUNT = read({ ...CORE, kind: 'ServiceAccount', plural: 'serviceaccounts' }, [
  everywhere('controller-ledger', 'create', 'get'),
]);
export const ROLE_BINDING = read({ ...RBAC, kind: 'RoleBinding', plural: 'rolebindings' }, [
  everywhere('controller-ledger', 'create', 'get'),
]);

/** What the account `hub-access` of the hub's namespace is granted in each cluster's (OSAC's operator). */
export const hubAccessRole = (namespace: string): string => `${namespace}-hub-access-hosted-clusters`;

/** Nobody may grant what he does not hold, but for roles that he may bind: refused only when the binding is made. */
export const CLUSTER_ROLE = read({ ...RBAC, kind: 'ClusterRole', plural: 'clusterroles' }, [
  { ...everywhere('controller-ledger', 'bind'), names: ['admin', hubAccessRole('NS')] },
]);

/** Bare-metal hosts by resource class (OSAC's operator). */
export const AGENT = read(
  { group: 'agent-install.openshift.io', version: 'v1beta1', kind: 'Agent', plural: 'agents' },
  [
    { ...everywhere('node-counts', 'list', 'get'), optional: true },
    { ...everywhere('controller-ledger', 'list', 'get'), optional: true },
  ],
);
export const RESOURCE_CLASS_LABEL = `${OSAC_GROUP}/resource_class`;

export const HUB_OWN_OBJECTS: readonly HubObject[] = [
  NAMESPACE,
  SECRET,
  LEASE,
  SERVICE_ACCOUNT,
  ROLE_BINDING,
  CLUSTER_ROLE,
  AGENT,
];
