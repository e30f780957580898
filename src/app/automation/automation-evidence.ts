import type { AutomationPurpose } from './automation.ts';
import type { ObservedClusterOrder, ObservedHostedCluster } from '../../domain/clusters/hub-objects.ts';

/** What the playbooks leave on a ClusterOrder (OSAC's operator). */
const INFRASTRUCTURE_FINALIZER = 'osac.openshift.io/infrastructure';
const WORKFLOW_NAME = 'osac.openshift.io/ansible-workflow-name';
export const WORKFLOW_TIME = 'osac.openshift.io/ansible-workflow-time';

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
