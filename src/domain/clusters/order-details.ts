import type { OrderDetails } from '../acting-kind.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { defined } from '../json-tools.ts';
import { conditionName } from './event-types.ts';
import { readyAs } from './shown-status.ts';
import { isStoredCluster, type ClusterState, type StoredCluster } from './state.ts';

/** What an operator reads of a cluster's order, beyond its document. */
export const clusterOrderDetails = (state: ClusterState): OrderDetails =>
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
  const isDeleting = state.deletionRequestedAt !== undefined;
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
