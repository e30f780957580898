import { base32, fnv1a64 } from '../hash.ts';
import { SIMULATION_ANNOTATION } from '../hubs/hub-object.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { SecretRef } from '../secret-ref.ts';
import type { NodeSet } from './events.ts';
import { byKey, defined } from '../json-tools.ts';
import type { ClusterOrderSpecShape } from './observed.ts';

/** What a ClusterOrder is made of: the resolved order, nothing of the catalogue. */
export type OrderedSpec = {
  readonly template: { readonly id: string };
  readonly templateParameters: { readonly [name: string]: JsonObject };
  readonly nodeSets: { readonly [name: string]: NodeSet };
  readonly version: { readonly releaseImage: string };
  readonly sshPublicKey?: string;
  readonly pullSecret?: SecretRef;
  readonly network?: { readonly podCidr?: string; readonly serviceCidr?: string };
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
/** 19 characters, the same for every attempt: `order-` and 13 base32 digits (management-cluster.md §10.1). */
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
    // Where we run the automation ourselves, the operator must not launch it a second time (§10.12).
    ...(hub.mode === 'operator' ? {} : { [`${PREFIX}/management-state`]: 'manual' }),
    // A tenant's annotation must never reach a real hub: its operator reads annotations as instructions.
    ...(order.simulation === undefined || !hub.simulated
      ? {}
      : { [SIMULATION_ANNOTATION]: order.simulation }),
  },
  spec: clusterOrderSpec(order),
});

/** The mapping of management-cluster.md §2.1, without the pull secret's value. */
export const clusterOrderSpec = (order: OrderedSpec): ClusterOrderSpecShape => {
  const { podCidr, serviceCidr } = order.network ?? {};
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
    ...(podCidr === undefined && serviceCidr === undefined
      ? {}
      : {
          network: {
            ...defined({ podCIDR: podCidr, serviceCIDR: serviceCidr }),
          },
        }),
  };
};

/**
 * Node sets in the order of their names. Those of one host type are one request: the hub's playbooks keep only one of
 * several with the same class (management-cluster.md §1.1), and its tenant would get fewer nodes than were ordered.
 */
const nodeRequestsOf = (nodeSets: OrderedSpec['nodeSets']): ClusterOrderSpecShape['nodeRequests'] => {
  const sizes = new Map<string, number>();
  for (const [, { hostType, size }] of Object.entries(nodeSets).sort(byKey)) {
    sizes.set(hostType.id, (sizes.get(hostType.id) ?? 0) + size);
  }
  return [...sizes].map(([resourceClass, numberOfNodes]) => ({ resourceClass, numberOfNodes }));
};

/** Types whose JSON form inside an Any is `{"@type": …, "value": …}`, with the value that stands for absence. */
const WRAPPERS: { readonly [type: string]: JsonValue } = {
  BoolValue: false,
  Int32Value: 0,
  UInt32Value: 0,
  Int64Value: '0',
  UInt64Value: '0',
  FloatValue: 0,
  DoubleValue: 0,
  StringValue: '',
  BytesValue: '',
  Timestamp: '1970-01-01T00:00:00Z',
  Duration: '0s',
};
const WELL_KNOWN = 'type.googleapis.com/google.protobuf.';

/** Protobuf JSON of what an Any holds: a 64-bit number stays text, a boolean a boolean. */
export const plainValue = (any: JsonObject): JsonValue => {
  const { '@type': type, ...rest } = any;
  const name = typeof type === 'string' && type.startsWith(WELL_KNOWN) ? type.slice(WELL_KNOWN.length) : '';
  const absent = WRAPPERS[name];
  if (absent !== undefined) return rest['value'] ?? absent;
  return name === 'Value' || name === 'Struct' || name === 'ListValue' ? (rest['value'] ?? null) : rest;
};
