import { claimOfCluster } from '../servable.ts';
import type { CapacityClaim } from '../../hubs/capacity-events.ts';
import { defined, own, sameJson } from '../../json-tools.ts';
import { isUnresolved } from '../../process/effects.ts';
import type { Run } from '../../process/run.ts';
import { clusterOrderSpec } from '../cluster-order-manifest.ts';
import { changeWords } from '../change-words.ts';
import { JOB_REASONS } from '../observation.ts';
import type { DesiredCluster } from '../observed.ts';
import { isStoredCluster, type ClusterState, type LiveCluster, type StoredCluster } from '../state.ts';

/** The run of one cluster's order. What is known of the cluster stands in the cluster's own state. */
export type OrderRun = Run<ClusterState, Memo>;
export type Dispatched = Extract<LiveCluster, { status: 'dispatched' }>;

/** A run begins with its order. */
export const orderOf = ({ subject }: OrderRun): StoredCluster => {
  if (!isStoredCluster(subject)) throw new TypeError('a run without an order');
  return subject;
};

/** What a run remembers that neither the cluster nor the book of its effects says. */
export type Memo = {
  /** How often the hub showed another spec than the one that was applied. */
  readonly drift: number;
  /** When the first and the last change of the spec came that the hub was not sent yet. */
  readonly changes?: { readonly first: string; readonly last: string };
  /** When the spec was last changed, or its retry asked for; absent: it is as it was ordered. */
  readonly triesSince?: string;
  /** What is reserved on the hub. */
  readonly held?: CapacityClaim;
  /** When it was told last that nothing fits, or that its hub has no room to grow. */
  readonly waiting?: string;
  /** Intervals between such attempts that were waited out in full since capacity was last got; none when absent. */
  readonly waitedOut?: number;
  /** The time for its first place has passed; what may still get it one is let end. */
  readonly placementOverdue?: true;
  /** When that had ended without a place. */
  readonly unplaced?: string;
  /** A retry of an order that its hub never took: another hub may be chosen before it is sent again. */
  readonly replacing?: true;
  /** It asks for a place by itself: where no hub takes it, it stays with the one it has. */
  readonly reconsidering?: true;
  /** How often it did since an operator's retry. */
  readonly reconsidered?: number;
  /** The hub holds it already, in a way that it refuses. */
  readonly foundThere?: true;
  /** Where the ledger does steps of it. */
  readonly site?: {
    readonly hub: string;
    readonly zone: string;
    readonly baseDomain: string;
    readonly steps: readonly string[];
  };
  /** How many answers each step had that was to wait, when it was last time to ask again. */
  readonly asked?: { readonly [step: string]: number };
  /** How often the nodes showed no address in time. */
  readonly rebinds?: number;
  /** Its deletion was sent, and a look after that has found nothing of it. */
  readonly gone?: true;
  /** How often it was there again after its deletion. */
  readonly backs: number;
  /** What was tried too often, until it succeeds; then the reason that no longer holds. */
  readonly failing?: { readonly kind: string; readonly reason: string };
  readonly ended?: { readonly reason: string; readonly at: string };
  /** The problem that the cluster was told of. */
  readonly told?: string;
};

export const INITIAL_MEMO: Memo = { drift: 0, backs: 0 };

/** From the choice of its hub until it is gone. */
export const onItsHub = ({ subject }: OrderRun): Dispatched | undefined =>
  subject.status === 'dispatched' ? subject : undefined;

export const hubOf = ({ subject }: OrderRun) =>
  'hub' in subject && subject.hub !== undefined ? subject.hub : undefined;

/** What the spec needs of the hub's capacity. */
export const wantedClaim = (run: OrderRun): CapacityClaim => claimOfCluster(orderOf(run).nodeSets);

/** What must be reserved before the spec is sent: what is in use until the hub has let it go, and what is new. */
export const claimBeforeApply = (run: OrderRun): CapacityClaim => {
  const wanted = wantedClaim(run);
  const held = run.memo.held ?? wanted;
  const most = (id: string): number => Math.max(own(held.nodes, id) ?? 0, own(wanted.nodes, id) ?? 0);
  const hostTypes = Object.keys({ ...held.nodes, ...wanted.nodes });
  return {
    controlPlanes: Math.max(held.controlPlanes, wanted.controlPlanes),
    nodes: Object.fromEntries(hostTypes.map((id) => [id, most(id)])),
  };
};

export const sameClaim = (left: CapacityClaim | undefined, right: CapacityClaim): boolean =>
  left !== undefined && sameJson(left, right);

/** Names one wording of the order: its spec, the operator's retry, and the correction of a drift. */
export const applyInstance = (run: OrderRun): string =>
  `${orderOf(run).generation}.${run.cycle}.${run.memo.drift}`;

/** True when the hub accepted the present spec in this cycle and still holds it, as far as is known. */
export const isApplied = (run: OrderRun): boolean => {
  const instance = applyInstance(run);
  if (run.done['apply']?.instance === instance) return !isUnresolved(run.effects['apply']);
  // It was refused, yet a look has shown it: an attempt before had been taken.
  const { id, status } = run.effects['apply'] ?? {};
  return (
    status === 'refused' && id === `apply:${instance}` && onItsHub(run)?.specPending === false && isSent(run)
  );
};

/** The hub took it once, and it is not known to be gone. */
export const isSent = (run: OrderRun): boolean => onItsHub(run)?.uid !== undefined;

/** The hub's operator is to launch its jobs again: somebody retried, and nothing was sent since. */
export const isRetryUnsent = (run: OrderRun): boolean =>
  run.cycle > 0 &&
  automationMode(run) === undefined &&
  run.done['apply']?.instance.split('.')[1] !== String(run.cycle);

/** Nothing of the order is left on the hub, and the cluster knows. */
export const isAbsent = (run: OrderRun): boolean => onItsHub(run)?.ours !== true;

/** Nothing of it is left on the hub, whatever is left beside it. */
export const isGone = (run: OrderRun): boolean => isAbsent(run) || run.memo.gone === true;

export const isDispatched = ({ subject }: OrderRun): boolean =>
  subject.status === 'dispatched' || (subject.status === 'deleted' && subject.hub !== undefined);

export type ObservedStep = 'accepted' | 'control-plane' | 'nodes' | 'ready';

/** Which steps the cluster's state shows to be done. */
export const hasReached = (run: OrderRun, step: ObservedStep): boolean => {
  const state = onItsHub(run);
  if (state === undefined) return false;
  const { endpoints, built, ready, changeFailed, waiting, conditions, seen } = state;
  const isReady = ready && built !== undefined && changeWords(built, state) === '' && state.wasReady === true;
  if (step === 'ready') return isReady && changeFailed === undefined && waiting === undefined;
  if (step === 'accepted') return Object.keys(conditions).length > 0 && seen.unaccepted !== true;
  const available = endpoints !== undefined || isReady;
  return step === 'control-plane' ? available : available && hasNodes(state);
};

/** As many as ordered, wherever the hub shows them. */
const hasNodes = ({ conditions, readyNodes, nodeSets, seen, specPending }: Dispatched): boolean =>
  !specPending &&
  seen.differs !== true &&
  conditions.NodesReady?.status !== 'False' &&
  (readyNodes === undefined ||
    Object.entries(nodeSets).every(([name, { size }]) => (own(readyNodes, name) ?? 0) === size));

export const desiredOf = (run: OrderRun): DesiredCluster => {
  const order = orderOf(run);
  const { built, wasAvailable, wasReady } = onItsHub(run) ?? {};
  return {
    spec: clusterOrderSpec(order),
    nodeSets: order.nodeSets,
    controller: hubOf(run)?.controller ?? 'operator',
    wasAvailable: wasAvailable === true,
    wasReady: wasReady === true,
    ...defined({
      since: run.memo.triesSince,
      retrying: isRetryUnsent(run) ? true : undefined,
      jobUnknownLong: run.overdue[JOB_STATUS] === undefined ? undefined : true,
      built: built?.nodeSets,
      stopped: stoppedOf(run),
      automation: automationOf(run),
    }),
  };
};

/** Name of the step that waits for a job's state while its hub cannot tell it. */
export const JOB_STATUS = 'job-status';

const stoppedOf = (run: OrderRun): DesiredCluster['stopped'] => {
  const { built, changeFailed } = onItsHub(run) ?? {};
  const { waiting, waitedOut } = run.memo;
  if (built === undefined) return undefined;
  // Between two tries for room it waits as well.
  if (waiting !== undefined || (waitedOut !== undefined && !isApplied(run))) return { why: 'waits' };
  if (changeFailed === undefined) return undefined;
  const { since, change: _change, ...failed } = changeFailed;
  // A change that could not be sent goes on; one whose job failed has failed until a newer job succeeds.
  const isResumed = ['apply', 'prepare', 'trigger'].some((kind) => (run.done[kind]?.at ?? '') > since);
  return isResumed && !JOB_REASONS.includes(failed.reason) ? undefined : { why: 'failed', ...failed };
};

const automationOf = (run: OrderRun): DesiredCluster['automation'] => {
  const mode = automationMode(run);
  const state = onItsHub(run);
  if (mode === undefined || state === undefined) return undefined;
  const { wording, job, failed } = state.asked.provision ?? {};
  const asked = wording === provisionWording(run) && !state.specPending;
  return defined({ mode, asked, job, failed });
};

/** How we run the automation of its hub; undefined: the hub does that itself, or is simulated and does everything. */
export const automationMode = (run: OrderRun): 'eda' | 'aap' | undefined => {
  const hub = hubOf(run);
  return hub === undefined || hub.simulated || hub.mode === 'operator' ? undefined : hub.mode;
};

/** Nobody but us reconciles ClusterOrders there. */
export const isController = (run: OrderRun): boolean =>
  hubOf(run)?.controller === 'ledger' && automationMode(run) !== undefined;

/** Names what the automation is asked for: the spec that the hub holds, again after each retry. */
export const provisionWording = (run: OrderRun): string => {
  const state = onItsHub(run);
  const sent = run.done['apply']?.facts?.['generation'];
  const held = state?.specPending === true && typeof sent === 'number' ? sent : (state?.generation ?? 0);
  return `${held}.${run.cycle}`;
};

/** Nothing of it is on its hub, for certain: nothing was ever sent, or every attempt failed before it came through. */
export const isCertainlyUnsent = (run: OrderRun): boolean => {
  const apply = run.effects['apply'];
  return isNeverTaken(run) && (apply === undefined || (apply.status === 'failed' && !apply.doubt));
};

/** No attempt to send it was ever answered as taken. */
export const isNeverTaken = (run: OrderRun): boolean =>
  isDispatched(run) && run.done['apply'] === undefined && onItsHub(run)?.uid === undefined;

/** A deletion has something to do on its hub, which may be away for good. */
export const mayBeOnHub = (run: OrderRun): boolean => isDispatched(run) && !isCertainlyUnsent(run);
