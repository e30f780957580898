import { claimOfCluster } from './servable.ts';
import { byKey, defined, own } from '../json-tools.ts';
import { configVersion, sameSpec } from './config-version.ts';
import type {
  ClusterObservation,
  DesiredCluster,
  HubWork,
  ObservedCondition,
  ObservedHosted,
  ObservedJob,
  ObservedOrder,
} from './observed.ts';

/** Ansible's own mark on what it still has to clean up (OSAC's operator). */
export const INFRASTRUCTURE_FINALIZER = 'osac.openshift.io/infrastructure';

/** The observation with everything worked out, once for everything that is said of it. */
export type ObservedFacts = ReturnType<typeof factsOf>;

export const factsOf = (observation: ClusterObservation, shown: ObservedOrder, desired: DesiredCluster) => {
  const { automation, controller, nodeSets } = desired;
  // Where we are the controller, phase and conditions are our own words: they say nothing of the hub.
  const order: ObservedOrder =
    controller === 'ledger' && automation !== undefined
      ? { ...shown, phase: 'Progressing', conditions: [] }
      : shown;
  const hosted = observation.hostedCluster;
  const version = observation.specVersion ?? configVersion(order.spec);
  const job = automation === undefined ? latestJob(order.jobs, 'provision') : launchedJob(automation);
  const ended = isRunningJob(job) ? formerJob(order.jobs, desired) : job;
  // One for what was stored before a retry or a change says nothing of the present spec.
  const isOfPresentSpec =
    automation === undefined ? (ended?.configVersion ?? version) === version : automation.asked;
  const failed = ended !== undefined && isFailedJob(ended) && isOfPresentSpec ? ended : undefined;
  const ready = readyNodes(order, hosted, desired);
  const nodesReached = ready === undefined ? undefined : everySet(nodeSets, ready, (is, size) => is === size);
  const specMatches = sameSpec(order.spec, desired.spec);
  const work = automation === undefined ? undefined : hubWork(order, hosted, desired);
  return {
    order,
    hosted,
    specMatches,
    /** The operator has seen the stored spec. */
    specSeen: controller === 'ledger' || order.desiredConfigVersion === version,
    job,
    /** The job, if there is one, is about the present spec. */
    jobCurrent:
      automation === undefined
        ? specMatches && (job?.configVersion ?? version) === version
        : automation.asked,
    /** The hub could not ask its automation about the job: nothing is known of its end. */
    jobUnknown: job !== undefined && isUnknownJob(job),
    /** The latest job succeeded for the stored spec; true also where no jobs are run. */
    jobDone:
      automation === undefined
        ? isDoneFor(job, version)
        : isDoneByUs(automation, desired.wasReady || (work === 'finished' && nodesReached !== false)),
    ready: ready ?? {},
    /** As many as ordered, in each node set. Undefined: the hub does not show node counts. */
    nodesReached,
    /** A node set has fewer than ordered. */
    nodesShort: ready !== undefined && !everySet(nodeSets, ready, (is, size) => is >= size),
    /** Of the nodes that were built and are still wanted, some are not ready. */
    builtNodesShort: ready !== undefined && isShortOfBuilt(ready, desired),
    /** Its control plane was seen before, and its HostedCluster is gone. */
    lost: desired.wasAvailable && hosted === null,
    /** The latest job for the present spec that has ended, if it failed: also while the next one runs. */
    failedJob: failed,
    /** Which hosts the operator has not found. */
    missingHosts: missingHosts(order, hosted),
    work,
  };
};

const everySet = (
  nodeSets: DesiredCluster['nodeSets'],
  ready: { readonly [nodeSet: string]: number },
  isSo: (is: number, size: number) => boolean,
): boolean => Object.entries(nodeSets).every(([name, { size }]) => isSo(own(ready, name) ?? 0, size));

/** By host type, as the hub counts them: in which of two sets of one type a node is, it does not show. */
const isShortOfBuilt = (
  ready: { readonly [nodeSet: string]: number },
  { nodeSets, built }: DesiredCluster,
): boolean => {
  if (built === undefined) return false;
  const shown = Object.entries(nodeSets).map(
    ([name, set]) => [name, { ...set, size: own(ready, name) ?? 0 }] as const,
  );
  const [is, was] = [claimOfCluster(Object.fromEntries(shown)).nodes, claimOfCluster(built).nodes];
  return Object.entries(claimOfCluster(nodeSets).nodes).some(
    ([type, wanted]) => (own(is, type) ?? 0) < Math.min(wanted, own(was, type) ?? 0),
  );
};

/**
 * An operator that is short of hosts takes none and looks no further: its status names neither hosts nor the control
 * plane, although that is there, or although the phase says Ready.
 */
const missingHosts = (
  order: ObservedOrder,
  hosted: ObservedHosted | null | undefined,
): string | undefined => {
  const isUnseen = findCondition(order.conditions, 'ControlPlaneCreated')?.status === 'False';
  const isThere = (hosted !== null && hosted !== undefined) || order.phase === 'Ready';
  if (!isUnseen || !isThere || order.nodeSets !== undefined) return undefined;
  const requests = order.spec.nodeRequests.filter(({ numberOfNodes }) => numberOfNodes > 0);
  if (requests.length === 0) return undefined;
  const counts = requests.map(({ resourceClass, numberOfNodes }) => `0 of ${numberOfNodes} ${resourceClass}`);
  return `waiting for hosts (${counts.join(', ')})`;
};

/** Undefined: the hub does not show node counts. */
const readyNodes = (
  order: ObservedOrder,
  hosted: ObservedHosted | null | undefined,
  { nodeSets, controller }: DesiredCluster,
): { [nodeSet: string]: number } | undefined => {
  if (hosted?.nodePools !== undefined) return spread(hosted.nodePools, nodeSets);
  const [request, ...others] = order.spec.nodeRequests;
  // Only orders with one request are counted, and an old count stays when a second one is added (OSAC's operator).
  if (hosted === null || controller === 'ledger' || request === undefined || others.length > 0) {
    return undefined;
  }
  const counted = order.observedNodes?.find(({ resourceClass }) => resourceClass === request.resourceClass);
  // An operator that is short of hosts looks no further: what it does not count says nothing.
  const isFrozen = findCondition(order.conditions, 'ControlPlaneCreated')?.status !== 'True';
  if (counted === undefined && (isFrozen || hosted === undefined)) return undefined;
  const { resourceClass } = request;
  return spread([{ resourceClass, ready: counted?.numberOfNodes ?? 0 }], nodeSets);
};

/**
 * Ready nodes of a class go to its node sets in the order of their names, each up to its size; what is left over is
 * shown, too, on the last of them: nodes that are to go are there until they are gone.
 */
const spread = (
  pools: readonly { readonly resourceClass: string; readonly ready: number }[],
  nodeSets: DesiredCluster['nodeSets'],
): { [nodeSet: string]: number } => {
  const left = new Map<string, number>();
  for (const { resourceClass, ready } of pools)
    left.set(resourceClass, (left.get(resourceClass) ?? 0) + ready);
  const sets = Object.entries(nodeSets).sort(byKey);
  const last = new Map(sets.map(([name, { hostType }]) => [hostType.id, name]));
  const counts = new Map<string, number>();
  for (const [name, { hostType, size }] of sets) {
    const available = left.get(hostType.id) ?? 0;
    const count = last.get(hostType.id) === name ? available : Math.min(size, available);
    counts.set(name, count);
    left.set(hostType.id, available - count);
  }
  return Object.fromEntries(counts);
};

/** By time of launch; of two launched at the same time the one listed later. */
export const latestJob = (jobs: readonly ObservedJob[], type: string): ObservedJob | undefined =>
  jobs
    .filter((job) => job.type === type)
    .reduce<ObservedJob | undefined>(
      (latest, job) => (latest === undefined || job.timestamp >= latest.timestamp ? job : latest),
      undefined,
    );

type Automation = NonNullable<DesiredCluster['automation']>;

const launchedJob = ({ job }: Pick<Automation, 'job'>): ObservedJob | undefined => {
  if (job === undefined) return undefined;
  const { id: jobId, state, createdAt: timestamp, vanished, outputTail: message } = job;
  return defined({ jobId, type: 'provision', state, timestamp, vanished, message });
};

const isRunningJob = (job: ObservedJob | undefined): boolean =>
  job !== undefined && job.vanished !== true && !ENDED.includes(job.state);

/** A try that failed has failed until a later one succeeds: what still runs says nothing yet. */
const formerJob = (
  jobs: readonly ObservedJob[],
  { automation, since = '' }: DesiredCluster,
): ObservedJob | undefined =>
  automation === undefined
    ? latestJob(
        jobs.filter(({ state, timestamp }) => ENDED.includes(state) && timestamp >= since),
        'provision',
      )
    : automation.failed && launchedJob({ job: automation.failed });

const isDoneFor = (job: ObservedJob | undefined, version: string): boolean =>
  job === undefined || (job.state === 'Succeeded' && (job.configVersion ?? version) === version);

/** A webhook is only taken: what came of it has to be seen. A job whose record is gone says no more either. */
const isDoneByUs = ({ asked, mode, job }: Automation, workSeen: boolean): boolean =>
  asked && (mode === 'eda' ? workSeen : job?.state === 'Succeeded' || job?.vanished === true);

const isFailedJob = ({ state, vanished }: ObservedJob): boolean =>
  state === 'Failed' || state === 'Canceled' || vanished === true;

/** The operator notes a poll that was not answered in the job's message and leaves the job's state as it was. */
const isUnknownJob = ({ state, message }: ObservedJob): boolean =>
  !ENDED.includes(state) && (message ?? '').startsWith('Failed to get job status');

/** States of a job that may still do something, and of one that has ended. */
export const RUNNING: readonly string[] = ['Pending', 'Waiting', 'Running'];
export const ENDED: readonly string[] = ['Succeeded', 'Failed', 'Canceled'];

/** What is to be seen of the automation that was asked last (OSAC's operator). */
const hubWork = (
  order: ObservedOrder,
  hosted: ObservedHosted | null | undefined,
  { nodeSets }: DesiredCluster,
): HubWork => {
  const isMarked = order.finalizers.includes(INFRASTRUCTURE_FINALIZER);
  if (order.deletionTimestamp !== undefined) {
    if (hosted === null || hosted === undefined) return isMarked ? 'cleaning' : 'finished';
    return hosted.deletionTimestamp === undefined ? 'nothing' : 'busy';
  }
  if (hosted === undefined && findCondition(order.conditions, 'ClusterAvailable')?.status === 'True') {
    return 'finished';
  }
  if (hosted === null || hosted === undefined) return isMarked ? 'busy' : 'nothing';
  const pools = hosted.nodePools;
  const atRest = pools?.every(({ ready, desired }) => ready === desired) ?? true;
  if (!atRest || !isHealthy(hosted)) return 'busy';
  return pools === undefined || isAskedOf(pools, nodeSets) ? 'finished' : 'resting';
};

const isAskedOf = (
  pools: NonNullable<ObservedHosted['nodePools']>,
  nodeSets: DesiredCluster['nodeSets'],
): boolean => {
  const counts = new Map<string, number>();
  const count = (type: string, change: number): unknown => counts.set(type, (counts.get(type) ?? 0) + change);
  for (const { hostType, size } of Object.values(nodeSets)) count(hostType.id, size);
  for (const { resourceClass, desired } of pools) count(resourceClass, -desired);
  return counts.values().every((difference) => difference === 0);
};

const isHealthy = ({ conditions }: ObservedHosted): boolean =>
  findCondition(conditions, 'Available')?.status === 'True' &&
  findCondition(conditions, 'Degraded')?.status !== 'True' &&
  findCondition(conditions, 'ClusterVersionSucceeding')?.status === 'True';

export const findCondition = (
  conditions: readonly ObservedCondition[],
  type: string,
): ObservedCondition | undefined => conditions.find((condition) => condition.type === type);
