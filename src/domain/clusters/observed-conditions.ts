import type { ConditionName, ConditionState } from './events.ts';
import { findCondition as find } from './observed-facts.ts';
import type { ObservedCondition, ObservedFacts } from './observed.ts';

/** The four conditions that are kept of every cluster (design §6), without the time since when. */
export type ObservedConditions = {
  readonly [Name in ConditionName]: Omit<ConditionState, 'since'>;
};

type Shown = Omit<ConditionState, 'since'>;

export const clusterConditions = (facts: ObservedFacts): ObservedConditions => ({
  ClusterAvailable: clusterAvailable(facts),
  NodesReady: nodesReady(facts),
  InfrastructureReady: infrastructureReady(facts),
  TemplateApplied: templateApplied(facts),
});

/**
 * Read from the HostedCluster itself; the order's own `ClusterAvailable` is sticky and counts only where the
 * HostedCluster cannot be read (operator-run.md §4.2).
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

const nodesReady = ({ nodesReached, ready }: ObservedFacts): Shown => {
  if (nodesReached === undefined) {
    return shown('NotObservable', 'NotObservable', 'the hub does not show node counts');
  }
  if (nodesReached) return shown('True', 'AsExpected', '');
  const counts = Object.entries(ready).map(([name, count]) => `${name} ${count}`);
  return shown('False', 'NodesNotReady', `ready nodes: ${counts.join(', ')}`);
};

const infrastructureReady = ({ order, hosted }: ObservedFacts): Shown => {
  const own = find(hosted?.conditions ?? [], 'InfrastructureReady');
  if (own !== undefined) return copied(own, own.status === 'True' ? 'True' : 'False', own.type, '');
  const created = find(order.conditions, 'ControlPlaneCreated');
  // An operator that is short of hosts does not look at what is there (operator-run.md §2 g).
  if (hosted !== null && hosted !== undefined && created?.status !== 'True') {
    return shown('True', 'HostedClusterExists', '');
  }
  if (created === undefined) return shown('Unknown', 'NotReported', 'the hub has not reported it yet');
  return copied(created, created.status === 'True' ? 'True' : 'False', created.type, '');
};

const templateApplied = ({ job, jobDone, jobFailed, specMatches, specSeen }: ObservedFacts): Shown => {
  if (job !== undefined && jobFailed)
    return shown('False', 'JobFailed', `job ${job.jobId} of the hub has failed`);
  if (!specMatches) return shown('False', 'SpecNotStored', 'the hub still holds another spec');
  if (!specSeen) return shown('False', 'SpecNotSeen', 'the operator has not taken up the present spec');
  if (!jobDone) {
    const state =
      job === undefined ? 'the automation of the hub is expected' : `job ${job.jobId} is ${job.state}`;
    return shown('False', 'Applying', state);
  }
  return shown('True', 'AsExpected', '');
};

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
