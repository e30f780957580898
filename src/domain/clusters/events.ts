import type { DomainEvent } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import type { SecretRef } from '../secret-ref.ts';
import type { HubWork } from './observed.ts';

/** An object of kind secret. */
export type NamedSecret = { readonly id: string; readonly name: string };

/**
 * Events of a cluster order's document stream `cluster-<id>`. These names and fields are the storage format:
 * version them with care. Times (`at`) are ISO strings that arrive in the command.
 */

/** The template as resolved at order time. */
export type OrderedTemplate = {
  readonly id: string;
  readonly name: string;
  readonly revision: number;
  /** Host types that node sets of the cluster may use, by id or name; absent: any. */
  readonly allowedResourceClasses?: readonly string[];
};

/** A node set as resolved at order time: the template's host type by id and name (osac-api.md §11 Clusters). */
export type NodeSet = {
  readonly hostType: { readonly id: string; readonly name: string };
  readonly size: number;
  /** First HostType interface with role `fabric`, if there is one. */
  readonly fabricInterface?: string;
};

/** What of the spec may change after the order; everything else is immutable. */
export type MutableSpec = {
  readonly sshPublicKey?: string;
  readonly pullSecret?: SecretRef;
  /** Object that `pullSecret` was taken from. */
  readonly pullSecretSecret?: NamedSecret;
  readonly network?: { readonly podCidr?: string; readonly serviceCidr?: string };
  readonly version?: ResolvedVersion;
};

export type ResolvedVersion = {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly releaseImage: string;
};

/** How the scheduler came to its choice; an auditor can recompute it (fleet-and-networks.md §2.9). */
export type PlacementDecision = {
  readonly weightsVersion: number;
  readonly candidates: readonly {
    readonly hub: string;
    readonly fits: boolean;
    /** Why it was filtered out; empty when it fits. */
    readonly reasons: readonly string[];
    readonly scores: { readonly [name: string]: number };
    readonly total: number;
  }[];
};

export type ConditionName = 'ClusterAvailable' | 'NodesReady' | 'InfrastructureReady' | 'TemplateApplied';
export type ConditionState = {
  readonly status: 'True' | 'False' | 'Unknown' | 'NotObservable';
  readonly reason: string;
  readonly message: string;
  readonly since: string;
};

/** What a hub's automation is asked for (management-cluster.md §7). */
export type AutomationPurpose = 'provision' | 'deprovision';
export type AutomationMode = 'eda' | 'aap';
/** `Unknown`: its platform shows no state of it, or no longer knows it. */
export type JobState = 'Pending' | 'Waiting' | 'Running' | 'Succeeded' | 'Failed' | 'Canceled' | 'Unknown';

/** A request as its workflow knows it, and the job that came of it (aap). */
export type AutomationRun = {
  /** The generation of the spec and the retry that it is for. */
  readonly wording: string;
  readonly again?: 'nodes' | 'other';
  readonly job?: string;
  readonly template?: string;
  /** The job is a workflow job. */
  readonly workflow?: true;
  readonly createdAt?: string;
  readonly state?: JobState;
  readonly outputTail?: string;
};

/** One state of one object on a hub. */
export type ObjectVersion = { readonly uid: string; readonly resourceVersion: string };
/** That of an order, with that of its HostedCluster where there is one. */
export type ObservedVersion = ObjectVersion & { readonly hosted?: ObjectVersion };

/** `version`: what was seen, with the first event of all that a look leaves. */
type Look = { readonly at: string; readonly version?: ObservedVersion };

export type Seen = {
  /** A look missed it; it counts as gone only after a check of its own. */
  readonly missing?: 'cluster-order' | 'hosted-cluster';
  /** A HostedCluster that is there although its order is not. */
  readonly left?: string;
  /** After its deletion was sent: whether the hub shows that. */
  readonly deleting?: boolean;
  /** The hub's controller has not taken it up, although something was seen of it. */
  readonly unaccepted?: true;
  /** Somebody changed the spec that is stored on the hub. */
  readonly differs?: true;
  /** The hub could not ask its automation about its job. */
  readonly jobUnknown?: true;
  /** Where we run the automation: what is to be seen of its work. */
  readonly work?: HubWork;
  /** Further objects with the cluster's label. */
  readonly duplicates?: readonly string[];
};

export type ClusterEvent =
  | DomainEvent<
      'ClusterOrdered',
      {
        readonly id: string;
        readonly at: string;
        readonly tenant: string;
        readonly project: string;
        readonly name: string;
        readonly creator: string;
        readonly labels: { readonly [key: string]: string };
        readonly annotations: { readonly [key: string]: string };
        readonly displayName?: string;
        readonly description?: string;
        /** Resolved facts: a later change of the catalog never changes a running order (design §4). */
        readonly template: OrderedTemplate;
        /** The catalogue item that it was ordered from, if it was; its template is the one above. */
        readonly catalogItem?: { readonly id: string; readonly name: string; readonly revision: number };
        /** After defaults; each value a protobuf Any in JSON form. */
        readonly templateParameters: { readonly [name: string]: JsonObject };
        readonly nodeSets: { readonly [name: string]: NodeSet };
        readonly version: ResolvedVersion;
        readonly sshPublicKey?: string;
        readonly pullSecret?: SecretRef;
        /** The object that the pull secret was taken from, if it was given as one. */
        readonly pullSecretSecret?: NamedSecret;
        readonly network?: { readonly podCidr?: string; readonly serviceCidr?: string };
        /** Requested zone, from annotation `fulfillment-ledger/zone`. */
        readonly zone?: string;
        /** ISO duration that it may wait for a place: annotation `fulfillment-ledger/placement-deadline`, or the setting. */
        readonly placementDeadline?: string;
      }
    >
  | DomainEvent<
      'ClusterLabelled',
      { readonly at: string; readonly labels: { readonly [key: string]: string } }
    >
  | DomainEvent<
      'ClusterAnnotated',
      { readonly at: string; readonly annotations: { readonly [key: string]: string } }
    >
  | DomainEvent<
      'ClusterDescribed',
      { readonly at: string; readonly displayName: string; readonly description: string }
    >
  | DomainEvent<'NodeSetAdded', { readonly at: string; readonly name: string; readonly nodeSet: NodeSet }>
  | DomainEvent<
      'NodeSetResized',
      { readonly at: string; readonly name: string; readonly from: number; readonly to: number }
    >
  | DomainEvent<'NodeSetRemoved', { readonly at: string; readonly name: string }>
  | DomainEvent<
      'ClusterSpecRevised',
      {
        readonly at: string;
        /** All that may be changed, as it is from now on. */
        readonly spec: MutableSpec;
        /** What of it differs from before. */
        readonly changed: readonly (keyof MutableSpec)[];
      }
    >
  | DomainEvent<'ClusterFinalizersChanged', { readonly at: string; readonly finalizers: readonly string[] }>
  /** A private caller wrote `status` (design §6): shown until the next observation of the hub. */
  | DomainEvent<'ClusterStatusReported', { readonly at: string; readonly status: JsonObject }>
  // --- placement and dispatch, issued by the cluster-order workflow
  | DomainEvent<
      'HubSelected',
      {
        readonly at: string;
        readonly hub: string;
        readonly namespace: string;
        readonly mode: 'operator' | 'eda' | 'aap';
        readonly simulated: boolean;
        /** Who reconciles ClusterOrders there. */
        readonly controller: 'operator' | 'ledger';
        /** The namespace is the tenant's own and made when first needed. */
        readonly tenantNamespace?: true;
        /** Which rule applies to each step that can be the hub's or ours (design §6). */
        readonly steps: { readonly [step: string]: 'ledger' | 'hub' | 'none' };
        /** Name of the ClusterOrder on the hub. */
        readonly orderName: string;
        readonly decision: PlacementDecision;
      }
    >
  /** No hub fits: the order waits, with the reason of each hub. Recorded when the reasons change, not on every try. */
  | DomainEvent<
      'PlacementDeferred',
      {
        readonly at: string;
        readonly message: string;
        readonly decision: PlacementDecision;
        /** A change of a cluster that runs waits: it runs on as before. */
        readonly runs?: true;
      }
    >
  /** Adds our finalizer: from here on absence on the hub must be observed before the cluster is gone. */
  | DomainEvent<
      'ClusterDispatchStarted',
      { readonly at: string; readonly hub: string; readonly orderName: string }
    >
  | DomainEvent<
      'ClusterOrderPlaced',
      { readonly at: string; readonly hub: string; readonly orderName: string; readonly uid: string }
    >
  /** A changed spec (sizes, version …) is stored on the hub; what its controller makes of it is not known yet. */
  | DomainEvent<'ClusterSpecSynced', Look & { readonly hub: string; readonly orderName: string }>
  /** Where we are the controller of a hub's orders: what the order needed there was made (management-cluster.md §1.1). */
  | DomainEvent<
      'ClusterSpacePrepared',
      {
        readonly at: string;
        readonly hub: string;
        readonly orderName: string;
        readonly created: readonly string[];
      }
    >
  /** The hub's automation was asked to build, change or tear down the cluster: a webhook was taken, or a job launched. */
  | DomainEvent<
      'AutomationRequested',
      {
        readonly at: string;
        readonly hub: string;
        readonly mode: AutomationMode;
        readonly purpose: AutomationPurpose;
        /** How often it was asked for the same thing before. */
        readonly repeats: number;
      } & AutomationRun
    >
  /** Another try to build it, or a state of one that says nothing new. Told with its count once it has succeeded. */
  | DomainEvent<
      'AutomationTried',
      {
        readonly at: string;
        readonly purpose: AutomationPurpose;
        readonly repeats: number;
      } & AutomationRun
    >
  /** aap only: a job that we launched changed its state. */
  | DomainEvent<
      'AutomationJobChanged',
      {
        readonly at: string;
        readonly hub: string;
        readonly purpose: AutomationPurpose;
        readonly job: string;
        readonly template: string;
        readonly state: JobState;
        /** The platform no longer has a record of it. */
        readonly vanished?: true;
        /** Of a failed job: the end of its output. */
        readonly outputTail?: string;
      }
    >
  /** Somebody had changed the order on the hub; these fields of its spec are as ordered again. */
  | DomainEvent<
      'ClusterDriftCorrected',
      {
        readonly at: string;
        readonly hub: string;
        readonly orderName: string;
        readonly fields: readonly string[];
      }
    >
  /** The hub holds further objects with this cluster's label, which we did not make. */
  | DomainEvent<'ClusterOrdersDuplicated', Look & { readonly hub: string; readonly names: readonly string[] }>
  // --- what was observed on the hub
  /** What a look showed that no document does; everything that is absent is as it should be. */
  | DomainEvent<'ClusterOrderSeen', Look & Seen>
  | DomainEvent<
      'ClusterConditionsObserved',
      Look & { readonly conditions: { readonly [Name in ConditionName]?: ConditionState } }
    >
  | DomainEvent<
      'ControlPlaneBecameAvailable',
      Look & {
        readonly apiUrl: string;
        readonly consoleUrl: string;
        readonly apiEndpoint: string;
        readonly ingressEndpoint: string;
      }
    >
  | DomainEvent<'NodesObserved', Look & { readonly ready: { readonly [nodeSet: string]: number } }>
  | DomainEvent<'ClusterBecameReady', Look>
  /** READY no longer holds because the desired size or spec changed and is being worked on. */
  | DomainEvent<'ClusterReconfiguring', Look>
  | DomainEvent<'ClusterDegraded', Look & { readonly reason: string; readonly message: string }>
  | DomainEvent<'ClusterRecovered', Look>
  | DomainEvent<
      'ClusterFailed',
      Look & {
        readonly reason: string;
        /** For tenants: names no hub, no namespace and nobody else's objects. */
        readonly message: string;
        /** What the hub or the adapter said in full; the provider's to know. */
        readonly detail?: string;
        /** True: nothing will happen until somebody retries or deletes. False: the hub still retries. */
        readonly permanent: boolean;
      }
    >
  /** A change of a cluster that was built failed: the cluster runs on as before, and its spec stays open. */
  | DomainEvent<
      'ClusterChangeFailed',
      Look & {
        /** Which change, for tenants; empty: of the order on its hub only. */
        readonly change: string;
        readonly reason: string;
        /** Why, for tenants. */
        readonly message: string;
        /** What the hub or the adapter said in full; the provider's to know. */
        readonly detail?: string;
      }
    >
  /** Of the order, or of its change. */
  | DomainEvent<'ClusterFailureCleared', Look>
  /** The hub holds the order but shows no phase past its deadline: an alarm of its own, not FAILED. */
  | DomainEvent<'HubNotAccepting', { readonly at: string; readonly hub: string; readonly since: string }>
  /** The ClusterOrder or the HostedCluster vanished behind our back. */
  | DomainEvent<
      'ClusterLostOnHub',
      { readonly at: string; readonly what: 'cluster-order' | 'hosted-cluster' }
    >
  // --- operator and end
  | DomainEvent<'ClusterRetryRequested', { readonly at: string }>
  /** Somebody was shown credentials of the cluster; recorded before they were answered (design §4, Secrets). */
  | DomainEvent<
      'ClusterCredentialsRevealed',
      { readonly at: string; readonly what: 'kubeconfig' | 'password' }
    >
  | DomainEvent<'ClusterDeletionRequested', { readonly at: string }>
  | DomainEvent<'ClusterDeletionBlocked', Look & { readonly waitingFor: readonly string[] }>
  /** An alarm of its own: the teardown goes on, but took longer than any should (fleet-and-networks.md §2.2, step D). */
  | DomainEvent<
      'ClusterDeletionOverdue',
      {
        readonly at: string;
        /** Since when it is waited for. */
        readonly since: string;
        readonly waitingFor: readonly string[];
      }
    >
  /** Never dispatched, or absence was observed on the hub. The name is free again after this. */
  | DomainEvent<
      'ClusterDeleted',
      { readonly at: string; readonly how: 'not-dispatched' | 'absence-confirmed' }
    >
  /** A creation reserved its name and never came back: this id stays unused until its own command is repeated. */
  | DomainEvent<'CreationAbandoned', { readonly at: string; readonly commandId: string }>;

/** Our own finalizer, as OSAC's controller names it. */
export const FULFILLMENT_FINALIZER = 'fulfillment-controller';
