import type { Condition } from '../hubs/hub-codecs.ts';

/**
 * What a hub shows of one cluster, and what that means. The shapes below are those of the management-cluster port,
 * as JSON.
 */
export type ClusterOrderSpecShape = {
  readonly templateID: string;
  readonly templateParameters: string;
  readonly nodeRequests: readonly { readonly resourceClass: string; readonly numberOfNodes: number }[];
  readonly pullSecret?: string;
  readonly sshPublicKey?: string;
  readonly releaseImage?: string;
  readonly network?: { readonly podCIDR?: string; readonly serviceCIDR?: string };
};

export type ObservedCondition = Omit<Condition, 'lastTransitionTime' | 'status'> & {
  readonly status: string;
};

export type ObservedJob = {
  readonly jobId: string;
  readonly type: string;
  readonly state: string;
  readonly timestamp: string;
  readonly message?: string;
  readonly configVersion?: string;
  /** Its platform no longer has a record of it. */
  readonly vanished?: boolean;
};

export type ObservedOrder = {
  readonly uid: string;
  /** Rises with every change of the object; absent where nobody compares it. */
  readonly resourceVersion?: string;
  readonly deletionTimestamp?: string;
  readonly finalizers: readonly string[];
  readonly spec: ClusterOrderSpecShape;
  readonly phase?: string;
  readonly conditions: readonly ObservedCondition[];
  readonly desiredConfigVersion?: string;
  readonly jobs: readonly ObservedJob[];
  /** Hosts that the operator took for the order, by resource class; absent while it has not found enough of them. */
  readonly nodeSets?: readonly { readonly resourceClass: string; readonly hosts: number }[];
  /** What the operator counted; it does so only for orders with one node request. */
  readonly observedNodes?: readonly { readonly resourceClass: string; readonly numberOfNodes: number }[];
  readonly apiEndpoint?: string;
  readonly ingressEndpoint?: string;
};

export type ObservedHosted = {
  readonly name: string;
  readonly uid?: string;
  /** Rises with every change of the object; absent where nobody compares it. */
  readonly resourceVersion?: string;
  readonly deletionTimestamp?: string;
  readonly conditions: readonly ObservedCondition[];
  readonly controlPlaneEndpoint?: { readonly host: string; readonly port: number };
  readonly baseDomain?: string;
  readonly nodePools?: readonly {
    readonly resourceClass: string;
    readonly desired: number;
    readonly ready: number;
  }[];
};

/** A job that we launched, as its platform showed it last. */
export type LaunchedJob = {
  readonly id: string;
  readonly state: string;
  readonly createdAt: string;
  /** The platform no longer has a record of it. */
  readonly vanished?: true;
  readonly outputTail?: string;
};

/** The payload of an `observation` input, and the result of the effect `observeObject`. */
export type ClusterObservation = {
  /** Who shows it; absent: the hub that was asked. */
  readonly hub?: string;
  /** ISO time at which the hub was asked; absent: the hub told it, at some time before it came here. */
  readonly askedAt?: string;
  /** null: there is none on the hub, looked up by name and by label. */
  readonly order: ObservedOrder | null;
  /** null: there is none; absent: the hub does not let us read it, or nobody looked for it without its order. */
  readonly hostedCluster?: ObservedHosted | null;
  /** Further orders with the cluster's label; absent: nobody looked for any. */
  readonly duplicates?: readonly string[];
  /** `configVersion` of the stored spec, when the adapter removed the pull secret from `order.spec`. */
  readonly specVersion?: string;
};

/** Why a cluster that runs is not as it was last ordered, and will not be for now. */
export type StoppedChange =
  | {
      readonly why: 'failed';
      readonly reason: string;
      /** For tenants. */
      readonly message: string;
      /** In the hub's own words: they may name anything of it. */
      readonly detail?: string;
    }
  /** Its hub has no room for it. */
  | { readonly why: 'waits' };

/** What the cluster should be, and what is known of it from before. */
export type DesiredCluster = {
  /** Without the pull secret: secret values are not known here. */
  readonly spec: ClusterOrderSpecShape;
  readonly nodeSets: {
    readonly [name: string]: { readonly hostType: { readonly id: string }; readonly size: number };
  };
  /** `operator`: an operator on the hub reconciles, so its `desiredConfigVersion` must be the hash of the spec. */
  readonly controller: 'operator' | 'ledger';
  /** Its control plane was seen before, so that a missing HostedCluster means that it was lost. */
  readonly wasAvailable: boolean;
  /** It was READY with the present spec, so that a fault now is a degradation. */
  readonly wasReady: boolean;
  /** What it was READY with last, whatever is wanted now: what fails now is a change of it. */
  readonly built?: DesiredCluster['nodeSets'];
  /** When the present spec, or its retry, was asked for: jobs from before say nothing of it once a newer one runs. */
  readonly since?: string;
  /** A retry was asked for, and is not on the hub yet: what has failed there is the try before it. */
  readonly retrying?: true;
  /** What is known of the present change from before: it failed, or it waits. */
  readonly stopped?: StoppedChange;
  /** The hub has not been able to tell the state of its job for longer than any fault should last. */
  readonly jobUnknownLong?: boolean;
  /** Where we run the hub's automation ourselves. */
  readonly automation?: {
    readonly mode: 'eda' | 'aap';
    /** It was asked to bring about the present spec. */
    readonly asked: boolean;
    /** aap: the job that was launched last. */
    readonly job?: LaunchedJob;
    /** The one before it, for the same, which failed. */
    readonly failed?: LaunchedJob;
  };
};

/**
 * What a hub shows of the automation that it was asked for: nothing of it; that it is going on; `resting`: it does
 * nothing, but is not as it should be; `cleaning`: the HostedCluster is gone, and Ansible's mark still stands;
 * `finished`: nothing is left to do.
 */
export type HubWork = 'nothing' | 'busy' | 'resting' | 'cleaning' | 'finished';
