import { claimOfCluster } from './claims.ts';
import type { ActingKind, AnyWorkflow } from '../acting-kind.ts';
import { NOTHING } from '../hubs/capacity.ts';
import { cluster } from './cluster.resource.ts';
import type { ClusterCommand } from './commands.ts';
import { clusterEventTypes } from './event-types.ts';
import type { ClusterEvent } from './events.ts';
import { CLUSTER_HUB_OBJECTS } from './hub-objects.ts';
import { clusterMeter } from './meter.ts';
import { clusterOrderDetails } from './order-details.ts';
import { clusterOrderWorkflow } from './order-workflow/workflow.ts';
import { CLUSTER_DEEDS, CLUSTER_SENTENCES, CLUSTER_TIMERS } from './sentences.ts';
import { isLiveCluster, type ClusterState } from './state.ts';

/** Clusters as a kind that acts. */
export const actingCluster: ActingKind<ClusterState, ClusterCommand, ClusterEvent> = {
  ...cluster,
  eventTypes: clusterEventTypes,
  workflow: clusterOrderWorkflow as unknown as AnyWorkflow,
  hubObjects: CLUSTER_HUB_OBJECTS,
  claims: (state) => (isLiveCluster(state) ? claimOfCluster(state.nodeSets) : NOTHING),
  routes: [
    {
      path: 'kubeconfig',
      method: 'GetKubeconfig',
      summary: 'The kubeconfig of a cluster; each time it is read is recorded',
      contentType: 'application/yaml',
    },
    {
      path: 'password',
      method: 'GetPassword',
      summary: "The administrator's password of a cluster; each time it is read is recorded",
      contentType: 'text/plain',
    },
  ],
  timeline: { sentences: CLUSTER_SENTENCES, deeds: CLUSTER_DEEDS, timers: CLUSTER_TIMERS },
  order: {
    prefix: 'CLUSTER',
    states: ['accepted', 'progressing', 'ready', 'failed', 'degraded', 'deleting', 'delete_failed'],
    details: clusterOrderDetails,
    retry: (at) => ({ type: 'RetryCluster', at }),
    cancel: (at) => ({ type: 'CancelOrder', at }),
  },
  logged: {
    ClusterBecameReady: 'order ready',
    ClusterFailed: 'order failed',
    ClusterChangeFailed: 'change of an order failed',
  },
  // An order keeps what it took from a template or an object, which its view shows as that object.
  secretsOf: (state) => (isLiveCluster(state) && state.pullSecret !== undefined ? [state.pullSecret] : []),
  completed: (command, { correlationId, tenantsSeeJobErrors }) =>
    command.type === 'RecordObservation'
      ? { ...command, jobErrors: { correlationId, shown: tenantsSeeJobErrors } }
      : command,
  meter: clusterMeter,
};
