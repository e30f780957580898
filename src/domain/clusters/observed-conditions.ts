import type { ConditionName, ConditionState } from './state.ts';
import { findCondition as find, RUNNING, type ObservedFacts } from './observed-facts.ts';
import { byKey, own } from '../json-tools.ts';
import type { DesiredCluster, ObservedCondition } from './observed.ts';

/** The four conditions that are kept of every cluster, without the time since when. */
export type ObservedConditions = {
  readonly [Name in ConditionName]: Omit<ConditionState, 'since'>;
};

type Shown = Omit<ConditionState, 'since'>;

export const clusterConditions = (facts: ObservedFacts, desired: DesiredCluster): ObservedConditions =>
  facts.lost
    ? { ClusterAvailable: LOST, NodesReady: LOST, InfrastructureReady: LOST, TemplateApplied: LOST }
    : {
        ClusterAvailable: clusterAvailable(facts),
        NodesReady: nodesReady(facts, desired),
        InfrastructureReady: infrastructureReady(facts),
        TemplateApplied: templateApplied(facts, desired),
      };

/** Whatever was true of it before: an order goes on showing it after its HostedCluster is gone. */
export const LOST: Shown = {
  status: 'False',
  reason: 'HostedClusterLost',
  message: 'the hosted cluster is no longer on its hub',
};

/**
 * Read from the HostedCluster itself; the order's own `ClusterAvailable` is sticky and counts only where the
 * HostedCluster cannot be read (OSAC's operator).
 */
const clusterAvailable = ({ order, hosted }: ObservedFacts): Shown => {
  if (hosted === null) return shown('False', 'ControlPlaneMissing', 'there is no hosted control plane yet');
  if (hosted === undefined) {
    const sticky = find(order.conditions, 'ClusterAvailable')?.status === 'True' || order.phase === 'Ready';
    return sticky
      ? shown('True', 'ReportedByOrder', 'the hub reports it; its hosted cluster cannot be read')
      : shown('False', 'NotReported', 'the hub does not report it yet');
  }
  const degraded = find(hosted.conditions, 'Degraded');
  if (degraded?.status === 'True') return copied(degraded, 'False', 'Degraded', 'the cluster is degraded');
  const available = find(hosted.conditions, 'Available');
  if (available?.status !== 'True') {
    return copied(available, 'False', 'NotAvailable', 'the control plane does not answer yet');
  }
  const version = find(hosted.conditions, 'ClusterVersionSucceeding');
  if (version?.status !== 'True') {
    return copied(version, 'False', 'VersionNotComplete', 'the cluster version has not succeeded yet');
  }
  return shown('True', 'AsExpected', '');
};

const nodesReady = ({ nodesReached, ready }: ObservedFacts, { nodeSets }: DesiredCluster): Shown => {
  if (nodesReached === undefined) {
    return shown('NotObservable', 'NotObservable', 'the hub does not show node counts');
  }
  if (nodesReached) return shown('True', 'AsExpected', '');
  const counts = Object.entries(nodeSets)
    .sort(byKey)
    .map(([name, { size }]) => `${name} ${own(ready, name) ?? 0} of ${size}`);
  return shown('False', 'NodesNotReady', `ready nodes: ${counts.join(', ')}`);
};

/** Reason of `InfrastructureReady` that tenants are told with the order's progress. */
export const WAITING_FOR_HOSTS = 'WaitingForHosts';
/** Reason of `TemplateApplied` that tenants are told with the order's progress. */
export const JOB_STATUS_UNKNOWN = 'JobStatusUnknown';

const infrastructureReady = ({ order, hosted, missingHosts }: ObservedFacts): Shown => {
  if (missingHosts !== undefined) return shown('False', WAITING_FOR_HOSTS, missingHosts);
  const own = find(hosted?.conditions ?? [], 'InfrastructureReady');
  if (own !== undefined) return copied(own, own.status === 'True' ? 'True' : 'False', own.type, '');
  const created = find(order.conditions, 'ControlPlaneCreated');
  // An operator that is short of hosts does not look at what is there.
  if (hosted !== null && hosted !== undefined && created?.status !== 'True') {
    return shown('True', 'HostedClusterExists', '');
  }
  if (created === undefined) return shown('Unknown', 'NotReported', 'the hub has not reported it yet');
  return copied(created, created.status === 'True' ? 'True' : 'False', created.type, '');
};

const templateApplied = (facts: ObservedFacts, { automation, jobUnknownLong }: DesiredCluster): Shown => {
  const { job, jobDone, failedJob, jobUnknown, specMatches, specSeen } = facts;
  if (job?.vanished === true || (job !== undefined && jobUnknown && jobUnknownLong === true))
    return shown('Unknown', JOB_STATUS_UNKNOWN, `the hub cannot tell the state of its job ${job.jobId}`);
  if (failedJob !== undefined)
    return shown('False', 'JobFailed', `job ${failedJob.jobId} of the hub has failed`);
  if (!specMatches) return shown('False', 'SpecNotStored', 'the hub still holds another spec');
  if (!specSeen) return shown('False', 'SpecNotSeen', 'the operator has not taken up the present spec');
  if (!jobDone) {
    const awaited =
      automation?.mode === 'eda' && automation.asked
        ? 'the automation of the hub was asked; its work does not show yet'
        : 'the automation of the hub is expected';
    return shown('False', 'Applying', job === undefined ? awaited : `job ${job.jobId} ${stateWords(job)}`);
  }
  return shown('True', 'AsExpected', '');
};

/** That a job has begun to run is no news. */
const stateWords = ({ state }: { readonly state: string }): string =>
  RUNNING.includes(state) ? 'is under way' : `is ${state}`;

const shown = (status: Shown['status'], reason: string, message: string): Shown => ({
  status,
  reason,
  message,
});

const copied = (
  condition: ObservedCondition | undefined,
  status: Shown['status'],
  reason: string,
  message: string,
): Shown => shown(status, condition?.reason || reason, condition?.message || message);
