import { stringAt } from '../json-tools.ts';
import type { ShownConditionType, StoredCluster } from './state.ts';

/** How a cluster's progress shows on the wire: OSAC's states and conditions (osac-api.md §11 ClusterStatus). */
export type ShownState =
  | ''
  | 'CLUSTER_STATE_PROGRESSING'
  | 'CLUSTER_STATE_READY'
  | 'CLUSTER_STATE_FAILED'
  | 'CLUSTER_STATE_DELETING';

export type ShownCondition = {
  readonly type: ShownConditionType;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
};

/** Empty: nothing has happened to the order yet (OSAC shows an empty status). */
export const shownState = (state: StoredCluster): ShownState => {
  if (state.status === 'dispatched' && state.deletionRequestedAt !== undefined) {
    return 'CLUSTER_STATE_DELETING';
  }
  if (state.failure !== undefined) return 'CLUSTER_STATE_FAILED';
  if (state.status === 'dispatched' && state.ready) return 'CLUSTER_STATE_READY';
  const untouched = state.status === 'accepted' && state.waiting === undefined;
  return untouched || state.status === 'deleted' ? '' : 'CLUSTER_STATE_PROGRESSING';
};

/** What a reader sees: the status that a private caller wrote wins until the next observation (design §6). */
export const effectiveState = (state: StoredCluster): string =>
  state.reported === undefined ? shownState(state) : stringAt(state.reported, 'state');

export const shownConditions = (state: StoredCluster): readonly ShownCondition[] => {
  if (shownState(state) === '') return [];
  const degraded = state.status === 'dispatched' ? state.degraded : undefined;
  const ready = shownState(state) === 'CLUSTER_STATE_READY' && degraded === undefined;
  return [
    { type: 'CLUSTER_CONDITION_TYPE_PROGRESSING', ...progressing(state) },
    {
      type: 'CLUSTER_CONDITION_TYPE_READY',
      status: ready,
      reason: ready ? 'AsExpected' : degraded === undefined ? 'NotReady' : 'Degraded',
      message: '',
    },
    {
      type: 'CLUSTER_CONDITION_TYPE_FAILED',
      status: state.failure !== undefined,
      reason: state.failure?.reason ?? 'AsExpected',
      message: state.failure?.message ?? '',
    },
    {
      type: 'CLUSTER_CONDITION_TYPE_DEGRADED',
      status: degraded !== undefined,
      reason: degraded?.reason ?? 'AsExpected',
      message: degraded?.message ?? '',
    },
  ];
};

const progressing = (state: StoredCluster): Omit<ShownCondition, 'type'> => {
  const say = (status: boolean, reason: string, message = ''): Omit<ShownCondition, 'type'> => ({
    status,
    reason,
    message,
  });
  if (state.status === 'dispatched' && state.deletionRequestedAt !== undefined) {
    // What exactly is left is the provider's to know: it stands in the timeline.
    if (state.overdue !== undefined) {
      return say(true, 'DeletionOverdue', 'the hub takes unusually long to clean up; it goes on trying');
    }
    const blocked = state.waitingFor.length > 0;
    return say(true, 'Deleting', blocked ? 'waiting for the hub to clean up' : '');
  }
  if (state.failure !== undefined) return say(false, state.failure.reason, state.failure.message);
  if (state.waiting !== undefined) return say(false, 'WaitingForCapacity', state.waiting.message);
  if (state.status === 'dispatched' && state.notAccepting !== undefined) {
    return say(true, 'HubNotAccepting', 'the hub holds the order but has not taken it up');
  }
  return state.status === 'dispatched' && state.ready ? say(false, 'AsExpected') : say(true, 'Progressing');
};
