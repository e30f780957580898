import type { JsonObject } from '../../../src/domain/json.ts';
import type { NodeRequest } from './ansible.ts';
import { KubeRefusal, ORDER_LABEL, PREFIX, labelsOf, nameOf, type KubeApi } from './api.ts';

const CLASS = `${PREFIX}resource_class`;
const CLAIMED = 'agent-install.openshift.io/clusterdeployment-namespace';
const HOST_NAME = 'netris.server/name';

/** An Agent (bare-metal host) as the inventory import makes it. */
export const agent = (namespace: string, resourceClass: string, index: number): JsonObject => ({
  apiVersion: 'agent-install.openshift.io/v1beta1',
  kind: 'Agent',
  metadata: {
    name: `agent-${resourceClass}-${String(index).padStart(2, '0')}`,
    namespace,
    labels: { [CLASS]: resourceClass, [HOST_NAME]: `srv-${resourceClass}-${index}` },
  },
  spec: { approved: false },
  status: { debugInfo: { state: 'known-unbound' } },
});

/**
 * Takes hosts for each request, all or nothing per request; undefined when one is short. What earlier requests got
 * stays taken (OSAC's operator). A class that is no label value makes the LIST fail.
 */
export const pickAgents = async (
  api: KubeApi,
  namespace: string,
  order: string,
  requests: readonly NodeRequest[],
): Promise<JsonObject[] | undefined> => {
  const sets: JsonObject[] = [];
  for (const { resourceClass, numberOfNodes } of requests) {
    if (!/^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/.test(resourceClass)) {
      throw new KubeRefusal(
        400,
        `unable to parse requirement: values[0][${CLASS}]: Invalid value: "${resourceClass}"`,
      );
    }
    const all = await api.list('agents', namespace, `${CLASS}=${resourceClass}`);
    const mine = all.filter((one) => labelsOf(one)[ORDER_LABEL] === order);
    const free = all.filter(
      (one) => labelsOf(one)[ORDER_LABEL] === undefined && labelsOf(one)[CLAIMED] === undefined,
    );
    const taken = free.slice(0, Math.max(0, numberOfNodes - mine.length));
    if (mine.length + taken.length < numberOfNodes) return undefined;
    for (const one of taken) await label(api, namespace, one, order);
    sets.push({
      name: resourceClass,
      agents: [...mine, ...taken].map((one) => ({
        agentName: nameOf(one),
        hostName: labelsOf(one)[HOST_NAME] ?? '',
      })),
    });
  }
  return sets;
};

/** Before anything else of a deletion: the next order may take them while this one's namespace still exists. */
export const releaseAgents = async (api: KubeApi, namespace: string, order: string): Promise<void> => {
  for (const one of await api.list('agents', namespace, `${ORDER_LABEL}=${order}`)) {
    await label(api, namespace, one, null);
  }
};

const label = (api: KubeApi, namespace: string, one: JsonObject, order: string | null): Promise<JsonObject> =>
  api.merge('agents', namespace, nameOf(one), { metadata: { labels: { [ORDER_LABEL]: order } } });
