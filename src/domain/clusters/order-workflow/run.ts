import type { CapacityClaim } from '../../hubs/capacity-events.ts';
import type { EffectState } from '../../process/effects.ts';
import type { RunEvent } from '../../process/events.ts';
import type { OrderedSpec } from '../cluster-order-manifest.ts';
import type { ClusterReport } from '../commands.ts';
import type { AutomationPurpose, PlacementDecision } from '../events.ts';
import type { Assessment } from '../observation.ts';
import type { DesiredCluster, LaunchedJob, StoppedChange } from '../observed.ts';
import { claimOfCluster, type PlaceResult } from '../placement.ts';
import { clusterOrderSpec } from '../cluster-order-manifest.ts';
import { sameJson } from '../../json-tools.ts';

/** State of one cluster order's run: what it knows, folded from its own stream (see evolve.ts). */
export type OrderRun = { readonly status: 'none' } | OpenRun | { readonly status: 'closed' };

export type PlacedHub = Extract<PlaceResult, { placed: true }>;

export type OpenRun = {
  readonly status: 'open';
  readonly clusterId: string;
  readonly tenant: string;
  readonly zone?: string;
  /** ISO duration that it may wait for its first place; absent: as long as it takes. */
  readonly placementDeadline?: string;
  /** That time has passed; what may still get it a place is let end. */
  readonly placementOverdue?: true;
  /** How a simulated hub is to behave for this order. */
  readonly simulation?: string;
  readonly spec: OrderedSpec;
  /** Revision of the cluster's event that last changed the spec; the order itself is 0. */
  readonly specRevision: number;
  /** Revision of the cluster's last event that was taken in. */
  readonly lastInput: number;
  /** When the spec was last changed, or its retry asked for; absent: it is as it was ordered. */
  readonly triesSince?: string;
  /** What people were told of as failing, until it succeeds. */
  readonly failing?: { readonly kind: string; readonly reason: string };
  /** Operator retries so far: effects of a new cycle have ids of their own. */
  readonly cycle: number;
  readonly hub?: PlacedHub;
  /** A retry of an order that its hub never took: another hub may be chosen before it is sent again. */
  readonly replacing?: true;
  /** It asks for a place by itself: where no hub takes it, it stays with the one it has. */
  readonly reconsidering?: true;
  /** How often it did since an operator's retry. */
  readonly reconsidered?: number;
  /** What is reserved on the hub. */
  readonly held?: CapacityClaim;
  /** Attempts to get capacity that ended with an answer: placing and growing count alike. */
  readonly capacityTries: number;
  /** Intervals between such attempts that were waited out in full since capacity was last got; none when absent. */
  readonly waitedOut?: number;
  /** Why it waits: nothing fits, or its hub has no room to grow. */
  readonly waiting?: Waiting;
  /** The last reason that was shown on the cluster. */
  readonly shownWaiting?: Waiting;
  readonly selected: boolean;
  readonly dispatched: boolean;
  readonly stepsAssigned: boolean;
  /** The spec that the hub accepted last; the order may bear another name than ours when it was adopted. */
  readonly applied?: {
    readonly instance: string;
    readonly revision: number;
    readonly uid: string;
    readonly name?: string;
  };
  /** When the first and the last change of the spec came that the hub was not sent yet. */
  readonly changes?: { readonly first: string; readonly last: string };
  /** More than node counts changed since the automation was asked. */
  readonly otherChanged?: true;
  /** What the hub's automation was asked for last. */
  readonly asked: { readonly [Purpose in AutomationPurpose]?: Asked };
  /** What the cluster is to be told, in this order. */
  readonly news: readonly { readonly number: number; readonly report: ClusterReport }[];
  readonly newsCount: number;
  /** Where we write the order's status: how often, and what stands there. */
  readonly statusWrites: number;
  readonly statusWritten?: string;
  /** How often the hub showed another spec than the one that was applied. */
  readonly drift: number;
  /** By kind: `place`, `apply`, `resize`, `check`, `delete`, `release`, `read`. */
  readonly effects: { readonly [kind: string]: EffectState };
  /** Spec and claim that the attempt in `effects` was started with. */
  readonly sent: {
    readonly [kind: string]: {
      readonly revision: number;
      readonly claim: CapacityClaim;
      readonly status?: string;
    };
  };
  /** Instance of the last command of each step that was answered, and the code when it was refused. */
  readonly answered: { readonly [step: string]: { readonly instance: string; readonly code?: string } };
  readonly timers: { readonly [timerId: string]: string };
  /** Deadlines that passed; checked once the hub was looked at after that. */
  readonly overdue: { readonly [step: string]: 'fired' | 'checked' };
  /** What was reached in this cycle; nodes and readiness count for the present spec only. */
  readonly reached: { readonly [Step in ObservedStep]: boolean };
  readonly wasAvailable: boolean;
  /** What it was READY with last, unless it was built again since: what fails now is a change of it. */
  readonly built?: DesiredCluster['nodeSets'];
  /** Why the present change of what was built failed. */
  readonly changeFailed?: ChangeFailure;
  /** Observations recorded so far; the last one counts until the deletion was sent. */
  readonly observations: number;
  readonly observation?: {
    readonly number: number;
    readonly at: string;
    readonly assessment: Assessment;
    readonly version?: ObservedVersion;
  };
  /** The next observation is recorded although nothing changed: somebody wrote a status. */
  readonly recordNext: boolean;
  /** What the last check confirmed to be gone. */
  readonly gone?: Missing;
  readonly deletion?: { readonly at: string };
  /** Nothing of the order is left on the hub, and the cluster knows. */
  readonly absenceRecorded: boolean;
  /** A refused effect: nothing happens until an operator retries or somebody deletes. */
  readonly halted?: Problem;
  /** Problems that the cluster was not told of yet. */
  readonly problem?: Problem & { readonly number: number };
  readonly problems: number;
  /** Since when each active step is active. */
  readonly activeSince: { readonly [step: string]: string };
};

/** One state of one object on a hub. */
export type ObjectVersion = { readonly uid: string; readonly resourceVersion: string };

/** That of an order, with that of its HostedCluster where there is one. */
export type ObservedVersion = ObjectVersion & { readonly hosted?: ObjectVersion };

/** A request to the hub's automation, and the job that came of it (aap). */
export type Asked = {
  /** What it was asked for: the wording of the order. */
  readonly wording: string;
  /** How often it was asked for the same before. */
  readonly repeats: number;
  readonly at: string;
  readonly job?: RunningJob;
  /** The job before it, for the same, which failed. */
  readonly failed?: RunningJob;
  readonly again?: 'nodes' | 'other';
  /** eda: the hub once showed that there was nothing left of it to do. */
  readonly finished?: true;
};

export type RunningJob = LaunchedJob & {
  readonly workflow: boolean;
  readonly template: string;
  /** When this state of it was first seen. */
  readonly seenAt: string;
};

export type ChangeFailure = Extract<StoppedChange, { why: 'failed' }>;

export type ObservedStep = 'accepted' | 'control-plane' | 'nodes' | 'ready';
export type Missing = 'cluster-order' | 'hosted-cluster';
export type Waiting = {
  readonly message: string;
  readonly decision: PlacementDecision;
  readonly at: string;
};
export type Problem = {
  readonly at: string;
  readonly reason: string;
  readonly message: string;
  readonly permanent: boolean;
  /** For the tenant; absent: the sentence of its reason. */
  readonly told?: string;
};

export const NOTHING_REACHED: OpenRun['reached'] = {
  accepted: false,
  'control-plane': false,
  nodes: false,
  ready: false,
};

export type Started = Extract<RunEvent, { type: 'RunStarted' }>['data'];

/** What the spec needs of the hub's capacity. */
export const wantedClaim = (run: OpenRun): CapacityClaim => claimOfCluster(run.spec.nodeSets);

/** What must be reserved before the spec is sent: what is in use until the hub has let it go, and what is new. */
export const claimBeforeApply = (run: OpenRun): CapacityClaim => {
  const wanted = wantedClaim(run);
  const held = run.held ?? wanted;
  const nodes = new Map(Object.entries(held.nodes));
  for (const [hostType, count] of Object.entries(wanted.nodes)) {
    nodes.set(hostType, Math.max(nodes.get(hostType) ?? 0, count));
  }
  return {
    controlPlanes: Math.max(held.controlPlanes, wanted.controlPlanes),
    nodes: Object.fromEntries(nodes),
  };
};

export const sameClaim = (left: CapacityClaim | undefined, right: CapacityClaim): boolean =>
  left !== undefined && sameJson(left, right);

/** True when the hub accepted the present spec in this cycle and still holds it, as far as is known. */
export const isApplied = (run: OpenRun): boolean => run.applied?.instance === applyInstance(run);

/** Names one wording of the order: its spec, the operator's retry, and the correction of a drift. */
export const applyInstance = (run: OpenRun): string => `${run.specRevision}.${run.cycle}.${run.drift}`;

/** The retries that had been asked for when this wording was named; undefined: none was. */
export const cycleOf = (instance: string | undefined): number | undefined =>
  instance === undefined ? undefined : Number(instance.split('.')[1]);

/** What the last observation shows to be missing; it counts only after a check of its own. */
export const suspected = (run: OpenRun): Missing | undefined => {
  const assessment = run.observation?.assessment;
  if (assessment === undefined) return undefined;
  if (!assessment.found) {
    // Gone is what has left nothing behind: a HostedCluster without its order still runs.
    if (run.deletion !== undefined && assessment.left !== undefined) return undefined;
    return run.applied === undefined && run.deletion === undefined ? undefined : 'cluster-order';
  }
  return assessment.verdict.kind === 'hosted-cluster-lost' ? 'hosted-cluster' : undefined;
};

export const desiredOf = (run: OpenRun): DesiredCluster => ({
  spec: clusterOrderSpec(run.spec),
  nodeSets: run.spec.nodeSets,
  controller: run.hub?.controller ?? 'operator',
  wasAvailable: run.wasAvailable,
  wasReady: run.reached.ready,
  ...(run.triesSince === undefined ? {} : { since: run.triesSince }),
  ...(run.overdue[JOB_STATUS] === undefined ? {} : { jobUnknownLong: true }),
  ...(run.built === undefined ? {} : { built: run.built }),
  ...stoppedOf(run),
  ...automationOf(run),
});

/** Name of the step that waits for a job's state while its hub cannot tell it. */
export const JOB_STATUS = 'job-status';

const stoppedOf = (run: OpenRun): Pick<DesiredCluster, 'stopped'> => {
  if (run.built === undefined) return {};
  // Between two tries for room it waits as well.
  if (run.waiting !== undefined || (run.waitedOut !== undefined && !isApplied(run))) {
    return { stopped: { why: 'waits' } };
  }
  return run.changeFailed === undefined ? {} : { stopped: run.changeFailed };
};

const automationOf = (run: OpenRun): Pick<DesiredCluster, 'automation'> => {
  const mode = automationMode(run);
  if (mode === undefined) return {};
  const { provision } = run.asked;
  const asked = provision?.wording === provisionWording(run) && run.applied?.revision === run.specRevision;
  const { job, failed } = provision ?? {};
  return {
    automation: {
      mode,
      asked,
      ...(job === undefined ? {} : { job }),
      ...(failed === undefined ? {} : { failed }),
    },
  };
};

/** How we run the automation of its hub; undefined: the hub does that itself, or is simulated and does everything. */
export const automationMode = ({ hub }: OpenRun): 'eda' | 'aap' | undefined =>
  hub === undefined || hub.simulated || hub.mode === 'operator' ? undefined : hub.mode;

/** Nobody but us reconciles ClusterOrders there. */
export const isController = (run: OpenRun): boolean =>
  run.hub?.controller === 'ledger' && automationMode(run) !== undefined;

/** Names what the automation is asked for: the spec that the hub holds, again after each retry. */
export const provisionWording = (run: OpenRun): string => `${run.applied?.revision ?? 0}.${run.cycle}`;
