import { stringAt } from '../json-tools.ts';
import { changeWords } from './change-words.ts';
import { JOB_STATUS_UNKNOWN, WAITING_FOR_HOSTS } from './observed-conditions.ts';
import type { ShownConditionType, StoredCluster, Dispatched } from './state.ts';

/** How a cluster's progress shows on the wire: OSAC's states and conditions. */
export type ShownState = '' | `CLUSTER_STATE_${'PROGRESSING' | 'READY' | 'FAILED' | 'DELETING'}`;

export type ShownCondition = {
  readonly type: ShownConditionType;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
};

/** An order is progressing from its first moment; empty: nothing shows it any more. */
export const shownState = (state: StoredCluster): ShownState => {
  if (state.status === 'dispatched' && state.deletionRequestedAt !== undefined) {
    return 'CLUSTER_STATE_DELETING';
  }
  if (state.failure !== undefined) return 'CLUSTER_STATE_FAILED';
  if (state.status === 'dispatched' && state.ready) return 'CLUSTER_STATE_READY';
  return state.status === 'deleted' ? '' : 'CLUSTER_STATE_PROGRESSING';
};

/** What a reader sees: the status that a private caller wrote wins until the next observation. */
export const effectiveState = (state: StoredCluster): string =>
  state.reported === undefined ? shownState(state) : stringAt(state.reported, 'state');

/** Nothing has happened to the order yet: its state is all that there is to show. */
export const isUntouched = ({ status, waiting, failure }: StoredCluster): boolean =>
  status === 'accepted' && waiting === undefined && failure === undefined;

export const shownConditions = (state: StoredCluster): readonly ShownCondition[] => {
  if (isUntouched(state) || shownState(state) === '') return [];
  const degraded = state.status === 'dispatched' ? state.degraded : undefined;
  const isReady = shownState(state) === 'CLUSTER_STATE_READY' && degraded === undefined;
  const failure = shownState(state) === 'CLUSTER_STATE_DELETING' ? undefined : state.failure;
  const notReady = { reason: degraded === undefined ? 'NotReady' : 'Degraded', message: '' };
  return [
    { type: 'CLUSTER_CONDITION_TYPE_PROGRESSING', ...progressing(state) },
    { type: 'CLUSTER_CONDITION_TYPE_READY', status: isReady, ...(isReady ? readyAs(state) : notReady) },
    { type: 'CLUSTER_CONDITION_TYPE_FAILED', ...saidIf(failure) },
    { type: 'CLUSTER_CONDITION_TYPE_DEGRADED', ...saidIf(degraded) },
  ];
};

type Said = Omit<ShownCondition, 'type'>;
const say = (status: boolean, reason: string, message = ''): Said => ({ status, reason, message });
const saidIf = (fault: { readonly reason: string; readonly message: string } | undefined): Said =>
  fault === undefined ? say(false, 'AsExpected') : say(true, fault.reason, fault.message);

const progressing = (state: StoredCluster): Said => {
  if (state.status === 'dispatched' && state.deletionRequestedAt !== undefined) {
    // What exactly is left is the provider's to know: it stands in the timeline.
    if (state.overdue !== undefined) {
      return say(true, 'DeletionOverdue', 'the hub takes unusually long to clean up; it goes on trying');
    }
    const blocked = state.waitingFor.length > 0;
    return say(true, 'Deleting', blocked ? 'waiting for the hub to clean up' : '');
  }
  if (state.failure !== undefined) return say(false, state.failure.reason, state.failure.message);
  if (state.waiting !== undefined && !(state.status === 'dispatched' && state.ready)) {
    return say(false, 'WaitingForCapacity', state.waiting.message);
  }
  if (state.status === 'dispatched' && state.notAccepting !== undefined) {
    return say(true, 'HubNotAccepting', 'the hub holds the order but has not taken it up');
  }
  if (state.status !== 'dispatched') return say(true, 'Progressing');
  if (state.ready) return { status: false, ...readyAs(state) };
  const { reason, message } = held(state) ?? { reason: 'Progressing', message: '' };
  return say(true, reason, message);
};

/** A cluster runs as it was ordered last, or as before: then the change that did not come about is told. */
export const readyAs = (state: StoredCluster): Pick<ShownCondition, 'reason' | 'message'> => {
  const { changeFailed, waiting, built } = state.status === 'dispatched' ? state : {};
  if (changeFailed !== undefined) {
    const { change, message } = changeFailed;
    return { reason: CHANGE_FAILED, message: `${change === '' ? '' : `${change} failed: `}${message}` };
  }
  if (waiting !== undefined) {
    const change = built === undefined ? '' : changeWords(built, state);
    const message = `${change === '' ? '' : `${change}: `}${waiting.message}`;
    return { reason: RESIZE_WAITING, message };
  }
  return { reason: 'AsExpected', message: '' };
};

const CHANGE_FAILED = 'ChangeFailed';
const RESIZE_WAITING = 'ResizeWaiting';

/** What of its conditions tells a tenant why an order does not get on. */
const held = ({ conditions: { InfrastructureReady: hosts, TemplateApplied: job } }: Dispatched) => {
  if (hosts?.reason === WAITING_FOR_HOSTS) return hosts;
  return job?.reason === JOB_STATUS_UNKNOWN ? job : undefined;
};
