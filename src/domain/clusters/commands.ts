import type { DataOf } from '../decider.ts';
import type { UseCommand } from '../exclusive-use.ts';
import type { JsonObject } from '../json.ts';
import type { SecretRef } from '../secret-ref.ts';
import type {
  AutomationMode,
  AutomationPurpose,
  ClusterEvent,
  NamedSecret,
  NodeSet,
  ObservedVersion,
  ResolvedVersion,
  Asked,
  RunningJob,
} from './state.ts';
import type { JobErrors } from './failure-texts.ts';
import type { Assessment } from './observation.ts';

type Data<Type extends ClusterEvent['type']> = DataOf<ClusterEvent, Type>;

/** What a caller (HTTP, operator) asks of a cluster. */
export type ClusterRequest =
  | ({
      readonly type: 'OrderCluster';
      /** How often the creation had been abandoned when its name was reserved; see `AbandonCreation`. */
      readonly abandonedBefore?: number;
    } & Data<'ClusterOrdered'> &
      Pick<ClusterChanges, 'finalizers' | 'status'>)
  | { readonly type: 'ReviseCluster'; readonly at: string; readonly changes: ClusterChanges }
  | { readonly type: 'DeleteCluster'; readonly at: string }
  /** Ends an order before its dispatch; afterwards only deletion does. */
  | { readonly type: 'CancelOrder'; readonly at: string }
  /** An operator has everything given back that was taken and made for an order that is not READY yet. */
  | { readonly type: 'AbortOrder'; readonly at: string; readonly reason: string }
  /** An operator's "try again" on a failed order. */
  | { readonly type: 'RetryCluster'; readonly at: string }
  /** Records that credentials are about to be shown to the caller. */
  | { readonly type: 'RevealCredentials'; readonly at: string; readonly what: 'kubeconfig' | 'password' }
  | { readonly type: 'AbandonCreation'; readonly at: string; readonly commandId: string }
  /** An external IP is claimed for one of its endpoints, or given back. */
  | UseCommand;

/** Only what is to change; absent fields stay as they are. Texts and maps replace what was there. */
export type ClusterChanges = {
  readonly labels?: { readonly [key: string]: string };
  readonly annotations?: { readonly [key: string]: string };
  readonly displayName?: string;
  readonly description?: string;
  /** The whole map after the change. */
  readonly nodeSets?: { readonly [name: string]: RequestedNodeSet };
  /** Names of sets whose size was addressed by itself (a mask path ending in `.size`): 0 is allowed for them. */
  readonly resized?: readonly string[];
  /** Empty text: removed. */
  readonly sshPublicKey?: string;
  /** null: removed. */
  readonly pullSecret?: SecretRef | null;
  /** With its value as `pullSecret`; null: removed, and its value with it. */
  readonly pullSecretSecret?: NamedSecret | null;
  readonly version?: ResolvedVersion;
  /** Replaces both ranges; `{}` removes them. */
  readonly network?: { readonly podCidr?: string; readonly serviceCidr?: string };
  /** Private callers only. Our own finalizer is not theirs to remove. */
  readonly finalizers?: readonly string[];
  /** Private callers only: shown until the next observation of the hub. */
  readonly status?: JsonObject;
};

/** `hostType` as the caller wrote it for an existing set; resolved to both id and name for a new one. */
export type RequestedNodeSet = Omit<NodeSet, 'hostType'> & {
  readonly hostType: Partial<NodeSet['hostType']>;
};

/** What the cluster-order workflow reports and decides. */
export type ClusterReport =
  | ({
      readonly type: 'SelectHub';
      /** The order was sent before, and it is certain that its hub never took it. */
      readonly again?: boolean;
    } & Data<'HubSelected'>)
  | ({ readonly type: 'DeferPlacement' } & Omit<Data<'PlacementDeferred'>, 'runs'>)
  /** The hub took the order, or holds it already. */
  | {
      readonly type: 'RecordApplied';
      readonly at: string;
      readonly uid: string;
      /** Of an order that was there under another name; absent: ours. */
      readonly name?: string;
      /** The generation of the spec that was sent. */
      readonly generation: number;
      /** The fields of the spec that were written over. */
      readonly fields?: readonly string[];
    }
  | {
      readonly type: 'RecordObservation';
      readonly at: string;
      readonly assessment: Assessment;
      readonly version?: ObservedVersion;
      /** When the hub was asked; absent: it told by itself. */
      readonly askedAt?: string;
      /** The hub refused what is looked for: that it is there settles it. */
      readonly settles?: true;
      /** Of a deletion: all that it waits for. */
      readonly waitingFor?: readonly string[];
      /** What tenants read of a failed job; absent: that it failed. */
      readonly jobErrors?: JobErrors;
    }
  | ({
      readonly type: 'RecordFailure';
      /** Unless it was READY once, whatever was taken and made for it is given back. */
      readonly aborts?: true;
    } & Omit<Data<'ClusterFailed'>, 'version'>)
  /** What the ledger does on a cluster that runs is done. */
  | { readonly type: 'RecordValidated'; readonly at: string }
  /** What failed for this reason came through; what else has failed, has. */
  | { readonly type: 'EndFailure'; readonly at: string; readonly reason: string }
  | ({ readonly type: 'ReportNotAccepting' } & Omit<Data<'HubNotAccepting'>, 'hub'>)
  | ({ readonly type: 'ReportLost' } & Data<'ClusterLostOnHub'>)
  | ({ readonly type: 'RecordPrepared' } & Omit<Data<'ClusterSpacePrepared'>, 'hub' | 'orderName'>)
  | ({
      readonly type: 'RecordAutomationRequest';
      readonly mode: AutomationMode;
      readonly purpose: AutomationPurpose;
      /** It was not asked again: the request before shows after all. */
      readonly observed?: true;
      readonly job?: Omit<RunningJob, 'seenAt' | 'vanished'>;
    } & Pick<Asked, 'at' | 'wording' | 'repeats' | 'again'>)
  | ({ readonly type: 'RecordJob'; readonly mode: AutomationMode } & Omit<
      Data<'AutomationJobChanged'>,
      'hub' | 'template'
    >)
  | ({ readonly type: 'ReportDeletionOverdue' } & Data<'ClusterDeletionOverdue'>)
  | ({ readonly type: 'BlockDeletion' } & Omit<Data<'ClusterDeletionBlocked'>, 'version'>)
  /** `unsent`: nothing of it ever came to a hub, so that none had to be asked. */
  | { readonly type: 'ConfirmAbsence'; readonly at: string; readonly unsent?: boolean };

export type ClusterCommand = ClusterRequest | ClusterReport;
