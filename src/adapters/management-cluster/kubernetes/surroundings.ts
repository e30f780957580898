import { HubError, type CallOptions, type ManagementCluster } from '../../../app/hubs/management-cluster.ts';
import type { HostCounts } from '../../../domain/hubs/health.ts';
import { isDnsLabel, isLabelValue, OSAC_GROUP, type OwnedObject } from '../../../domain/hubs/hub-object.ts';
import { AGENT, NAMESPACE, RESOURCE_CLASS_LABEL, SECRET } from '../../../domain/hubs/hub-objects.ts';
import { objectAt, own, stringAt } from '../../../domain/json-tools.ts';
import type { Api } from './api.ts';
import type { HubNeeds } from './check.ts';
import { ensure, listed } from './objects.ts';
import { READ_AGENTS, type Rights } from './rights.ts';

const CLAIMED_LABEL = 'agent-install.openshift.io/clusterdeployment-namespace';
const TENANT_LABEL = `${OSAC_GROUP}/tenant-ref`;
const PROJECT_LABEL = `${OSAC_GROUP}/project`;

export type SurroundingsOperations = Pick<
  ManagementCluster,
  'readSecret' | 'inventory' | 'ensureTenantNamespace'
>;

/** What is around the objects of a hub: Secrets by name, tenants' namespaces, and hosts where the rights show them. */
export const surroundingsOperations = (
  api: Api,
  rights: Rights,
  owned: readonly OwnedObject[],
  { namespace: hubNamespace, tenantNamespaces }: Pick<HubNeeds, 'namespace' | 'tenantNamespaces'>,
): SurroundingsOperations => ({
  readSecret: async ({ namespace, name, key }, by) => {
    if (name === '') return undefined;
    const secret = await api.get(SECRET, { namespace, name }, by);
    const data = own(objectAt(secret, 'data'), key);
    return typeof data === 'string' ? Buffer.from(data, 'base64') : undefined;
  },

  inventory: async (by) => {
    if (!(await rights.has(READ_AGENTS, by))) return undefined;
    try {
      return await countAgents(api, owned, tenantNamespaces ? {} : { namespace: hubNamespace }, by);
    } catch (error) {
      // No such kind: hosts of this hub are managed in another way.
      if (error instanceof HubError && error.kind === 'not-ready') return undefined;
      throw error;
    }
  },

  /** A namespace of that name without our labels is somebody else's, and nobody is let into it. */
  ensureTenantNamespace: async ({ name, tenant }, by) => {
    if (!isDnsLabel(name) || !isLabelValue(tenant))
      throw new HubError('invalid', `namespace ${name}: name or tenant is not a Kubernetes name`);
    const labels = { [TENANT_LABEL]: tenant, [PROJECT_LABEL]: hubNamespace };
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
    const wanted = { of: NAMESPACE, word: 'namespace', name, object };
    return { created: await ensure(api, wanted, TENANT_LABEL, by) };
  },
});

/** Free is what the operator takes as free: of the class, nothing of ours on it, not claimed by a hosted cluster. */
const countAgents = async (
  api: Api,
  owned: readonly OwnedObject[],
  where: { readonly namespace?: string },
  by: CallOptions,
): Promise<HostCounts> => {
  const holders = new Set<string>();
  const backLabels = owned.flatMap(({ backLabel }) => backLabel ?? []);
  for (const kind of owned.filter(({ backLabel }) => backLabel !== undefined)) {
    const at = { ...where, labelSelector: kind.idLabel, metadataOnly: true } as const;
    for (const object of await listed(api, kind, at, by))
      holders.add(`${kind.backLabel}=${stringAt(objectAt(object, 'metadata'), 'name')}`);
  }
  const counts = new Map<string, { free: number; ours: number; foreign: number }>();
  const agents = { labelSelector: RESOURCE_CLASS_LABEL, metadataOnly: true } as const;
  for (const agent of await listed(api, AGENT, agents, by)) {
    const labels = objectAt(objectAt(agent, 'metadata'), 'labels');
    const resourceClass = stringAt(labels, RESOURCE_CLASS_LABEL);
    const count = counts.get(resourceClass) ?? { free: 0, ours: 0, foreign: 0 };
    const held = backLabels.filter((label) => stringAt(labels, label) !== '');
    if (held.some((label) => holders.has(`${label}=${stringAt(labels, label)}`))) count.ours += 1;
    else if (held.length > 0 || Object.hasOwn(labels, CLAIMED_LABEL)) count.foreign += 1;
    else count.free += 1;
    counts.set(resourceClass, count);
  }
  return Object.fromEntries(counts);
};
