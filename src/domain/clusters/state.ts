import type { z } from 'zod';
import type { DataOf, DomainEvent } from '../decider.ts';
import type { User } from '../exclusive-use.ts';
import type { JsonObject } from '../json.ts';
import type { EventOf } from '../schemas.ts';
import type * as shapes from './event-types.ts';
import type { LaunchedJob } from './observed.ts';

/** Types of the cluster's events and of what they hold, from their schemas in event-types.ts. */
export type NamedSecret = z.infer<typeof shapes.namedSecret>;
export type OrderedTemplate = z.infer<typeof shapes.orderedTemplate>;
export type NodeSet = z.infer<typeof shapes.nodeSet>;
export type MutableSpec = z.infer<typeof shapes.mutableSpec>;
export type ResolvedVersion = z.infer<typeof shapes.resolvedVersion>;
export type ConditionName = z.infer<typeof shapes.conditionName>;
export type ConditionState = z.infer<typeof shapes.conditionState>;
export type AutomationPurpose = z.infer<typeof shapes.automationPurpose>;
export type AutomationMode = z.infer<typeof shapes.automationMode>;
export type JobState = z.infer<typeof shapes.jobState>;
export type ObjectVersion = z.infer<typeof shapes.objectVersion>;
export type ObservedVersion = z.infer<typeof shapes.observedVersion>;
export type Seen = z.infer<typeof shapes.seen>;
export type Lost = NonNullable<Seen['missing']>;

export type ClusterEvent =
  | EventOf<typeof shapes.CLUSTER_SHAPES>
  /** A creation reserved its name and never came back: this id stays unused until its own command is repeated. */
  | DomainEvent<'CreationAbandoned', { readonly at: string; readonly commandId: string }>;

/** The event, where it is news. */
export const eventIf = <Type extends ClusterEvent['type']>(
  isNews: boolean,
  type: Type,
  data: DataOf<ClusterEvent, Type>,
): ClusterEvent[] => (isNews ? [{ type, data } as ClusterEvent] : []);

/** What is known of a cluster at one moment; `cluster.ts` folds it from the cluster's events. */
export type ClusterState =
  | { readonly status: 'absent' }
  | { readonly status: 'abandoned'; readonly times: number }
  | ({ readonly status: 'accepted' } & Order)
  /** A hub is chosen; nothing was sent to it yet. */
  | ({ readonly status: 'placed'; readonly hub: SelectedHub } & Order)
  /** Something may exist on the hub: the cluster is gone only after its absence was observed. */
  | ({ readonly status: 'dispatched'; readonly hub: SelectedHub } & Order & Progress)
  /** What was observed of it before its deletion, and where, is still told. */
  | ({
      readonly status: 'deleted';
      readonly how: 'not-dispatched' | 'absence-confirmed';
      readonly hub?: SelectedHub;
      readonly conditions?: Progress['conditions'];
    } & Order);

/** OSAC's conditions of a cluster. */
export type ShownConditionType = `CLUSTER_CONDITION_TYPE_${'PROGRESSING' | 'READY' | 'FAILED' | 'DEGRADED'}`;

type Data<Type extends ClusterEvent['type']> = DataOf<ClusterEvent, Type>;

export type Order = Omit<Data<'ClusterOrdered'>, 'at' | 'displayName' | 'description'> & {
  readonly orderedAt: string;
  readonly displayName: string;
  readonly description: string;
  /** How often what its cluster is built by was changed. */
  readonly generation: number;
  /** As shown; ours among them while `ours`. */
  readonly finalizers: readonly string[];
  /** Our finalizer stands: from the start of dispatch until absence was observed. */
  readonly ours: boolean;
  readonly deletionRequestedAt?: string;
  /** What was taken and made for it is given back. */
  readonly aborted?: { readonly at: string; readonly reason: string };
  /** All of that was given back. */
  readonly withdrawn?: true;
  readonly failure?: Omit<Data<'ClusterFailed'>, 'at' | 'version'>;
  /** Reasons that were told of the present failure, the first one first. */
  readonly failedFor?: readonly string[];
  /** Who uses its endpoints, and how often one was claimed. */
  readonly attached?: { readonly [Endpoint in 'API' | 'INGRESS']?: User };
  readonly attachments?: number;
  /** Why it waits, when no hub has room. */
  readonly waiting?: Omit<Data<'PlacementDeferred'>, 'at' | 'runs'> & { readonly since: string };
  /** Status that a private caller wrote: shown instead of ours until the next observation. */
  readonly reported?: JsonObject;
  /** When the shown state was entered: OSAC's billing clock. */
  readonly stateSince: string;
  /** When each shown condition last changed its status. */
  readonly conditionsSince: { readonly [Type in ShownConditionType]?: string };
};

/** What of an order its cluster is built by. */
export type BuiltSpec = Pick<Order, 'nodeSets' | 'version' | 'sshPublicKey' | 'pullSecret' | 'network'>;

export type SelectedHub = Omit<Data<'HubSelected'>, 'at' | 'hub' | 'steps' | 'decision' | 'site'> & {
  readonly id: string;
  /** Absent: the hub does every step. `steps`: those that the ledger does. */
  readonly site?: NonNullable<Data<'HubSelected'>['site']> & { readonly steps: readonly string[] };
};
export type Endpoints = Omit<Data<'ControlPlaneBecameAvailable'>, 'at' | 'version'>;
type ChangeFailure = Omit<Data<'ClusterChangeFailed'>, 'at' | 'version'>;

export type Progress = {
  /** Uid of the ClusterOrder, once it was seen. */
  readonly uid?: string;
  /** The hub has not confirmed the present spec yet. */
  readonly specPending: boolean;
  readonly conditions: { readonly [Name in ConditionName]?: ConditionState };
  readonly endpoints?: Endpoints;
  readonly readyNodes?: { readonly [nodeSet: string]: number };
  readonly ready: boolean;
  /** The hub built it; what the ledger does after that is not done yet. */
  readonly installed?: true;
  /** The spec that it was READY with last; absent while it was never built. */
  readonly built?: BuiltSpec;
  /** The present change failed, and the cluster runs as before. */
  readonly changeFailed?: ChangeFailure & { readonly since: string };
  readonly degraded?: { readonly reason: string; readonly message: string };
  readonly notAccepting?: { readonly since: string };
  readonly lost?: 'cluster-order' | 'hosted-cluster';
  /** What the hub still has to do before the cluster is gone. */
  readonly waitingFor: readonly string[];
  /** The teardown takes longer than any should. */
  readonly overdue?: { readonly since: string };
  /** What the last look showed besides; nothing: all is as it should be. */
  readonly seen: Seen;
  /** When it last changed. */
  readonly seenAt?: string;
  /** Which state of which objects left the last events of a look. */
  readonly seenVersion?: ObservedVersion & { readonly at: string };
  /** Its control plane was seen, so that a missing HostedCluster was lost. */
  readonly wasAvailable?: true;
  /** It was READY with the present spec, so that a fault is a degradation. */
  readonly wasReady?: true;
  /** What the hub's automation was asked for last. */
  readonly asked: { readonly [Purpose in AutomationPurpose]?: Asked };
  /** More than node counts changed since the automation was asked. */
  readonly otherChanged?: true;
};

/** A request to the hub's automation, and the job that came of it (aap). */
export type Asked = Pick<Data<'AutomationTried'>, 'at' | 'wording' | 'repeats' | 'again'> & {
  readonly job?: RunningJob;
  /** The job before it, for the same, which failed. */
  readonly failed?: RunningJob;
  /** eda: the hub once showed that there was nothing left of it to do. */
  readonly finished?: true;
  /** Another try that nobody was told of. */
  readonly untold?: true;
};

export type RunningJob = LaunchedJob & {
  readonly workflow: boolean;
  readonly template: string;
  /** When this state of it was first seen. */
  readonly seenAt: string;
};

export type LiveCluster = Exclude<ClusterState, { status: 'absent' | 'abandoned' | 'deleted' }>;
export type Dispatched = Extract<LiveCluster, { status: 'dispatched' }>;
export type StoredCluster = LiveCluster | Extract<ClusterState, { status: 'deleted' }>;

export const initialCluster = (): ClusterState => ({ status: 'absent' });

export const isStoredCluster = (state: ClusterState): state is StoredCluster =>
  state.status !== 'absent' && state.status !== 'abandoned';

/** It is deleted or aborted: nothing more is begun for it. */
export const isLeaving = ({ deletionRequestedAt, aborted }: StoredCluster): boolean =>
  deletionRequestedAt !== undefined || aborted !== undefined;

export const isLiveCluster = (state: ClusterState): state is LiveCluster =>
  isStoredCluster(state) && state.status !== 'deleted';
