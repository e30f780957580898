import { base32, fnv1a64 } from '../hash.ts';
import { SIMULATION_ANNOTATION } from '../hubs/hub-object.ts';
import type { JsonObject } from '../json.ts';
import { byKey, defined } from '../json-tools.ts';
import type { ClusterOrderSpecShape } from './observed.ts';
import { plainValue } from '../catalog/parameter-values.ts';
import type { BuiltSpec } from './state.ts';

/** What a ClusterOrder is made of: the resolved order, nothing of the catalogue. */
export type OrderedSpec = Pick<BuiltSpec, 'nodeSets' | 'sshPublicKey' | 'pullSecret' | 'network'> & {
  readonly template: { readonly id: string };
  readonly templateParameters: { readonly [name: string]: JsonObject };
  readonly version: { readonly releaseImage: string };
};

/** A manifest without secret values: the adapter layer reveals `pullSecret` just before it writes. */
export type ClusterOrderDraft = {
  readonly name: string;
  readonly namespace: string;
  readonly labels: { readonly [key: string]: string };
  readonly annotations: { readonly [key: string]: string };
  readonly spec: ClusterOrderSpecShape;
};

const PREFIX = 'osac.openshift.io';
/** 19 characters, the same for every attempt: `order-` and 13 base32 digits (OSAC's operator). */
export const orderName = (clusterId: string): string => `order-${base32(fnv1a64(clusterId))}`;

export const clusterOrderDraft = (
  order: OrderedSpec & { readonly id: string; readonly tenant: string; readonly simulation?: string },
  hub: { readonly namespace: string; readonly mode: 'operator' | 'eda' | 'aap'; readonly simulated: boolean },
): ClusterOrderDraft => ({
  name: orderName(order.id),
  namespace: hub.namespace,
  labels: { [`${PREFIX}/clusterorder-uuid`]: order.id },
  annotations: {
    [`${PREFIX}/tenant`]: order.tenant,
    // Where we run the automation ourselves, the operator must not launch it a second time.
    ...(hub.mode === 'operator' ? {} : { [`${PREFIX}/management-state`]: 'manual' }),
    // A tenant's annotation must never reach a real hub: its operator reads annotations as instructions.
    ...(order.simulation === undefined || !hub.simulated
      ? {}
      : { [SIMULATION_ANNOTATION]: order.simulation }),
  },
  spec: clusterOrderSpec(order),
});

/** The spec of an order as OSAC's operator reads it, without the pull secret's value. */
export const clusterOrderSpec = (order: OrderedSpec): ClusterOrderSpecShape => {
  const { podCidr: podCIDR, serviceCidr: serviceCIDR } = order.network ?? {};
  const network = defined({ podCIDR, serviceCIDR });
  return {
    templateID: order.template.id,
    templateParameters: JSON.stringify(
      Object.fromEntries(
        Object.entries(order.templateParameters)
          .sort(byKey)
          .map(([name, value]) => [name, plainValue(value)]),
      ),
    ),
    nodeRequests: nodeRequestsOf(order.nodeSets),
    ...(order.sshPublicKey === undefined ? {} : { sshPublicKey: order.sshPublicKey }),
    releaseImage: order.version.releaseImage,
    ...(Object.keys(network).length === 0 ? {} : { network }),
  };
};

/**
 * Node sets in the order of their names. Those of one host type are one request: the hub's playbooks keep only one of
 * several with the same class (OSAC's operator), and its tenant would get fewer nodes than were ordered.
 */
export const nodeRequestsOf = (nodeSets: OrderedSpec['nodeSets']): ClusterOrderSpecShape['nodeRequests'] => {
  const sizes = new Map<string, number>();
  for (const [, { hostType, size }] of Object.entries(nodeSets).sort(byKey)) {
    sizes.set(hostType.id, (sizes.get(hostType.id) ?? 0) + size);
  }
  return [...sizes].map(([resourceClass, numberOfNodes]) => ({ resourceClass, numberOfNodes }));
};
