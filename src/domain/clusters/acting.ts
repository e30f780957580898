import type { OrderDetails, ActingKind, AnyWorkflow } from '../acting-kind.ts';
import { NOTHING } from '../hubs/capacity.ts';
import { byKey, defined } from '../json-tools.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { meterOf, type Component, type Meter } from '../metering/meter.ts';
import { cluster } from './cluster.resource.ts';
import { evolveCluster } from './cluster.ts';
import type { ClusterCommand } from './commands.ts';
import { conditionName, clusterEventTypes } from './event-types.ts';
import { CLUSTER_HUB_OBJECTS } from './hub-objects.ts';
import { clusterOrderWorkflow } from './order-workflow/workflow.ts';
import { CLUSTER_DEEDS, CLUSTER_SENTENCES, CLUSTER_TIMERS } from './sentences.ts';
import { claimOfCluster } from './servable.ts';
import { effectiveState, readyAs } from './shown-status.ts';
import {
  type ClusterEvent,
  initialCluster,
  isLeaving,
  isLiveCluster,
  isStoredCluster,
  type ClusterState,
  type StoredCluster,
} from './state.ts';

const CONTROL_PLANE = '_control_plane';

/** The control plane first, then the node sets by name. */
const componentsOf = ({ template, version, nodeSets }: StoredCluster): readonly Component[] => {
  const componentOf = (
    component: string,
    nodeSet: string,
    hostType: string,
    nodeCount: number,
  ): Component => ({
    component,
    nodeSet,
    hostType,
    nodeCount,
    dimensions: {
      cluster_template: template.name,
      node_set: nodeSet,
      component,
      host_type: hostType,
      node_count: nodeCount,
      ...releaseOf(version),
    },
  });
  const workers = Object.entries(nodeSets)
    .sort(byKey)
    .map(([nodeSet, { hostType, size }]) => componentOf('worker', nodeSet, hostType.name, size));
  return [componentOf('control_plane', CONTROL_PLANE, CONTROL_PLANE, 1), ...workers];
};

/** Name of the cluster version; an order may have none. */
const releaseOf = ({ name }: StoredCluster['version']): JsonObject =>
  name === '' ? {} : { release_image: name };

const BILLABLE: ReadonlySet<string> = new Set(['PROGRESSING', 'READY']);

/** A cluster is billed for its control plane and each of its node sets, by what was ordered (OSAC). */
export const clusterMeter: Meter<ClusterState> = meterOf<ClusterState, ClusterEvent>(
  {
    version: 1,
    resourceType: 'cluster_order',
    templateKind: 'clusterTemplate',
    facts: (state) => {
      if (!isStoredCluster(state)) return undefined;
      const { id, tenant, project, name, template, version, catalogItem } = state;
      const shown = effectiveState(state).replace(/^CLUSTER_STATE_/, '') || 'UNSPECIFIED';
      return {
        id,
        tenant,
        project,
        name,
        template,
        ...(catalogItem === undefined ? {} : { catalogItem: catalogItem.id }),
        state: shown,
        isBillable: BILLABLE.has(shown),
        isDelivered: shown === 'READY',
        isGone: !isLiveCluster(state),
        dimensions: { cluster_template: template.name, ...releaseOf(version) },
      };
    },
    components: (state) => (isStoredCluster(state) ? componentsOf(state) : []),
    sameComponents: (before, after) =>
      isStoredCluster(before) &&
      isStoredCluster(after) &&
      before.nodeSets === after.nodeSets &&
      before.template === after.template &&
      before.version === after.version,
  },
  { initialState: initialCluster, evolve: evolveCluster },
);

/** What an operator reads of a cluster's order, beyond its document. */
const clusterOrderDetails = (state: ClusterState): OrderDetails =>
  isStoredCluster(state)
    ? {
        conditions: conditionsOf(state),
        waiting: waiting(state),
        failure: failures(state),
        place: placeOf(state),
      }
    : { conditions: {}, waiting: {}, failure: {}, place: {} };

/**
 * The four conditions that OSAC's wire enum has no room for, and why a running cluster is not as it was ordered last. Of
 * what is torn down none is looked at any more; of a deleted order those observed last are shown.
 */
const conditionsOf = (state: StoredCluster): JsonObject => {
  if (state.status === 'deleted') return { ...state.conditions };
  const isDeleting = isLeaving(state);
  const known = state.status === 'dispatched' && !isDeleting ? state.conditions : {};
  const reason = isDeleting ? 'Deleting' : 'NotObservedYet';
  const kept = conditionName.options.map((name): [string, JsonValue] => [
    name,
    { ...(known[name] ?? { status: 'Unknown', reason, message: '' }) },
  ]);
  return { ...Object.fromEntries(kept), ...stoppedChange(state) };
};

/** With what the hub said in full. */
const failures = (state: StoredCluster): JsonObject => {
  const failed = state.status === 'dispatched' ? state.changeFailed : undefined;
  return defined({
    failure: state.failure && { ...state.failure },
    change_failed: failed && { ...failed },
  });
};

const placeOf = (state: StoredCluster): JsonObject =>
  'hub' in state && state.hub !== undefined
    ? { hub: state.hub.id, order_name: state.hub.orderName, namespace: state.hub.namespace }
    : {};

/** A change that failed, or that waits for room. */
const stoppedChange = (state: StoredCluster): JsonObject => {
  if (state.status !== 'dispatched' || !state.ready) return {};
  const { changeFailed, waiting: room } = state;
  const { message, reason } = readyAs(state);
  if (changeFailed !== undefined)
    return {
      [reason]: { status: 'True', reason: changeFailed.reason, message, since: changeFailed.since },
    };
  return room === undefined
    ? {}
    : { [reason]: { status: 'True', reason: 'NoRoom', message, since: room.since } };
};

/** What stands in the way: no hub fits, or the hub has not let go yet. */
const waiting = (state: StoredCluster): JsonObject => {
  // It may have waited until it was deleted.
  if (state.status === 'deleted') return {};
  if (state.status === 'dispatched' && state.waitingFor.length > 0)
    return { waiting_for: [...state.waitingFor] };
  if (!('waiting' in state) || state.waiting === undefined) return {};
  return {
    waiting: {
      message: state.waiting.message,
      decision: JSON.parse(JSON.stringify(state.waiting.decision)) as JsonValue,
    },
  };
};

/** Clusters as a kind that acts. */
export const actingCluster: ActingKind<ClusterState, ClusterCommand, ClusterEvent> = {
  ...cluster,
  eventTypes: clusterEventTypes,
  workflow: clusterOrderWorkflow as unknown as AnyWorkflow,
  hubObjects: CLUSTER_HUB_OBJECTS,
  isWithdrawn: (state) => isStoredCluster(state) && state.withdrawn === true,
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
    abort: (at, reason) => ({ type: 'AbortOrder', at, reason }),
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
