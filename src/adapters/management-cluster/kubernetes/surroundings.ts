import {
  CLUSTER_ORDER_UUID_LABEL,
  HubError,
  type CallOptions,
  type HubInventory,
  type ManagementCluster,
} from '../../../app/management-cluster.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { objectAt, own, stringAt } from '../../../domain/json-tools.ts';
import {
  AGENTS,
  apiVersion,
  CLUSTER_ORDERS,
  HOSTED_CLUSTERS,
  NAMESPACES,
  NODE_POOLS,
  OSAC_GROUP,
  SECRETS,
  type Api,
} from './api.ts';
import type { HubNeeds } from './check.ts';
import { observedHostedCluster } from './observed.ts';
import { isDnsLabel, isLabelValue } from './order-rules.ts';
import { READ_AGENTS, READ_NODE_POOLS, type Rights } from './rights.ts';

/** Back-pointer of everything that belongs to an order: the order's name (management-cluster.md §0). */
export const CLUSTER_ORDER_LABEL = `${OSAC_GROUP}/clusterorder`;
const RESOURCE_CLASS_LABEL = `${OSAC_GROUP}/resource_class`;
const CLAIMED_LABEL = 'agent-install.openshift.io/clusterdeployment-namespace';
const TENANT_LABEL = `${OSAC_GROUP}/tenant-ref`;
const PROJECT_LABEL = `${OSAC_GROUP}/project`;

export type SurroundingsOperations = Pick<
  ManagementCluster,
  'getHostedCluster' | 'readSecret' | 'inventory' | 'ensureTenantNamespace'
>;

/** What is around the orders of a hub: HostedClusters by name, Secrets by name, and more where the rights allow it. */
export const surroundingsOperations = (
  api: Api,
  rights: Rights,
  { namespace: hubNamespace, tenantNamespaces }: Pick<HubNeeds, 'namespace' | 'tenantNamespaces'>,
): SurroundingsOperations => ({
  getHostedCluster: async ({ namespace, name }, by) => {
    const object = await api.get(HOSTED_CLUSTERS, { namespace, name }, by);
    if (object === undefined) return undefined;
    return observedHostedCluster(object, await nodePools(api, rights, namespace, name, by));
  },

  readSecret: async ({ namespace, name, key }, by) => {
    if (name === '') return undefined;
    const secret = await api.get(SECRETS, { namespace, name }, by);
    const data = own(objectAt(secret, 'data'), key);
    return typeof data === 'string' ? Buffer.from(data, 'base64') : undefined;
  },

  inventory: async (by) => {
    if (!(await rights.has(READ_AGENTS, by))) return undefined;
    try {
      return await countAgents(
        api,
        await orderNames(api, tenantNamespaces ? undefined : hubNamespace, by),
        by,
      );
    } catch (error) {
      // No such kind: hosts of this hub are managed in another way.
      if (error instanceof HubError && error.kind === 'not-ready') return undefined;
      throw error;
    }
  },

  ensureTenantNamespace: ({ name, tenant }, by) => ensureNamespace(api, { name, tenant, hubNamespace }, by),
});

/** Undefined when the rights do not show them (§5: the stock role does not), or the kind is not there. */
const nodePools = async (
  api: Api,
  rights: Rights,
  namespace: string,
  order: string,
  by: CallOptions,
): Promise<readonly JsonObject[] | undefined> => {
  if (!isLabelValue(order) || !(await rights.has(READ_NODE_POOLS, by))) return undefined;
  const labelSelector = `${CLUSTER_ORDER_LABEL}=${order}`;
  const found: JsonObject[] = [];
  try {
    for await (const page of api.list(NODE_POOLS, { namespace, labelSelector }, by)) {
      if (page.first) found.length = 0;
      found.push(...page.items);
    }
  } catch (error) {
    if (error instanceof HubError && (error.kind === 'not-ready' || error.kind === 'unauthorized'))
      return undefined;
    throw error;
  }
  return found;
};

/** Names of the orders in a namespace, or in every one, that carry our label. */
const orderNames = async (
  api: Api,
  namespace: string | undefined,
  by: CallOptions,
): Promise<ReadonlySet<string>> => {
  const names = new Set<string>();
  const at = {
    labelSelector: CLUSTER_ORDER_UUID_LABEL,
    metadataOnly: true,
    ...(namespace === undefined ? {} : { namespace }),
  } as const;
  for await (const page of api.list(CLUSTER_ORDERS, at, by)) {
    for (const order of page.items) names.add(stringAt(objectAt(order, 'metadata'), 'name'));
  }
  return names;
};

/** Free is what the operator takes as free (§3.3): of the class, no order on it, not claimed by a hosted cluster. */
const countAgents = async (api: Api, ours: ReadonlySet<string>, by: CallOptions): Promise<HubInventory> => {
  let counts = new Map<string, { free: number; ours: number; foreign: number }>();
  for await (const page of api.list(
    AGENTS,
    { labelSelector: RESOURCE_CLASS_LABEL, metadataOnly: true },
    by,
  )) {
    if (page.first) counts = new Map();
    for (const agent of page.items) {
      const labels = objectAt(objectAt(agent, 'metadata'), 'labels');
      const resourceClass = stringAt(labels, RESOURCE_CLASS_LABEL);
      const count = counts.get(resourceClass) ?? { free: 0, ours: 0, foreign: 0 };
      const order = stringAt(labels, CLUSTER_ORDER_LABEL);
      if (order !== '' && ours.has(order)) count.ours += 1;
      else if (order !== '' || Object.hasOwn(labels, CLAIMED_LABEL)) count.foreign += 1;
      else count.free += 1;
      counts.set(resourceClass, count);
    }
  }
  return Object.fromEntries(counts);
};

/** A namespace of that name without our labels is somebody else's, and nobody is let into it. */
const ensureNamespace = async (
  api: Api,
  { name, tenant, hubNamespace }: { name: string; tenant: string; hubNamespace: string },
  by: CallOptions,
): Promise<{ created: boolean }> => {
  if (!isDnsLabel(name) || !isLabelValue(tenant))
    throw new HubError('invalid', `namespace ${name}: name or tenant is not a Kubernetes name`);
  const existing = await api.get(NAMESPACES, { name }, by);
  if (existing === undefined) {
    const labels = { [TENANT_LABEL]: tenant, [PROJECT_LABEL]: hubNamespace };
    const object = { apiVersion: apiVersion(NAMESPACES), kind: 'Namespace', metadata: { name, labels } };
    try {
      await api.create(NAMESPACES, object, by);
      return { created: true };
    } catch (error) {
      // Another instance was faster; the next look says whose it is.
      if (!(error instanceof HubError) || error.kind !== 'already-exists') throw error;
      throw new HubError('conflict', `namespace ${name} has just been made by somebody`, { cause: error });
    }
  }
  const metadata = objectAt(existing, 'metadata');
  if (stringAt(metadata, 'deletionTimestamp') !== '')
    throw new HubError('conflict', `namespace ${name} is being deleted`);
  if (stringAt(objectAt(metadata, 'labels'), TENANT_LABEL) !== tenant)
    throw new HubError(
      'already-exists',
      `namespace ${name} is not labelled ${TENANT_LABEL} for this tenant; label it, or choose another one`,
    );
  return { created: false };
};
