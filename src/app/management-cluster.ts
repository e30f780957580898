import type { JsonObject } from '../domain/json.ts';

/**
 * Port of a management cluster (hub). The simulated hub implements it now, the Kubernetes adapter later, so it is
 * drawn after what a real one offers: named objects with labels, finalizers and status, merge patches, watches,
 * and stock RBAC that allows only `get` by name on HostedClusters and Secrets (management-cluster.md §2, §5, §10).
 */
export type ClusterOrderSpec = {
  readonly templateID: string;
  /** A JSON object as text; `{}` when there are no parameters (Ansible parses it). */
  readonly templateParameters: string;
  /** Sorted by node-set name; one entry per node set. */
  readonly nodeRequests: readonly { readonly resourceClass: string; readonly numberOfNodes: number }[];
  readonly pullSecret?: string;
  readonly sshPublicKey?: string;
  readonly releaseImage?: string;
  readonly network?: { readonly podCIDR?: string; readonly serviceCIDR?: string };
};

export type ClusterOrderManifest = {
  /** `order-` + 10 to 16 lower-case base32 characters derived from the order id (§10.1). */
  readonly name: string;
  readonly namespace: string;
  readonly labels: { readonly [key: string]: string };
  readonly annotations: { readonly [key: string]: string };
  readonly spec: ClusterOrderSpec;
};

export type Condition = {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
};

/** One ClusterOrder as the hub shows it, with what may be read around it. */
export type ObservedClusterOrder = {
  readonly name: string;
  readonly uid: string;
  /** Label `osac.openshift.io/clusterorder-uuid`: our cluster's id. */
  readonly clusterId?: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
  readonly finalizers: readonly string[];
  readonly annotations: { readonly [key: string]: string };
  readonly spec: ClusterOrderSpec;
  /** Absent is a state of its own: the hub has not accepted the order (operator-run.md §4.1). */
  readonly phase?: 'Progressing' | 'Failed' | 'Ready' | 'Deleting';
  readonly conditions: readonly Condition[];
  readonly desiredConfigVersion?: string;
  readonly jobs: readonly {
    readonly jobId: string;
    readonly type: 'provision' | 'deprovision';
    readonly state: 'Pending' | 'Waiting' | 'Running' | 'Succeeded' | 'Failed' | 'Canceled' | 'Unknown';
    readonly timestamp: string;
    readonly message?: string;
    readonly configVersion?: string;
  }[];
  readonly clusterReference?: { readonly namespace: string; readonly hostedClusterName: string };
  readonly apiEndpoint?: string;
  readonly ingressEndpoint?: string;
};

export type ObservedHostedCluster = {
  readonly name: string;
  readonly namespace: string;
  readonly conditions: readonly Condition[];
  readonly controlPlaneEndpoint?: { readonly host: string; readonly port: number };
  readonly baseDomain?: string;
  readonly kubeconfigSecret?: string;
  readonly passwordSecret?: string;
  /** Ready nodes by resource class, as NodePools show them; absent when the hub's RBAC does not allow it. */
  readonly nodePools?: readonly {
    readonly resourceClass: string;
    readonly desired: number;
    readonly ready: number;
  }[];
};

export type ClusterOrderWatchEvent =
  | { readonly type: 'applied'; readonly order: ObservedClusterOrder }
  | { readonly type: 'deleted'; readonly order: ObservedClusterOrder }
  /** Everything the hub holds has been listed once: orders of ours that were not among `names` are gone. */
  | { readonly type: 'synced'; readonly names: readonly string[]; readonly resourceVersion: string };

export type CallOptions = {
  /** The effect this call belongs to: label and journal entry on the far side. */
  readonly effectId: string;
  /** Every call has a deadline of its own; past it a write's outcome is unknown. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
};

export type ManagementCluster = {
  readonly hubId: string;
  readonly simulated: boolean;
  /** Creates the order. Throws HubError `already-exists` (its `order` says whose it is). */
  createClusterOrder(manifest: ClusterOrderManifest, options: CallOptions): Promise<ObservedClusterOrder>;
  /** Merge patch of owned spec fields only. */
  patchClusterOrder(
    ref: { namespace: string; name: string },
    spec: Partial<ClusterOrderSpec>,
    options: CallOptions,
  ): Promise<ObservedClusterOrder>;
  /** Requests deletion; absence is confirmed only by a later read that finds nothing. Absent already: false. */
  deleteClusterOrder(ref: { namespace: string; name: string }, options: CallOptions): Promise<boolean>;
  /** Undefined when there is none. */
  getClusterOrder(
    ref: { namespace: string; name: string },
    options: CallOptions,
  ): Promise<ObservedClusterOrder | undefined>;
  /** By label `clusterorder-uuid`; adopts objects made under another name. */
  findClusterOrders(
    namespace: string,
    clusterId: string,
    options: CallOptions,
  ): Promise<readonly ObservedClusterOrder[]>;
  getHostedCluster(
    ref: { namespace: string; name: string },
    options: CallOptions,
  ): Promise<ObservedHostedCluster | undefined>;
  /** One key of a Secret by name. Undefined when there is none. */
  readSecret(
    ref: { namespace: string; name: string; key: string },
    options: CallOptions,
  ): Promise<Uint8Array | undefined>;
  /** Lists once (`applied` for each, then `synced`), then follows; resumes by itself; ends only on its signal. */
  watchClusterOrders(namespace: string, signal: AbortSignal): AsyncIterable<ClusterOrderWatchEvent>;
  close(): Promise<void>;
};

/** Error classes of management-cluster.md §10.4; each is one thing a caller can act on. */
export type HubErrorKind =
  | 'invalid' // 422: permanent
  | 'conflict' // 409 Conflict: re-read and retry
  | 'already-exists' // 409 AlreadyExists: ours, foreign or being deleted, see `order`
  | 'not-found' // 404 of the object
  | 'not-ready' // 404 of the kind: the hub has no CRD yet
  | 'unauthorized' // 401, 403: park all work of this hub
  | 'throttled' // 429
  | 'unavailable' // certainly not done: connection refused, 503 before processing
  | 'unknown-outcome'; // may have been done: time-out or lost answer of a write

export class HubError extends Error {
  override readonly name = 'HubError';
  readonly kind: HubErrorKind;
  readonly retryAfterMs: number | undefined;
  readonly order: ObservedClusterOrder | undefined;
  readonly facts: JsonObject;
  constructor(
    kind: HubErrorKind,
    message: string,
    more: { retryAfterMs?: number; order?: ObservedClusterOrder; facts?: JsonObject; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.kind = kind;
    this.retryAfterMs = more.retryAfterMs;
    this.order = more.order;
    this.facts = more.facts ?? {};
  }
}

/** Finds the adapter of a hub; undefined: no adapter can reach it (shown as `NoAdapter`). */
export type ManagementClusters = {
  of(hub: { id: string; namespace: string }): ManagementCluster | undefined;
};

export const CLUSTER_ORDER_UUID_LABEL = 'osac.openshift.io/clusterorder-uuid';
export const TENANT_ANNOTATION = 'osac.openshift.io/tenant';
