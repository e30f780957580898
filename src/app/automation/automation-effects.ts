import {
  type ObservedClusterOrder,
  type ObservedHostedCluster,
  CLUSTER_ORDER,
  HOSTED_CLUSTER,
  hostedPlace,
} from '../../domain/clusters/hub-objects.ts';
import type { ObjectPlace } from '../../domain/hubs/hub-object.ts';
import { defined, objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import { automationConnectionOf } from '../hubs/hub-check.ts';
import {
  callOptionsOf,
  clusterOf,
  done,
  effectPort,
  Ended,
  failed,
  outcomeOf,
  refused,
  registeredHub,
} from '../hubs/hub-effects.ts';
import type { HubRegistry, RegisteredHub } from '../hubs/hub-registry.ts';
import { cannotBeShown, type CallOptions, type ManagementCluster } from '../hubs/management-cluster.ts';
import type { Clock, Timers } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import {
  type AutomationPurpose,
  AutomationError,
  type Automation,
  type AutomationJob,
  type Automations,
} from './automation.ts';

/** What the playbooks leave on a ClusterOrder (OSAC's operator). */
const INFRASTRUCTURE_FINALIZER = 'osac.openshift.io/infrastructure';
const WORKFLOW_NAME = 'osac.openshift.io/ansible-workflow-name';
const WORKFLOW_TIME = 'osac.openshift.io/ansible-workflow-time';

/** What a hub shows of an order; `hosted` undefined: there is none, `unreadable`: the rights do not show it. */
export type Shown = {
  readonly order: ObservedClusterOrder;
  readonly hosted: ObservedHostedCluster | undefined | 'unreadable';
};

export type Question = {
  readonly purpose: AutomationPurpose;
  /** Reports of workflows from this time on (ISO, by the hub's clock) are about what was asked for. */
  readonly since: string;
  /**
   * The order was provisioned before and has changed, so that finalizer and HostedCluster say nothing. `nodes`: it
   * changed in its node counts, which NodePools show.
   */
  readonly again?: 'nodes' | 'other';
  /** The HostedCluster had gone before this was asked for, so that only Ansible's mark shows what came of it. */
  readonly cleaning?: boolean;
};

/**
 * What shows that a playbook has begun: in words, or undefined when nothing does. An accepted webhook says nothing by
 * itself (OSAC's operator), so this alone decides whether it is posted once more.
 */
export const evidenceOf = ({ order, hosted }: Shown, question: Question): string | undefined => {
  const marked = order.finalizers.includes(INFRASTRUCTURE_FINALIZER);
  if (reported(order, question)) return 'a workflow has reported since';
  if (question.purpose === 'deprovision') {
    if (hosted !== undefined && hosted !== 'unreadable') {
      // A creation that was still at work may have made it anew: the deletion takes no lock.
      return hosted.deletionTimestamp === undefined ? undefined : 'the hosted cluster is being deleted';
    }
    // Set by the creation and taken off at the end of the deletion; where it never was there is nothing to undo.
    if (!marked) return 'the infrastructure finalizer is off';
    return hosted === undefined && question.cleaning !== true ? 'the hosted cluster is gone' : undefined;
  }
  if (question.again === undefined) {
    if (marked) return 'the infrastructure finalizer is set';
    return hosted !== undefined && hosted !== 'unreadable' ? 'the hosted cluster is there' : undefined;
  }
  const shown = hosted !== undefined && hosted !== 'unreadable' ? hosted.nodePools : undefined;
  return question.again === 'nodes' && shown !== undefined && sameCounts(order, shown)
    ? 'the node pools are as ordered'
    : undefined;
};

/** A report of the other purpose's workflow is none of this one's; one of an unknown name may be. */
const reported = ({ annotations }: ObservedClusterOrder, { purpose, since }: Question): boolean => {
  const time = Date.parse(annotations[WORKFLOW_TIME] ?? '');
  if (Number.isNaN(time) || time < Date.parse(since)) return false;
  const name = annotations[WORKFLOW_NAME] ?? '';
  const other = purpose === 'provision' ? /delete/i : /create/i;
  return !other.test(name);
};

/** One pool per resource class; what is ordered twice is one pool to Ansible (OSAC's operator). */
const sameCounts = (
  order: ObservedClusterOrder,
  pools: NonNullable<ObservedHostedCluster['nodePools']>,
): boolean => {
  const wanted = new Map(
    order.spec.nodeRequests.map(({ resourceClass, numberOfNodes }) => [resourceClass, numberOfNodes]),
  );
  return (
    pools.length === wanted.size &&
    pools.every(({ resourceClass, desired }) => wanted.get(resourceClass) === desired)
  );
};

/** Name of the port in a workflow's effects. */
export const AUTOMATION_PORT = 'automation';
/** Operations that have the automation act. */
export const AUTOMATION_WRITES: readonly string[] = ['trigger', 'cancel'];
/** What an attempt may take in all: two looks, the settling between them, the wait for a place and the request. */
export const AUTOMATION_EFFECT_DEADLINE_MS = 180_000;

/** Arguments of `trigger`. */
export type TriggerArgs = {
  readonly hub: string;
  /** The mode in which the order was begun; the hub may have another one by now. */
  readonly mode: 'eda' | 'aap';
  readonly purpose: AutomationPurpose;
  readonly place: ObjectPlace & { readonly clusterId: string };
  /** The order was provisioned before and has changed, in its node counts or otherwise; or node pools were left out. */
  readonly again?: 'nodes' | 'other';
  /** eda: time (ISO) of an earlier trigger of the same intent that was accepted and showed no effect. */
  readonly since?: string;
  /** eda, deprovision: an earlier one left Ansible's mark on an order whose HostedCluster had gone. */
  readonly cleaning?: boolean;
};
/** Arguments of `job` and `cancel` (mode aap). */
export type JobArgs = { readonly hub: string; readonly job: Pick<AutomationJob, 'id' | 'workflow'> };

const DEFAULTS = {
  /** Milliseconds until a request that was sent is surely refused or accepted. */
  requestDeadlineMs: 30_000,
  /** Milliseconds after that until its effect shows: a listener may have it queued. */
  queuedGraceMs: 30_000,
  /** Milliseconds after that until a job is listed. */
  launchGraceMs: 10_000,
  /** Milliseconds between the two last looks for a job. */
  lookAgainMs: 2_000,
  /** Milliseconds that one call to the hub or for a job may take. */
  callDeadlineMs: 10_000,
};
export type AutomationEffectSettings = Readonly<typeof DEFAULTS>;

/** How far back jobs are looked for when nobody remembers the first attempt. */
const LONG_AGO_MS = 24 * 3_600_000;

/**
 * Effect port `automation`: has a hub's rulebook or automation platform run the playbook of an order.
 *
 * - `trigger` TriggerArgs → eda {queued, did: posted | observed, evidence?}; aap {job, did: launched | adopted}.
 *   `queued` is false and `job` null when the order to deprovision is gone: nothing was asked for.
 * - `lookUp` TriggerArgs → {job}: what an attempt to trigger has left (mode aap), null: nothing. Asks for nothing.
 * - `job` JobArgs → {job}: null when the platform has no such job any more.
 * - `cancel` JobArgs → {cancelled}: false when it had ended or was gone.
 *
 * After an attempt of unknown outcome nothing is repeated before a look: eda at what playbooks leave on the hub, aap at
 * the jobs of our effect id; and not before any request of an earlier attempt must have arrived or never will. Earlier
 * attempts are over when this one begins, so that is counted from here.
 */
export const createAutomationEffects = (options: {
  readonly registry: Pick<HubRegistry, 'ready' | 'get'>;
  readonly automations: Automations;
  readonly clock: Pick<Clock, 'now'>;
  readonly timers: Timers;
  readonly settings?: Partial<AutomationEffectSettings>;
}): EffectPort => {
  const { registry, automations, clock, timers } = options;
  const settings = { ...DEFAULTS, ...options.settings };

  const reading = (call: EffectCall): CallOptions => callOptionsOf(call, settings.callDeadlineMs);
  const requesting = (call: EffectCall): CallOptions => ({
    ...reading(call),
    deadlineMs: settings.requestDeadlineMs,
  });

  const hubOf = (id: string, call: EffectCall): Promise<RegisteredHub> => registeredHub(registry, id, call);

  const automationOf = (hub: RegisteredHub, mode: 'eda' | 'aap'): Automation => {
    const connection = automationConnectionOf(hub, mode);
    if (connection !== undefined) return automations.of(connection);
    const { id } = hub.facts;
    throw new Ended(
      failed(
        'EndpointMissing',
        `hub ${id} has no spec.endpoints.${mode}; its orders of mode ${mode} need it`,
      ),
    );
  };

  /** The whole order, as the playbooks get it. Undefined: it is not there. */
  const orderOf = async (
    cluster: ManagementCluster,
    { place, hub }: TriggerArgs,
    call: EffectCall,
  ): Promise<JsonObject | undefined> => {
    const order = await cluster.read(CLUSTER_ORDER, place, reading(call));
    if (order === undefined) return undefined;
    const owner = stringAt(objectAt(objectAt(order, 'metadata'), 'labels'), CLUSTER_ORDER.idLabel);
    if (owner === place.clusterId) return order;
    throw new Ended(
      refused(
        'NameTaken',
        `ClusterOrder ${place.name} on hub ${hub} is not that of cluster ${place.clusterId}`,
      ),
    );
  };

  /** Until no request of an earlier attempt can still arrive and show no effect. */
  const settled = async (call: EffectCall, graceMs: number, since?: string): Promise<void> => {
    const now = Date.parse(clock.now());
    const sent =
      since !== undefined && (call.mode === 'perform' || call.attempt === 1)
        ? Date.parse(since)
        : call.attempt === 2 && call.firstStartedAt !== undefined
          ? Math.min(now, Date.parse(call.firstStartedAt) + call.deadlineMs)
          : now;
    const wait = sent + settings.requestDeadlineMs + graceMs - now;
    if (wait > 0) await pause(timers, wait, call.signal);
    call.signal.throwIfAborted();
  };

  /** What has the order's name without our label is somebody else's, and ours is not there. */
  const shown = async (
    cluster: ManagementCluster,
    place: TriggerArgs['place'],
    call: EffectCall,
  ): Promise<Shown | undefined> => {
    const order = await cluster.get(CLUSTER_ORDER, place, reading(call));
    if (order?.id !== place.clusterId) return undefined;
    return { order, hosted: await hostedOf(cluster, place, reading(call)) };
  };

  /** What shows that an earlier request was acted on, looked for now and once nothing of it can be under way. */
  const actedOn = async (
    cluster: ManagementCluster,
    { place, purpose, again, since, cleaning }: TriggerArgs,
    call: EffectCall,
  ): Promise<string | undefined> => {
    const from = [since, call.firstStartedAt].filter((time) => time !== undefined).toSorted()[0];
    const look = async (): Promise<string | undefined> => {
      const now = await shown(cluster, place, call);
      if (now === undefined) return purpose === 'deprovision' ? 'the order is gone' : undefined;
      // The report's time is by the hub's clock, which may be an hour off.
      const dated = now.order.annotations[WORKFLOW_TIME] !== undefined && from !== undefined;
      const skewMs = dated ? ((await cluster.check(reading(call))).clockSkewMs ?? 0) : 0;
      const base = from ?? clock.now();
      const question = {
        purpose,
        since: new Date(Date.parse(base) + skewMs).toISOString(),
        ...defined({ again, cleaning }),
      };
      return evidenceOf(now, question);
    };
    const first = await look();
    if (first !== undefined) return first;
    await settled(call, settings.queuedGraceMs, since);
    return look();
  };

  const triggerEda = async (
    args: TriggerArgs,
    hub: RegisteredHub,
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const { purpose, place } = args;
    const automation = automationOf(hub, 'eda');
    const cluster = clusterOf(hub);
    if (call.mode === 'observe' || args.since !== undefined) {
      const evidence = await actedOn(cluster, args, call);
      if (evidence !== undefined) return done({ queued: true, did: 'observed', evidence });
    }
    const order = await orderOf(cluster, args, call);
    if (order === undefined) return withoutOrder(purpose, place, { queued: false });
    await automation.trigger({ purpose, orderName: place.name, order }, requesting(call));
    return done({ queued: true, did: 'posted' });
  };

  /** The first job of this effect. Two looks that find none, both when nothing can be under way, mean that there is none. */
  const jobOfEarlier = async (
    automation: Automation,
    purpose: AutomationPurpose,
    call: EffectCall,
  ): Promise<AutomationJob | undefined> => {
    const since = call.firstStartedAt ?? new Date(Date.parse(clock.now()) - LONG_AGO_MS).toISOString();
    const look = async (): Promise<AutomationJob | undefined> =>
      (await automation.findJobs?.({ purpose, since }, reading(call)))?.[0];
    const first = await look();
    if (first !== undefined) return first;
    await settled(call, settings.launchGraceMs);
    const second = await look();
    if (second !== undefined) return second;
    await pause(timers, settings.lookAgainMs, call.signal);
    call.signal.throwIfAborted();
    return look();
  };

  const triggerAap = async (
    args: TriggerArgs,
    hub: RegisteredHub,
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const { purpose, place } = args;
    const automation = automationOf(hub, 'aap');
    if (call.mode === 'observe') {
      const job = await jobOfEarlier(automation, purpose, call);
      if (job !== undefined) return done({ job, did: 'adopted' });
    }
    const order = await orderOf(clusterOf(hub), args, call);
    if (order === undefined) return withoutOrder(purpose, place, { job: null });
    const triggered = await automation.trigger({ purpose, orderName: place.name, order }, requesting(call));
    if (triggered.kind === 'launched') return done({ job: triggered.job, did: 'launched' });
    throw new TypeError('an automation platform answers a launch with a job');
  };

  const lookUp = async (args: TriggerArgs, call: EffectCall): Promise<EffectOutcome> => {
    const automation = automationOf(await hubOf(args.hub, call), 'aap');
    return done({ job: (await jobOfEarlier(automation, args.purpose, call)) ?? null });
  };

  const job = async (args: JobArgs, call: EffectCall): Promise<EffectOutcome> => {
    const automation = automationOf(await hubOf(args.hub, call), 'aap');
    return done({ job: (await automation.job?.(args.job, reading(call))) ?? null });
  };

  const cancel = async (args: JobArgs, call: EffectCall): Promise<EffectOutcome> => {
    const automation = automationOf(await hubOf(args.hub, call), 'aap');
    return done({ cancelled: (await automation.cancel?.(args.job, reading(call))) ?? false });
  };

  const trigger = async (args: TriggerArgs, call: EffectCall): Promise<EffectOutcome> => {
    const hub = await hubOf(args.hub, call);
    return args.mode === 'eda' ? triggerEda(args, hub, call) : triggerAap(args, hub, call);
  };

  return effectPort({ trigger, lookUp, job, cancel }, (error, { signal }) => {
    const outcome = error instanceof AutomationError ? outcomeOfAutomationError(error) : outcomeOf(error);
    if (outcome !== undefined || !signal.aborted) return outcome;
    // Stopped while it waited: nothing was sent by this attempt.
    return failed('Stopped', 'the attempt was stopped before anything was sent');
  });
};

const hostedOf = async (
  cluster: ManagementCluster,
  place: ObjectPlace,
  options: CallOptions,
): Promise<Shown['hosted']> => {
  try {
    return await cluster.get(HOSTED_CLUSTER, hostedPlace(place, undefined), options);
  } catch (error) {
    if (cannotBeShown(error)) return 'unreadable';
    throw error;
  }
};

const withoutOrder = (
  purpose: AutomationPurpose,
  { namespace, name }: ObjectPlace,
  nothing: JsonObject,
): EffectOutcome =>
  purpose === 'deprovision'
    ? done({ ...nothing, did: 'observed', evidence: 'the order is gone' })
    : failed('OrderMissing', `ClusterOrder ${name} not found in ${namespace}; nothing to provision`);

/** The outcomes of an effect for what a listener or a platform says. */
const outcomeOfAutomationError = (error: AutomationError): EffectOutcome => {
  const { kind, message, retryAfterMs } = error;
  if (kind === 'invalid') return refused('AutomationRefused', message);
  if (kind === 'unknown-outcome') return { outcome: 'unknown', reason: 'OutcomeUnknown', message };
  return failed(FAILURES[kind], message, retryAfterMs);
};

const FAILURES = {
  unauthorized: 'AutomationUnauthorized',
  forbidden: 'AutomationForbidden',
  'not-found': 'AutomationNotFound',
  throttled: 'AutomationThrottled',
  unavailable: 'AutomationUnavailable',
} as const;
