import type { JsonObject } from '../../json.ts';
import { sameJson } from '../../json-tools.ts';
import { BACKOFF, isUnresolved, type Backoff } from '../../process/effects.ts';
import { clusterOrderDraft, orderName } from '../cluster-order-manifest.ts';
import type { ClusterCommand } from '../commands.ts';
import { reasonsOf } from '../report.ts';
import {
  applyInstance,
  claimBeforeApply,
  isApplied,
  sameClaim,
  suspected,
  wantedClaim,
  type ObservedStep,
  type OpenRun,
} from './run.ts';

/**
 * The cluster order as a table (fleet-and-networks.md §2.1, §2.2): one row per step, with what it waits for, what it
 * does and how long it may take. A step is added by a row. Steps that our own aggregates will do (agents, l2, l3 …)
 * go between `start-dispatch` and `apply`; until then `StepsAssigned` records whose they are.
 *
 * A step is active while its phase applies, it is needed, everything it comes after is done, and it is not done itself.
 * Undoing is not a list of its own: a deletion has rows too, and what must be undone is read off the state.
 */
export type Step = {
  readonly name: string;
  /** `forward`: not while a refusal halts the order; `live`: until deletion; `deletion`: from then on. */
  readonly phase: 'forward' | 'live' | 'deletion';
  readonly after: readonly string[];
  readonly needed?: (run: OpenRun) => boolean;
  readonly done: (run: OpenRun) => boolean;
  /** What to do while it is active; absent: it is only observed. */
  readonly work?: (run: OpenRun, since: string) => Work | undefined;
  readonly deadline?: {
    readonly ms: number;
    readonly onOverdue: (run: OpenRun, since: string) => ClusterCommand;
  };
};

export type Work =
  | { readonly kind: 'command'; readonly instance: string; readonly command: ClusterCommand }
  | ({ readonly kind: 'effect'; readonly effect: string; readonly instance: string } & Call)
  /** A timed read, every so often while the step is active. */
  | ({ readonly kind: 'read'; readonly everyMs: number } & Call);

type Call = {
  readonly port: 'scheduler' | 'management-cluster';
  readonly operation: string;
  readonly args: JsonObject;
  readonly lane: string;
};

/** Per kind of effect: how it is repeated, after how many attempts people are told, and whether it may be refused. */
export const EFFECT_RULES: {
  readonly [kind: string]: {
    readonly backoff: Backoff;
    readonly attempts: number;
    readonly mayBeRefused: boolean;
  };
} = {
  place: { backoff: BACKOFF, attempts: 10, mayBeRefused: true },
  resize: { backoff: BACKOFF, attempts: 10, mayBeRefused: true },
  apply: { backoff: BACKOFF, attempts: 10, mayBeRefused: true },
  check: { backoff: BACKOFF, attempts: 10, mayBeRefused: false },
  delete: { backoff: BACKOFF, attempts: 10, mayBeRefused: false },
  release: { backoff: BACKOFF, attempts: 10, mayBeRefused: false },
};

const MINUTE = 60_000;
/** No phase after this: the hub does not accept (operator-run.md §4.1). */
export const ACCEPT_DEADLINE_MS = 30_000;
/** Anchors of fleet-and-networks.md §2.2, step 12. */
export const CONTROL_PLANE_DEADLINE_MS = 30 * MINUTE;
export const NODES_DEADLINE_MS = 30 * MINUTE;
export const READY_DEADLINE_MS = 60 * MINUTE;
/** How often the hub is read besides its watch: changes are expected, or only degradation and loss. */
export const READ_BUSY_MS = 10_000;
export const READ_READY_MS = 60_000;

const cluster = (instance: string | number, command: ClusterCommand): Work => ({
  kind: 'command',
  instance: String(instance),
  command,
});

const onHub = (run: OpenRun): { readonly port: 'management-cluster'; readonly lane: string } => ({
  port: 'management-cluster',
  lane: `hub:${run.hub?.hub ?? ''}`,
});

const orderRef = (run: OpenRun): JsonObject => ({
  hub: run.hub?.hub ?? '',
  namespace: run.hub?.namespace ?? '',
  name: orderName(run.clusterId),
  clusterId: run.clusterId,
});

const placeCall = (run: OpenRun): Call => ({
  port: 'scheduler',
  operation: 'place',
  lane: 'scheduler',
  args: {
    clusterId: run.clusterId,
    tenant: run.tenant,
    template: run.spec.template.id,
    ...(run.zone === undefined ? {} : { zone: run.zone }),
    claim: asJson(wantedClaim(run)),
  },
});

const releaseCall = (run: OpenRun): Call => ({
  port: 'scheduler',
  operation: 'release',
  lane: 'scheduler',
  args: { ...(run.hub === undefined ? {} : { hub: run.hub.hub }), clusterId: run.clusterId },
});

const observeCall = (run: OpenRun): Call => ({
  ...onHub(run),
  operation: 'observeCluster',
  args: orderRef(run),
});

const applyCall = (run: OpenRun): Call => {
  const { namespace = '', mode = 'operator', simulated = false } = run.hub ?? {};
  const { simulation } = run;
  const draft = clusterOrderDraft(
    {
      ...run.spec,
      id: run.clusterId,
      tenant: run.tenant,
      ...(simulation === undefined ? {} : { simulation }),
    },
    { namespace, mode, simulated },
  );
  const { pullSecret } = run.spec;
  return {
    ...onHub(run),
    operation: 'applyClusterOrder',
    args: {
      hub: run.hub?.hub ?? '',
      clusterId: run.clusterId,
      manifest: asJson(draft),
      ...(pullSecret === undefined ? {} : { pullSecret: asJson(pullSecret) }),
    },
  };
};

const effect = (kind: string, instance: string | number, call: Call): Work => ({
  kind: 'effect',
  effect: kind,
  instance: String(instance),
  ...call,
});

/** An effect that may have happened is settled under its own id before another takes its place. */
const settled = (run: OpenRun, kind: string, instance: string | number, call: Call): Work => {
  const known = run.effects[kind];
  return isUnresolved(known)
    ? { kind: 'effect', effect: kind, instance: known.id.slice(kind.length + 1), ...call }
    : effect(kind, instance, call);
};

const resizeWork = (run: OpenRun, claim: ReturnType<typeof wantedClaim>): Work | undefined =>
  run.waiting === undefined
    ? settled(run, 'resize', `${run.specRevision}.${run.capacityTries}`, {
        port: 'scheduler',
        operation: 'resize',
        lane: 'scheduler',
        args: { hub: run.hub?.hub ?? '', clusterId: run.clusterId, claim: asJson(claim) },
      })
    : undefined;

const answeredFor = (run: OpenRun, step: string, instance: string | number): boolean =>
  run.answered[step]?.instance === String(instance);

const overdueCommand =
  (reason: string, message: string) =>
  (_run: OpenRun, since: string): ClusterCommand => ({
    type: 'RecordFailure',
    at: since,
    reason,
    message,
    permanent: false,
  });

const reachedStep = (step: ObservedStep) => (run: OpenRun) => run.reached[step];

const forward: readonly Step[] = [
  {
    name: 'place',
    phase: 'forward',
    after: [],
    done: (run) => run.hub !== undefined,
    work: (run) =>
      run.waiting === undefined
        ? settled(run, 'place', `${run.capacityTries}.${run.cycle}`, placeCall(run))
        : undefined,
  },
  {
    name: 'select-hub',
    phase: 'forward',
    after: ['place'],
    done: (run) => run.selected,
    work: (run, at) => {
      if (run.hub === undefined || answeredFor(run, 'select-hub', run.cycle)) return undefined;
      const { hub, namespace, mode, simulated, decision } = run.hub;
      const order = { orderName: orderName(run.clusterId), decision };
      return cluster(run.cycle, { type: 'SelectHub', at, hub, namespace, mode, simulated, ...order });
    },
  },
  {
    name: 'start-dispatch',
    phase: 'forward',
    after: ['select-hub'],
    done: (run) => run.dispatched,
    work: (run, at) =>
      answeredFor(run, 'start-dispatch', run.cycle)
        ? undefined
        : cluster(run.cycle, { type: 'StartDispatch', at }),
  },
  {
    name: 'resize-up',
    phase: 'forward',
    after: ['start-dispatch'],
    done: (run) => sameClaim(run.held, claimBeforeApply(run)),
    work: (run) => resizeWork(run, claimBeforeApply(run)),
  },
  {
    name: 'apply',
    phase: 'forward',
    after: ['start-dispatch', 'resize-up'],
    done: isApplied,
    work: (run) => settled(run, 'apply', applyInstance(run), applyCall(run)),
  },
  {
    name: 'record-placed',
    phase: 'forward',
    after: ['apply'],
    done: (run) => answeredFor(run, 'record-placed', run.applied?.uid ?? ''),
    work: (run, at) => {
      const uid = run.applied?.uid ?? '';
      return cluster(uid, { type: 'RecordPlaced', at, uid });
    },
  },
  {
    name: 'record-synced',
    phase: 'forward',
    after: ['apply'],
    needed: (run) => (run.applied?.revision ?? 0) > 0,
    done: (run) => answeredFor(run, 'record-synced', run.applied?.revision ?? 0),
    work: (run, at) => cluster(run.applied?.revision ?? 0, { type: 'RecordSpecSynced', at }),
  },
  {
    name: 'resize-down',
    phase: 'forward',
    after: ['apply', 'record-synced'],
    done: (run) => sameClaim(run.held, wantedClaim(run)),
    work: (run) => resizeWork(run, wantedClaim(run)),
  },
  {
    name: 'accepted',
    phase: 'forward',
    after: ['apply'],
    done: reachedStep('accepted'),
    deadline: {
      ms: ACCEPT_DEADLINE_MS,
      onOverdue: (_run, since) => ({ type: 'ReportNotAccepting', at: since, since }),
    },
  },
  {
    name: 'control-plane',
    phase: 'forward',
    after: ['accepted'],
    done: reachedStep('control-plane'),
    deadline: {
      ms: CONTROL_PLANE_DEADLINE_MS,
      onOverdue: overdueCommand(
        'ControlPlaneTimedOut',
        `the control plane did not become available within ${CONTROL_PLANE_DEADLINE_MS / MINUTE} minutes`,
      ),
    },
  },
  {
    name: 'nodes',
    phase: 'forward',
    after: ['control-plane'],
    done: reachedStep('nodes'),
    deadline: {
      ms: NODES_DEADLINE_MS,
      onOverdue: overdueCommand(
        'NodesTimedOut',
        `the nodes did not become ready within ${NODES_DEADLINE_MS / MINUTE} minutes`,
      ),
    },
  },
  {
    name: 'ready',
    phase: 'forward',
    after: ['nodes'],
    done: reachedStep('ready'),
    deadline: {
      ms: READY_DEADLINE_MS,
      onOverdue: overdueCommand(
        'InstallTimedOut',
        `the cluster did not become ready within ${READY_DEADLINE_MS / MINUTE} minutes`,
      ),
    },
  },
];

/** What goes on beside the way to READY: waiting, observing, reporting. */
const beside: readonly Step[] = [
  {
    name: 'defer',
    phase: 'live',
    after: [],
    needed: (run) => run.waiting !== undefined,
    done: (run) =>
      run.shownWaiting !== undefined &&
      run.waiting !== undefined &&
      run.shownWaiting.message === run.waiting.message &&
      sameJson(reasonsOf(run.shownWaiting.decision), reasonsOf(run.waiting.decision)),
    work: ({ waiting, capacityTries }) =>
      waiting === undefined
        ? undefined
        : cluster(capacityTries, {
            type: 'DeferPlacement',
            at: waiting.at,
            message: waiting.message,
            decision: waiting.decision,
          }),
  },
  {
    name: 'record',
    phase: 'live',
    after: [],
    needed: (run) => run.observation?.assessment.found === true,
    done: (run) => answeredFor(run, 'record', run.observation?.number ?? 0),
    work: ({ observation }) =>
      observation === undefined
        ? undefined
        : cluster(observation.number, {
            type: 'RecordObservation',
            at: observation.at,
            assessment: observation.assessment,
          }),
  },
  {
    name: 'report-lost',
    phase: 'live',
    after: [],
    needed: (run) => run.gone !== undefined && run.gone === suspected(run),
    done: (run) => answeredFor(run, 'report-lost', run.observation?.number ?? 0),
    work: (run, at) =>
      run.gone === undefined
        ? undefined
        : cluster(run.observation?.number ?? 0, { type: 'ReportLost', at, what: run.gone }),
  },
  {
    name: 'report-problem',
    phase: 'live',
    after: [],
    needed: (run) => run.problem !== undefined,
    done: () => false,
    work: ({ problem }) => {
      if (problem === undefined) return undefined;
      const { number, at, reason, message, permanent } = problem;
      return cluster(number, { type: 'RecordFailure', at, reason, message, permanent });
    },
  },
];

const deletion: readonly Step[] = [
  {
    // Instead of placing again: whatever an unanswered attempt reserved is given back.
    name: 'settle-place',
    phase: 'deletion',
    after: [],
    needed: (run) => run.hub === undefined,
    done: (run) => !isUnresolved(run.effects['place']),
    work: (run) => settled(run, 'place', '', releaseCall(run)),
  },
  {
    // Instead of sending again: a look ends the doubt, and what is there is deleted.
    name: 'settle-apply',
    phase: 'deletion',
    after: [],
    done: (run) => !isUnresolved(run.effects['apply']),
    work: (run) => settled(run, 'apply', '', observeCall(run)),
  },
  {
    name: 'delete',
    phase: 'deletion',
    after: ['settle-apply'],
    needed: (run) => run.dispatched,
    done: (run) => run.effects['delete']?.status === 'done',
    work: (run) =>
      settled(run, 'delete', run.cycle, {
        ...onHub(run),
        operation: 'deleteClusterOrder',
        args: orderRef(run),
      }),
  },
  {
    name: 'report-blocked',
    phase: 'deletion',
    after: ['delete'],
    needed: (run) => waitingFor(run).length > 0,
    done: (run) => answeredFor(run, 'report-blocked', run.observation?.number ?? 0),
    work: (run, at) =>
      cluster(run.observation?.number ?? 0, {
        type: 'BlockDeletion',
        at: run.observation?.at ?? at,
        waitingFor: waitingFor(run),
      }),
  },
  {
    name: 'report-stuck',
    phase: 'deletion',
    after: [],
    needed: (run) => run.problem !== undefined,
    done: (run) => answeredFor(run, 'report-stuck', run.problem?.number ?? 0),
    work: ({ problem }) =>
      problem === undefined
        ? undefined
        : cluster(problem.number, {
            type: 'BlockDeletion',
            at: problem.at,
            waitingFor: [`${problem.reason}: ${problem.message}`],
          }),
  },
  {
    name: 'confirm-absence',
    phase: 'deletion',
    after: ['delete'],
    needed: (run) => run.dispatched,
    done: (run) => run.absenceRecorded,
    work: (run, at) =>
      run.gone === 'cluster-order' ? cluster(run.cycle, { type: 'ConfirmAbsence', at }) : undefined,
  },
  {
    name: 'release',
    phase: 'deletion',
    after: ['settle-place', 'confirm-absence'],
    needed: (run) => run.effects['place'] !== undefined,
    done: (run) => run.effects['release']?.status === 'done',
    work: (run) => settled(run, 'release', run.cycle, releaseCall(run)),
  },
];

const checking = (phase: 'live' | 'deletion'): Step => ({
  name: `check-${phase}`,
  phase,
  after: phase === 'deletion' ? ['delete'] : [],
  needed: (run) =>
    run.applied !== undefined || (run.deletion !== undefined && run.dispatched && !run.absenceRecorded),
  done: (run) => !needsCheck(run),
  work: (run) => settled(run, 'check', checkInstance(run), observeCall(run)),
});

const reading = (phase: 'live' | 'deletion'): Step => ({
  name: `read-${phase}`,
  phase,
  after: phase === 'deletion' ? ['delete'] : [],
  needed: (run) => (phase === 'live' ? run.applied !== undefined : run.dispatched),
  done: (run) => run.absenceRecorded,
  work: (run) => ({
    kind: 'read',
    everyMs: run.reached.ready && run.deletion === undefined ? READ_READY_MS : READ_BUSY_MS,
    ...observeCall(run),
  }),
});

/** A deadline that passed is looked into first, and so is what an observation misses (design §6). */
const needsCheck = (run: OpenRun): boolean => {
  if (Object.values(run.overdue).includes('fired')) return true;
  const missing = suspected(run);
  return missing !== undefined && run.gone !== missing;
};

/** Ending of the ids of checks that were made after the deletion was sent. */
export const CHECK_OF_DELETION = '.deletion';

/** One check per observation and set of passed deadlines; another one needs something new. */
const checkInstance = (run: OpenRun): string => {
  const fired = Object.entries(run.overdue).filter(([, stage]) => stage === 'fired');
  const phase = run.deletion === undefined ? '.live' : CHECK_OF_DELETION;
  return [run.cycle, run.observations, ...fired.map(([step]) => step)].join('.') + phase;
};

const waitingFor = (run: OpenRun): readonly string[] => {
  const assessment = run.observation?.assessment;
  return assessment?.found === true ? assessment.waitingFor : [];
};

/** In the order in which commands and effects are offered. */
export const STEPS: readonly Step[] = [
  ...forward,
  ...beside,
  checking('live'),
  reading('live'),
  ...deletion,
  checking('deletion'),
  reading('deletion'),
];

const BY_NAME = new Map(STEPS.map((step) => [step.name, step]));

const isDone = (run: OpenRun, name: string): boolean => {
  const step = BY_NAME.get(name);
  return step === undefined || step.needed?.(run) === false || step.done(run);
};

const isActive = (run: OpenRun, step: Step): boolean => {
  if ((step.phase === 'deletion') !== (run.deletion !== undefined)) return false;
  if (step.phase === 'forward' && run.halted !== undefined) return false;
  if (step.needed?.(run) === false || step.done(run)) return false;
  return step.after.every((name) => isDone(run, name));
};

/** Names of the steps that something is to be done for, or that are waited for. */
export const activeSteps = (run: OpenRun): readonly string[] =>
  STEPS.filter((step) => isActive(run, step)).map(({ name }) => name);

/** Commands to report steps whose deadline passed and that a look did not find done. */
export const overdueSteps = (run: OpenRun): readonly Step[] =>
  STEPS.filter(
    (step) =>
      step.deadline !== undefined &&
      run.overdue[step.name] === 'checked' &&
      run.gone === undefined &&
      isActive(run, step) &&
      !answeredFor(run, `overdue-${step.name}`, overdueInstance(run)),
  );

export const overdueInstance = (run: OpenRun): string => `${run.specRevision}.${run.cycle}`;

/** Plain data that TypeScript knows as a readonly type, as JSON. */
export const asJson = (value: object): JsonObject => value as JsonObject;
